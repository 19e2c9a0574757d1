"""All stationary states of a limit, their densities, their equations along a parameter, and what a list of them lacks.

The index of a state is the sign of det(-dF/dq). F points inwards on the sphere (see `search`), so that by Poincare and
Hopf the indices add up to 1; along a line they alternate, from +1 to +1. Where some overlaps have no density of unit
norm, the norm condenses, and what attracts there is no density that could be listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from meanfield.ingredients.priors import potential_of
from meanfield.mckean_vlasov.cells import cell_arrays
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.marginal import marginal_density
from meanfield.mckean_vlasov.stationary.effort import Effort
from meanfield.mckean_vlasov.stationary.equations import Coefficients, StationaryEquations, coordinates_of
from meanfield.mckean_vlasov.stationary.panels import all_panels
from meanfield.mckean_vlasov.stationary.search import (
    all_overlaps,
    check_features,
    in_order,
    index_by,
    mapped_coefficients,
    probes,
    resolved,
)
from meanfield.mckean_vlasov.stationary.variables import state_variables
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.numerics.continuation import CachedEquations
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray


class StationaryState(NamedTuple):
    """A stationary state by the numbers that its density takes, see `meanfield.mckean_vlasov.stationary.equations`.

    Parameters
    ----------
    q : ndarray, shape (d1,)
    topological_index : float
        Sign of det(-dF/dq).
    variables : dict
        Those of `state_variables`.
    """

    q: FloatArray
    G: float
    coefficients: Coefficients
    topological_index: float
    variables: dict[str, Any]


def all_states(limit: Limit) -> tuple[StationaryEquations, list[StationaryState]]:
    """All stationary states in the order of q, and the equations that they solve.

    Parameters
    ----------
    limit : Limit
        Limit with one to three features; its start does not matter.

    Notes
    -----
    The `effort` of the equations says what may be missing.

    Raises
    ------
    InputError
        If there are more features.
    """
    check_features(len(limit.coordinates))
    equations, orbits = resolved(limit, Effort())
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
                q, mapped = T @ state.q, mapped_coefficients(T, c)
                states.append(StationaryState(q, state.G, mapped, index, row | {"q": q, "g": mapped.g}))
    return equations, sorted(states, key=lambda found: in_order(found.q))


class StationaryBranches(CachedEquations[StationaryEquations]):
    """The equations of stationary states for every value of a parameter.

    Parameters
    ----------
    limit_at : callable
        The limit at a value of the parameter.
    limits : tuple of float
        The range of the parameter, increasing.

    Attributes
    ----------
    effort : Effort
        Its warning says what may be missing.
    """

    def __init__(self, limit_at: Callable[[float], Limit], limits: tuple[float, float]) -> None:
        super().__init__(limits)
        self._limit_at = limit_at
        self._rung = 0
        self.effort = Effort()

    def make(self, p: float, latest: StationaryEquations | None) -> StationaryEquations:
        """Equations at a value of the parameter; the latest ones give an estimate of the multiplier."""
        limit = self._limit_at(p)
        made = StationaryEquations(limit, coordinates_of(limit, self._rung), effort=self.effort)
        made.hint = latest.hint if latest else None
        return made

    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """Residual F and its Jacobian dF/dq."""
        return self.at(p)(x)

    def search(self, p: float, known: Sequence[FloatArray] = ()) -> list[FloatArray]:
        """All overlaps; at the ends of the range with nodes that resolve them as far as branches can afford."""
        if p not in self.limits:
            return all_overlaps(self.at(p), known)
        equations, orbits = resolved(self._limit_at(p), self.effort)
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


class Missing(NamedTuple):
    """Gap in a list of states, as their indices show it.

    Parameters
    ----------
    where : str
        The states between which it is missing, in words.
    attracts : bool
        Whether it attracts, as between two unstable states; else it is a border, as between two that attract.
    empty : ndarray, shape (d1,), optional
        The overlap there nearest to 0 that has no density of unit norm, of some that are tried.
    """

    where: str
    attracts: bool
    empty: FloatArray | None


def missing_states(
    equations: StationaryEquations, overlaps: Sequence[FloatArray], indices: Sequence[float]
) -> list[Missing]:
    """Gaps among states, in the order of their overlaps; none where an index is not known.

    Parameters
    ----------
    overlaps : sequence of ndarray, shape (d1,)
        Those of all states, in order.
    indices : sequence of float
        Their indices.
    """
    if not overlaps or not all(abs(index) == 1 for index in indices):
        return []
    if len(overlaps[0]) > 1:
        total = sum(indices)
        return [] if total == 1 else [_among(equations, total)]
    places = [-1.0, *(float(q[0]) for q in overlaps), 1.0]
    ends = pairwise(zip(places, [-1.0, *indices, -1.0], strict=True))  # F points inwards
    return [_between(equations, one[0], other[0], one[1]) for one, other in ends if one[1] == other[1]]


def _between(equations: StationaryEquations, start: float, stop: float, index: float) -> Missing:
    """Gaps on a line, between neighbours with one index."""
    inside = np.linspace(start, stop, 11)[1:-1]  # nine overlaps between two states
    inside[np.argmin(np.abs(inside))] *= abs(inside).min() > 1e-9  # exactly 0, of which more can be said
    return Missing(f"between q = {start:.4g} and {stop:.4g}", index < 0, _empty(equations, inside[:, None]))


def _among(equations: StationaryEquations, total: float) -> Missing:
    """Gaps among states of several features."""
    where = f"among the states, whose indices add up to {total:.0f}, not to 1"
    return Missing(where, total < 1, _empty(equations, np.array(probes(len(equations.limit.coordinates)))))


def _empty(equations: StationaryEquations, overlaps: FloatArray) -> FloatArray | None:
    """The first of some overlaps, from 0 outwards, that has no density of unit norm."""
    outwards = overlaps[np.argsort(np.linalg.norm(overlaps, axis=1))]
    return next((q for q in outwards if equations.state(q) is None), None)


CELLS = 400
"""Number of cells in w; their width grows like sqrt(1 + w^2), because some states have tails that reach far."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


