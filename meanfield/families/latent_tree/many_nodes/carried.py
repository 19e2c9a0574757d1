"""Averages over infinitely many nodes with any number of weights, from some that stand for all.

Each of them is followed exactly, so that averages have the error of the quadrature at the start alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from meanfield.families.latent_tree.many_nodes.gates import Gates
from meanfield.families.latent_tree.many_nodes.latents import SIGNS, Latents
from meanfield.families.latent_tree.many_nodes.paths import Nodes, Paths
from meanfield.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Carried(Latents):
    """Nodes with given directions at the start, the same ones for every latent and sign.

    Parameters
    ----------
    w : ndarray, shape (nodes, weights)
        Directions at the start.
    weight : ndarray, shape (nodes,)
        Their shares, which add up to 1.
    linear_weight : ndarray, shape (nodes,)
        Their weights in averages of selectivities, which are linear in w between gates at the start.
    """

    w: FloatArray
    weight: FloatArray
    linear_weight: FloatArray
    _last: list[tuple[float, Nodes]] = field(default_factory=list, init=False, repr=False, compare=False)

    @cached_property
    def rows(self) -> IntArray:
        """Rows of latents and signs that have nodes, signs fastest."""
        return np.flatnonzero(np.tile(self.shares > 0.0, len(self.polarity)))

    @cached_property
    def sign(self) -> float:
        """Sign of Delta at the start, and so at all times: |Delta| grows."""
        first = np.maximum(self.w @ self.inputs.T, 0.0).T @ self.linear_weight
        s = np.repeat((self.difference @ first)[:, None], len(SIGNS), axis=1)
        return 1.0 if self.from_averages(s) >= 0.0 else -1.0

    @cached_property
    def _climbs(self) -> FloatArray:
        """+1 where nodes climb their selectivity, -1 where they descend, of each row."""
        return self.sign * np.where(self.pull < 0.0, -1.0, 1.0)

    @cached_property
    def paths(self) -> Paths:
        """Paths of the nodes of every row."""
        difference = np.repeat(self.difference, len(SIGNS), axis=0)
        return Paths(Gates(self.inputs, self._climbs[:, None] * difference))

    @cached_property
    def _start(self) -> Nodes:
        return self.starting(self.w)

    def starting(self, w: FloatArray) -> Nodes:
        """Nodes of all rows with given directions at the start."""
        return self.paths.start(np.repeat(self.rows, len(w)), np.tile(w, (len(self.rows), 1)))

    def moved(self, nodes: Nodes, duration: float) -> Nodes:
        """Nodes after some time |T|."""
        return self.paths.push(nodes, duration * np.abs(self.pull)[nodes.row])

    @property
    def fastest(self) -> float:
        """Largest rate of a node in units of 1/T."""
        return float(np.max(np.abs(self.pull)[self._start.row] * np.linalg.norm(self._start.slope, axis=1)))

    def at(self, T: float) -> Nodes:
        """All nodes at a time, row by row; quickly so at times that grow."""
        since, nodes = self._last[0] if self._last and self._last[0][0] <= abs(T) else (0.0, self._start)
        found = self.moved(nodes, abs(T) - since)
        self._last[:] = [(abs(T), found)]
        return found

    def averages(self, T: float) -> tuple[FloatArray, FloatArray]:
        """See `Latents.averages`."""
        nodes = self.at(T)
        square = np.exp(2.0 * nodes.growth) if self.grows else np.ones(len(nodes.w))
        s = square * self._climbs[nodes.row] * nodes.climb
        return self.by_row(s, self.linear_weight), self.by_row(square, self.weight)

    def by_row(self, values: FloatArray, weight: FloatArray) -> FloatArray:
        """Averages of numbers of all nodes, shape (latents, signs); 0 for signs that no node has."""
        found = np.zeros(len(self.polarity) * len(SIGNS))
        found[self.rows] = values.reshape(len(self.rows), -1) @ weight
        return found.reshape(-1, len(SIGNS))
