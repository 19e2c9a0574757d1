"""All stationary states of a limit, their densities, and their equations along a parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from meanfield.ingredients.priors import potential_of
from meanfield.mckean_vlasov.cells import cell_arrays
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.marginal import marginal_density
from meanfield.mckean_vlasov.stationary.effort import Effort
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations, coordinates_of
from meanfield.mckean_vlasov.stationary.panels import all_panels
from meanfield.mckean_vlasov.stationary.search import (
    all_overlaps,
    check_features,
    in_order,
    index_by,
    mapped_coefficients,
    resolved,
)
from meanfield.mckean_vlasov.stationary.spectra import equations_of
from meanfield.mckean_vlasov.stationary.state import Coefficients
from meanfield.mckean_vlasov.stationary.unknowns import overlap_at
from meanfield.mckean_vlasov.stationary.variables import state_variables
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.numerics.continuation import CachedEquations
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray, IntArray


class StationaryState(NamedTuple):
    """A stationary state by the numbers that its density takes, see `meanfield.mckean_vlasov.stationary.equations`.

    Parameters
    ----------
    x : ndarray, shape (unknowns,)
        See `meanfield.mckean_vlasov.stationary.unknowns`.
    q : ndarray, shape (d1,)
    norm : float
        E[w^2].
    topological_index : float
        Sign of det(-dF/dx).
    variables : dict
        Those of `state_variables`.
    """

    x: FloatArray
    q: FloatArray
    norm: float
    G: float
    coefficients: Coefficients
    topological_index: float
    variables: dict[str, Any]


def all_states(
    limit: Limit, rough_limit: Limit | None = None, near: Sequence[FloatArray] | None = None
) -> tuple[StationaryEquations, list[StationaryState]]:
    """All stationary states in the order of q, and the equations that they solve.

    Parameters
    ----------
    limit : Limit
        Limit with one to three features; its start does not matter, but for a norm that is kept.
    rough_limit : Limit, optional
        The same with a closure that is known to a few digits, and sooner, for places far from states.
    near : sequence of ndarray, optional
        Unknowns x of all states to a few digits, in place of a search.

    Notes
    -----
    The `effort` of the equations says what may be missing.

    Raises
    ------
    InputError
        If there are more features.
    """
    check_features(len(limit.coordinates))
    equations, orbits = resolved(limit, Effort(), rough_limit, near)
    states = []
    with progress_bar(len(orbits), "stability of stationary states", "state") as bar:
        for orbit in orbits:
            state = equations.state(orbit.q)
            bar.update()
            if state is None:
                equations.effort.lost += 1
                continue
            index = index_by(equations.like().slopes(state)[:-1])  # leaves the hint for the states that follow
            row, c = state_variables(equations, state), state.coefficients
            for T in orbit.maps:
                x, mapped = T @ state.x, mapped_coefficients(T, c)
                q = overlap_at(limit, x)
                row_of_image = row | {"q": q, "g": mapped.g}
                states.append(StationaryState(x, q, state.norm, state.G, mapped, index, row_of_image))
    return equations, sorted(states, key=lambda found: in_order(found.x))


class StationaryBranches(CachedEquations[StationaryEquations]):
    """The equations of stationary states for every value of a parameter.

    Parameters
    ----------
    limit_at : callable
        The limit at a value of the parameter.
    limits : tuple of float
        The range of the parameter, increasing.
    rough_at : callable, optional
        The same with a closure that is known to a few digits, and sooner, for searches.

    Attributes
    ----------
    effort : Effort
        Its warning says what may be missing.
    """

    def __init__(
        self,
        limit_at: Callable[[float], Limit],
        limits: tuple[float, float],
        rough_at: Callable[[float], Limit | None] = lambda p: None,
    ) -> None:
        super().__init__(limits)
        self._limit_at, self._rough_at = limit_at, rough_at
        self._rung = 0
        self.effort = Effort()

    def make(self, p: float, latest: StationaryEquations | None) -> StationaryEquations:
        """Equations at a value of the parameter; the latest ones give an estimate of the multiplier."""
        limit = self._limit_at(p)
        made = equations_of(limit, coordinates_of(limit, self._rung), effort=self.effort)
        made.hint = latest.hint if latest else None
        return made

    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """Residual F and its Jacobian dF/dq."""
        return self.at(p)(x)

    def search(self, p: float, known: Sequence[FloatArray] = ()) -> list[FloatArray]:
        """All roots; at the ends of the range with nodes that resolve them as far as branches can afford."""
        if p not in self.limits:
            return all_overlaps(self.at(p), known, self._rough_at(p))
        equations, orbits = resolved(self._limit_at(p), self.effort, self._rough_at(p))
        needed = min(equations.coordinates.rung, 2)  # `quadrature_error` says what error these nodes leave
        if needed > self._rung:
            self._rung = needed
            self.forget()
        return sorted((q for orbit in orbits for q in orbit.images), key=in_order)

    def variables(self, x: FloatArray, p: float) -> dict[str, Any] | None:
        """The variables of the state at a root; None where its density cannot be normalised."""
        equations = self.at(p)
        state = equations.state(x)
        return None if state is None else state_variables(equations, state)


CELLS = 400
"""Number of cells in w; their width grows like sqrt(1 + w^2), because some states have tails that reach far."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


