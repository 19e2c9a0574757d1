"""Variables of a Dataset that describe fixed points, of one problem or of a branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanfield.families.contrastive.fixed_points.points import FixedPoints
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.numerics.growth_rates import FixedPoint
from meanfield.results.states import stacked


def fixed_point_arrays(points: FixedPoints, chosen: Sequence[int] | None = None) -> dict[str, Any]:
    """The variables of fixed points, as the schema names them.

    Parameters
    ----------
    points : FixedPoints
    chosen : sequence of int, optional
        Indices of the fixed points to describe; all by default.
    """
    kept = [points.points[i] for i in (range(len(points.points)) if chosen is None else chosen)]
    rows = [fixed_point_variables(points.field, point) for point in kept]
    arrays = stacked(rows, without_fixed_points(points.field.features))
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


def without_fixed_points(features: int) -> dict[str, Any]:
    """Variables of a result without fixed points: arrays whose leading dimension is 0."""
    vectors = {name: np.empty((0, features)) for name in ("q", "g", "eigenvalue_real", "eigenvalue_imag")}
    numbers = {name: np.empty(0) for name in ("Lambda", "growth_rate", "stability")}
    return vectors | numbers | {"kind": np.empty(0, dtype=str)}
