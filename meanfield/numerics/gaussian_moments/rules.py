"""Rules of quadrature for averages over Gaussian rows: by products, panels between kinks, or random points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

import numpy as np

from meanfield.errors import InputError
from meanfield.numerics.compiled.row_functions import RowFunction
from meanfield.numerics.gaussian_moments.forms import NARROW, forms_between, turned_to
from meanfield.numerics.gaussian_moments.half_lines import MOST_POINTS, NO_HALF_LINES, half_lines
from meanfield.numerics.gaussian_moments.kernel import Law, Moments, Nodes, sum_over_nodes
from meanfield.numerics.gaussian_moments.panels import Panels, panel_nodes
from meanfield.numerics.gaussian_moments.separation import Parts
from meanfield.numerics.gaussian_moments.spherical import sphere_nodes, with_lengths
from meanfield.numerics.gaussian_moments.terms import Line, sum_of_terms
from meanfield.numerics.quadrature import gaussian_trapezoid, normal_numbers, sobol_points, tensor_rule
from meanfield.typing import FloatArray

REACH = 8.4
"""Standard deviations at which rules end: 5e-17 of the probability lies beyond."""

RANDOMISATIONS = 8
"""Number of scrambles of Sobol points, from whose spread standard errors follow."""

CORNER = 0.2
"""Distance from the origin beyond the reach, at which corners of products are cut off: half of all nodes in four
directions, with 4e-15 of the probability."""

WIDEST_PANEL = 10.0
"""Largest width of a panel that is bounded: one covers each side of a kink near the mean."""

LAYERS = np.array([0.0, -7.0, 7.0])
"""Ends of panels about a smooth step, in units of its width: 7 of them away it has reached its ends to 1e-12."""

CELLS = 6
"""Cells of a table for each node of a rule for sums of terms."""

MOST_NODES = 4_000_000
"""Largest number of nodes: with four directions they take 160 MB."""

MIRRORED = np.random.default_rng(0).standard_normal((8, 64))
"""Rows at which functions are compared with their values at the mirror image."""

ROUNDING = 1e-13
"""Largest difference, relative to the largest value, of even and odd functions."""

Kind = Literal["polynomial", "terms", "smooth", "kinked", "random"]


class Kinks(NamedTuple):
    """Places where a function of rows x jumps or bends: normals[i] . x = levels[i].

    Parameters
    ----------
    normals : ndarray, shape (kinks, width)
    levels : ndarray, shape (kinks,)
    """

    normals: FloatArray
    levels: FloatArray


def pivots_of(factor: FloatArray) -> list[int]:
    """Rows of a semidefinite factor each of which adds a direction."""
    return [int(np.flatnonzero(column)[0]) for column in factor.T]


class Averager(Protocol):
    """What has averages of a function over some laws, such as those of the components of a mixture."""

    def averages(self, function: RowFunction, constants: FloatArray, laws: Sequence[Law]) -> Sequence[Moments]:
        """Averages over each law."""


class TooManyNodesError(InputError):
    """Error of a rule that takes more than `MOST_NODES`."""


@dataclass(frozen=True, eq=False)
class Rule:
    """Rule of quadrature for all Gaussian laws of a row.

    Parameters
    ----------
    kind : {'polynomial', 'terms', 'smooth', 'kinked', 'random'}
        Gauss-Hermite products, trapezoidal rules for the terms of a sum, trapezoidal products, panels between kinks, or
        scrambled Sobol points.
    order : int
        Nodes of a direction or, between two kinks, of a panel; or number of points of each randomisation.
    kinks : Kinks
        Kinks, for panels between them.
    reach : float, optional
        Standard deviations at which trapezoidal rules and panels end.
    randomisation : int, optional
        The only one of the randomisations that counts; otherwise all do.
    parts : Parts, optional
        Parts of the function, if it is a sum of terms.
    degree : int, optional
        Degree of the function as a polynomial between kinks, if it is one: averages over the last direction in which
        kinks vary, and over those in which none does, are exact.
    bounded : bool, optional
        Whether panels end at the reach; otherwise those before the first kink of a direction and behind the last one
        have Gauss rules on half-lines.
    powers : tuple of int, optional
        Powers of the length of a row with which outputs grow, if they do and kinks go through the origin: panels are
        those of angles, and the average over the length is exact.
    """

    kind: Kind
    order: int
    kinks: Kinks
    reach: float = REACH
    randomisation: int | None = None
    parts: Parts | None = None
    degree: int | None = None
    bounded: bool = False
    powers: tuple[int, ...] | None = None

    def of(self, law: Law) -> Rule:
        """The same rule, or panels where rows have a mean, which none of the typical laws of those on spheres had."""
        if self.powers is None or (law.factor.size and not law.mean.any()):
            return self
        return replace(self, order=max(self.order, MOST_POINTS), powers=None)

    def parity(self, function: RowFunction, constants: FloatArray, law: Law) -> FloatArray | None:
        """1 for each output that is even in z and -1 for odd ones, where nodes of one half-space tell all; or None."""
        width, rank = law.factor.shape
        if rank < 3 or self.kind not in ("smooth", "terms") or law.mean.any() or width > MIRRORED.shape[1]:
            return None  # nodes are few, or no mirror images of each other
        rows = np.linalg.norm(law.factor, axis=1) * MIRRORED[:, :width]
        values = function(np.concatenate([rows, -rows]), constants)
        size = np.abs(values).max(axis=0, initial=1e-300)
        odd, even = (np.abs(values[:8] + sign * values[8:]).max(axis=0) <= ROUNDING * size for sign in (1.0, -1.0))
        return np.where(even, 1.0, -1.0) if np.all(odd | even) else None

    def nodes(self, law: Law) -> Nodes:
        """Nodes for the independent variables of a law.

        Raises
        ------
        TooManyNodesError
            If there are more than `MOST_NODES`.
        """
        if self.kind != "kinked":
            return fixed_nodes(self.kind, self.order, law.factor.shape[1], self.reach, self.randomisation)
        turned = turned_to(self.kinks.normals @ law.factor)
        forms = forms_between(*self.kinks, law.mean, law.factor @ turned)
        if self.powers is not None:
            z, weights = sphere_nodes(self.order, forms[0], MOST_NODES)
        else:
            z, weights = panel_nodes(panels_of(self.order, self.reach, self.degree, self.bounded), *forms)
        if not weights.size:
            what = f"panels between {len(self.kinks.levels)} kinks, with {self.order} points each,"
            raise _too_many(what, law.factor.shape[1])
        return Nodes(turned @ z, weights)

    def moments(self, function: RowFunction, constants: FloatArray, law: Law) -> Moments:
        """Averages of a function over a law.

        Of sums of terms, products of outputs of which none are wanted are 0, but for estimates of squares.
        """
        if self.of(law) is not self:
            return self.of(law).moments(function, constants, law)
        parity = self.parity(function, constants, law)
        if self.parts is not None:
            given = (function.address, function.outputs, constants, *law, self.parts)
            found = sum_of_terms(*given, _line(self.order, self.reach), parity is not None)
            if self.parts.counted < function.outputs:
                # Random points of a randomisation by which outputs are sized whose products are not wanted.
                z = fixed_nodes("random", 32, law.factor.shape[1], self.reach, None).z
                squares = (function(law.mean + z.T @ law.factor.T, constants) ** 2).mean(axis=0)
                rest = np.arange(self.parts.counted, function.outputs)
                found[2][rest, rest] = squares[rest]
        else:
            half = (self.kind, self.order, len(law.factor.T), self.reach, None, True)
            nodes = self.nodes(law) if parity is None else fixed_nodes(*half)
            found = sum_over_nodes(function.address, function.outputs, constants, *law, *nodes)
        if self.powers is not None:
            return with_lengths(Moments(*found), self.powers)
        return Moments(*found) if parity is None else Moments(*found).of_parity(parity)

    def averages(self, function: RowFunction, constants: FloatArray, laws: Sequence[Law]) -> list[Moments]:
        """See `Averager`."""
        return [self.moments(function, constants, law) for law in laws]

    def randomisations(self) -> tuple[Rule, ...]:
        """Independent rules whose mean this one is; the rule itself unless its points are random.

        A result of the mean is off by less than 3.5 standard errors, as their spread gives them, in 99 % of all cases
        (Student's law with 7 degrees of freedom).
        """
        if self.kind != "random":
            return (self,)
        return tuple(replace(self, randomisation=number) for number in range(RANDOMISATIONS))


def half_of(nodes: Nodes) -> Nodes:
    """The first half of nodes whose order turned round is that of their mirror images, with twice the weights."""
    count = len(nodes.weights) // 2
    middle = nodes.weights[count : len(nodes.weights) - count]  # the mean, where there is such a node
    z = np.ascontiguousarray(nodes.z[:, : count + len(middle)])
    return Nodes(z, np.concatenate([2.0 * nodes.weights[:count], middle]))


def _too_many(what: str, rank: int) -> TooManyNodesError:
    return TooManyNodesError(
        f"{what} in {rank} Gaussian directions take more than {MOST_NODES:,} nodes; declare fewer kinks, or let the "
        "function read fewer fields"
    )


@lru_cache(maxsize=64)
def panels_of(order: int, reach: float, degree: int | None = None, bounded: bool = False) -> Panels:
    """Panels between kinks with some nodes each, and ends at a reach in standard deviations; see `Rule`."""
    points, shares = np.polynomial.legendre.leggauss(order)
    ends = np.unique([-reach, -REACH, REACH, reach])
    if degree is None:
        spacing = REACH / (order - 0.5)  # as many nodes as two panels have, which stay if the reach grows
        half = spacing * (np.arange(int(reach / spacing + 0.5 + 1e-9)) + 0.5)
        smooth = np.concatenate([-half[::-1], half])
        weights = np.exp(-0.5 * smooth**2)
    else:
        smooth, weights = np.polynomial.hermite_e.hermegauss(degree + 1)
    bounded = bounded or (degree is None and order > MOST_POINTS)
    beyond = NO_HALF_LINES if bounded else half_lines(min(order, MOST_POINTS))
    last = beyond if degree is None else half_lines(degree + 1)
    limits = reach + CORNER, MOST_NODES
    return Panels(points, shares, WIDEST_PANEL, ends, LAYERS, NARROW, smooth, weights, beyond, last, *limits)


@lru_cache(maxsize=64)
def _line(order: int, reach: float) -> Line:
    x, weight = gaussian_trapezoid(order, reach)
    degree = order // 2  # of polynomials that the nodes resolve
    hermite = np.polynomial.hermite_e.hermevander(x, degree - 1) / np.sqrt(
        [float(math.factorial(n)) for n in range(degree)]
    )
    return Line(x, weight, np.ascontiguousarray(hermite * weight[:, None]), reach, CELLS * order)


@lru_cache(maxsize=8)
def fixed_nodes(
    kind: Kind, order: int, rank: int, reach: float, randomisation: int | None, half: bool = False
) -> Nodes:
    """Nodes that are the same for all laws of a rank, or those of one half-space; see `half_of`."""
    if half:
        return half_of(fixed_nodes(kind, order, rank, reach, randomisation))
    if kind == "random":
        chosen = range(RANDOMISATIONS) if randomisation is None else (randomisation,)
        z = np.concatenate([normal_numbers(sobol_points(order, rank, seed)) for seed in chosen])
        return Nodes(np.ascontiguousarray(z.T), np.full(len(z), 1.0 / len(z)))
    if order**rank > MOST_NODES:
        raise _too_many(f"products of rules with {order} nodes", rank)
    if rank == 0:
        return Nodes(np.zeros((0, 1)), np.ones(1))
    if kind == "polynomial":
        x, weight = np.polynomial.hermite_e.hermegauss(order)
        z, weights = tensor_rule([(x, weight / weight.sum())] * rank, 0.0)
    else:
        x, weight = gaussian_trapezoid(order, reach)
        corner = weight.max() ** rank * math.exp(-0.5 * (reach + CORNER) ** 2)
        z, weights = tensor_rule([(x, weight)] * rank, corner)
    return Nodes(np.ascontiguousarray(z.T), weights)