def density_arrays(
    equations: StationaryEquations, states: Sequence[StationaryState], u: FloatArray, u_weight: FloatArray
) -> dict[str, Any]:
    """The variables of a Dataset that hold the densities of all states.

    Parameters
    ----------
    u : ndarray, shape (nodes, d1), or (nodes, d1 + 1) with variances of the noise
        Nodes at which the densities are kept.
    u_weight : ndarray, shape (nodes,)
    """
    edges = cell_edges(equations, states, u)
    P = np.empty((len(states), len(u), len(edges) - 1))
    known: dict[tuple[float, float], dict[float, FloatArray]] = {}
    with progress_bar(len(states), "densities of stationary states", "state") as bar:
        for state, averages in zip(states, P, strict=True):
            for rows, features, given in _at_variances(equations, state, u):
                # images share G and Lambda, and nearly all tilts
                of_tilts = known.setdefault((given.G, given.coefficients.diffusion), {})
                averages[rows] = _averages(equations, given, features, edges, of_tilts)
            bar.update()
    # images have the same law of w
    _, first, orbit = np.unique(
        [(state.G, state.coefficients.diffusion) for state in states] or np.empty((0, 2)),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    P_w = marginal_density(equations.limit.coordinates, u, u_weight, edges, P[first])[0][orbit.ravel()]
    return {
        "P": P,
        "P_w": P_w,
        "u": u[:, : len(equations.limit.coordinates)],
        "u_weight": u_weight,
    } | cell_arrays(edges)


def cell_edges(equations: StationaryEquations, states: Sequence[StationaryState], u: FloatArray) -> FloatArray:
    """Edges of cells that hold the densities of all states, 0 among them, shape (CELLS + 1,)."""
    members = (each for state in states for each in _at_variances(equations, state, u))
    reach = max((float(np.abs(_panels(equations, each, there)[0]).max()) for _, there, each in members), default=1.0)
    edges = np.sinh(np.linspace(-1.0, 1.0, CELLS + 1) * np.arcsinh(reach))
    edges[CELLS // 2] = 0.0
    return np.asarray(edges)


def _at_variances(
    equations: StationaryEquations, state: StationaryState, u: FloatArray
) -> Iterator[tuple[IntArray, FloatArray, StationaryState]]:
    """Nodes of each variance by their numbers, coordinates u there, and the state given the variance."""
    d1 = len(state.q)
    rho, at = np.unique(u[:, d1] if u.shape[1] > d1 else np.ones(len(u)), return_inverse=True)
    for k, each in enumerate(rho.tolist()):
        rows = np.flatnonzero(at == k).astype(np.int64)
        yield rows, u[rows, :d1], equations.given(state, each)


def _panels(equations: StationaryEquations, state: StationaryState, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    scale = 2.0 / state.coefficients.diffusion
    tilt = scale * (u @ state.coefficients.g)
    found: tuple[FloatArray, FloatArray] = all_panels(
        equations.potential, scale * state.G, scale * equations.pull, tilt, equations.kinks
    )
    return found


def _averages(
    equations: StationaryEquations,
    state: StationaryState,
    u: FloatArray,
    edges: FloatArray,
    known: dict[float, FloatArray],
) -> list[FloatArray]:
    """P(w|u) averaged over cells, shape (nodes, cells); nodes whose tilts differ by rounding share one density."""
    tilt = u @ state.coefficients.g
    rounding = max(1e-14 * float(np.abs(tilt).max()), np.finfo(float).tiny)  # tilts that differ by less are one
    keys = np.round(tilt / rounding)
    new = [i for i, key in zip(*np.unique(keys, return_index=True)[::-1], strict=True) if key not in known]
    if new:
        known |= zip(keys[new].tolist(), cell_averages(equations, state, u[new], edges), strict=True)
    return [known[key] for key in keys.tolist()]


def cell_averages(
    equations: StationaryEquations, state: StationaryState, u: FloatArray, edges: FloatArray
) -> FloatArray:
    """P(w|u) averaged over cells, shape (nodes, cells)."""
    scale = 2.0 / state.coefficients.diffusion
    potential = potential_of(equations.limit.prior.functions)
    panels, tops = _panels(equations, state, u)
    P = np.empty((len(u), len(edges) - 1))
    for i, (tilt, top) in enumerate(zip(u @ state.coefficients.g, tops, strict=True)):
        cuts = np.union1d(panels[i], edges[(edges > panels[i, 0]) & (edges < panels[i, -1])])
        half = 0.5 * np.diff(cuts)
        middle = 0.5 * (cuts[1:] + cuts[:-1])
        w = middle[:, None] + half[:, None] * NODES
        energy = (0.5 * state.G * w - tilt) * w - equations.pull * evaluate(potential, w)
        mass = half * (np.exp(scale * energy - top) @ WEIGHTS)
        cell = np.clip(np.searchsorted(edges, middle) - 1, 0, len(edges) - 2)
        P[i] = np.bincount(cell, mass, len(edges) - 1) / mass.sum()
    return P / np.diff(edges)
