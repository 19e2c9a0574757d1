"""Law of the feature coordinates u for stationary densities, which depend on u through the tilt s = u.g alone.

A Gaussian vector looks the same from all sides, so of all coordinates that are Gaussian only the one along g needs
nodes; given it, the others keep mean 0 and variance 1. Each other coordinate has nodes of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.ingredients.laws import CoordinateLaw, GaussianCoordinate
from meanfield.numerics.quadrature import tensor_rule
from meanfield.typing import FloatArray

LADDER = (47, 71, 107, 161, 243, 365)
"""Numbers of nodes of a coordinate whose law has a density, in the order in which they are tried (rungs)."""

LADDERS = (LADDER, LADDER[:4], LADDER[:2])
"""Numbers of nodes in the order in which they are tried where one, two or three coordinates need nodes."""

NEGLIGIBLE_NODE = 1e-17
"""Largest weight of a node of a tensor product that is left out."""


@dataclass(frozen=True)
class Tilts:
    """Nodes for averages of u_k u_l f(u.g): the sum over c of moments[c, k, l] f(tilt[c]).

    Parameters
    ----------
    tilt : ndarray, shape (nodes,)
        s = u.g.
    weight : ndarray, shape (nodes,)
        Probabilities.
    mean : ndarray, shape (nodes, d1)
        Weight times E[u | node].
    second : ndarray, shape (nodes, d1, d1)
        Weight times E[u u^T | node].
    """

    tilt: FloatArray
    weight: FloatArray
    mean: FloatArray
    second: FloatArray


class Coordinates:
    """Law of u with a number of nodes.

    Parameters
    ----------
    laws : sequence of CoordinateLaw
        Laws of the feature coordinates, one for each feature.
    rung : int
        Index of the number of nodes in the ladder.
    """

    def __init__(self, laws: Sequence[CoordinateLaw], rung: int = 0) -> None:
        self._laws = laws
        self._gaussian = np.array([isinstance(law, GaussianCoordinate) for law in laws])
        own = [law for law in laws if not isinstance(law, GaussianCoordinate)]
        drawn = ([GaussianCoordinate()] if self._gaussian.any() else []) + own
        # A law with a density takes as many nodes as it is given, or one fewer where they come in pairs.
        continuous = sum(len(law.quadrature(7)[1]) == 7 or len(law.quadrature(8)[1]) == 8 for law in drawn)
        self._rungs = 1 if continuous == 0 else len(LADDERS[continuous - 1])
        self.rung = min(rung, self._rungs - 1)
        nodes = LADDERS[max(continuous, 1) - 1][self.rung]
        self._points, self._weight = tensor_rule([law.quadrature(nodes) for law in drawn], NEGLIGIBLE_NODE)

    @property
    def finer(self) -> Coordinates | None:
        """Coordinates with more nodes; None where nodes are exact or there are no more."""
        return None if self.rung + 1 >= self._rungs else Coordinates(self._laws, self.rung + 1)

    @property
    def coarser(self) -> Coordinates | None:
        """Coordinates with fewer nodes; None where nodes are exact or there are no fewer."""
        return None if self.rung == 0 else Coordinates(self._laws, self.rung - 1)

    def tilts(self, g: FloatArray) -> Tilts:
        """The nodes that belong to a drift gain, shape (d1,)."""
        d1 = len(g)
        conditional_mean = np.empty((len(self._weight), d1))
        spread = np.zeros((d1, d1))
        own = self._points
        if self._gaussian.any():
            along = np.where(self._gaussian, g, 0.0)
            length = np.sqrt(along @ along)
            # Without a direction of its own any will do.
            along = along / length if length > 0 else np.eye(d1)[np.argmax(self._gaussian)]
            conditional_mean[:, self._gaussian] = np.outer(own[:, 0], along[self._gaussian])
            spread = np.diag(self._gaussian.astype(float)) - np.outer(along, along)
            own = own[:, 1:]
        conditional_mean[:, ~self._gaussian] = own
        mean = self._weight[:, None] * conditional_mean
        second = mean[:, :, None] * conditional_mean[:, None, :] + self._weight[:, None, None] * spread
        return Tilts(conditional_mean @ g, self._weight, mean, second)
