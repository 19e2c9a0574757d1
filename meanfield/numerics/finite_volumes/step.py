"""One implicit step in w, as other software than the compiled kernel computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from meanfield.numerics.finite_volumes.grid import Grid
from meanfield.typing import FloatArray

LEAST_DIFFUSION = 1e-14
"""Stands in for a diffusion coefficient of zero, where the flux is upwind transport."""


class Step(Protocol):
    """Takes one midpoint step with frozen coefficients."""

    def __call__(self, P: FloatArray, faces: FloatArray, tilts: FloatArray, diffusion: float, dt: float) -> FloatArray:
        """Return the density after the step.

        Parameters
        ----------
        P : ndarray, shape (nodes, cells)
            The density before it.
        faces : ndarray, shape (cells - 1,)
            -(V_{i+1} - V_i)/D at each face, without the part that depends on u.
        tilts : ndarray, shape (nodes,)
            The part that depends on u, the same at every face.
        diffusion : float
            D = Lambda/2, at least `LEAST_DIFFUSION`.
        dt : float
            Time step.
        """


MakeStep = Callable[[Grid], Step]
"""Prepares the steps on a grid."""
