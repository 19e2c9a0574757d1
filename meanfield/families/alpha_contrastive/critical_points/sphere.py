"""Critical points on spheres of more than two coordinates, and the random filters that come to them.

They are enumerated where that is possible. Attractors are followed from random starts on an objective whose kinks are
rounded, and polished on the wall that each ends at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from meanfield.families.alpha_contrastive.critical_points.arrangement import unit
from meanfield.families.alpha_contrastive.critical_points.enumeration import SAME_POINT, Completeness, enumerated_points
from meanfield.families.alpha_contrastive.critical_points.rest import SpherePoint, polished
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

KINK_HALF_WIDTHS = (0.004, 0.0008)
"""Half-widths of rounded kinks, relative to the length of an atom, one after the other."""

UPHILL_STEPS = 400
"""Steps uphill for each rounding."""

CHECKED, AT_REST = 25, 1e-13
"""Number of steps after which the climb ends if it gained less than this, relative to its height."""


def sphere_points(field: DiscreteField, starts: int, seed: int) -> tuple[list[SpherePoint], Completeness]:
    """Critical points, with the random filters that come to them, and whether these are all.

    Parameters
    ----------
    field : DiscreteField
        With an activation that has no kink but at 0.
    starts : int
        Number of random filters that are followed uphill.
    seed : int
        Seed of these filters.
    """
    rng = np.random.default_rng(seed)
    first = unit(rng.standard_normal((starts, field.atoms.shape[1])))
    found: list[SpherePoint] = []
    enumerated, completeness = enumerated_points(field)
    for point in enumerated:
        _place(found, point)
    for w in _uphill(field, first):
        known = next((k for k, point in enumerate(found) if np.linalg.norm(point.w - w) < 1e-3), None)
        if known is None:
            point_there = polished(field, w, 4.0 * KINK_HALF_WIDTHS[-1])
            if point_there is None or point_there.rate > 0:
                continue
            known = _place(found, point_there)
        found[known] = replace(found[known], votes=found[known].votes + 1)
    if completeness == "searched":
        for w in first:
            other = polished(field, w, -1.0)
            if other is not None:
                _place(found, other)
    return found, completeness


def _place(found: list[SpherePoint], point: SpherePoint) -> int:
    """Place of a point among those found, where it is put if it is new."""
    for k, other in enumerate(found):
        if np.linalg.norm(other.w - point.w) < SAME_POINT:
            return k
    found.append(point)
    return len(found) - 1


def _uphill(field: DiscreteField, w: FloatArray) -> FloatArray:
    """Filters at the end of their way uphill, on objectives whose kinks are rounded less and less."""
    lengths = np.linalg.norm(field.atoms, axis=1)
    kinked = field.filter.straight is not None and field.filter.straight[1] != 0.0
    step = np.ones(len(w))
    with progress_bar(len(KINK_HALF_WIDTHS) * UPHILL_STEPS, "filters uphill", "step") as bar:
        for rounding in KINK_HALF_WIDTHS if kinked else KINK_HALF_WIDTHS[-1:]:
            w, step = _climbed(field, w, step, rounding * np.where(lengths > 0, lengths, 1.0), bar.update)
    return w


def _climbed(
    field: DiscreteField, w: FloatArray, step: FloatArray, width: FloatArray, advance: Callable[[float], Any]
) -> tuple[FloatArray, FloatArray]:
    """Filters that have come to rest on the objective with kinks of one width, and their last steps."""
    height, force = _rounded(field, w, width)
    for _ in range(UPHILL_STEPS // CHECKED):
        before = height
        for _ in range(CHECKED):
            trial = unit(w + step[:, None] * force)
            new_height, new_force = _rounded(field, trial, width)
            better = new_height > height
            w = np.where(better[:, None], trial, w)
            height = np.where(better, new_height, height)
            force = np.where(better[:, None], new_force, force)
            step = np.clip(np.where(better, 1.5 * step, 0.4 * step), 1e-9, 1e9)
        advance(CHECKED)
        if np.all(height - before <= AT_REST * np.abs(height)):
            break
    return w, step


def _rounded(field: DiscreteField, w: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Objective and tangential field of filters with rounded kinks."""
    z = w @ field.atoms.T
    if field.filter.straight is None:
        h, slope = field.filter.value(z), field.filter.slope(z)
    else:
        a, b = field.filter.straight
        part = np.clip(0.5 * (z / width + 1.0), 0.0, 1.0)
        h = a * z + b * np.where(part < 1.0, width * part * part, z)
        slope = a + b * part
    pull = field.pull(h)
    F = (pull * slope) @ field.atoms
    return field.height(h), F - np.sum(F * w, axis=1, keepdims=True) * w
