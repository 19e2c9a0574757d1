"""Density of two channels of a given accuracy: levels of finer cells and shorter steps until the error is small.

Level k has k times as many cells along each axis as the first one and k times as many steps. Its error falls with the
squares of both, which Richardson extrapolation eliminates, and the fourth powers with them where the prior is smooth:
kinks cross the cells of the moving frame. What one more level changes in the extrapolation is the
estimate of the error. More nodes in u on a coarse level show that of the nodes, and E[w_k^2] - 1 what all of it misses.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.density.display import CELLS, JOINT_CELLS
from meanfield.families.contrastive.channels.density.evolution import DegenerateError
from meanfield.families.contrastive.channels.density.level import Level, LongStepsError, NarrowCellsError
from meanfield.families.contrastive.channels.density.plan import (
    USUAL_WIDTH,
    Nodes,
    Plan,
    check_memory,
    coarse_plan,
    fixed_plan,
)
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.start import gaussian_work
from meanfield.numerics.extrapolation import extrapolation_weights
from meanfield.numerics.retry import retry
from meanfield.typing import FloatArray

FACTORS = (2, 3, 4, 6, 8, 12, 16)
"""Factors on the numbers of cells and steps of the levels, in the order in which they are solved."""

SAFETY = 1.5
"""Factor on the change of the extrapolation from one level to the next, which is the error of the last but one."""

MOST_WORK = 4e9
"""Largest work of a level, as cells times nodes times steps; it takes minutes."""


class Search:
    """Levels of one problem until the error is small enough.

    Parameters
    ----------
    closure : ChannelClosure
    settings : DensitySettings

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
    effort : dict
        Cells, steps and nodes that were chosen.
    """

    def __init__(self, closure: ChannelClosure, settings: DensitySettings) -> None:
        self._closure, self._settings = closure, settings
        # These powers of the cell width are eliminated: kinks of the prior cross cells, and then there is one only.
        self._powers = (2,) if closure.problem.prior.functions.kinks else (2, 4)
        self.errors: FloatArray | None = None
        problem = closure.problem
        starts = problem.initial_overlap.T
        self.initial_work = np.array([gaussian_work(problem.prior, problem.coordinates, q) for q in starts])
        self._begin()

    def _begin(self) -> None:
        self.levels: list[Level] = []
        self.unfinished: Level | None = None
        self._extrapolated: list[FloatArray] = []
        self._node_error: FloatArray | float = 0.0
        self.half_width = 0.0

    def solve(self) -> str:
        """Add levels, and return the status.

        Raises
        ------
        DegenerateError
            If the channels have no density in the plane, at the start or later.
        InputError
            If a level does not fit into the memory.
        """

        def attempt(widening: float) -> BlowUpError | str:
            self._begin()
            try:
                return self._fixed(widening) if self._settings.tolerance is None else self._to_tolerance(widening)
            except DegenerateError:
                raise
            except BlowUpError as error:
                return error

        def better(widening: float, result: BlowUpError | str) -> float | None:
            wider = 1.25 * widening  # up to four times the half-width
            return wider if isinstance(result, NarrowCellsError) and wider <= 4.0 else None

        try:
            result = retry(attempt, 1.0, better)
        except KeyboardInterrupt:
            return "interrupted"
        return result.status if isinstance(result, BlowUpError) else result

    @property
    def shown(self) -> Level:
        """The level whose densities are shown: the finest one, or as far as the first one came."""
        if self.levels:
            return self.levels[-1]
        assert self.unfinished is not None
        if self.half_width > 0:
            return self.unfinished
        self.half_width = USUAL_WIDTH  # nothing was reached, and the extent of the weights is not known
        return Level(self._closure, self.unfinished.plan, self.unfinished.factor, self.half_width)

    @property
    def moments(self) -> FloatArray:
        """q, M, r and the mass at the output times, extrapolated where there are two levels."""
        if self._extrapolated:
            return self._extrapolated[-1]
        return self.shown.moments

    @property
    def effort(self) -> dict[str, object]:
        """Cells, steps and nodes of the levels that the result is made of."""
        used = self.levels or ([self.unfinished] if self.unfinished else [])
        return {
            "cells": [level.cells for level in used],
            "steps": [level.steps for level in used],
            "nodes": len(used[-1].nodes.weight) if used else 0,
        }

    @property
    def density_error(self) -> FloatArray | None:
        """L1 error of the conditional densities and the joint one of the finest level, by the level before."""
        if self.errors is None or len(self.levels) < 2:
            return None
        coarse, fine = self.levels[-2:]
        weight, h, joint_h = fine.nodes.weight, 2 * self.half_width / CELLS, 2 * self.half_width / JOINT_CELLS
        singles = h * np.einsum("n,tnwk->tk", weight, np.abs(fine.singles - coarse.singles)).max(axis=1)
        joint = joint_h**2 * np.einsum("n,tnij->t", weight, np.abs(fine.joint - coarse.joint))
        largest = np.maximum(singles, np.interp(np.arange(len(singles)), fine.kept, joint))
        return np.asarray(SAFETY * largest / ((fine.cells / coarse.cells) ** 2 - 1.0))

    def _fixed(self, widening: float) -> str:
        """One level, or two that are extrapolated."""
        plan = fixed_plan(self._closure, self._settings, widening)
        edge = 1e-6  # probability that may be in the outermost cells or negative
        self.half_width = self._pilot(plan, 1, edge).reach
        for factor in (1, 2) if self._settings.order == 4 else (2,):
            self._add(plan, factor, edge)
        if len(self.levels) == 2:
            self._extrapolate()
        return "complete"

    def _to_tolerance(self, widening: float) -> str:
        tolerance = float(self._settings.tolerance or 0.0)
        edge = 1e-2 * tolerance  # what may be in the outermost cells or negative
        plan = self._with_enough_nodes(coarse_plan(self._closure, self._settings, tolerance, widening), tolerance, edge)
        for factor in FACTORS:
            if plan.work(factor) > MOST_WORK and self.errors is not None:
                break
            try:
                self._add(plan, factor, edge)
            except LongStepsError:
                if factor == FACTORS[-1]:
                    raise
                continue
            if len(self.levels) > 1:
                self._extrapolate()
            if len(self._extrapolated) > 1:
                self._estimate()
                if self._largest() <= tolerance:
                    return "complete"
        size = "unknown" if self.errors is None else f"estimated at {self._largest():.2g}"
        return (
            f"failed: the error of q, M and r is {size}, above density.tolerance = {tolerance:g}; raise it, or give "
            "density.cells and density.steps"
        )

    def _largest(self) -> float:
        """Largest error of q, M and r, where r counts relative to its size if it is above 1."""
        if self.errors is None:
            return math.inf
        return float((self.errors / np.maximum(1.0, self._sizes)).max())

    @property
    def _sizes(self) -> FloatArray:
        """Sizes of q, M and r: 1 for overlaps."""
        sizes = np.abs(self.moments[:, :-1])
        sizes[:, :-2] = 1.0
        return sizes

    def _with_enough_nodes(self, plan: Plan, tolerance: float, edge: float) -> Plan:
        """Plan with more nodes in u until still more of them change little on a coarse level."""
        before = self._first_pilot(plan, edge)
        while True:
            self.half_width = before.reach
            scale = 1.35 * plan.node_scale  # a third more nodes, to be compared with
            more = replace(
                plan, node_scale=scale, nodes=Nodes.of(self._closure.problem, self._settings.feature_nodes, scale)
            )
            if len(more.nodes.weight) == len(plan.nodes.weight):
                return plan  # laws of the coordinates with finitely many values
            after = self._pilot(more, before.factor, edge)
            self._node_error = np.abs(after.moments - before.moments)[:, :-1]
            sizes = np.maximum(1.0, np.abs(after.moments[:, :-1]))
            # The error of the nodes may be 0.3 of the tolerance.
            if np.max(self._node_error / sizes) <= 0.3 * tolerance or self._settings.feature_nodes:
                return plan
            if more.work(FACTORS[2]) > MOST_WORK:
                return plan
            plan, before = more, after

    def _first_pilot(self, plan: Plan, edge: float) -> Level:
        """The coarsest level whose steps are short enough."""
        for factor in FACTORS[:-1]:
            try:
                return self._pilot(plan, factor, edge)
            except LongStepsError:
                continue
        return self._pilot(plan, FACTORS[-1], edge)

    def _pilot(self, plan: Plan, factor: int, edge: float) -> Level:
        """A level that shows no densities, because their extent is not known."""
        level = self._level(plan, factor, None)
        level.run(edge)
        return level

    def _add(self, plan: Plan, factor: int, edge: float) -> None:
        level = self._level(plan, factor, self.half_width)
        level.run(edge)
        self.levels = [*self.levels[-len(self._powers) :], level]
        if len(self.levels) > 2:
            self.levels[-3].forget_densities()

    def _level(self, plan: Plan, factor: int, shown: float | None) -> Level:
        check_memory(plan, factor)
        level = self.unfinished = Level(self._closure, plan, factor, shown)
        return level

    def _extrapolate(self) -> None:
        """Richardson extrapolation from the last levels."""
        weights = extrapolation_weights([level.cells for level in self.levels], self._powers[: len(self.levels) - 1])
        self._extrapolated.append(
            np.sum([weight * level.moments for weight, level in zip(weights, self.levels, strict=True)], axis=0)
        )

    def _estimate(self) -> None:
        """Error of the extrapolation, by the one before; that of its nodes; and what the norms miss."""
        last, before = self._extrapolated[-1], self._extrapolated[-2]
        d1 = len(self._closure.problem.features)
        norms = np.abs(last[:, [2 * d1, 2 * d1 + 3]] - 1.0).max(axis=1, keepdims=True)
        errors = SAFETY * np.abs(last - before)[:, :-1] + self._node_error + norms
        errors[0, : 2 * d1 + 4] = 0.0  # the overlaps of the start are known
        errors[0, 2 * d1 + 4 :][np.isfinite(self.initial_work)] = 0.0
        self.errors = errors
