"""How one implicit step in w is computed: by our kernel, or by FiPy as the reference."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

import numpy as np

from meanfield.density.grid import Grid
from meanfield.density.kernel import midpoint_step, pack, unpack
from meanfield.typing import FloatArray

LEAST_DIFFUSION = 1e-14
"""Stands in for a diffusion coefficient of zero, where the flux is upwind transport."""


class Stepper(Protocol):
    """Holds a density at the start of a step and a trial density at its end."""

    def attempt(self, pull: FloatArray, tilt: FloatArray, diffusion: float, dt: float) -> None:
        """Compute the trial density by one midpoint step with frozen coefficients.

        Parameters
        ----------
        pull : ndarray, shape (cells - 1,)
            -(V_{i+1} - V_i) at each face, without the part that depends on u.
        tilt : ndarray, shape (nodes,)
            The part that depends on u, the same at every face.
        diffusion : float
            D = Lambda/2.
        dt : float
            Time step.
        """

    def sums(self, rows: FloatArray) -> FloatArray:
        """`rows` @ trial density, per node: shape (len(rows), nodes)."""

    def accept(self) -> None:
        """Make the trial density the start of the next step."""

    def density(self) -> FloatArray:
        """The density at the start of the step, shape (nodes, cells)."""


MakeStepper = Callable[[Grid, FloatArray], Stepper]
"""Builds a stepper from a grid and the density at the start, shape (nodes, cells)."""


def available_cores() -> int:
    """Cores that this process may use: a cluster or `taskset` may grant fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class NumbaStepper:
    """The compiled kernel, with blocks of nodes side by side, one step at a time."""

    def __init__(self, grid: Grid, initial: FloatArray) -> None:
        self.grid = grid
        self._current = pack(initial)
        self._trial = self._current.copy()
        blocks, cells, lanes = self._current.shape
        self._tilt = np.zeros(blocks * lanes)
        self._scratch = np.empty(cells * (lanes + 1))

    @property
    def buffers(self) -> tuple[FloatArray, FloatArray]:
        """The density at the start of a step and room for that at its end, flat."""
        return self._current.reshape(-1), self._trial.reshape(-1)

    def attempt(self, pull: FloatArray, tilt: FloatArray, diffusion: float, dt: float) -> None:
        """See `Stepper.attempt`."""
        D = max(diffusion, LEAST_DIFFUSION)
        nodes = self.grid.shape[0]
        np.divide(tilt, D, out=self._tilt[:nodes])
        self._tilt[nodes:] = self._tilt[nodes - 1]
        a, k = pull / D, 0.5 * dt * D / self.grid.h**2
        blocks, cells, lanes = map(np.uint64, self._current.shape)
        midpoint_step(*self.buffers, self._scratch, a, self._tilt, k, cells, blocks, lanes)

    def sums(self, rows: FloatArray) -> FloatArray:
        """See `Stepper.sums`."""
        packed = rows @ self._trial
        return packed.transpose(1, 0, 2).reshape(len(rows), -1)[:, : self.grid.shape[0]]

    def accept(self) -> None:
        """See `Stepper.accept`."""
        self._current, self._trial = self._trial, self._current

    def density(self) -> FloatArray:
        """See `Stepper.density`."""
        return unpack(self._current, self.grid.shape[0])
