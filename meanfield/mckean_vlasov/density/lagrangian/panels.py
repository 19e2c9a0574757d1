"""Rules in u on panels that follow the solution: short where averages given u have a kink or a layer.

A weight feels u through u.g alone. Where g pulls harder than the prior can hold, and where wells vanish, averages given
u have kinks and layers at values of u.g, and sums over nodes that know nothing of them converge slowly. So nodes lie on
lines u.e = s across the direction e of g: Gauss-Legendre rules on panels of s, and on every line the Gauss rule of the
law there, or on an axis. Panels are halved where the Legendre coefficients of what is averaged fall slowly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from meanfield.ingredients.laws import CoordinateLaw
from meanfield.ingredients.spectra import Spectrum
from meanfield.mckean_vlasov.cells import VARIANCE_NODES
from meanfield.mckean_vlasov.density.lagrangian.level import Level
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.fine_rules import ContinuousLaw
from meanfield.numerics.quadrature import gauss_rules
from meanfield.typing import FloatArray, IntArray

PARALLEL = 1e-3
"""Least component of a direction: lines closer to an axis are taken along it."""


@dataclass(frozen=True)
class Line:
    """Family of parallel lines that fill the support of the law of u, or a part of it.

    Parameters
    ----------
    laws : tuple of CoordinateLaw
        Laws of the coordinates that vary: one, whose axis is the only line, or two.
    along : ndarray, shape (len(laws),)
        Unit vector e.
    axes : ndarray of int, shape (len(laws),)
        Numbers of these coordinates.
    fixed : ndarray, shape (d1,), or (d1 + 1,) with a variance of the noise
        Values of the others.
    weight : float
        Probability of these values.
    """

    laws: tuple[ContinuousLaw, ...]
    along: FloatArray
    axes: IntArray
    fixed: FloatArray
    weight: float

    @property
    def cuts(self) -> FloatArray:
        """Ends of s, and values of s in between where the sum over a line is not smooth."""
        if len(self.laws) == 1:
            return np.array(self.laws[0].support)
        corners = np.add.outer(*(np.array(law.support) * e for law, e in zip(self.laws, self.along, strict=True)))
        cuts = np.unique(np.round(corners.ravel(), 12))
        return np.unique(np.concatenate([-cuts, cuts])) if np.allclose(cuts, -cuts[::-1]) else cuts

    def rule(self, s: FloatArray, across: int) -> tuple[FloatArray, FloatArray, IntArray]:
        """Nodes on the lines of s in the order of s, densities of s times their shares, and the number of the line."""
        if len(self.laws) == 1:
            return self._placed(s[:, None]), self.weight * self.laws[0].density(s), np.arange(len(s))
        e1, e2 = self.along
        normal = np.array([-e2, e1])
        crossings = [(np.array(law.support) - s[:, None] * e) / n for law, e, n in self._components(normal)]
        low = np.max([each.min(axis=1) for each in crossings], axis=0)
        high = np.min([each.max(axis=1) for each in crossings], axis=0)
        cuts = np.sort(np.clip(np.concatenate(crossings, axis=1), low[:, None], high[:, None]), axis=1)
        line, piece = np.nonzero(np.diff(cuts, axis=1) > 1e-10)  # shorter pieces are rounding
        a, b = cuts[line, piece], cuts[line, piece + 1]
        x, gauss = np.polynomial.legendre.leggauss(96)  # nodes for the law on a smooth piece
        v = 0.5 * (a + b)[:, None] + 0.5 * (b - a)[:, None] * x
        points = s[line][:, None, None] * self.along + v[:, :, None] * normal
        density = self.laws[0].density(points[..., 0]) * self.laws[1].density(points[..., 1])
        nodes, weight = gauss_rules(v, 0.5 * (b - a)[:, None] * gauss * density, across)
        number = np.repeat(line, across)
        u = self._placed(s[number][:, None] * self.along + nodes.ravel()[:, None] * normal)
        return u, self.weight * weight.ravel(), number

    def _placed(self, varying: FloatArray) -> FloatArray:
        """All coordinates of nodes from those that vary."""
        u = np.tile(self.fixed, (len(varying), 1))
        u[:, self.axes] = varying
        return u

    def _components(self, normal: FloatArray) -> list[tuple[ContinuousLaw, float, float]]:
        return list(zip(self.laws, self.along.tolist(), normal.tolist(), strict=True))


def lines_across(
    coordinates: Sequence[CoordinateLaw], pull: FloatArray, spectrum: Spectrum | None = None
) -> tuple[Line, ...]:
    """Lines across a direction: for one or two continuous coordinates, and for each value of discrete ones.

    Parameters
    ----------
    pull : ndarray, shape (d1,)
        The direction.
    spectrum : Spectrum, optional
        Law of variances of the noise, for each of which there are lines unless there are many.
    """
    if spectrum is not None and (spectrum.exact_nodes() or math.inf) > VARIANCE_NODES:
        return ()
    d1 = len(coordinates)
    axes = np.array([k for k, law in enumerate(coordinates) if isinstance(law, ContinuousLaw)], dtype=int)
    if len(axes) not in (1, 2):
        return ()
    laws = tuple(coordinates[k] for k in axes)
    along = np.array(pull[axes], dtype=float)
    size = float(np.linalg.norm(along))
    along = along / size if size > 0.0 else np.eye(len(axes))[0]
    along = np.where(np.abs(along) < PARALLEL, PARALLEL, along)
    along = np.ones(1) if len(axes) == 1 else along / np.linalg.norm(along)
    discrete = {k: coordinates[k].quadrature(1) for k in range(d1) if k not in axes}
    if spectrum is not None:
        variances = spectrum.nodes(VARIANCE_NODES)
        discrete[d1] = variances.rho, variances.weight
    values, shares = np.zeros((1, d1 + (spectrum is not None))), np.ones(1)
    for k, (value, share) in discrete.items():
        values = np.repeat(values, len(value), axis=0)
        values[:, k] = np.tile(value, len(shares))
        shares = np.outer(shares, share).ravel()
    return tuple(Line(laws, along, axes, fixed, float(share)) for fixed, share in zip(values, shares, strict=True))


WIDEST_PANEL, PANEL_GROWTH = 1.8, 0.6
"""Largest width of a panel to begin with, and of one far out in units of its distance from zero."""

MORE_NODES = 2
"""Nodes of panels, and of pieces of lines, that are added to see what is missing."""


@dataclass(frozen=True)
class Panels:
    """Panels of s on lines of nodes, and the rule on them.

    Parameters
    ----------
    lines : tuple of Line
        Families of lines: one for each value of a discrete coordinate.
    edges : tuple of ndarray
        Ends of the panels, for every family.
    order : int
        Nodes of a panel.
    across : int
        Nodes of each smooth piece of a line.
    features : int
        Number of coordinates, beside which nodes may have a variance of the noise.
    """

    lines: tuple[Line, ...]
    edges: tuple[FloatArray, ...]
    order: int
    across: int
    features: int

    @classmethod
    def start(
        cls,
        coordinates: Sequence[CoordinateLaw],
        pull: FloatArray,
        order: int,
        across: int,
        spectrum: Spectrum | None = None,
    ) -> Panels | None:
        """Panels of equal width between points where laws are not smooth; None if there are no lines."""
        lines = lines_across(coordinates, pull, spectrum)
        if not lines:
            return None
        edges = tuple(
            np.concatenate([*(_graded(a, b)[:-1] for a, b in pairwise(line.cuts)), line.cuts[-1:]]) for line in lines
        )
        return cls(lines, edges, order, across, len(coordinates))

    @cached_property
    def _rule(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """Nodes, their weights, and for each of them the number of its line among all lines of all panels."""
        x, weight = np.polynomial.legendre.leggauss(self.order)
        parts, begin = [], 0
        for line, edges in zip(self.lines, self.edges, strict=True):
            half = 0.5 * np.diff(edges)[:, None]
            s = 0.5 * (edges[1:] + edges[:-1])[:, None] + half * x
            u, within, number = line.rule(s.ravel(), self.across)
            parts.append((u, within * (half * weight).ravel()[number], begin + number))
            begin += s.size
        u, w, number = (np.concatenate(each) for each in zip(*parts, strict=True))
        kept = w > 1e-13  # lighter nodes move no average
        u, w = u[kept], w[kept] / w[kept].sum()
        own = u[:, : self.features]
        own /= np.sqrt(w @ (own * own))  # cut far out, and yet of unit variance
        return u, w, number[kept]

    def nodes(self, limit: Limit) -> Nodes:
        """The nodes of all panels, in the order of their mirror images."""
        u, weight, _ = self._rule
        return Nodes.with_symmetry(limit, u, weight)

    def with_more_nodes(self) -> Panels:
        """Panels with more nodes, which show kinks between the outermost node of a panel and its end, too."""
        return replace(self, order=self.order + MORE_NODES, across=self.across + MORE_NODES)

    def errors(self, level: Level) -> list[FloatArray]:
        """Size of the error by each panel, from the fall of the Legendre coefficients of what is averaged.

        It says where panels are too wide. What it leaves is measured by more nodes.

        A Gauss rule leaves the coefficients of twice the degree. These are extrapolated from what they lose over the
        last half of the degrees, by a power next to a kink and exponentially elsewhere.

        Returns
        -------
        list of ndarray, shape (panels,)
            For every family of lines.
        """
        sums = self._sums(level)
        x, _ = np.polynomial.legendre.leggauss(self.order)
        basis = np.polynomial.legendre.legvander(x, self.order - 1) * (2 * np.arange(self.order) + 1)
        sizes = np.abs(np.einsum("pnq,nj->pjq", sums, basis))
        half = self.order // 2
        middle, last = (sizes[:, degree - 2 : degree].max(axis=1) for degree in (half, self.order))
        errors = (last * np.minimum(last / np.maximum(middle, 1e-300), 1.0) ** 2).max(axis=1)  # not 0/0
        return self._by_family(errors, level)

    def changes(self, level: Level, better: Panels, more: Level) -> list[FloatArray]:
        """Size of what more nodes change in the share of each panel: the error that coefficients do not show.

        Parameters
        ----------
        better : Panels
            The same panels with more nodes.
        more : Level
            Solution at those nodes.

        Returns
        -------
        list of ndarray, shape (panels,)
            For every family of lines.
        """
        changed = np.abs(better._sums(more).sum(axis=1) - self._sums(level).sum(axis=1)).max(axis=1)
        return self._by_family(changed, level)

    def _sums(self, level: Level) -> FloatArray:
        """Sums over every line of what is averaged, shape (panels, lines of a panel, averages)."""
        u, weight, number = self._rule
        mirrored = level.frames.nodes.mirrored
        first, work, square = _unfolded(level.given_u, len(weight)) if mirrored else level.given_u
        averaged = np.concatenate([*(u.T[:, None] * first), work, square, u.T**2]) * weight
        panels = sum(len(edges) - 1 for edges in self.edges)
        sums = np.zeros((panels * self.order, len(averaged)))
        np.add.at(sums, number, averaged.T)
        return sums.reshape(panels, self.order, -1)

    def _by_family(self, errors: FloatArray, level: Level) -> list[FloatArray]:
        """Errors of all panels, apart for every family of lines."""
        if level.frames.nodes.mirrored:
            errors = np.maximum(errors, errors[::-1])  # to the last bit, so that panels stay mirror images
        return np.split(errors, np.cumsum([len(edges) - 1 for edges in self.edges])[:-1])

    def halved(self, errors: Sequence[FloatArray], allowed: float) -> Panels:
        """Panels with those halved whose error is more than their share of what is allowed for all; itself if none."""
        share = allowed / sum(len(each) for each in errors)
        edges = []
        for error, old in zip(errors, self.edges, strict=True):
            new = [old]
            for number in np.flatnonzero((error > share) & (np.diff(old) > 1e-6)):  # no panel is narrower
                a, b = old[number : number + 2]
                parts = 4 if error[number] > 1e4 * share else 2  # a panel that misses its share by far is cut into four
                new.append(a + (b - a) * np.arange(1, parts) / parts)
            edges.append(np.sort(np.concatenate(new)))
        same = all(len(new) == len(old) for new, old in zip(edges, self.edges, strict=True))
        return self if same else replace(self, edges=tuple(edges))


def _graded(a: float, b: float) -> FloatArray:
    """Edges of panels between a and b, wider far from zero, in the same way on both sides."""
    if a < 0.0 < b:
        return np.concatenate([-_graded(0.0, -a)[:0:-1], _graded(0.0, b)])
    if b <= 0.0:
        return -_graded(-b, -a)[::-1]
    places = a + np.linspace(0.0, b - a, 2001)
    count = np.concatenate([[0.0], np.cumsum(np.diff(places) / np.maximum(WIDEST_PANEL, PANEL_GROWTH * places[1:]))])
    return np.interp(np.linspace(0.0, count[-1], math.ceil(count[-1]) + 1), count, places)


def _unfolded(given_u: FloatArray, nodes: int) -> FloatArray:
    """Averages of w, w phi and w^2 at all nodes from those of the first half, shape (3, outputs, nodes)."""
    images = given_u[..., : nodes // 2][..., ::-1] * np.array([-1.0, 1.0, 1.0])[:, None, None]
    return np.concatenate([given_u, images], axis=2)
