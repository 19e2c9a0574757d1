"""All fixed points of the reduced ODEs, growth rates of small perturbations of them, and their variables.

Completeness has a witness. On the sphere b points inwards, so that the indices of all zeros, sign det(-db/dq), add up
to 1 (Poincare and Hopf). Where they do not, one was missed, and the search is repeated with finer cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.families.contrastive.fixed_points.faces import Zero, all_zeros, indices_add_up
from meanfield.families.contrastive.fixed_points.search import field_size
from meanfield.families.contrastive.fixed_points.symmetries import copies, sign_symmetries
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.numerics.growth_rates import RATE_RESOLUTION, FixedPoint, sorted_rates
from meanfield.numerics.refinement import retry
from meanfield.results.states import stacked
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class FixedPoints:
    """All fixed points of one problem.

    Parameters
    ----------
    points : tuple of FixedPoint
        Fixed points in the order of their overlaps.
    flips : ndarray, shape (flips, d1)
        Flips of features that leave the field as it is.
    size : float
        Size of the field, the unit of rates and speeds.
    complete : bool
        Whether the indices add up to 1, or are no test because a point is marginal or on the sphere.
    """

    field: VectorField
    points: tuple[FixedPoint, ...]
    flips: FloatArray
    size: float
    complete: bool

    @property
    def q(self) -> FloatArray:
        """Overlaps of all fixed points, shape (points, d1)."""
        return np.array([point.q for point in self.points]).reshape(-1, self.field.features)

    @property
    def stable(self) -> list[int]:
        """Indices of the stable fixed points."""
        return [i for i, point in enumerate(self.points) if point.verdict == 1]


def find_fixed_points(field: VectorField) -> FixedPoints:
    """All zeros of b(q) in the closed unit ball, with their types.

    Parameters
    ----------
    field : VectorField
        Vector field of a problem. Of independent features every set of learnt ones is searched by itself; dependent
        ones are searched by cells, or from scattered starts where there are more than three.

    Notes
    -----
    Of a continuum of fixed points, such as a circle where two features have the same Gaussian law, single points are
    reported, which are marginal. Source: theory.md, section 2, for b; section 7 for the stability of q = 0.
    """

    def search(fineness: int) -> FixedPoints:
        zeros = sorted(all_zeros(field, flips, size, fineness), key=lambda zero: np.round(zero.q, 9).tolist())
        points = _classified(field, zeros, flips, size)
        return FixedPoints(field, points, flips, size, indices_add_up(zeros, list(range(field.features)), size))

    def finer(fineness: int, found: FixedPoints) -> int | None:
        return None if found.complete or field.features > 2 else min(2 * fineness, 4)

    with field.watched("search for fixed points"):
        flips = sign_symmetries(field)
        size = field_size(field)
        return retry(search, 1, finer)


def _classified(field: VectorField, zeros: list[Zero], flips: FloatArray, size: float) -> tuple[FixedPoint, ...]:
    """Fixed points from zeros, with their growth rates, which copies have in common."""
    points: dict[int, FixedPoint] = {}
    orbits = 0
    places = np.array([zero.q for zero in zeros]).reshape(-1, field.features)
    for i, (q, slope) in enumerate(zeros):
        if i in points:
            continue
        rates = sorted_rates(np.linalg.eigvals(slope))
        for image in copies(q, flips):
            j = int(np.argmin(np.linalg.norm(places - image, axis=1)))
            if j not in points:
                points[j] = FixedPoint(places[j] + 0.0, rates, RATE_RESOLUTION * size, orbits)
        orbits += 1
    return tuple(points[i] for i in range(len(zeros)))


def fixed_point_arrays(points: FixedPoints, chosen: Sequence[int] | None = None) -> dict[str, Any]:
    """The variables of fixed points, as the schema names them.

    Parameters
    ----------
    chosen : sequence of int, optional
        Indices of the fixed points to describe; all by default.
    """
    kept = [points.points[i] for i in (range(len(points.points)) if chosen is None else chosen)]
    rows = [fixed_point_variables(points.field, point) for point in kept]
    arrays = stacked(rows, "dynamics", points.field.problem)
    return arrays | {"orbit": np.array([point.orbit for point in kept], dtype=np.int64)}


def fixed_point_variables(field: VectorField, point: FixedPoint) -> dict[str, Any]:
    """The variables of one fixed point of a field."""
    g, diffusion = field.closure(point.q)
    return {
        "q": point.q,
        "g": g,
        "Lambda": diffusion,
        "growth_rate": point.eigenvalues[0].real,
        "eigenvalue_real": point.eigenvalues.real,
        "eigenvalue_imag": point.eigenvalues.imag,
        "stability": np.int8(point.verdict),
        "kind": point.kind,
    }
