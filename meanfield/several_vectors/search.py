"""Density of two vectors of a given accuracy: levels of finer cells and shorter steps until the error is small.

Level k has k times as many cells along each axis as the first one and k times as many steps. Its error falls with the
squares of both, which Richardson extrapolation eliminates, and the fourth powers with them where the prior is smooth:
kinks cross the cells of the moving frame. What one more level changes in the extrapolation is the
estimate of the error. More nodes in u on a coarse level show that of the nodes, and E[w_k^2], where it is kept, what
all of it misses.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from meanfield.mckean_vlasov.density.level_search import (
    MORE_NODES,
    Factors,
    LevelSearch,
    LongStepsError,
    NarrowCellsError,
    solved,
)
from meanfield.mckean_vlasov.density.plan import check_bytes
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.start import Nodes, gaussian_work
from meanfield.numerics.extrapolation import extrapolation_weights
from meanfield.process.progress import progress_bar
from meanfield.several_vectors.display import (
    CELLS,
    JOINT_CELLS,
    joint_given_u,
    joint_outputs,
    reach_of,
    singles_given_u,
)
from meanfield.several_vectors.evolution import Evolution
from meanfield.several_vectors.limit import JointLimit
from meanfield.several_vectors.plan import USUAL_WIDTH, Plan, coarse_plan, fixed_plan
from meanfield.typing import FloatArray


class Level:
    """Averages and densities at the output times; NaN where they were not reached.

    Parameters
    ----------
    limit : JointLimit
    plan : Plan
    factor : int
        Cells along each axis in place of each, and steps in place of each.
    edge : float
        Largest probability in the outermost cells and largest negative one.
    shown : float, optional
        Half-width of the cells on which densities are shown; without it none are kept.

    Attributes
    ----------
    moments : ndarray, shape (outputs, 2 d1 + 7)
        q, M, r and the mass.
    singles : ndarray, shape (outputs, nodes, CELLS, 4)
        Conditional densities of w_1, w_2 and (w_1 +- w_2)/sqrt(2).
    joint : ndarray, shape (times, nodes, JOINT_CELLS, JOINT_CELLS)
        Conditional densities of both weights at the outputs `kept`.
    reach : float
        Half-width that the laws of the weights needed until now.
    """

    def __init__(self, limit: JointLimit, plan: Plan, factor: int, edge: float, shown: float | None = None) -> None:
        self.plan = plan
        self.factor = factor
        self.cells = plan.cells(factor)
        self.nodes = plan.nodes
        self.reach = 0.0
        self._step_times = step_times = plan.step_times.refined(factor)
        self.steps = step_times.total
        self._limit = limit
        self._half_width, self._edge = plan.half_width, edge
        self.shown = shown
        outputs, d1 = len(step_times.outputs), len(limit.initial_q)
        self.moments = np.full((outputs, 2 * d1 + 7), np.nan)
        if shown is not None:
            count = len(plan.nodes.u)
            self.kept = joint_outputs(outputs, count)
            self.singles: FloatArray = np.full((outputs, count, CELLS, 4), np.nan)
            self.joint: FloatArray = np.full((len(self.kept), count, JOINT_CELLS, JOINT_CELLS), np.nan)

    @property
    def judged(self) -> FloatArray:
        """The tolerance is for q, M and r."""
        return self.moments[:, :-1]

    def run(self) -> None:
        """Advance to all output times.

        Raises
        ------
        BlowUpError
            If the solution blew up, does not fit into its cells, or its vectors have no density in the plane.
        """
        evolution = Evolution(self._limit, *self.nodes.solved, self.cells, self._half_width)
        with progress_bar(self.steps, f"density, {self.cells} x {self.cells} cells") as bar:
            for index in range(len(self.moments)):
                if index > 0:
                    for time in self._step_times.steps(index - 1):
                        evolution.step(float(time))
                        bar.update(1)
                self._record(index, evolution)

    def forget_densities(self) -> None:
        """Free the memory of all densities."""
        self.singles = self.joint = np.empty(0)

    def _record(self, index: int, evolution: Evolution) -> None:
        P, now = evolution.density, evolution.averages
        self._check(evolution, P)
        self.moments[index] = np.concatenate([now.q.ravel(), now.M.ravel(), np.diag(now.work), [now.mass]])
        self.reach = max(self.reach, reach_of(evolution.frame))
        if self.shown is None:
            return
        place = P, evolution.axis, evolution.frame, self.shown
        self.singles[index] = self.nodes.unfolded(singles_given_u(*place), 0, 1)
        if index in self.kept:
            self.joint[self.kept.index(index)] = self.nodes.unfolded(joint_given_u(*place), 0, 1, 2)

    def _check(self, evolution: Evolution, P: FloatArray) -> None:
        area, time = evolution.h**2, evolution.time
        if -P.min() * area > self._edge:
            raise LongStepsError(
                time,
                f"the density fell to {P.min():.2g}, because time steps are too long for its dynamics",
                f"raise density.steps, or {self._limit.words.slower}",
            )
        rims = P[:, [0, -1], :].sum(axis=(1, 2)) + P[:, :, [0, -1]].sum(axis=(1, 2))
        if float(evolution.u_weight @ rims) * area > self._edge:
            raise NarrowCellsError(
                time,
                f"a probability of {float(evolution.u_weight @ rims) * area:.2g} reached the outermost cells, "
                f"{evolution.edges[-1]:.3g} standard deviations from the mean",
                "lower prior.strength, or take SGD",
            )


SAFETY = 1.5
"""Factor on what a level changes in the extrapolation. With it, and with what that changes in the finest level under
priors with kinks, true errors of 55 random problems are at most 0.8 of the estimated ones."""


def search_plane(
    limit: JointLimit, settings: DensitySettings, compared: JointLimit | None = None
) -> tuple[PlaneSearch, str]:
    """Levels of one problem whose error is small enough, or whose cells are given, and the status.

    Parameters
    ----------
    limit : JointLimit
    settings : DensitySettings
    compared : JointLimit, optional
        The same by another quadrature, where coefficients have errors.

    Raises
    ------
    DegenerateError
        If the vectors have no density in the plane, at the start or later.
    InputError
        If a level does not fit into the memory.
    """

    def search_with(factors: Factors) -> PlaneSearch:
        return PlaneSearch(limit, settings, factors.widening, compared)

    # Up to four times the half-width; shorter steps are those of finer levels.
    return solved(search_with, 1.25, lambda _, factors: factors.widening <= 4.0 and factors.refinement == 1.0)


class PlaneSearch(LevelSearch[Plan, Level]):
    """Levels of one problem until the error is small enough.

    Parameters
    ----------
    limit : JointLimit
    settings : DensitySettings
    widening : float
        Factor on the half-width of the cells.
    compared : JointLimit, optional
        See `search_plane`.

    Attributes
    ----------
    levels : list of Level
        The last two or three.
    half_width : float
        Half-width of the cells on which densities are shown.
    errors : ndarray, shape (outputs, 2 d1 + 6), or None
        Errors of q, M and r.
    initial_work : ndarray, shape (2,)
        The work r at t = 0; NaN where cells alone tell it.
    """

    factors = (2, 3, 4, 6, 8, 12, 16)
    node_factors = factors
    forgiven = factors[-1]
    most_work = 4e9  # it takes minutes
    node_share = 0.3
    node_fall = math.inf
    needs_pilot = True  # which tells the extent of the weights

    def __init__(
        self, limit: JointLimit, settings: DensitySettings, widening: float, compared: JointLimit | None = None
    ) -> None:
        self._limit, self._settings, self._compared = limit, settings, compared
        self.what = f"{', '.join(limit.words.overlaps)} and r"
        if settings.tolerance is None:
            plan = fixed_plan(limit, settings, widening)
        else:
            plan = coarse_plan(limit, settings, settings.tolerance, widening)
        super().__init__(plan, settings.tolerance or math.inf, bool(settings.feature_nodes))
        # Probability that may be in the outermost cells or negative.
        self._edge = 1e-6 if settings.tolerance is None else 1e-2 * settings.tolerance
        # These powers of the cell width are eliminated: kinks of the prior cross cells, and then there is one only.
        self._powers = (2,) if any(prior.functions.kinks for prior in limit.priors) else (2, 4)
        self._extrapolated: list[FloatArray] = []
        self.half_width = 0.0
        self.errors: FloatArray | None = None
        starts = zip(limit.initial_q.T, np.diag(limit.initial_M), strict=True)
        prior, coordinates = limit.priors[0], limit.coordinates
        self.initial_work = np.array([gaussian_work(prior, coordinates, q, float(norm)) for q, norm in starts])

    def solve(self) -> str:
        """Levels of the tolerance; or one of given cells and steps, or two that are extrapolated."""
        if self._settings.tolerance is not None:
            return super().solve()
        self.half_width = self.piloted(self.plan, 1).reach
        for factor in (1, 2) if self._settings.order == 4 else (2,):
            self.added(factor)
        if len(self.levels) == 2:
            self._extrapolate()
        return "complete"

    def new_level(self, plan: Plan, factor: int) -> Level:
        """See `LevelSearch.new_level`; without densities as long as the extent of the weights is not known."""
        cells = plan.cells(factor)
        check_bytes(
            plan.memory(factor),
            f"{len(plan.nodes.u)} nodes of {cells} x {cells} cells",
            "lower density.feature_nodes, density.cells or time.outputs, raise density.tolerance, or set "
            'density.scheme = "particles"',
        )
        return Level(self._limit, plan, factor, self._edge, self.half_width or None)

    def work(self, plan: Plan, factor: int) -> float:
        """See `LevelSearch.work`."""
        return plan.work(factor)

    def with_more_nodes(self, plan: Plan) -> Plan | None:
        """See `LevelSearch.with_more_nodes`."""
        scale = MORE_NODES * plan.node_scale
        nodes = Nodes.of(self._limit, self._settings.feature_nodes, scale)
        return None if len(nodes.u) == len(plan.nodes.u) else replace(plan, node_scale=scale, nodes=nodes)

    def size(self, errors: FloatArray, judged: FloatArray) -> float:
        """The largest of all, where r counts relative to its size if it is above 1."""
        return float((errors / _sizes(judged)).max())

    def choose_nodes(self) -> None:
        """See `LevelSearch.choose_nodes`; it tells the extent of the weights, and errors of coefficients."""
        super().choose_nodes()
        assert self.pilot is not None, "the finest pilots raise"
        self.half_width = self.pilot.reach
        if self._compared is not None:
            other = Level(self._compared, self.plan, self.pilot.factor, self._edge)
            other.run()
            self.node_error = self.node_error + np.abs(other.judged - self.pilot.judged)

    @property
    def shown(self) -> Level:
        """The level whose densities are shown: the finest one, or as far as the first one came."""
        level = self.levels[-1] if self.levels else self.unfinished
        if level and level.shown:
            return level
        self.half_width = self.half_width or USUAL_WIDTH  # nothing was reached, and the extent is not known
        return self.new_level(self.plan, 1)

    @property
    def moments(self) -> FloatArray:
        """q, M, r and the mass at the output times, extrapolated where there are two levels."""
        if self._extrapolated:
            return self._extrapolated[-1]
        return (self.unfinished if self.unfinished and not self.levels else self.shown).moments

    @property
    def effort(self) -> dict[str, object]:
        """Cells, steps and nodes of the levels that the result is made of."""
        used = self.levels or ([self.unfinished] if self.unfinished else [])
        return {
            "cells": [level.cells for level in used],
            "steps": [level.steps for level in used],
            "nodes": len(used[-1].nodes.u) if used else 0,
        }

    @property
    def density_errors(self) -> FloatArray:
        """Errors of the finest level, by the level before: of densities in L1, and of distribution functions."""
        coarse, fine = self.levels[-2:]
        weight, (h, joint_h) = fine.nodes.u_weight, (2 * self.half_width / cells for cells in (CELLS, JOINT_CELLS))
        change = h * (fine.singles - coarse.singles)
        singles = np.einsum("n,tnwk->tk", weight, np.abs(change)).max(axis=1)
        of_functions = np.einsum("n,tnk->tk", weight, np.abs(np.cumsum(change, axis=2)).max(axis=2)).max(axis=1)
        joint = joint_h**2 * np.einsum("n,tnij->t", weight, np.abs(fine.joint - coarse.joint))
        singles = np.maximum(singles, np.interp(np.arange(len(singles)), fine.kept, joint))
        return SAFETY / ((fine.cells / coarse.cells) ** 2 - 1.0) * np.array([singles, of_functions])

    def estimate(self) -> float:
        """Error of the extrapolation, by the one before; that of its nodes; and what the norms miss."""
        self.levels = self.levels[-len(self._powers) - 1 :]
        if len(self.levels) > 2:
            self.levels[-3].forget_densities()
        if len(self.levels) > 1:
            self._extrapolate()
        if len(self._extrapolated) < 2:
            return self.error
        last, before = self._extrapolated[-1], self._extrapolated[-2]
        d1, kept = len(self._limit.initial_q), self._limit.kept
        norms = np.where(np.isnan(kept), 0.0, np.abs(last[:, [2 * d1, 2 * d1 + 3]] - kept)).max(axis=1, keepdims=True)
        changes = SAFETY * np.abs(last - before)
        if len(self._powers) == 1:  # by kinks errors are irregular, so that two extrapolations may agree by chance
            changes = np.maximum(changes, np.abs(last - self.levels[-1].moments))
        errors = changes[:, :-1] + self.node_error + norms
        known = np.append(np.full(2 * d1 + 4, True), np.isfinite(self.initial_work))  # at the start, q and M always
        errors[0, known] = 0.0
        # At single times changes are small by chance: the largest of all times counts, of r relative to its size.
        sizes = _sizes(last[:, :-1])
        self.errors = sizes * (errors / sizes).max(axis=0)
        self.errors[0, known] = 0.0
        return self.size(self.errors, last[:, :-1])

    def _extrapolate(self) -> None:
        """Richardson extrapolation from the last levels."""
        weights = extrapolation_weights([level.cells for level in self.levels], self._powers[: len(self.levels) - 1])
        self._extrapolated.append(
            np.sum([weight * level.moments for weight, level in zip(weights, self.levels, strict=True)], axis=0)
        )


def _sizes(judged: FloatArray) -> FloatArray:
    """Sizes of q, M and r: 1 for overlaps, and at least 1 for r."""
    sizes = np.maximum(1.0, np.abs(judged))
    sizes[:, :-2] = 1.0
    return sizes
