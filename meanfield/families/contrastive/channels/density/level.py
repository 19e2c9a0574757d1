"""One solution at the output times: its averages, and the densities to show."""

from __future__ import annotations

import numpy as np

from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.density.display import (
    CELLS,
    JOINT_CELLS,
    joint_given_u,
    joint_outputs,
    reach_of,
    singles_given_u,
)
from meanfield.families.contrastive.channels.density.evolution import Evolution
from meanfield.families.contrastive.channels.density.plan import Plan
from meanfield.mckean_vlasov.density.level_search import LongStepsError, NarrowCellsError
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray


class Level:
    """Averages and densities at the output times; NaN where they were not reached.

    Parameters
    ----------
    closure : ChannelClosure
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

    def __init__(
        self, closure: ChannelClosure, plan: Plan, factor: int, edge: float, shown: float | None = None
    ) -> None:
        self.plan = plan
        self.factor = factor
        self.cells = plan.cells(factor)
        self.nodes = plan.nodes
        self.reach = 0.0
        self._schedule = schedule = plan.schedule.refined(factor)
        self.steps = schedule.total
        self._closure = closure
        self._half_width, self._edge = plan.half_width, edge
        self.shown = shown
        outputs, d1 = len(schedule.outputs), len(closure.problem.features)
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
            If the solution blew up, does not fit into its cells, or its channels have no density in the plane.
        """
        evolution = Evolution(self._closure, *self.nodes.solved, self.cells, self._half_width)
        with progress_bar(self.steps, f"density, {self.cells} x {self.cells} cells") as bar:
            for index in range(len(self.moments)):
                if index > 0:
                    for time in self._schedule.steps(index - 1):
                        evolution.step(float(time))
                        bar.update(1)
                self._record(index, evolution)

    def forget_densities(self) -> None:
        """Free the memory of all densities."""
        self.singles = self.joint = np.empty(0)

    def _record(self, index: int, evolution: Evolution) -> None:
        P, now = evolution.density, evolution.averages
        self._check(evolution, P)
        self.moments[index] = np.concatenate([now.q.ravel(), now.M.ravel(), now.r, [now.mass]])
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
                "raise density.steps, or lower model.learning_rate",
            )
        rims = P[:, [0, -1], :].sum(axis=(1, 2)) + P[:, :, [0, -1]].sum(axis=(1, 2))
        if float(evolution.u_weight @ rims) * area > self._edge:
            raise NarrowCellsError(
                time,
                f"a probability of {float(evolution.u_weight @ rims) * area:.2g} reached the outermost cells, "
                f"{evolution.edges[-1]:.3g} standard deviations from the mean",
                "lower prior.strength, or take SGD",
            )
