"""Averages over infinitely many nodes that start uniformly on a circle: quadrature along their paths, and densities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.families.latent_tree.many_nodes.circle import TURN, Circle, Flows
from meanfield.families.latent_tree.many_nodes.latents import SIGNS, Latents, parts_of
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
        breaks, rows = self._breaks(T), (len(self.polarity), len(SIGNS))
        half, middle = 0.5 * np.diff(breaks, axis=1), 0.5 * (breaks[:, 1:] + breaks[:, :-1])
        row, piece = np.nonzero(half > 0.0)
        half, middle = half[row, piece], middle[row, piece]
        angle = (middle[:, None] + half[:, None] * NODES).ravel()
        weight, row = (half[:, None] * WEIGHTS).ravel() / TURN, np.repeat(row, len(NODES))
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
