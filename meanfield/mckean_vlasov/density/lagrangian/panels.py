"""Rules in u on panels that follow the solution: short where averages given u have a kink or a layer.

A weight feels u through u.g alone. Where g pulls harder than the prior can hold, and where wells vanish, averages given
u have kinks and layers at values of u.g, and sums over nodes that know nothing of them converge slowly. So nodes lie on
lines u.e = s across the direction e of g: Gauss-Legendre rules on panels of s, and on every line the Gauss rule of the
law there. Panels are halved where the Legendre coefficients of what is averaged fall slowly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from meanfield.ingredients.laws import CoordinateLaw
from meanfield.mckean_vlasov.density.lagrangian.level import Level
from meanfield.mckean_vlasov.density.lagrangian.lines import Line, lines_across
from meanfield.mckean_vlasov.density.lagrangian.points import Nodes
from meanfield.mckean_vlasov.limit import Limit
from meanfield.typing import FloatArray, IntArray

WIDEST, GROWTH = 1.8, 0.6
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
    """

    lines: tuple[Line, ...]
    edges: tuple[FloatArray, ...]
    order: int
    across: int

    @classmethod
    def start(cls, coordinates: Sequence[CoordinateLaw], pull: FloatArray, order: int, across: int) -> Panels | None:
        """Panels of equal width between points where laws are not smooth; None if there are no lines."""
        lines = lines_across(coordinates, pull)
        if not lines:
            return None
        edges = tuple(
            np.concatenate([*(_graded(a, b)[:-1] for a, b in pairwise(line.cuts)), line.cuts[-1:]]) for line in lines
        )
        return cls(lines, edges, order, across)

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
        return u / np.sqrt(w @ (u * u)), w, number[kept]  # cut far out, and yet of unit variance

    def nodes(self, limit: Limit) -> Nodes:
        """The nodes of all panels, in the order of their mirror images."""
        u, weight, _ = self._rule
        return Nodes.with_symmetry(limit, u, weight)

    def with_more_nodes(self) -> Panels:
        """The same panels with more nodes, which show kinks between the outermost node of a panel and its end, too."""
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
        level : Level
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
    count = np.concatenate([[0.0], np.cumsum(np.diff(places) / np.maximum(WIDEST, GROWTH * places[1:]))])
    return np.interp(np.linspace(0.0, count[-1], math.ceil(count[-1]) + 1), count, places)


def _unfolded(given_u: FloatArray, nodes: int) -> FloatArray:
    """Averages of w, w phi and w^2 at all nodes from those of the first half, shape (3, outputs, nodes)."""
    images = given_u[..., : nodes // 2][..., ::-1] * np.array([-1.0, 1.0, 1.0])[:, None, None]
    return np.concatenate([given_u, images], axis=2)
