"""Choose cells, nodes and time steps for the density of two vectors; a mirror symmetry leaves half of the nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from meanfield.ingredients.priors import PriorSettings
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.start import Nodes, node_scale
from meanfield.numerics.step_times import StepTimes
from meanfield.several_vectors.display import CELLS, JOINT_CELLS, joint_outputs
from meanfield.several_vectors.limit import JointLimit

USUAL_WIDTH = 6.0
"""Usual half-width of the cells, in standard deviations."""


@dataclass(frozen=True)
class Plan:
    """Discretisation for a factor of 1.

    Parameters
    ----------
    half_width : float
        Half-width of the frame, in standard deviations.
    first : float
        Cells of each axis.
    step_times : StepTimes
    nodes : Nodes
    node_scale : float
        Factor on the default number of nodes.
    """

    half_width: float
    first: float
    step_times: StepTimes
    nodes: Nodes
    node_scale: float = 1.0

    def cells(self, factor: int) -> int:
        """Cells of each axis of a level."""
        return round(factor * self.first)

    def work(self, factor: int) -> float:
        """Work of a level: cells times nodes times steps."""
        return float(self.cells(factor)) ** 2 * len(self.nodes.solved[1]) * self.step_times.total * factor

    def memory(self, factor: int) -> float:
        """Bytes of a level and of the densities that two levels show."""
        outputs, nodes = len(self.step_times.outputs), len(self.nodes.u)
        shown = (4 * outputs * CELLS + len(joint_outputs(outputs, nodes)) * JOINT_CELLS**2) * nodes
        # A solution works with six arrays of the size of the density.
        return 8.0 * (6 * len(self.nodes.solved[1]) * self.cells(factor) ** 2 + 2 * shown)


def coarse_plan(limit: JointLimit, settings: DensitySettings, tolerance: float, widening: float = 1.0) -> Plan:
    """Plan of a search for an accuracy."""
    # Forces of the prior weigh the tails of a Gaussian law beyond the tolerance, for 2.5 standard deviations more.
    half_width = widening * (math.sqrt(-2.0 * math.log(tolerance)) + 2.5)
    rate, stiffest = limit.rates()
    onset = 0.1 / (rate + stiffest)
    # A factor of 1 takes five steps in the fastest time scale.
    step_times = StepTimes(limit.times, 5.0, rate, onset, corners=limit.corners, starts=limit.starts)
    scale = node_scale(tolerance, settings.feature_nodes)
    nodes = Nodes.of(limit, settings.feature_nodes, scale)
    # A factor of 1 has 16 cells on an axis of the usual width.
    return Plan(half_width, 16 * half_width / USUAL_WIDTH, step_times, nodes, scale)


def fixed_plan(limit: JointLimit, settings: DensitySettings, widening: float = 1.0) -> Plan:
    """Plan of given cells and steps, of which a factor of 1 has half as many."""
    times = limit.times
    intervals = len(times) - 1
    stop = float(times[-1])
    steps = settings.steps or 2 * math.ceil(10.0 * stop * limit.rates()[0])
    per_output = math.ceil(steps / (2 * intervals))
    step_times = StepTimes(times, 1.0, per_output * intervals / stop, corners=limit.corners)
    nodes = Nodes.of(limit, settings.feature_nodes, 1.0)
    return Plan(widening * USUAL_WIDTH, 0.5 * (settings.cells or 100), step_times, nodes)


def stiffest_rate(prior: PriorSettings) -> float:
    """Largest rate of change by the force of a prior, from w = 1 to the start of the tails."""
    w = np.linspace(1.0, USUAL_WIDTH, 51)
    pull = np.abs(prior.force(np.concatenate([-w[::-1], w]))) / np.concatenate([w[::-1], w])
    return float(pull.max())
