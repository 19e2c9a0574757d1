"""Nodes on a circle: their averages over all that start uniformly, and their densities at output times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.families.latent_tree.many_nodes.circle import TURN, Circle, Flows
from meanfield.families.latent_tree.many_nodes.latents import SIGNS, Density, Latents, inner_times, parts_of
from meanfield.families.latent_tree.problem import Problem
from meanfield.typing import FloatArray, IntArray

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
"""Rule of Gauss and Legendre on pieces that are short enough for it to be exact but for rounding."""


@dataclass(frozen=True)
class Ensemble(Latents):
    """Nodes with two weights, which are directions on a circle."""

    @cached_property
    def flows(self) -> Flows:
        """A row for each latent and sign of outgoing weights, the signs of a latent beside each other."""
        return Circle(self.inputs).flows(np.repeat(self.difference, len(SIGNS), axis=0))

    @cached_property
    def _ladder(self) -> tuple[FloatArray, IntArray]:
        """Places between which nodes are followed, both ends of every arc among them, and their arcs."""
        ends = self.flows.circle.ends
        inside = ends[:, :1] + np.diff(ends, axis=1) * np.linspace(0.0, 1.0, 3)  # two pieces of each arc
        return inside.ravel(), np.repeat(np.arange(len(ends)), 3)

    def _breaks(self, T: float) -> FloatArray:
        """Angles at the start between which a node is a smooth function of its own after the time T.

        They are those that were at the ladder at times up to T, so close to each other that tan(x/2) grows no more
        than by two e-folds between two of them.
        """
        angle, arc = self._ladder
        rates = np.abs(self.pull)[:, None] * self.flows.size
        fastest = max(float(rates.max()), 1e-300)
        longest = min(abs(T), 40.0 / fastest)  # beyond an exponent |g| t of 40 nodes have gathered, but for rounding
        shares = np.linspace(0.0, 1.0, int(np.ceil(fastest * longest / 2.0)) + 1)
        row, share, place = (i.ravel() for i in np.indices((len(self.pull), len(shares), len(angle))))
        back = -np.copysign(longest, T) * shares[share] * self.pull[row]
        found = self.flows.push(row, angle[place], arc[place], back).turned
        first = self.flows.circle.gates[0]
        return np.sort(np.clip(found.reshape(len(self.pull), -1), first, first + TURN), axis=1)

    def averages(self, T: float) -> tuple[FloatArray, FloatArray]:
        """See `Latents.averages`."""
        breaks = self._breaks(T)
        rows = (len(self.polarity), len(SIGNS))
        half = 0.5 * np.diff(breaks, axis=1)
        middle = 0.5 * (breaks[:, 1:] + breaks[:, :-1])
        row, piece = np.nonzero(half > 0.0)
        half, middle = half[row, piece], middle[row, piece]
        angle = (middle[:, None] + half[:, None] * NODES).ravel()
        weight = (half[:, None] * WEIGHTS).ravel() / TURN
        row = np.repeat(row, len(NODES))
        gates = self.flows.circle.gates
        arc = np.clip(np.searchsorted(gates, angle, side="right") - 1, 0, len(gates) - 1)
        found = self.flows.push(row, angle, arc, T * self.pull[row])
        mass = weight * np.exp(2.0 * found.growth) if self.grows else weight
        s = self.flows.selectivity(row, found.angle, found.arc)
        first, second = (np.asarray(np.bincount(row, x, len(self.pull)), dtype=float) for x in (mass * s, mass))
        return first.reshape(rows), second.reshape(rows)

    def distribution(self, edges: FloatArray, arc: IntArray, T: float) -> FloatArray:
        """Share of the nodes of each latent and sign that are before places on arcs, shape (latents, signs, places)."""
        row, place = (i.ravel() for i in np.indices((len(self.pull), len(edges))))
        found = self.flows.push(row, edges[place], arc[place], -T * self.pull[row])
        share = (found.turned - self.flows.circle.gates[0]) / TURN
        return np.asarray(share.reshape(len(self.polarity), len(SIGNS), -1) * self.shares[:, None])


def ensemble_of(problem: Problem) -> Ensemble:
    """Limit of infinitely many nodes of a problem whose nodes have two weights."""
    return Ensemble(*parts_of(problem))


def on_circle(problem: Problem) -> Density:
    """Density of a problem whose nodes have two weights; errors are below 1e-8, those of one differential equation."""
    nodes = ensemble_of(problem)
    at, status = inner_times(nodes, problem.time.outputs_at)
    return Density("density", _arrays(problem, nodes, at), status)


def _arrays(problem: Problem, nodes: Ensemble, at: FloatArray) -> dict[str, FloatArray]:
    """Variables of results from the time T at each output time."""
    circle, children = nodes.flows.circle, len(nodes.polarity)
    edges, arc = faces(circle, problem.density.cells)
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
        found["square"][k] = np.where(nodes.shares > 0.0, square, 0.0)
    coordinates = {
        "angle": 0.5 * (low + high),
        "angle_bnds": np.stack([low, high], axis=1),
        "gate": circle.gates,
    }
    return coordinates | found


def faces(circle: Circle, cells: int) -> tuple[FloatArray, IntArray]:
    """Faces of about so many cells, both ends of every arc among them, and their arcs."""
    edges, arcs = [], []
    for number, (first, last) in enumerate(circle.ends):
        count = max(1, round(cells * (last - first) / TURN))
        edges.append(np.linspace(first, last, count + 1))
        arcs.append(np.full(count + 1, number))
    return np.concatenate(edges), np.concatenate(arcs)
