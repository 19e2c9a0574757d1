"""The density P(w|u) to ten digits or more, as a yardstick for the solver of the library.

It solves the equations of theory.md, section 2, and shares nothing with `meanfield.mckean_vlasov.density` but the
problem, its closure (g, Lambda) and phi:

- w: spectral elements with an edge at every kink of the prior, instead of finite volumes;
- u: Gauss-Legendre panels, instead of the trapezoidal rule;
- t: implicit Euler steps extrapolated to order 7 with adaptive steps, instead of the midpoint rule.

The densities are not positive: in tails they oscillate about 0 by about the tolerance. q and r are what this is for;
`density_references.py` stores them for the problems that the accuracy is measured on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise

import numpy as np
from numpy.polynomial import legendre

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.laws.coordinate import CoordinateLaw
from validation.references.element_mesh import DriftDiffusion, Mesh, graded_edges

Array = np.ndarray

FIRST_STEP = 1e-5
"""Share of the time to the next output that the first step takes."""

SAFETY = 0.8
"""Share of the step that the error estimate allows."""

SMALLEST_CHANGE = 0.1
"""Least factor by which the step changes after one that was not accurate."""

SHAPE_SHARE = 1e-3
"""Weight of the L2 norm of an error of P beside its moments: next to kinks P itself is followed to low order only."""

LIGHTEST_NODE = 1e-17
"""Least weight of a node in u that is not left out, counted with u^2."""

WORST_NORM_ERROR = 1e-6
"""Largest error of E[w^2] = 1, which the equation conserves, as its solution does within an interval that is wide
enough."""


@dataclass(frozen=True)
class Resolution:
    """How finely a reference is solved.

    Parameters
    ----------
    width, degree, layers, ratio : float, int, int, float
        Widest elements in w, degree of the polynomials, number of ever smaller elements next to kinks, and the ratio of
        their distances from it.
    half_width : float
        The elements cover [-half_width, half_width].
    panel, panel_nodes : float, int
        Widest panels in u and Gauss nodes in each.
    tolerance : float
        Of the error of one time step in q, r, E[w^2] and the mass.
    columns : int
        Extrapolated solutions with 1, 2, ... steps; their number is the order in time.
    """

    width: float = 0.5
    degree: int = 12
    layers: int = 2
    ratio: float = 0.25
    half_width: float = 9.5
    panel: float = 1.0
    panel_nodes: int = 10
    tolerance: float = 3e-12
    columns: int = 7

    @property
    def coarser(self) -> dict[str, Resolution]:
        """Cheaper solutions that are coarser in one respect each."""
        return {
            "w": replace(self, width=self.width * 1.2, degree=self.degree - 1, layers=self.layers - 1),
            "interval": replace(self, half_width=self.half_width / 1.1),
            "u": replace(self, panel_nodes=self.panel_nodes - 1),
            "t": replace(self, tolerance=self.tolerance * 10, columns=self.columns - 1),
        }


@dataclass(frozen=True)
class Reference:
    """A solution at the output times.

    Parameters
    ----------
    times : ndarray, shape (T,)
    q : ndarray, shape (T, d1)
    r, norm, mass : ndarray, shape (T,)
        E[w phi(w)], E[w^2] and the total mass.
    mesh : Mesh
    u, u_weight : ndarray, shape (nodes, d1) and (nodes,)
        Nodes in u. If phi is odd they are one of each pair u, -u, because P(-w|-u) = P(w|u).
    P : ndarray, shape (T, size of the mesh, nodes)
        Nodal values.
    steps : int
        Time steps.
    """

    times: Array
    q: Array
    r: Array
    norm: Array
    mass: Array
    mesh: Mesh
    u: Array
    u_weight: Array
    P: Array
    steps: int

    def density(self, index: int, w: Array) -> Array:
        """P(w|u) at output `index`, at points w and all nodes u, shape (nodes, points)."""
        return self.mesh.evaluate(self.P[index], w).T


def reference_solution(
    problem: Problem, resolution: Resolution | None = None, also_at: Array | None = None
) -> Reference:
    """Solve the Fokker-Planck equation with self-consistent q and r to about ten digits.

    Parameters
    ----------
    problem : Problem
        With a Gaussian residual at the start; `problem.density` is not looked at.
    resolution : Resolution, optional
    also_at : ndarray, shape (n, d1), optional
        Features where the density is wanted besides: nodes of weight 0 at the end of `u`.

    Raises
    ------
    ValueError
        If the start is random or not Gaussian, or the density is not resolved.

    Notes
    -----
    Source: theory.md, section 2.
    """
    if problem.random_start or problem.initial_residual.law != "gaussian":
        raise ValueError("the reference starts from a known overlap and a Gaussian residual; choose such a problem")
    resolution = resolution or Resolution()
    result = _Solution(problem, resolution, also_at).solve()
    worst = abs(result.norm - 1.0).max()
    if not worst < WORST_NORM_ERROR:
        raise ValueError(f"E[w^2] is off by {worst:.2g} with {resolution}; raise half_width, or lower width")
    return result


def estimated_errors(problem: Problem, finest: Reference, resolution: Resolution | None = None) -> dict[str, Array]:
    """Changes of (q, r) when the solution gets coarser in w, in u, in time, or covers a smaller interval.

    Returns
    -------
    dict of str to ndarray, shape (T, d1 + 1)
        For each of the four |change of q| and, in the last column, |change of r|. Each is an upper bound of what the
        finest solution is off by in this respect as long as it converges.
    """
    best = np.column_stack([finest.q, finest.r])
    found = {}
    for name, coarser in (resolution or Resolution()).coarser.items():
        other = reference_solution(problem, coarser)
        found[name] = abs(np.column_stack([other.q, other.r]) - best)
    return found


def coordinate_quadrature(law: CoordinateLaw, resolution: Resolution) -> tuple[Array, Array]:
    """Nodes and weights for one feature coordinate: Gauss-Legendre panels, or the values of a discrete law."""
    if law.law == "rademacher":
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    if law.law == "three_point":
        value, chance = math.sqrt(law.fourth_moment), 0.5 / law.fourth_moment
        return np.array([-value, 0.0, value]), np.array([chance, 1.0 - 2.0 * chance, chance])
    densities: dict[str, tuple[float, Callable[[Array], Array]]] = {
        "gaussian": (9.0, lambda u: np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)),
        "uniform": (math.sqrt(3.0), lambda u: np.full_like(u, 0.5 / math.sqrt(3.0))),
        "laplace": (28.0, lambda u: np.exp(-math.sqrt(2.0) * abs(u)) / math.sqrt(2.0)),
    }
    reach, density = densities[law.law]
    x, weight = legendre.leggauss(resolution.panel_nodes)
    edges = np.linspace(0.0, reach, math.ceil(reach / resolution.panel) + 1)
    half = np.concatenate([0.5 * (low + high) + 0.5 * (high - low) * x for low, high in pairwise(edges)])
    weights = density(half) * np.repeat(0.5 * np.diff(edges), len(x)) * np.tile(weight, len(edges) - 1)
    return np.concatenate([-half[::-1], half]), np.concatenate([weights[::-1], weights])


def feature_nodes(problem: Problem, resolution: Resolution) -> tuple[Array, Array]:
    """Nodes and weights for all coordinates, one of each pair u, -u where phi is odd."""
    rules = [coordinate_quadrature(feature.coordinate, resolution) for feature in problem.features]
    u = np.stack(np.meshgrid(*(x for x, _ in rules), indexing="ij"), axis=-1).reshape(-1, len(rules))
    weight = reduce(np.multiply.outer, (x for _, x in rules)).ravel()
    kept = weight * (1.0 + np.sum(u * u, axis=1)) > LIGHTEST_NODE
    w = np.linspace(0.0, 5.0, 101)
    if np.array_equal(problem.prior.force(-w), -problem.prior.force(w)):
        sign = np.sign(u) @ 3.0 ** np.arange(u.shape[1])  # that of the last coordinate which is not 0
        kept &= sign >= 0
        weight = np.where(sign > 0, 2.0, 1.0) * weight
    return u[kept], weight[kept]


class _Solution:
    """The nodes, the matrices, and the march through time."""

    def __init__(self, problem: Problem, resolution: Resolution, also_at: Array | None) -> None:
        self._problem = problem
        self._resolution = resolution
        self._closure = Closure(problem)
        self._tau = problem.model.learning_rate
        self._u, self._weight = feature_nodes(problem, resolution)
        if also_at is not None:
            self._u = np.concatenate([self._u, also_at])
            self._weight = np.concatenate([self._weight, np.zeros(len(also_at))])
        kinks = problem.prior.functions.kinks
        mesh = resolution.half_width, resolution.width, kinks, resolution.layers, resolution.ratio
        edges = graded_edges(*mesh)
        self._mesh = Mesh(edges, resolution.degree)
        self._equation = DriftDiffusion(self._mesh, (lambda w: w, problem.prior.force))
        w = self._mesh.points
        phi = problem.prior.force(w.ravel()).reshape(w.shape)
        self._rows = self._mesh.integrals(np.array([w, w * phi, w * w, np.ones_like(w)]))
        self._steps = 0

    def solve(self) -> Reference:
        """The solution at all output times."""
        times, P = self._problem.time.outputs_at, self._start()
        kept, dt = [P], FIRST_STEP * times[1]
        for now, then in pairwise(times):
            P, dt = self._advance(P, then - now, dt)
            kept.append(P)
        moments = np.array([self._moments(P) for P in kept])
        q, (r, norm, mass) = moments[:, :-3], moments[:, -3:].T
        return Reference(times, q, r, norm, mass, self._mesh, self._u, self._weight, np.array(kept), self._steps)

    def _start(self) -> Array:
        """W = u.q(0) + sqrt(1 - |q(0)|^2) xi, projected on the polynomials: exact q and E[w^2]."""
        q = self._problem.initial_overlap
        variance = 1.0 - q @ q
        distance = self._mesh.points - (self._u @ q)[:, None, None]
        return self._mesh.project(np.exp(-0.5 * distance**2 / variance) / math.sqrt(2.0 * math.pi * variance))

    def _moments(self, P: Array) -> Array:
        """q, r, E[w^2] and the mass in one vector."""
        first, weighted_force, second, mass = self._rows @ P
        weight = self._weight
        return np.array([*((weight * first) @ self._u), weight @ weighted_force, weight @ second, weight @ mass])

    def _advance(self, P: Array, duration: float, dt: float) -> tuple[Array, float]:
        """Adaptive steps that end exactly after `duration`; also the length for the next one."""
        left, tolerance, order = duration, self._resolution.tolerance, self._resolution.columns
        while left > 0.0:
            pieces = math.ceil(left / dt)
            step = left / pieces if pieces < 3 else dt
            change, error = self._extrapolated(P, step)
            ratio = (tolerance / max(self._size(error), 1e-6 * tolerance)) ** (1.0 / order)
            proposed = step * max(SAFETY * ratio, SMALLEST_CHANGE)
            if ratio < 1.0:
                dt = proposed
                continue
            P = P + change
            self._steps += 1
            left = left - step if pieces > 1 else 0.0
            dt = max(dt, proposed)
        return P, dt

    def _size(self, error: Array) -> float:
        """Of an error of P: the largest of those of q, r, E[w^2], mass, or a part of its L2 norm if that is more."""
        norm = math.sqrt(self._rows[3] @ (error * error) @ self._weight)
        return max(float(abs(self._moments(error)).max()), SHAPE_SHARE * norm)

    def _extrapolated(self, P: Array, dt: float) -> tuple[Array, Array]:
        """Change of P over one step, extrapolated from 1, 2, ... steps of Euler's method, and what it may be off by."""
        row: list[Array] = []
        for n in range(1, self._resolution.columns + 1):
            previous, row = row, [self._euler(P, dt, n)]
            for k, coarser in enumerate(previous, start=1):
                row.append(row[-1] + (row[-1] - coarser) / (n / (n - k) - 1.0))
        return row[-1], row[-1] - row[-2]

    def _euler(self, P: Array, dt: float, steps: int) -> Array:
        """Change of P after implicit Euler steps whose coefficients belong to the start of each."""
        change = np.zeros_like(P)
        for _ in range(steps):
            moments = self._moments(P + change)
            q, (r, norm) = moments[:-3], moments[-3:-1]
            g, diffusion = self._closure(q)
            growth = q @ g + self._tau * r - 0.5 * diffusion
            # An error of E[w^2] grows like exp(2 int growth dt); the second term, which the solution has not, damps it.
            factors = np.array([growth - 2.0 * max(growth, 0.0) * (norm - 1.0), -self._tau])
            change += self._equation.euler_increment(P + change, factors, self._u @ g, 0.5 * diffusion, dt / steps)
        return change
