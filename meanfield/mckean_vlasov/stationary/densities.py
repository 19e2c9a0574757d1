"""Stationary densities at the nodes of the density solver, as averages over cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanfield.ingredients.priors import potential_of
from meanfield.mckean_vlasov.cells import cell_arrays
from meanfield.mckean_vlasov.marginal import marginal_density
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.panels import all_panels
from meanfield.mckean_vlasov.stationary.states import StationaryState
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

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
