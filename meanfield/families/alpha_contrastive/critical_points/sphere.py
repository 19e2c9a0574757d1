"""Critical points on spheres of more than two coordinates: uphill from random filters, and cell by cell.

Attractors are followed from random starts on an objective whose kinks are rounded, and polished on the wall that each
ends at. Where the matrix A(w) is constant in cells, the eigenvectors of all cells that were seen add the saddles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.process.progress import progress_bar
from meanfield.typing import BoolArray, FloatArray

ROUNDINGS = (0.004, 0.0008)
"""Half-widths of rounded kinks, relative to the length of an atom, one after the other."""

UPHILL_STEPS = 400
"""Steps uphill for each rounding."""

CHECKED, AT_REST = 25, 1e-13
"""Number of steps after which the climb ends if it gained less than this, relative to its height."""

NEWTON_STEPS = 40
"""Largest number of Newton steps of a polished point."""

RESIDUAL = 1e-11
"""Largest field at a critical point, relative to the largest importance of an atom."""

ON_WALL = 1e-10
"""Largest w.x, relative to |x|, of an atom whose wall a point is on."""

SAME = 1e-7
"""Distance of two points that are one."""

GATES = 1e-9
"""Distance of a multiplier from 0 and 1 at which its wall does not hold the point."""

CELL_SAMPLES = 4000
"""Random filters whose cells are looked at."""

SIMPLE = 1e-9
"""Smallest growth rate, and distance of eigenvalues, relative to the largest, at points that are isolated."""


@dataclass(frozen=True)
class SpherePoint:
    """Critical point on a sphere.

    Parameters
    ----------
    w : ndarray, shape (coordinates,)
    slope : ndarray, shape (atoms,)
        h' of each atom; on walls the multiplier between the slopes of both sides.
    held : ndarray of bool, shape (atoms,)
        Atoms on whose walls the point is held from both sides.
    rate, rate_frozen : float
        Largest growth rate along the walls; -inf where nothing is left to move, inf where a wall repels.
    votes : int
        Number of random starts that come to it.
    """

    w: FloatArray
    slope: FloatArray
    held: BoolArray
    rate: float
    rate_frozen: float
    votes: int = 0


def sphere_points(field: DiscreteField, starts: int, seed: int) -> tuple[list[SpherePoint], int]:
    """Critical points that are found, and the number of starts that came to rest at one of them.

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
    d = field.atoms.shape[1]
    first = _unit(rng.standard_normal((starts, d)))
    ends = _uphill(field, first)
    found: list[SpherePoint] = []
    arrived = 0
    for w in ends:
        known = next((k for k, point in enumerate(found) if np.linalg.norm(point.w - w) < 1e-3), None)
        if known is None:
            point = _polished(field, w)
            if point is None or point.rate > 0:
                continue
            known = _place(found, point)
        arrived += 1
        found[known] = replace(found[known], votes=found[known].votes + 1)
    for w in _eigenvectors(field, rng) if _constant_in_cells(field) else first:
        other = _polished(field, w, may_hold=False)
        if other is not None:
            _place(found, other)
    return found, arrived


def _place(found: list[SpherePoint], point: SpherePoint) -> int:
    """Place of a point among those found, where it is put if it is new."""
    for k, other in enumerate(found):
        if np.linalg.norm(other.w - point.w) < SAME:
            return k
    found.append(point)
    return len(found) - 1


def _constant_in_cells(field: DiscreteField) -> bool:
    return (field.frozen is not None or field.pairs.uniform) and field.filter.straight is not None


def _unit(w: FloatArray) -> FloatArray:
    return np.asarray(w / np.linalg.norm(w, axis=-1, keepdims=True))


def _uphill(field: DiscreteField, w: FloatArray) -> FloatArray:
    """Filters at the end of their way uphill, on objectives whose kinks are rounded less and less."""
    lengths = np.linalg.norm(field.atoms, axis=1)
    kinked = field.filter.straight is not None and field.filter.straight[1] != 0.0
    step = np.ones(len(w))
    with progress_bar(len(ROUNDINGS) * UPHILL_STEPS, "filters uphill", "step") as bar:
        for rounding in ROUNDINGS if kinked else ROUNDINGS[-1:]:
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
            trial = _unit(w + step[:, None] * force)
            new_height, new_force = _rounded(field, trial, width)
            better = new_height > height
            w = np.where(better[:, None], trial, w)
            height, force = np.where(better, new_height, height), np.where(better[:, None], new_force, force)
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
        h, slope = a * z + b * np.where(part < 1.0, width * part * part, z), a + b * part
    pull = field.pull(h)
    F = (pull * slope) @ field.atoms
    return field.height(h), F - np.sum(F * w, axis=1, keepdims=True) * w


def _polished(field: DiscreteField, w: FloatArray, may_hold: bool = True) -> SpherePoint | None:
    """Critical point near a filter, on the walls that hold it; None if there is none."""
    lengths = np.linalg.norm(field.atoms, axis=1)
    kinked = field.filter.straight is not None and field.filter.straight[1] != 0.0
    near = np.abs(field.atoms @ w) <= 4.0 * ROUNDINGS[-1] * lengths
    hold = near & (lengths > 0) & (kinked and may_hold)
    for _ in range(4):
        point = _newton(field, w, hold)
        if point is None:
            return None
        gates, residual = _gates(field, point, hold)
        scale = np.abs(field.pull(field.filter.value(field.atoms @ point)[None])).max() * lengths.max()
        outside = hold & ((gates < -GATES) | (gates > 1.0 + GATES))
        if not outside.any():
            return _described(field, point, hold, gates) if residual <= max(RESIDUAL * scale, 1e-15) else None
        hold, w = hold & ~outside, point
    return None


