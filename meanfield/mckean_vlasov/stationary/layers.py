"""Nodes in u on panels across the tilt s = u.g that resolve layers of averages over w.

Where noise is small and a potential has several wells or kinks, E[w|s] passes through layers of the width of the noise.
Rules whose nodes are all outside of a layer agree with each other, and with a wrong value; so panels are halved until
averages over w are resolved on them, wherever they vary. Of the coordinates with a density the one with the largest
part in s takes these panels, for each node of the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.ingredients.laws import CoordinateLaw
from meanfield.mckean_vlasov.stationary.coordinates import Coordinates, Tilts
from meanfield.mckean_vlasov.stationary.tilt_law import panel_ends, range_of
from meanfield.numerics.fine_rules import ContinuousLaw
from meanfield.numerics.quadrature import panel_rule, tensor_rule
from meanfield.typing import FloatArray


class Layers(Coordinates):
    """Law of u with nodes on panels that end where those of some averages over w do.

    Parameters
    ----------
    laws : sequence of CoordinateLaw
        Laws of the feature coordinates, at least one of them with a density.
    ends : ndarray, shape (pieces + 1,)
        Tilts between which averages over w are polynomials of a moderate degree to rounding.
    cuts : int
        Number of panels on each piece.
    rung : int
        Index of the number of nodes of coordinates without panels in the ladder.
    """

    def __init__(self, laws: Sequence[CoordinateLaw], ends: FloatArray, cuts: int, rung: int = 0) -> None:
        super().__init__(laws, rung)
        self._ends = _cut(ends, cuts)

    def tilts(self, g: FloatArray) -> Tilts:
        """The nodes that belong to a drift gain, gathered on the pieces: far fewer, for the same averages."""
        tilts = super().tilts(g)
        beyond = tilts.tilt.min(), tilts.tilt.max()  # of another gain than that of the pieces
        return tilts.on_a_line(np.union1d(self._ends, [min(beyond[0], self._ends[0]), max(beyond[1], self._ends[-1])]))

    @property
    def finer(self) -> None:
        """No nodes are finer than those that resolve everything."""
        return None

    def _nodes(self, gains: FloatArray) -> tuple[FloatArray, FloatArray]:
        k = max(self._continuous, key=lambda i: abs(gains[i]))
        if gains[k] == 0.0:
            return super()._nodes(gains)
        rules = [rule for i, rule in enumerate(self._rules) if i != k]
        # Nodes lighter than 1e-13 move no average.
        others, chances = tensor_rule(rules, 1e-13) if rules else (np.empty((1, 0)), np.ones(1))
        found = [
            self._on_panels(self._continuous[k], (self._ends - s) / gains[k]) for s in others @ np.delete(gains, k)
        ]
        sizes = [len(x) for x, _ in found]
        points = np.insert(np.repeat(others, sizes, axis=0), k, np.concatenate([x for x, _ in found]), axis=1)
        weight = np.concatenate([chance * part for chance, (_, part) in zip(chances, found, strict=True)])
        # Lighter nodes carry less than 1e-16 of E[w^2] = 1, with any w up to 1e8.
        kept = weight > 1e-32
        return points[kept], weight[kept]

    def _on_panels(self, law: ContinuousLaw, places: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Nodes of a coordinate on panels that end at these places and where its density asks for it."""
        # On such panels the density of a coordinate with unit variance varies little.
        return panel_rule(panel_ends(law, 1.0, places), law.density)


def _cut(ends: FloatArray, cuts: int) -> FloatArray:
    """Ends of pieces that are cut into equal parts."""
    steps = np.diff(ends)[:, None] * (np.arange(cuts) / cuts)
    return np.append((ends[:-1, None] + steps).ravel(), ends[-1])


def farthest_tilt(laws: Sequence[CoordinateLaw], g: FloatArray) -> float:
    """Bound of abs(u.g) that is passed with no probability."""
    reaches = [range_of(law)[-1] if isinstance(law, ContinuousLaw) else law.quadrature(2)[0].max() for law in laws]
    return float(np.abs(g) @ reaches)
