"""Choose cells, nodes and time steps for a problem."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import psutil

from meanfield.closures import Closure
from meanfield.density.grid import Grid, feature_quadrature
from meanfield.errors import InputError
from meanfield.problem import Problem

MOST_FEATURES = 3
"""Nodes grow like a power of the number of features."""

CELL_WIDTH = 0.024
"""Default cell width; order 4 then leaves an error of q below 1e-6 in the linear problem."""

STEP = 0.025
"""Default time step, as a fraction of the fastest time scale of the coefficients."""

MOST_STEPS = 50_000
"""A default never exceeds this many steps; faster dynamics needs `density.steps`."""

TAIL = 6.5
"""Standard deviations of a conditional density that the cells hold by default."""

MEMORY_SHARE = 0.7
"""Part of the free memory that a solution may take; saving it and other programs need some, too."""

WORKING_COPIES = {2: 6, 4: 18}
"""Densities on the coarser grid that a solution of this order holds besides its outputs, copies in passing included."""


@dataclass(frozen=True)
class Plan:
    """Discretisation of the coarser solution; `refined` is that of the finer one."""

    half_width: float
    cells: int
    feature_nodes: int | None
    steps_per_output: int
    dt: float

    @property
    def refined(self) -> Plan:
        """Half the cell width and half the time step."""
        return replace(self, cells=2 * self.cells, steps_per_output=2 * self.steps_per_output, dt=0.5 * self.dt)

    def grid(self, problem: Problem) -> Grid:
        """The cells and nodes."""
        edges = np.linspace(-self.half_width, self.half_width, self.cells + 1)
        edges[self.cells // 2] = 0.0
        return Grid(edges, *feature_quadrature(problem, self.feature_nodes))


def make_plan(problem: Problem, closure: Closure, widening: float = 1.0, refinement: float = 1.0) -> Plan:
    """The discretisation that the problem asks for, with defaults for what it leaves open.

    Parameters
    ----------
    widening : float
        Factor on the default half-width, for densities with wide tails.
    refinement : float
        Factor on the default number of steps, for stiff starts.
    """
    settings = problem.density
    half_width, cells = _cells(problem, widening)
    rate = refinement * _fastest_rate(problem, closure)
    steps = settings.steps or min(MOST_STEPS, math.ceil(problem.time.stop * rate / STEP))
    intervals = problem.time.outputs - 1
    steps_per_output = math.ceil(steps / intervals)
    return Plan(
        half_width, cells, settings.feature_nodes, steps_per_output, problem.time.stop / (intervals * steps_per_output)
    )


def _cells(problem: Problem, widening: float) -> tuple[float, int]:
    """Half-width and number of cells, with the prior's kinks on cell edges where there is a choice."""
    settings = problem.density
    half_width = settings.half_width
    if half_width is None:
        u, _ = feature_quadrature(problem, settings.feature_nodes)
        # max over |q| <= 1 of |u| |q| + TAIL sqrt(1 - |q|^2), the reach of a Gaussian conditional density.
        half_width = widening * math.hypot(float(np.linalg.norm(u, axis=1).max()), TAIL)
    h = CELL_WIDTH if settings.cells is None else 2 * half_width / settings.cells
    kink = min((abs(kink) for kink in problem.prior.functions.kinks if abs(kink) > 0.5 * h), default=None)
    if kink is not None and settings.cells is None:
        h = kink / math.ceil(kink / h)
    elif kink is not None and settings.half_width is None:
        h = kink / max(1, math.floor(kink / h))
    cells = settings.cells or 2 * math.ceil(half_width / h)
    return (0.5 * cells * h if settings.half_width is None else half_width), cells


def check_memory(problem: Problem, plan: Plan) -> None:
    """Refuse a plan that does not fit into the memory that is free.

    Raises
    ------
    InputError
        Naming the keys to change.
    """
    nodes = len(feature_quadrature(problem, plan.feature_nodes)[1])
    copies = problem.time.outputs + WORKING_COPIES[problem.density.order]
    needed = 8 * nodes * plan.cells * copies
    free = psutil.virtual_memory().available
    if needed > MEMORY_SHARE * free:
        raise InputError(
            f"density: {problem.time.outputs} outputs of {nodes} nodes x {plan.cells} cells take "
            f"{needed / 2**30:.3g} GiB with working space, but {free / 2**30:.3g} GiB are free; lower time.outputs, "
            "density.feature_nodes or density.cells"
        )


def _fastest_rate(problem: Problem, closure: Closure) -> float:
    """Largest rate of change of the coefficients: drift gain and diffusion over the ball, and the prior's pull."""
    axis = np.linspace(-1.0, 1.0, 9)
    ball = [np.array(q) for q in product(axis, repeat=len(problem.features)) if np.dot(q, q) <= 1.0]
    rates = [np.linalg.norm(g) + 0.5 * diffusion for g, diffusion in map(closure, ball)]
    two_deviations = np.array([2.0])
    prior = 0.5 * problem.model.learning_rate * float(problem.prior.force(two_deviations)[0])
    return float(max(rates)) + prior