def _side(field: DiscreteField, gates: FloatArray, z: FloatArray, hold: BoolArray) -> FloatArray:
    """H' of each atom, between those of both sides for atoms on walls."""
    slope = field.filter.slope(z)
    if field.filter.straight is not None:
        a, b = field.filter.straight
        slope = np.where(hold, a + b * gates, slope)
    return slope


def _newton(field: DiscreteField, w: FloatArray, hold: BoolArray) -> FloatArray | None:
    """Critical point of the field along the walls of atoms, by Newton's method from a filter near it."""
    wall = _null_space(field.atoms[hold], len(w))
    if not wall.shape[1]:
        return None
    inside = wall @ (wall.T @ w)
    if np.linalg.norm(inside) < 0.5:
        return None
    w, start = _unit(inside), _unit(inside)
    gates = np.zeros(len(field.atoms))
    for _ in range(NEWTON_STEPS):
        z = np.where(hold, 0.0, field.atoms @ w)
        slope = _side(field, gates, z, hold)
        basis = _tangent(wall, w)
        if not basis.shape[1]:
            return w
        force = basis.T @ (field.atoms.T @ (field.pull(field.filter.value(z)[None])[0] * slope))
        J, _ = field.jacobians(w, basis, slope)
        step = np.linalg.lstsq(J, -force, rcond=None)[0]
        length = float(np.linalg.norm(step))
        w = _unit(w + basis @ (step * min(1.0, 0.2 / max(length, 1e-300))))
        if length <= 1e-14:
            break
    return w if w @ start > 0.8 else None


def _null_space(rows: FloatArray, d: int) -> FloatArray:
    """Orthonormal vectors that are orthogonal to all rows, shape (d, k)."""
    if not len(rows):
        return np.eye(d)
    _, size, vectors = np.linalg.svd(rows)
    rank = int(np.count_nonzero(size > 1e-10 * size[0]))
    return np.asarray(vectors[rank:].T)


def _tangent(wall: FloatArray, w: FloatArray) -> FloatArray:
    """Orthonormal vectors of a subspace that are orthogonal to w, shape (d, k - 1)."""
    inside = wall.T @ w
    return np.asarray(wall @ _null_space(inside[None], len(inside)))


def _gates(field: DiscreteField, w: FloatArray, hold: BoolArray) -> tuple[FloatArray, float]:
    """Multipliers of the walls that balance the field across them, and what is left of the tangential field."""
    z = np.where(hold, 0.0, field.atoms @ w)
    pull = field.pull(field.filter.value(z)[None])[0]
    gates = np.zeros(len(z))
    _, b = field.filter.straight or (0.0, 0.0)
    tangent = np.eye(len(w)) - np.outer(w, w)
    force = tangent @ (field.atoms.T @ (pull * _side(field, gates, z, hold)))
    if hold.any():
        columns = b * pull[hold] * (tangent @ field.atoms[hold].T)
        gates[hold] = np.linalg.lstsq(columns, -force, rcond=None)[0]
        force = force + columns @ gates[hold]
    return gates, float(np.abs(force).max())


def _described(field: DiscreteField, w: FloatArray, hold: BoolArray, gates: FloatArray) -> SpherePoint | None:
    """Point with its growth rates along the walls that hold it from both sides; None if it is one of a continuum."""
    strict = hold & (gates > GATES) & (gates < 1.0 - GATES)
    z = np.where(hold, 0.0, field.atoms @ w)
    if strict.any() and not _is_ridge(field, z, strict):
        return SpherePoint(w, np.zeros(len(z)), strict, np.inf, np.inf)
    slope = _side(field, np.where(strict, gates, np.round(gates)), z, hold)
    basis = _tangent(_null_space(field.atoms[strict], len(w)), w)
    if not basis.shape[1]:
        return SpherePoint(w, slope, strict, -np.inf, -np.inf)
    moving, frozen = field.jacobians(w, basis, slope)
    size = np.abs(field.matrix(w, slope)).max()
    rates = np.linalg.eigvalsh(moving)
    if np.abs(rates).min() <= SIMPLE * size:
        return None
    return SpherePoint(w, slope, strict, float(rates[-1]), float(np.linalg.eigvalsh(frozen)[-1]))


def _is_ridge(field: DiscreteField, z: FloatArray, strict: BoolArray) -> bool:
    """Whether the objective has a ridge, and no valley, at the walls of atoms."""
    bend = (field.filter.straight or (0.0, 0.0))[1]
    return bool(np.all(bend * field.pull(field.filter.value(z)[None])[0][strict] < 0.0))


def _eigenvectors(field: DiscreteField, rng: np.random.Generator) -> FloatArray:
    """Eigenvectors of A in the cells that random filters visit, which lie in their cells, shape (points, d)."""
    d = field.atoms.shape[1]
    L, straight = field.laplacian(np.eye(d)[0]), field.filter.straight
    assert straight is not None
    visited = _unit(rng.standard_normal((CELL_SAMPLES, d)))
    active = np.unique(visited @ field.atoms.T > 0, axis=0)
    slope = straight[0] + straight[1] * active
    x = slope[:, :, None] * field.atoms
    A = np.swapaxes(x, 1, 2) @ (L @ x)
    values, vectors = np.linalg.eigh(A)
    gaps = np.diff(values, axis=1, prepend=-np.inf, append=np.inf)
    isolated = np.minimum(gaps[:, :-1], gaps[:, 1:]) > SIMPLE * np.abs(values[:, -1:])
    both = np.concatenate([np.swapaxes(vectors, 1, 2), -np.swapaxes(vectors, 1, 2)], axis=1)
    inside = np.all((both @ field.atoms.T > 0) == active[:, None], axis=2)
    return np.asarray(both[inside & np.tile(isolated, (1, 2))])
