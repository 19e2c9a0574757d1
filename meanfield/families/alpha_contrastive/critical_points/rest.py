"""Points at which a filter rests, on walls or between them: Newton's method, multipliers, and growth rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from meanfield.families.alpha_contrastive.critical_points.arrangement import null_space, unit
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.typing import BoolArray, FloatArray

OFF_WALL = 1e-9
"""Distance of a multiplier from 0 and 1 at which its wall does not hold the point."""


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


def polished(field: DiscreteField, w: FloatArray, reach: float) -> SpherePoint | None:
    """Critical point near a filter, on the walls that hold it; None if there is none.

    Parameters
    ----------
    w : ndarray, shape (coordinates,)
    reach : float
        Largest w.x, relative to |x|, of an atom whose wall may hold it; negative if none may.
    """
    lengths = np.linalg.norm(field.atoms, axis=1)
    kinked = field.filter.straight is not None and field.filter.straight[1] != 0.0
    hold = (np.abs(field.atoms @ w) <= reach * lengths) & (lengths > 0) & kinked
    for _ in range(4):
        point = newton_on_walls(field, w, hold)
        if point is None:
            return None
        gates, residual = gates_of(field, point, hold)
        outside = hold & ((gates < -OFF_WALL) | (gates > 1.0 + OFF_WALL))
        if not outside.any():
            return described(field, point, hold, gates) if residual <= _allowed(field, point) else None
        hold, w = hold & ~outside, point
    return None


def held_point(field: DiscreteField, w: FloatArray, hold: BoolArray) -> SpherePoint | None:
    """Critical point at a filter, on the walls of some atoms; None if it is none.

    Where more walls meet than hold it, several multipliers balance the field; any between 0 and 1 will do.
    """
    gates, residual = gates_of(field, w, hold)
    if np.any(hold & ((gates < -OFF_WALL) | (gates > 1.0 + OFF_WALL))):
        rank = len(w) - null_space(field.atoms[hold], len(w)).shape[1]
        if hold.sum() == rank:
            return None
        gates, residual = gates_of(field, w, hold, bounded=True)
    return described(field, w, hold, gates) if residual <= _allowed(field, w) else None


def _allowed(field: DiscreteField, w: FloatArray) -> float:
    """Largest field at a critical point that is rounding."""
    z = field.atoms @ w
    scale = np.abs(field.pull(field.filter.value(z)[None])).max() * np.linalg.norm(field.atoms, axis=1).max()
    return max(1e-11 * float(scale), 1e-15)  # field at a critical point


def _side(field: DiscreteField, gates: FloatArray, z: FloatArray, hold: BoolArray) -> FloatArray:
    """H' of each atom, between those of both sides for atoms on walls."""
    slope = field.filter.slope(z)
    if field.filter.straight is not None:
        a, b = field.filter.straight
        slope = np.where(hold, a + b * gates, slope)
    return slope


def newton_on_walls(field: DiscreteField, w: FloatArray, hold: BoolArray) -> FloatArray | None:
    """Critical point of the field along the walls of atoms, by Newton's method from a filter near it."""
    wall = null_space(field.atoms[hold], len(w))
    if not wall.shape[1]:
        return None
    inside = wall @ (wall.T @ w)
    if np.linalg.norm(inside) < 0.5:
        return None
    w, start = unit(inside), unit(inside)
    gates = np.zeros(len(field.atoms))
    for _ in range(40):  # steps of Newton's method
        z = np.where(hold, 0.0, field.atoms @ w)
        slope = _side(field, gates, z, hold)
        basis = tangent_of(wall, w)
        if not basis.shape[1]:
            return w
        force = basis.T @ (field.atoms.T @ (field.pull(field.filter.value(z)[None])[0] * slope))
        J, _ = field.jacobians(w, basis, slope)
        step = np.linalg.lstsq(J, -force, rcond=None)[0]
        length = float(np.linalg.norm(step))
        w = unit(w + basis @ (step * min(1.0, 0.2 / max(length, 1e-300))))
        if length <= 1e-14:
            break
    return w if w @ start > 0.8 else None


def tangent_of(wall: FloatArray, w: FloatArray) -> FloatArray:
    """Orthonormal vectors of a subspace that are orthogonal to w, shape (d, k - 1)."""
    inside = wall.T @ w
    return wall @ null_space(inside[None], len(inside))


def gates_of(field: DiscreteField, w: FloatArray, hold: BoolArray, bounded: bool = False) -> tuple[FloatArray, float]:
    """Multipliers of the walls that balance the field across them, and what is left of the tangential field."""
    z = np.where(hold, 0.0, field.atoms @ w)
    pull = field.pull(field.filter.value(z)[None])[0]
    gates = np.zeros(len(z))
    _, b = field.filter.straight or (0.0, 0.0)
    tangent = np.eye(len(w)) - np.outer(w, w)
    force = tangent @ (field.atoms.T @ (pull * _side(field, gates, z, hold)))
    if hold.any():
        columns = b * pull[hold] * (tangent @ field.atoms[hold].T)
        gates[hold] = (
            lsq_linear(columns, -force, (0.0, 1.0), tol=1e-14).x
            if bounded
            else np.linalg.lstsq(columns, -force, rcond=None)[0]
        )
        force = force + columns @ gates[hold]
    return gates, float(np.abs(force).max())


def described(field: DiscreteField, w: FloatArray, hold: BoolArray, gates: FloatArray) -> SpherePoint | None:
    """Point with its growth rates along the walls that hold it from both sides; None if it is one of a continuum."""
    strict = hold & (gates > OFF_WALL) & (gates < 1.0 - OFF_WALL)
    z = np.where(hold, 0.0, field.atoms @ w)
    if strict.any() and not _is_ridge(field, z, strict):
        return SpherePoint(w, np.zeros(len(z)), strict, np.inf, np.inf)
    slope = _side(field, np.where(strict, gates, np.round(gates)), z, hold)
    basis = tangent_of(null_space(field.atoms[strict], len(w)), w)
    if not basis.shape[1]:
        return SpherePoint(w, slope, strict, -np.inf, -np.inf)
    moving, frozen = field.jacobians(w, basis, slope)
    size = np.abs(field.matrix(w, slope)).max()
    rates = np.linalg.eigvalsh(moving)
    if np.abs(rates).min() <= 1e-9 * size:  # not isolated
        return None
    return SpherePoint(w, slope, strict, float(rates[-1]), float(np.linalg.eigvalsh(frozen)[-1]))


def _is_ridge(field: DiscreteField, z: FloatArray, strict: BoolArray) -> bool:
    """Whether the objective has a ridge, and no valley, at the walls of atoms."""
    bend = (field.filter.straight or (0.0, 0.0))[1]
    return bool(np.all(bend * field.pull(field.filter.value(z)[None])[0][strict] < 0.0))
