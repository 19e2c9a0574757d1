"""Density of nodes with two weights, exactly: on a circle, in cells between its gates."""

from __future__ import annotations

import numpy as np

from meanfield.families.latent_tree.many_nodes.circle import TURN
from meanfield.families.latent_tree.many_nodes.ensemble import Ensemble, ensemble_of
from meanfield.families.latent_tree.many_nodes.inner_time import inner_times
from meanfield.families.latent_tree.many_nodes.latents import SIGNS, Density
from meanfield.families.latent_tree.problem import Problem
from meanfield.typing import FloatArray, IntArray


def on_circle(problem: Problem) -> Density:
    """Density of a problem whose nodes have two weights; errors are below 1e-8, those of one differential equation."""
    nodes = ensemble_of(problem)
    at, status = inner_times(nodes, problem.time.outputs_at, 1e-10, "density")  # error of a step of the time T
    return Density("density", _arrays(problem, nodes, at), status)


def _arrays(problem: Problem, nodes: Ensemble, at: FloatArray) -> dict[str, FloatArray]:
    """Variables of results from the time T at each output time."""
    circle, children = nodes.flows.circle, len(nodes.polarity)
    edges, arc = _faces(nodes, problem.density.cells)
    inside = arc[1:] == arc[:-1]  # between the last face of an arc and the first of the next there is the gate itself
    low, high = edges[:-1][inside], edges[1:][inside]
    sizes = (len(at), children, len(SIGNS))
    found = {
        "Delta": np.full(len(at), np.nan),
        "rho": np.full((*sizes, len(low)), np.nan),
        "atom": np.full((*sizes, len(circle.gates)), np.nan),
        "square": np.full(sizes, np.nan),
    }
    for k in np.flatnonzero(np.isfinite(at)):
        T = float(at[k])
        before = nodes.distribution(edges, arc, T)
        share = np.diff(before, axis=-1)
        s, square = nodes.averages(T)
        found["Delta"][k] = nodes.from_averages(s)
        found["rho"][k] = share[..., inside] / (high - low)
        first = before[..., :1] + nodes.shares[:, None] - before[..., -1:]
        found["atom"][k] = np.concatenate([first[..., :1], share[..., ~inside]], axis=-1)
        found["square"][k] = square
    coordinates = {
        "angle": 0.5 * (low + high),
        "angle_bnds": np.stack([low, high], axis=1),
        "gate": circle.gates,
    }
    return coordinates | found


def _faces(nodes: Ensemble, cells: int) -> tuple[FloatArray, IntArray]:
    """Faces of about so many cells, both ends of every arc among them, and their arcs."""
    edges, arcs = [], []
    for number, (first, last) in enumerate(nodes.flows.circle.ends):
        count = max(1, round(cells * (last - first) / TURN))
        edges.append(np.linspace(first, last, count + 1))
        arcs.append(np.full(count + 1, number))
    return np.concatenate(edges), np.concatenate(arcs)
