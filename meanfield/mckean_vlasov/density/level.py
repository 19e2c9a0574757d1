"""Solution on one refinement level, and what is extrapolated from several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.mckean_vlasov.density.evolution import Evolution
from meanfield.mckean_vlasov.density.level_search import LongStepsError, NarrowCellsError
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.extrapolation import sharpen
from meanfield.numerics.finite_volumes.grid import Grid, MakeStep
from meanfield.numerics.step_times import StepTimes
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Thresholds:
    """Limits on the errors of a solution; one that exceeds them has failed.

    Parameters
    ----------
    norm : float
        Largest relative error of E[w^2] where it is kept.
    negative : float
        Largest size of negative values of a density: steps that are too long make the midpoint rule ring.
    edge : float
        Largest conditional probability of an outermost cell; where it is larger, the cells do not reach far enough.
    edge_mean : float
        Largest mean over u of the conditional probability of an outermost cell.
    """

    norm: float
    negative: float
    edge: float
    edge_mean: float


class Level:
    """Moments and densities at the output times; NaN where they were not reached.

    Parameters
    ----------
    grid : Grid
        The grid of the coarsest level.
    step_times : StepTimes
        The steps of the coarsest level.
    factor : int
        Cells in place of each cell, and steps in place of each step.
    make_step : MakeStep, optional
        Other software for the steps, in place of our kernel.

    Attributes
    ----------
    factor : int
    grid : Grid
    steps : int
        Number of steps.
    moments : ndarray, shape (outputs, overlaps + 3)
        q, r, E[w^2] and the mass.
    masses : ndarray, shape (outputs, nodes, cells of the coarsest level)
        Conditional probabilities of the cells of the coarsest level.
    density : ndarray, shape (outputs, nodes, cells)
        P(w|u), averaged over the cells of this level.
    """

    def __init__(
        self,
        limit: Limit,
        grid: Grid,
        step_times: StepTimes,
        factor: int,
        thresholds: Thresholds,
        make_step: MakeStep | None = None,
    ) -> None:
        self.factor = factor
        self.grid = grid.refined(factor)
        self.steps = step_times.total * factor
        self._step_times = step_times.refined(factor)
        self._thresholds = thresholds
        self._slower, self._judged = limit.remedy_if_too_fast, limit.judged
        self._evolution = Evolution(limit, self.grid, thresholds.norm, make_step)
        outputs = len(limit.times)
        self.moments = np.full((outputs, limit.overlaps + 3), np.nan)
        self.masses = np.full((outputs, *grid.shape), np.nan)
        self.density = np.full((outputs, *self.grid.shape), np.nan)

    @property
    def judged(self) -> FloatArray:
        """The tolerance is for q, r and a free norm."""
        return self.moments[:, : self._judged]

    def run(self) -> None:
        """Advance to all output times."""
        with progress_bar(len(self.moments) - 1, f"density, {self.grid.shape[1]} cells") as bar:
            for index in range(len(self.moments)):
                self.reach(index)
                bar.update(index > 0)

    def reach(self, index: int) -> None:
        """Advance to an output time; those before it must have been reached.

        Raises
        ------
        BlowUpError
            If the solution blew up, the density is negative, or does not fit into the cells.
        """
        if index > 0:
            self._evolution.advance(self._step_times.steps(index - 1))
        P = self._evolution.density
        self._check(float(self._step_times.outputs[index]), P)
        self._evolution.check()
        self.moments[index] = self._evolution.moments.vector
        self.density[index] = P
        self.masses[index] = self.grid.h * self.factor * _means(P, self.masses.shape[2])

    def coarsened(self, index: int, several: int) -> FloatArray:
        """P at an output time, averaged over `several` cells in place of each of the coarsest level."""
        return _means(self.density[index], several * self.masses.shape[2])

    def forget_densities(self) -> None:
        """Free the memory of all densities; the masses of their cells are kept."""
        self.density = np.empty((0, *self.grid.shape))

    def _check(self, time: float, P: FloatArray) -> None:
        lowest = float(P.min())
        if lowest < -self._thresholds.negative:
            raise LongStepsError(
                time,
                f"the density fell to {lowest:.2g}, because time steps are too long for its dynamics",
                f"raise density.steps, or {self._slower}",
            )
        edges = self.grid.h * np.maximum(P[:, 0], P[:, -1])
        if edges.max() > self._thresholds.edge or self.grid.u_weight @ edges > self._thresholds.edge_mean:
            raise NarrowCellsError(
                time,
                f"a conditional probability of {edges.max():.2g} reached the outermost cells at |w| = "
                f"{self.grid.edges[-1]:.4g}",
                "raise density.half_width, and density.cells with it if it is given",
            )


def _means(P: FloatArray, cells: int) -> FloatArray:
    """Averages over equal numbers of neighbours, shape (nodes, cells); products are faster than sums of few."""
    groups = P.reshape(len(P), cells, -1)
    several = groups.shape[2]
    return np.asarray(groups @ np.full(several, 1 / several))


def combined_density(levels: Sequence[Level], weights: FloatArray, several: int) -> tuple[FloatArray, FloatArray]:
    """Densities with the extrapolated masses of wide cells and the best available shape within each.

    The shape comes from the finest level, extrapolated with the one of half its factor if that is among them.

    Parameters
    ----------
    levels : sequence of Level
        Levels from coarse to fine; the last one still has its densities.
    weights : ndarray, shape (levels,)
        Weights by `extrapolation_weights`.
    several : int
        Cells of the result in place of each cell of the coarsest level.

    Returns
    -------
    density : ndarray, shape (outputs, nodes, cells)
    change : ndarray, shape (outputs,)
        L1 distance, averaged over u, by which extrapolation changed the shape.
    """
    finest = levels[-1]
    outputs, nodes, cells = finest.masses.shape
    half = next((level for level in levels[:-1] if 2 * level.factor == finest.factor), None)
    masses = extrapolated_masses(levels, weights)
    h = finest.grid.h * finest.factor / several
    density, change = np.empty((outputs, nodes, several * cells)), np.zeros(outputs)
    for index in range(outputs):
        shape = finest.coarsened(index, several)
        density[index] = sharpen(masses[index], shape, h)
        if half is not None and several > 1:
            better = sharpen(masses[index], shape + (shape - half.coarsened(index, several)) / 3.0, h)
            change[index] = h * np.abs(better - density[index]).sum(axis=1) @ finest.grid.u_weight
            density[index] = better
    return density, change


def extrapolated_moments(levels: Sequence[Level], weights: FloatArray) -> FloatArray:
    """q, r, E[w^2] and the mass, shape (outputs, overlaps + 3)."""
    return np.asarray(sum(weight * level.moments for weight, level in zip(weights, levels, strict=True)))


def extrapolated_masses(levels: Sequence[Level], weights: FloatArray) -> FloatArray:
    """Conditional probabilities of the cells of the coarsest level, shape (outputs, nodes, cells)."""
    return np.asarray(sum(weight * level.masses for weight, level in zip(weights, levels, strict=True)))