def density_arrays(
    equations: StationaryEquations, states: Sequence[StationaryState], u: FloatArray, u_weight: FloatArray
) -> dict[str, Any]:
    """The variables of a Dataset that hold the densities of all states.

    Parameters
    ----------
    u : ndarray, shape (nodes, d1)
        Nodes in u at which the densities are kept.
    u_weight : ndarray, shape (nodes,)
    """
    edges = cell_edges(equations, states, u)
    P = np.empty((len(states), len(u), len(edges) - 1))
    known: dict[tuple[float, float], dict[float, FloatArray]] = {}
    with progress_bar(len(states), "densities of stationary states", "state") as bar:
        for state, averages in zip(states, P, strict=True):
            # images share G and Lambda, and nearly all tilts
            _fill(averages, equations, state, u, edges, known.setdefault((state.G, state.coefficients.diffusion), {}))
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
        "u": u,
        "u_weight": u_weight,
    } | cell_arrays(edges)


def cell_edges(equations: StationaryEquations, states: Sequence[StationaryState], u: FloatArray) -> FloatArray:
    """Edges of cells that hold the densities of all states, 0 among them, shape (CELLS + 1,)."""
    reach = max((float(np.abs(_panels(equations, state, u)[0]).max()) for state in states), default=1.0)
    edges = np.sinh(np.linspace(-1.0, 1.0, CELLS + 1) * np.arcsinh(reach))
    edges[CELLS // 2] = 0.0
    return np.asarray(edges)


def _panels(equations: StationaryEquations, state: StationaryState, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    scale = 2.0 / state.coefficients.diffusion
    tilt = scale * (u @ state.coefficients.g)
    found: tuple[FloatArray, FloatArray] = all_panels(
        equations.potential, scale * state.G, scale * equations.pull, tilt, equations.kinks
    )
    return found


def _fill(
    averages: FloatArray,
    equations: StationaryEquations,
    state: StationaryState,
    u: FloatArray,
    edges: FloatArray,
    known: dict[float, FloatArray],
) -> None:
    """P(w|u) averaged over cells, shape (nodes, cells); nodes whose tilts differ by rounding share one density."""
    tilt = u @ state.coefficients.g
    rounding = max(1e-14 * float(np.abs(tilt).max()), np.finfo(float).tiny)  # tilts that differ by less are one
    keys = np.round(tilt / rounding)
    new = [i for i, key in zip(*np.unique(keys, return_index=True)[::-1], strict=True) if key not in known]
    if new:
        known |= zip(keys[new].tolist(), cell_averages(equations, state, u[new], edges), strict=True)
    averages[:] = [known[key] for key in keys.tolist()]


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
