"""Transport of a density on a circle by a velocity field that the density may decide: finite volumes of second order.

Fluxes are upwind, of parabolas that have the averages of three cells, and no limiter of slopes: maxima that are smooth
keep the order. Positivity is guarded by parabolas that are drawn towards the average, which takes order where a density
falls to nothing within a cell; jumps of the density that move take order as well. Time steps are those of Heun's
method, which set the order. Mass is conserved to rounding. Velocity and density may jump at faces that are breaks: what
leaves a cell there has the velocity of its side, and parabolas do not reach across.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield.typing import BoolArray, FloatArray

Velocity = Callable[[FloatArray], FloatArray]
"""Velocity at the left face of each cell, of cell averages of the density: its limits from the left and from the right,
shape (2, cells)."""

COURANT = 0.4
"""Part of a cell that the density moves in a step: less than 1/2 keeps it positive, with faces of twice the average."""

STENCIL = 3
"""Number of cells whose averages a parabola has."""


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
    parabolas = _Parabolas(width, breaks)
    left = duration
    while left > 0.0:
        u = velocity(rho)
        steps = max(1, int(np.ceil(steps_of(u, width, left))))
        dt = left / steps
        first = rho + dt * parabolas.change(rho, u)
        second = first + dt * parabolas.change(first, velocity(first))
        rho = 0.5 * (rho + second)
        left = left - dt if steps > 1 else 0.0
    return rho


class _Parabolas:
    """Parabolas through the averages of cells, shifted where a break is beside a cell.

    Runs of fewer than three cells between breaks hold constants.
    """

    def __init__(self, width: FloatArray, breaks: BoolArray) -> None:
        self._width, cells = width, len(width)
        left, right = breaks, np.roll(breaks, -1)
        self._stencil = (np.arange(cells) - 1 + left - right.astype(int) + np.arange(STENCIL)[:, None]) % cells
        reaches = breaks[self._stencil[1:]].any(axis=0) | (left & right)
        self._weights = np.where(reaches, 0.0, _weights_of_faces(width[self._stencil], right, left))

    def change(self, rho: FloatArray, u: FloatArray) -> FloatArray:
        """Rate of change of cell averages at velocities of the left faces, from the left and from the right."""
        away = np.einsum("sfc,fc->sc", self._weights, rho[self._stencil] - rho)
        largest = np.maximum(np.abs(away).max(axis=0), np.maximum(rho, np.finfo(float).tiny))
        low, high = rho + away * (rho / largest)  # in [0, 2 rho]
        flux = np.maximum(u[0], 0.0) * np.roll(high, 1) + np.minimum(u[1], 0.0) * low
        return np.asarray((flux - np.roll(flux, -1)) / self._width)


def _weights_of_faces(widths: FloatArray, right: BoolArray, left: BoolArray) -> FloatArray:
    """Weights of three averages in the values at the left and right face of one of the cells, shape (2, 3, cells).

    Parameters
    ----------
    widths : ndarray, shape (3, cells)
        Widths of the cells that a parabola is through.
    right, left : ndarray of bool, shape (cells,)
        Where the cell is the last, or the first, of the three rather than the one between.
    """
    own = 1 + right.astype(int) - left
    scale = np.take_along_axis(widths, own[None], axis=0)
    edges = np.concatenate([np.zeros((1, widths.shape[1])), np.cumsum(widths, axis=0)])
    faces = np.stack([np.take_along_axis(edges, own[None] + side, axis=0)[0] for side in (0, 1)])
    edges, faces = (edges - faces.mean(axis=0)) / scale, (faces - faces.mean(axis=0)) / scale
    powers = np.arange(STENCIL)
    primitive = edges[..., None] ** (powers + 1) / (powers + 1)
    averages = np.diff(primitive, axis=0) / np.diff(edges, axis=0)[..., None]
    solution = np.linalg.inv(np.moveaxis(averages, 0, 1))
    return np.asarray(np.einsum("scp,cpf->sfc", faces[..., None] ** powers, solution))
