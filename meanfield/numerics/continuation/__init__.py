"""All roots of equations, and their branches as a parameter changes: numerics that know no physics.

Equations are functions x -> (F, dF/dx), shapes (n,) and (n, n), or (x, p) -> (F, dF/dx, dF/dp) with a scalar
parameter p. They return NaN outside their domain.
"""

from meanfield.numerics.continuation.branches import Branch, ParametricEquations, crossings, follow
from meanfield.numerics.continuation.diagram import CachedEquations, SearchableEquations, all_branches, by_difference
from meanfield.numerics.continuation.flows import slowed
from meanfield.numerics.continuation.roots import (
    Equations,
    ball_starts,
    directions,
    find_roots,
    is_among,
    newton,
    rough_differences,
    signed_permutations,
)

__all__ = [
    "Branch",
    "CachedEquations",
    "Equations",
    "ParametricEquations",
    "SearchableEquations",
    "all_branches",
    "ball_starts",
    "by_difference",
    "crossings",
    "directions",
    "find_roots",
    "follow",
    "is_among",
    "newton",
    "rough_differences",
    "signed_permutations",
    "slowed",
]
