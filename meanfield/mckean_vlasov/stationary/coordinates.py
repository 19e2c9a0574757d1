"""Law of the feature coordinates u for stationary densities, which depend on u through the tilt s = u.g alone.

A Gaussian vector looks the same from all sides, so of all coordinates that are Gaussian only the one along g needs
nodes; given it, the others keep mean 0 and variance 1. Each other coordinate has nodes of its own. Nodes on panels
across s resolve layers of averages over w.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.ingredients.laws import CoordinateLaw, GaussianCoordinate
from meanfield.ingredients.spectra import Nodes, Spectrum
from meanfield.mckean_vlasov.stationary.interpolation import gathered
from meanfield.mckean_vlasov.stationary.tilt_law import has_tails, panel_ends, range_of, tilt_rule
from meanfield.numerics.fine_rules import ContinuousLaw
from meanfield.numerics.quadrature import panel_rule, tensor_rule
from meanfield.typing import FloatArray

CELLS = 100
"""Number of cells of a piece whose nodes are merged: averages are polynomials of degree 19 on it, and change by little
in a cell, so that growth rates have three digits or so."""


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

    def on_a_line(self, ends: FloatArray) -> Tilts:
        """Nodes in s with the same averages of functions that are polynomials in s between these ends."""
        parts = [part.reshape(len(self.tilt), -1) for part in (self.weight, self.mean, self.second)]
        s, sums = gathered(ends, self.tilt, np.hstack(parts))
        d1 = self.mean.shape[1]
        return Tilts(s, sums[:, 0], sums[:, 1 : d1 + 1], sums[:, d1 + 1 :].reshape(-1, d1, d1))

    def merged(self, ends: FloatArray) -> Tilts:
        """One node for all in a cell of a piece between these ends, right to second order.

        Weights stay above 0, and second moments positive: there may be no spectrum where they are not.
        """
        cells = np.interp(np.arange((len(ends) - 1) * CELLS + 1) / CELLS, np.arange(len(ends)), ends)
        _, cell = np.unique(np.searchsorted(cells, self.tilt), return_inverse=True)
        one_hot = np.eye(cell.max() + 1)[:, cell]
        weight, s = one_hot @ self.weight, one_hot @ (self.weight * self.tilt)
        second = np.einsum("nc,ckl->nkl", one_hot, self.second)
        return Tilts(s / weight, weight, one_hot @ self.mean, second)


class Coordinates:
    """Law of u with a number of nodes.

    Parameters
    ----------
    laws : sequence of CoordinateLaw
        Laws of the feature coordinates, one for each feature.
    rung : int
        Index of the number of nodes in the ladder.

    Attributes
    ----------
    laws : sequence of CoordinateLaw
    exact : bool
        Whether no coordinate has a density, so that nodes are all values of u.
    takes_layers : bool
        Whether nodes on panels that resolve layers are affordable.
    has_tails : bool
        Whether some u are rare: nodes are far apart there, or there are none.
    """

    def __init__(self, laws: Sequence[CoordinateLaw], rung: int = 0) -> None:
        self.laws = laws
        self._gaussian = np.array([isinstance(law, GaussianCoordinate) for law in laws])
        own = [law for law in laws if not isinstance(law, GaussianCoordinate)]
        drawn = ([GaussianCoordinate()] if self._gaussian.any() else []) + own
        self._continuous = {k: law for k, law in enumerate(drawn) if isinstance(law, ContinuousLaw)}
        self.exact = not self._continuous
        self.takes_layers = 1 <= len(self._continuous) <= 2  # the layers of three would take a million nodes
        self.has_tails = any(map(has_tails, self._continuous.values()))
        # Rungs: numbers of nodes of a coordinate whose law has a density, where one, two or three need nodes.
        ladder = ((47, 71, 107), (47, 71, 107), (15, 31, 71))[max(len(self._continuous), 1) - 1]
        self._rungs = len(ladder) if self._continuous else 1
        self.rung = min(rung, self._rungs - 1)
        self._rules = [law.quadrature(ladder[self.rung]) for law in drawn]
        self._tensor = tensor_rule(self._rules, 1e-17)  # lighter nodes move no average

    @property
    def finer(self) -> Coordinates | None:
        """Coordinates with more nodes; None where nodes are exact or there are no more."""
        return None if self.rung + 1 >= self._rungs else Coordinates(self.laws, self.rung + 1)

    def tilts(self, g: FloatArray) -> Tilts:
        """The nodes that belong to a drift gain, shape (d1,)."""
        d1 = len(g)
        own, weight = self._nodes(self._gains(g))
        directions = self._directions(g)
        conditional_mean = own @ directions
        spread = np.zeros((d1, d1))
        if self._gaussian.any():
            spread = np.diag(self._gaussian.astype(float)) - np.outer(directions[0], directions[0])
        mean = weight[:, None] * conditional_mean
        second = mean[:, :, None] * conditional_mean[:, None, :] + weight[:, None, None] * spread
        return Tilts(conditional_mean @ g, weight, mean, second)

    def law_of_tilt(self, g: FloatArray, places: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Nodes in s alone, where all drawn coordinates have densities; see `tilt_rule`.

        Returns
        -------
        tilt, weight : ndarray, shape (nodes,)
        mean : ndarray, shape (nodes, d1)
            As in `Tilts`.
        """
        s, weight, mean = tilt_rule(list(self._continuous.values()), self._gains(g), places)
        return s, weight, mean @ self._directions(g)

    def _directions(self, g: FloatArray) -> FloatArray:
        """Features that the drawn coordinates belong to, as unit vectors: that of a Gaussian one lies along g."""
        axes = np.eye(len(g))
        if not self._gaussian.any():
            return axes
        along = np.where(self._gaussian, g, 0.0)
        length = np.sqrt(along @ along)
        # Without a direction of its own any will do.
        along = along / length if length > 0 else axes[np.argmax(self._gaussian)]
        return np.asarray(np.vstack([along, axes[~self._gaussian]]))

    def _gains(self, g: FloatArray) -> FloatArray:
        """Factors of the drawn coordinates in s."""
        return np.asarray(self._directions(g) @ g)

    def _nodes(self, gains: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Nodes of the drawn coordinates, shape (nodes, coordinates), and their probabilities."""
        return self._tensor


VARIANCES = (12, 24, 48)
"""Numbers of nodes of a spectrum, by rungs."""


class MixedCoordinates(Coordinates):
    """Law of u, and nodes of a spectrum: on each rung there are more of both.

    Parameters
    ----------
    laws, rung
        See `Coordinates`.
    spectrum : Spectrum

    Attributes
    ----------
    variances : Nodes
    """

    def __init__(self, laws: Sequence[CoordinateLaw], rung: int, spectrum: Spectrum) -> None:
        super().__init__(laws, rung)
        self.rung, self._spectrum, self.takes_layers = rung, spectrum, False
        self.variances = spectrum.nodes(VARIANCES[rung])
        self._has_all = (spectrum.exact_nodes() or math.inf) <= VARIANCES[rung]
        self.exact = self.exact and self._has_all

    @property
    def finer(self) -> MixedCoordinates | None:
        """See `Coordinates.finer`."""
        done = self.exact or self.rung + 1 == len(VARIANCES)
        return None if done else MixedCoordinates(self.laws, self.rung + 1, self._spectrum)

    @property
    def other(self) -> MixedCoordinates:
        """Other nodes, finer ones if there are any."""
        return self.finer or MixedCoordinates(self.laws, self.rung if self.exact else self.rung - 1, self._spectrum)

    def at_ends(self, rung: int) -> MixedCoordinates:
        """Nodes of a rung, and ends of a spectrum beyond them, which have a rate but no weight."""
        found = MixedCoordinates(self.laws, rung, self._spectrum)
        if not found._has_all:
            ends = self._spectrum.ends()
            added = ends, np.zeros(len(ends)), np.zeros(len(ends))
            found.variances = Nodes(*(np.append(*each) for each in zip(found.variances, added, strict=True)))
        return found


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
