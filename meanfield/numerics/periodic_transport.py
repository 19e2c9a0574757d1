"""Transport of a density on a circle by a velocity field that the density may decide: finite volumes of second order.

Fluxes are upwind, of slopes with the monotonised central limiter; time steps are those of Heun's method. Mass is
conserved to rounding. Cells may differ in width: the method is of second order where they do not, or do so smoothly.
Velocities may jump at faces that are breaks: what leaves a cell there has the velocity
of its side, and slopes are one-sided.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield.typing import BoolArray, FloatArray

Velocity = Callable[[FloatArray], FloatArray]
"""Velocity at the left face of each cell, of cell averages of the density: its limits from the left and from the right,
shape (2, cells)."""

COURANT = 0.4
"""Part of a cell that the density moves in a step: less than 1/2 keeps it positive where it leaves on both sides."""


def steps_of(u: FloatArray, width: FloatArray, duration: float) -> float:
    """Number of time steps that a velocity at faces, shape (2, cells), needs for a duration."""
    out = np.maximum(np.roll(u[0], -1), 0.0) - np.minimum(u[1], 0.0)
    fastest = np.maximum(out, np.maximum(np.abs(u[1]), np.abs(np.roll(u[0], -1))))
    return duration * float((fastest / width).max()) / COURANT


def transport(rho: FloatArray, width: FloatArray, velocity: Velocity, duration: float, breaks: BoolArray) -> FloatArray:
    """Cell averages of a density after some time.

    Parameters
    ----------
    rho : ndarray, shape (cells,)
        Cell averages on a circle.
    width : ndarray, shape (cells,)
        Widths of the cells.
    velocity : callable
        Velocity at the left face of each cell, from both sides.
    duration : float
    breaks : ndarray of bool, shape (cells,)
        Where velocity and density may jump at the left face of a cell.
    """
    left = duration
    while left > 0.0:
        u = velocity(rho)
        steps = max(1, int(np.ceil(steps_of(u, width, left))))
        dt = left / steps
        first = rho + dt * _change(rho, u, width, breaks)
        second = first + dt * _change(first, velocity(first), width, breaks)
        rho = 0.5 * (rho + second)
        left = left - dt if steps > 1 else 0.0
    return rho


def _change(rho: FloatArray, u: FloatArray, width: FloatArray, breaks: BoolArray) -> FloatArray:
    """Rate of change of cell averages."""
    forward = 2.0 * (np.roll(rho, -1) - rho) / (np.roll(width, -1) + width)
    backward, ends = np.roll(forward, 1), np.roll(breaks, -1)
    forward, backward = np.where(ends, backward, forward), np.where(breaks, forward, backward)
    central = 0.5 * (forward + backward)
    limit = 2.0 * np.minimum(np.abs(forward), np.abs(backward))
    slope = np.where(forward * backward > 0.0, np.sign(central) * np.minimum(np.abs(central), limit), 0.0)
    step = np.clip(0.5 * width * slope, -rho, rho)  # no face has a negative density
    from_left, from_right = np.roll(rho + step, 1), rho - step
    flux = np.maximum(u[0], 0.0) * from_left + np.minimum(u[1], 0.0) * from_right
    return np.asarray((flux - np.roll(flux, -1)) / width)
