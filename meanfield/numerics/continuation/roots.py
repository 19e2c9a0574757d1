"""Roots of equations: damped Newton's method, deflation of known ones, and starting points in the unit ball."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations, product

import numpy as np

from meanfield.typing import FloatArray

Equations = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

TOLERANCE = 1e-12
"""Largest component of F at a root."""

STEP_ROUNDING = 1e-15
"""Length below which a Newton step is rounding, whatever F is: its derivative may be huge."""


def newton(
    equations: Equations,
    x: FloatArray,
    known: Sequence[FloatArray] | FloatArray = (),
    tolerance: float = TOLERANCE,
    values_alone: Callable[[FloatArray], FloatArray] | None = None,
    inside: Callable[[FloatArray], FloatArray] = lambda x: x,
) -> FloatArray | None:
    """Root of the equations, by damped Newton's method.

    Parameters
    ----------
    equations : callable
        x -> (F, dF/dx).
    x : ndarray, shape (n,)
        Starting point.
    known : sequence of ndarray, optional
        Roots that are not to be found again: F is multiplied by 1 + 1/|x - root|^2 for each (deflation).
    tolerance : float
        Largest component of F at the root.
    values_alone : callable, optional
        x -> F, where its Jacobian takes longer: for steps that may prove too long.
    inside : callable, optional
        The nearest point of the domain, to which steps go: roots may lie on its border.

    Returns
    -------
    ndarray or None
        None if no root was reached.
    """
    values, slope = equations(x)
    for _ in range(20):  # of Newton's method, which converges in fewer or not at all
        if not (np.all(np.isfinite(values)) and np.all(np.isfinite(slope))):
            return None
        step = np.linalg.lstsq(slope, -values, rcond=None)[0]
        largest = np.abs(values).max()
        if largest <= tolerance or np.abs(step).max() <= STEP_ROUNDING:
            return x if largest <= math.sqrt(tolerance) else None  # else no step changes what is left
        factor, gradient = _deflation(x, known)
        # Newton's step for the deflated equations is parallel to the plain one (Sherman and Morrison).
        stretch = 1.0 - float(gradient @ step)
        step = step / stretch if abs(stretch) > 1e-3 else 1e3 * step
        size = float(np.linalg.norm(values))
        for _ in range(6):  # of a step that does not reduce F, or leaves the domain
            trial = inside(x + step)
            values, slope = equations(trial) if values_alone is None else (values_alone(trial), slope)
            growth = _deflation(trial, known)[0] - factor
            if float(np.linalg.norm(values)) < size * math.exp(min(-growth, 700.0)):  # exp(700) is 1e304
                break
            step = 0.5 * step
        else:
            return None
        x = trial
        if values_alone is not None:
            _, slope = equations(x)
    return None


def _deflation(x: FloatArray, known: Sequence[FloatArray] | FloatArray) -> tuple[float, FloatArray]:
    """Logarithm of the factor that keeps Newton's method away from known roots, and its gradient."""
    away = x - np.reshape(known, (-1, x.size))
    square = np.maximum((away**2).sum(axis=1), 1e-30)
    return float(np.log1p(1.0 / square).sum()), -2.0 * (1.0 / (square * (1.0 + square))) @ away


def rough_differences(
    function: Callable[[FloatArray], FloatArray], x: FloatArray, values: FloatArray, step: float
) -> FloatArray:
    """Jacobian of a function with these values at x by one-sided differences, good enough for Newton's method."""
    return np.array([function(x + step * unit) - values for unit in np.eye(len(x))]).T / step


def find_roots(
    equations: Equations,
    starts: Iterable[FloatArray],
    images: Callable[[FloatArray], Iterable[FloatArray]] = lambda root: (),
    known: Sequence[FloatArray] = (),
    tolerance: float = TOLERANCE,
    symmetries: Sequence[FloatArray] = (),
) -> list[FloatArray]:
    """Roots of the equations, each once, until new starts bring nothing new.

    Parameters
    ----------
    equations : callable
        x -> (F, dF/dx).
    starts : iterable of ndarray, shape (n,)
        Starting points, in the order in which they are tried.
    images : callable, optional
        Images of a root under symmetries that the equations may have: places of other roots.
    known : sequence of ndarray, optional
        Roots that are known and not returned.
    tolerance : float
        Largest component of F at a root; see `newton`.
    symmetries : sequence of ndarray, shape (n, n), optional
        Orthogonal matrices T with F(T x) = T F(x), among `images`, which take known roots to known ones. Of starts
        that they map to each other one is tried, and the others bring nothing new, either.
    """
    found: list[FloatArray] = []
    tried: list[FloatArray] = []  # images of roots, which images of images are again
    idle: list[FloatArray] = []
    for start in starts:
        root = None
        if not _is_image(start, idle, symmetries):
            root = newton(equations, start, [*known, *found], tolerance)
        if root is None or is_among(root, [*known, *found]):
            idle.append(start)
            if len(idle) >= 12 * len(start):  # starts in a row, for each unknown, that brought nothing new
                break
            continue
        idle = []
        waiting = [root]
        fruitless: list[FloatArray] = []
        while waiting:
            root = waiting.pop()
            if not is_among(root, [*known, *found]):
                found.append(root)
                for image in images(root):
                    if is_among(image, [*known, *found, *tried]):
                        continue
                    tried.append(image)
                    if not _is_image(image, fruitless, symmetries):
                        other = newton(equations, image, (), tolerance)
                        (fruitless if other is None else waiting).append(image if other is None else other)
    return found


def _is_image(x: FloatArray, others: Sequence[FloatArray], symmetries: Sequence[FloatArray]) -> bool:
    return any(is_among(T @ x, others) for T in symmetries)


def is_among(root: FloatArray, roots: Sequence[FloatArray]) -> bool:
    """Whether a root is one of others, within what roots that were found twice differ by.

    Parameters
    ----------
    root : ndarray, shape (unknowns,)
    """
    return any(np.linalg.norm(root - other) < 1e-6 for other in roots)  # roots are far more accurate


def directions(n: int) -> Iterator[FloatArray]:
    """Unit vectors along all sums of axes."""
    yield from (v / np.linalg.norm(v) for v in map(np.array, product((-1.0, 0.0, 1.0), repeat=n)) if np.any(v))


def ball_starts(n: int) -> Iterator[FloatArray]:
    """Points of the n-dimensional ball: 0, symmetric directions at several radii, then points that fill it."""
    yield np.zeros(n)
    for radius in (0.35, 0.7, 0.9, 0.97):  # radii of starts, besides 0 and the axes
        yield from (radius * direction for direction in directions(n))
    from scipy.stats import qmc  # imported where it is used: it takes longer than most scripts run

    # Of evenly scattered points of the cube, those in the ball.
    cube = qmc.Sobol(n, scramble=False).random(256 * n) * 2.0 - 1.0
    yield from cube[np.linalg.norm(cube, axis=1) < 0.999]


def signed_permutations(x: FloatArray) -> Iterator[FloatArray]:
    """Images of a point by exchange of signs and places, shape (n,), itself first."""
    for signs in product((1.0, -1.0), repeat=len(x)):
        for order in permutations(range(len(x))):
            yield np.array(signs) * x[list(order)]
