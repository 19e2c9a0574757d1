"""Lines u.e = s in the plane of two coordinates, or the axis of one, with the Gauss rule of the law on each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.ingredients.laws import CoordinateLaw
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
    fixed : ndarray, shape (d1,)
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


def lines_across(coordinates: Sequence[CoordinateLaw], pull: FloatArray) -> tuple[Line, ...]:
    """Lines across a direction: for one or two continuous coordinates, and for each value of discrete ones.

    Parameters
    ----------
    coordinates : sequence of CoordinateLaw
    pull : ndarray, shape (d1,)
        The direction.
    """
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
    discrete = [k for k in range(d1) if k not in axes]
    values, shares = np.zeros((1, d1)), np.ones(1)
    for k in discrete:
        value, share = coordinates[k].quadrature(1)
        values = np.repeat(values, len(value), axis=0)
        values[:, k] = np.tile(value, len(shares))
        shares = np.outer(shares, share).ravel()
    return tuple(Line(laws, along, axes, fixed, float(share)) for fixed, share in zip(values, shares, strict=True))
