"""Interface of one implicit step in w by software other than the compiled kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from meanfield.numerics.finite_volumes.grid import Grid
from meanfield.typing import FloatArray

LEAST_DIFFUSION = 1e-14
"""Least diffusion coefficient, in place of zero, where the flux is upwind transport."""


class Step(Protocol):
    """One midpoint step with frozen coefficients."""

    def __call__(self, P: FloatArray, faces: FloatArray, tilts: FloatArray, diffusion: float, dt: float) -> FloatArray:
        """Return the density after the step.

        Parameters
        ----------
        P : ndarray, shape (nodes, cells)
            Density before the step.
        faces : ndarray, shape (cells - 1,)
            Part of -(V_{i+1} - V_i)/D at each face that does not depend on u.
        tilts : ndarray, shape (nodes,)
            Part of -(V_{i+1} - V_i)/D that depends on u, the same at every face.
        diffusion : float
            D = Lambda/2, at least `LEAST_DIFFUSION`.
        dt : float
            Time step.
        """


MakeStep = Callable[[Grid], Step]
"""Function that prepares the steps on a grid."""
