"""Choose cells, nodes and time steps for a problem."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from meanfield.closures import Closure
from meanfield.density.grid import Grid, feature_quadrature
from meanfield.problem import Problem

FEATURE_NODES = {1: 47, 2: 25}
"""Default quadrature nodes per Gaussian coordinate, by number of features."""

CELL_WIDTH = 0.024
"""Default cell width; order 4 then leaves an error of q below 1e-6 in the linear problem."""

STEP = 0.025
"""Default time step, as a fraction of the fastest time scale of the coefficients."""

MOST_STEPS = 50_000
"""A default never exceeds this many steps; faster dynamics needs `density.steps`."""

TAIL = 6.5
"""Standard deviations of a conditional density that the cells hold by default."""


@dataclass(frozen=True)
class Plan:
    """Discretisation of the coarser solution; `refined` is that of the finer one."""

    half_width: float
    cells: int
    feature_nodes: int
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
    nodes = settings.feature_nodes or FEATURE_NODES[len(problem.features)]
    half_width = settings.half_width
    if half_width is None:
        u, _ = feature_quadrature(problem, nodes)
        # max over |q| <= 1 of |u| |q| + TAIL sqrt(1 - |q|^2), the reach of a Gaussian conditional density.
        half_width = widening * math.hypot(float(np.linalg.norm(u, axis=1).max()), TAIL)
    cells = settings.cells or 2 * math.ceil(half_width / CELL_WIDTH)
    rate = refinement * _fastest_rate(problem, closure)
    steps = settings.steps or min(MOST_STEPS, math.ceil(problem.time.stop * rate / STEP))
    intervals = problem.time.outputs - 1
    steps_per_output = math.ceil(steps / intervals)
    return Plan(half_width, cells, nodes, steps_per_output, problem.time.stop / (intervals * steps_per_output))


def _fastest_rate(problem: Problem, closure: Closure) -> float:
    """Largest rate of change of the coefficients: drift gain and diffusion over the ball, and the prior's pull."""
    axis = np.linspace(-1.0, 1.0, 9)
    ball = [np.array(q) for q in product(axis, repeat=len(problem.features)) if np.dot(q, q) <= 1.0]
    rates = [np.linalg.norm(g) + 0.5 * diffusion for g, diffusion in map(closure, ball)]
    two_deviations = np.array([2.0])
    prior = 0.5 * problem.model.learning_rate * float(problem.prior.force(two_deviations)[0])
    return float(max(rates)) + prior
