"""Choose cells, nodes and time steps for a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import psutil

from meanfield.errors import InputError
from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.closures import closures_of, values_of
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.start import Nodes, node_scale
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.finite_volumes.grid import Grid
from meanfield.numerics.step_times import StepTimes

CELL_WIDTH = 0.024
"""Default cell width; order 4 then leaves an error of q below 1e-6 in the linear problem."""

TAIL = 6.5
"""Number of standard deviations of a conditional density within the cells by default."""

WIDEST = 10.0
"""Largest factor on the default half-width; where it does not suffice, the solution fails."""

MEMORY_SHARE = 0.7
"""Share of the free memory that a solution may take: saving it and other programs need memory, too."""

COARSE_WIDTH, COARSE_TOLERANCE, COARSE_POWER = 0.32, 1e-6, 1 / 18
"""Cell width of the first level on the way to an accuracy, where it holds, and how it changes with the accuracy.

The error has order 6, so that a power of 1/6 would leave nothing to the levels, whose number follows the problem."""


@dataclass(frozen=True)
class Plan:
    """Discretisation of the coarsest solution."""

    half_width: float
    cells: int
    feature_nodes: int | None
    step_times: StepTimes
    node_scale: float = 1.0

    @property
    def size(self) -> tuple[float, int, int]:
        """Half-width, cells and steps."""
        return self.half_width, self.cells, self.step_times.total

    def nodes(self, limit: Limit) -> Nodes:
        """The nodes, all of them and those to solve."""
        return Nodes.of_limit(limit, self.feature_nodes, self.node_scale)

    def grid(self, limit: Limit, solved: bool = False) -> Grid:
        """The cells, and all nodes or those to solve."""
        edges = np.linspace(-self.half_width, self.half_width, self.cells + 1)
        edges[self.cells // 2] = 0.0
        nodes = self.nodes(limit)
        return Grid(edges, *(nodes.solved if solved else (nodes.u, nodes.u_weight)))


def fixed_plan(limit: Limit, settings: DensitySettings, widening: float = 1.0, refinement: float = 1.0) -> Plan:
    """Plan of equal cells and steps from the settings, with defaults for what they leave open.

    Parameters
    ----------
    widening : float
        Factor on the default half-width, for densities with wide tails.
    refinement : float
        Factor on the default number of steps, for stiff starts.
    """
    half_width, cells = _cells(limit, settings, CELL_WIDTH, widening)
    rate, stop = refinement * _fastest_rate(limit), float(limit.times[-1])
    # Steps are a fortieth of the fastest time scale of the coefficients; faster dynamics needs `density.steps`.
    steps = settings.steps or min(50_000, math.ceil(stop * rate / 0.025))
    intervals = len(limit.times) - 1
    steps_per_output = math.ceil(steps / intervals)
    rate = steps_per_output * intervals / stop
    step_times = StepTimes(limit.times, 1.0, rate, corners=limit.corners)
    return Plan(half_width, cells, settings.feature_nodes, step_times)


def coarse_plan(
    limit: Limit, settings: DensitySettings, tolerance: float, widening: float = 1.0, refinement: float = 1.0
) -> Plan:
    """Plan of the coarsest level of a search for an accuracy: few cells and graded steps.

    Parameters
    ----------
    tolerance : float
        Largest error of q and r.
    widening, refinement : float
        Factors on the half-width and on the number of steps.
    """
    width = COARSE_WIDTH * (tolerance / COARSE_TOLERANCE) ** COARSE_POWER
    half_width, cells = _cells(limit, settings, width, widening)
    rate = _fastest_rate(limit)
    onset = 0.1 / (rate + _stiffest_rate(limit))
    ticks = refinement * 1.25 * COARSE_WIDTH / width  # with them steps and cells contribute equally to the error
    ticks *= min(1.0, 5000 / (ticks * rate * float(limit.times[-1])))  # no more on the coarsest level
    step_times = StepTimes(limit.times, ticks, rate, onset, corners=limit.corners, starts=limit.starts)
    scale = node_scale(tolerance, settings.feature_nodes)
    return Plan(half_width, cells, settings.feature_nodes, step_times, scale)


def _cells(limit: Limit, settings: DensitySettings, width: float, widening: float) -> tuple[float, int]:
    """Half-width and number of cells of a default width; where possible, kinks of the prior lie on cell edges."""
    half_width = settings.half_width
    if half_width is None:
        u, _ = feature_quadrature(limit.coordinates, settings.feature_nodes)
        # max over |q|^2 <= Q of |u| |q| + TAIL sqrt(Q - |q|^2), the reach of a Gaussian conditional density.
        half_width = widening * math.hypot(float(np.linalg.norm(u, axis=1).max()), TAIL)
        half_width *= math.sqrt(limit.initial_norm)
    h = width if settings.cells is None else 2 * half_width / settings.cells
    kinks = [abs(kink) for prior in limit.priors for kink in prior.functions.kinks]
    kink = min((kink for kink in kinks if kink > 0.5 * h), default=None)
    if kink is not None and settings.cells is None:
        h = kink / math.ceil(kink / h)
    elif kink is not None and settings.half_width is None:
        h = kink / max(1, math.floor(kink / h))
    cells = settings.cells or 2 * math.ceil(half_width / h)
    return (0.5 * cells * h if settings.half_width is None else half_width), cells


def check_memory(outputs: int, shape: tuple[int, int], copies: int, pieces: str = "cells") -> None:
    """Refuse solutions that do not fit into the free memory.

    Parameters
    ----------
    outputs : int
        Number of output times.
    shape : tuple of int
        Nodes, and cells or points.
    copies : int
        Number of densities of this shape that are held at once.
    pieces : {"cells", "points"}
        What the second number of the shape counts. Points follow from the tolerance; cells can be given.

    Raises
    ------
    InputError
        If the solution does not fit; the message names the keys to change.
    """
    nodes, count = shape
    fewer = "lower time.outputs, density.feature_nodes" + (" or density.cells" if pieces == "cells" else "")
    what = f"{outputs} outputs of {nodes} nodes x {count} {pieces}"
    check_bytes(8 * nodes * count * copies, what, f"{fewer}, or raise density.tolerance")


def check_bytes(needed: float, what: str, remedy: str) -> None:
    """Refuse what takes more than the free memory; see `check_memory`."""
    free = psutil.virtual_memory().available
    if needed > MEMORY_SHARE * free:
        raise InputError(
            f"density: {what} take {needed / 2**30:.3g} GiB with working space, but {free / 2**30:.3g} GiB are free; "
            f"{remedy}"
        )


def _fastest_rate(limit: Limit) -> float:
    """Largest rate of change: of the drift gain and the diffusion over the ball, and by the force of the prior."""
    axis, d1, length = np.linspace(-1.0, 1.0, 9), len(limit.coordinates), math.sqrt(limit.initial_norm)
    ball = [limit.arguments_at(length * np.array(q)) for q in product(axis, repeat=d1) if np.dot(q, q) <= 1.0]
    two_deviations, largest = np.array([2.0]), limit.largest_variance

    def fastest(phase: Limit) -> float:
        alone = [replace(phase, closure=closure) for closure in closures_of(phase.closure)]
        values = [values_of(each, q) for each in alone for q in ball]
        rates = [np.linalg.norm(np.delete(each, limit.overlaps)) + 0.5 * each[limit.overlaps] for each in values]
        return largest * float(max(rates)) + 0.5 * phase.learning_rate * float(phase.prior.force(two_deviations)[0])

    return max(fastest(phase) for phase in limit.phases)


def _stiffest_rate(limit: Limit) -> float:
    """Largest rate of change by the force of the prior, from w = 1 to the start of the tails."""
    w = np.linspace(1.0, TAIL, 56)
    both, distances = np.concatenate([-w[::-1], w]), np.concatenate([w[::-1], w])
    pulls = [phase.learning_rate * np.abs(phase.prior.force(both)) / distances for phase in limit.phases]
    return float(np.max(pulls))
