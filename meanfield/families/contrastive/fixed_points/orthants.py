"""Zeros of a field with overlaps of given signs: from scattered starts, with those that are known deflated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from meanfield.numerics.continuation import Equations, newton
from meanfield.typing import FloatArray

Rates = Callable[[FloatArray], FloatArray]


class Coincident:
    """Face in which parts of its features have one overlap q each, by the variables sqrt(m) q of m features.

    Parameters
    ----------
    face : callable
        See `zeros_in_orthant`.
    parts : list of list of int
        Places of the features of each part.
    """

    def __init__(self, face: Rates, parts: list[list[int]]) -> None:
        self._face, self._root = face, np.sqrt([len(part) for part in parts])
        self.first = [part[0] for part in parts]
        number = [k for k, part in enumerate(parts) for _ in part]
        self._part = np.array(number)[np.argsort(np.concatenate(parts))]

    def __call__(self, x: FloatArray) -> FloatArray:
        """Field by these variables."""
        return np.asarray(self._root * self._face(self.expanded(x))[..., self.first])

    def expanded(self, x: FloatArray) -> FloatArray:
        """Overlaps of all features."""
        return np.asarray((x / self._root)[..., self._part])

    def reduced(self, q: FloatArray) -> FloatArray:
        """Variables of overlaps that coincide."""
        return np.asarray(self._root * q[self.first])


FRUITLESS = 12
"""Starts in a row that bring nothing new before an orthant is left, unless indices say that a zero is missing."""


def zeros_in_orthant(
    face: Rates,
    signs: FloatArray,
    powers: FloatArray,
    likely: list[FloatArray],
    fineness: int,
    known: Sequence[FloatArray] = (),
) -> Iterator[FloatArray]:
    """Approximate zeros with overlaps of the given signs, each once.

    Parameters
    ----------
    face : callable
        q -> b(q) of a face, in units of the size of the field, shapes (..., n).
    signs, powers : ndarray, shape (n,)
        Signs of the overlaps, and the powers p of the variables x = |q|^p: 2 where the field is odd in an overlap.
    likely : list of ndarray, shape (n,)
        Overlaps that are tried first.
    fineness : int
        Factor of the number of starts.
    known : sequence of ndarray, shape (n,)
        Zeros that are not to be found again.
    """

    def rates(x: FloatArray) -> FloatArray:
        q = signs * np.maximum(x, 0.0) ** (1.0 / powers)
        inside = np.all(x > 0.0, axis=-1) & (np.square(q).sum(axis=-1) < 1.0)
        return np.asarray(np.where(inside[..., None], face(q) / np.where(q == 0.0, 1.0, q), np.nan))

    def equations(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = rates(x)
        if not np.all(np.isfinite(values)):
            return values, np.full((len(x), len(x)), np.nan)
        steps = 1e-5 * x  # inwards; Newton's method then converges by five digits a step
        return values, ((values - rates(x - np.diag(steps))) / steps[:, None]).T

    n = len(signs)
    axis = [signs * (norm / n) ** 0.5 for norm in (0.1, 0.35, 0.6, 0.8, 0.95)]  # values of q.q
    parts, norms = scattered_parts(n, 16 * fineness * n)
    parts, norms = np.tile(parts, (2, 1)), np.concatenate([norms, 1.0 - 0.05 * norms**2])  # some next to the sphere
    scattered = (norms[:, None] * parts) ** (0.5 * powers)
    scattered = scattered[np.argsort(np.linalg.norm(rates(scattered), axis=1))]
    found = [np.abs(q) ** powers for q in known]
    fruitless = 0
    for start in [*(np.abs(q) ** powers for q in (*likely, *axis)), *scattered]:
        x = _root(equations, rates, start, found)
        # Zeros closer to a smaller face cannot be told from those in it.
        if x is not None and np.all(x >= 1e-3**powers) and all(np.linalg.norm(x - other) > 1e-7 for other in found):
            found.append(x)
            fruitless = 0
            yield signs * x ** (1.0 / powers)
            continue
        fruitless += 1
        if fineness == 1 and fruitless >= FRUITLESS + len(likely):
            return


def _root(equations: Equations, rates: Rates, x: FloatArray, known: list[FloatArray]) -> FloatArray | None:
    """Root of the rates from a start, to rounding, which no tolerance tells beforehand."""
    root = newton(equations, x, known, 1e-9, rates)
    for _ in range(2):
        if root is None:
            return None
        values, slope = equations(root)
        root = root - np.linalg.lstsq(slope, values, rcond=None)[0] if np.all(np.isfinite(slope)) else None
    return root if root is not None and np.all(root > 0.0) else None


def directions_of(face: Rates, signs: FloatArray) -> FloatArray:
    """Points of the sphere of an orthant near which the field may vanish, shape (points, n)."""
    parts, _ = scattered_parts(len(signs), 8 * len(signs))
    points = (1.0 - 2e-16) * signs * np.sqrt(parts)  # rounded inwards
    size = np.linalg.norm(face(points), axis=1)
    likely = np.argsort(size)[:2]
    return np.asarray(points[likely[size[likely] < 0.05]])  # of the size of the field, which vanishes at a zero


def scattered_parts(n: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Points of the face sum_k u_k = 1 of a simplex, shape (count, n), evenly scattered, and numbers in (0, 1)."""
    from scipy.stats import qmc  # imported where it is used: it takes longer than most scripts run

    cube = qmc.Sobol(n + 1, scramble=False).random_base2(count.bit_length())[1 : count + 1]  # the first is a corner
    parts = np.log1p(-cube[:, :n]) ** 2  # of exponential variables, squared: many are small
    return parts / parts.sum(axis=1, keepdims=True), cube[:, n]
