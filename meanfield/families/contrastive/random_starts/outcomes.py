"""Where many paths of the ODE end, and when they escape from q = 0: by Runge and Kutta, all at once.

The limit N -> infinity of a random start is deterministic once its amplitudes Y are drawn: the path that leaves the
origin like sqrt(N) q = sum_k v_k exp(j_k t) Y_k. Source: theory.md, section 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from meanfield.families.contrastive.random_starts.start import RandomStart
from meanfield.typing import FloatArray

Drift = Callable[[FloatArray], FloatArray]
"""dq/dt at many points, (n, d1) -> (n, d1)."""

STEP = 0.1
"""Of the method of order 4, in units of the fastest growth: errors of 1e-6 while it lasts."""

STIFF = 0.7
"""Longest step in units of the fastest decay anywhere: a quarter of what the method allows."""

RADIUS = 0.01
"""|q| where paths begin: linear there up to its square."""

SETTLED = 1e-4
"""|b|/|q| at the end of a path, in units of the fastest growth rate. Paths that pass a saddle as close as that, and
would be taken for undecided, have a chance of about 1e-4; they go on."""

LOOKS = 24
"""Directions in which the fastest decay is looked for."""

LONGEST = 400.0
"""Time, in units of the fastest growth rate, after which a path is given up."""


@dataclass(frozen=True)
class Outcomes:
    """What became of some paths.

    Parameters
    ----------
    escape_time : ndarray, shape (paths,)
        When |q| first reached the overlap that counts as escape; infinite if it never does.
    end : ndarray, shape (paths, d1)
        q at the end: a stable state, to a few digits.
    """

    escape_time: FloatArray
    end: FloatArray

    @property
    def winner(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Index of the feature with the largest |q_k| at the end, shape (paths,); -1 without escape."""
        return np.where(np.isfinite(self.escape_time), np.abs(self.end).argmax(axis=1), -1)


def limit_outcomes(start: RandomStart, N: float, amplitudes: FloatArray, overlap: float) -> Outcomes:
    """Paths with given amplitudes at large N.

    Parameters
    ----------
    start : RandomStart
        Of a problem in which something grows.
    N : float
    amplitudes : ndarray, shape (paths, growing)
        Y, for instance from `RandomStart.amplitudes`.
    overlap : float
        |q| that counts as escape.

    Returns
    -------
    Outcomes

    Raises
    ------
    InputError
        If nothing grows.
    """
    start.check_grows()
    since, q = take_off(start, N, amplitudes)
    outcomes = follow_paths(start.drift, q, overlap, float(start.growth_rates[0]))
    return Outcomes(since + outcomes.escape_time, outcomes.end)


def take_off(start: RandomStart, N: float, amplitudes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """When linear paths with given amplitudes reach |q| = RADIUS, shape (paths,), and where, shape (paths, d1)."""
    rates = start.growth_rates[: start.growing]
    logs = np.log(np.abs(amplitudes) / np.sqrt(N) / RADIUS)
    # |q| lies between its largest component and sqrt(growing) times that.
    last = -(logs / rates).max(axis=1)
    first = last - 0.5 * np.log(start.growing) / rates[-1]
    for _ in range(60):
        middle = 0.5 * (first + last)
        inside = np.exp(2 * (logs + rates * middle[:, None])).sum(axis=1) < 1.0
        first, last = np.where(inside, middle, first), np.where(inside, last, middle)
    components = np.sign(amplitudes) * RADIUS * np.exp(logs + rates * last[:, None])
    return last, components @ start.directions[:, : start.growing].T


def follow_paths(drift: Drift, q: FloatArray, overlap: float, rate: float) -> Outcomes:
    """Follow the ODE until every path has settled at a stable state.

    Parameters
    ----------
    drift : callable
    q : ndarray, shape (paths, d1)
        Where paths are at time 0.
    overlap : float
        |q| that counts as escape.
    rate : float
        Fastest growth rate.
    """
    q, step = q.copy(), longest_step(drift, q.shape[1], rate)
    escape = np.where(np.linalg.norm(q, axis=1) >= overlap, 0.0, np.inf)
    moving, now = np.arange(len(q)), 0.0
    while len(moving) and now < LONGEST / rate:
        before = q[moving]
        after = q[moving] = runge_kutta(drift, before, step)
        part = crossing(before, after, overlap)
        escape[moving] = np.minimum(escape[moving], now + step * part)
        now += step
        speed = np.linalg.norm(drift(after), axis=1) / np.linalg.norm(after, axis=1)
        moving = moving[~((speed < SETTLED * rate) & _is_stable(drift, after, speed < SETTLED * rate))]
    return Outcomes(escape, q)


def runge_kutta(drift: Drift, q: FloatArray, step: float) -> FloatArray:
    """The classical step of order 4."""
    first = drift(q)
    second = drift(q + 0.5 * step * first)
    third = drift(q + 0.5 * step * second)
    fourth = drift(q + step * third)
    return np.asarray(q + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth))


def crossing(before: FloatArray, after: FloatArray, overlap: float) -> FloatArray:
    """The part of a step after which |q| reaches an overlap from below, log |q| taken as linear; else infinite."""
    low, high = (np.log(np.linalg.norm(q, axis=1) / overlap) for q in (before, after))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((low < 0) & (high >= 0), -low / (high - low), np.inf)


def longest_step(drift: Drift, features: int, rate: float) -> float:
    """A step that is accurate while q grows, at this rate, and stable where paths from the origin come."""
    directions = np.random.default_rng(0).standard_normal((LOOKS, features))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    radii = np.linspace(0.05, 0.95, 19)
    points = radii[:, None, None] * directions
    outward = np.einsum("rnk,nk->rn", drift(points.reshape(-1, features)).reshape(points.shape), directions) > 0
    reached = radii <= radii[outward.any(axis=1)].max(initial=0.0) + (radii[1] - radii[0])
    slopes = _slopes(drift, points[reached].reshape(-1, features))
    return min(STEP / rate, STIFF / float(np.abs(np.linalg.eigvals(slopes)).max()))


def _slopes(drift: Drift, q: FloatArray, shift: float = 1e-4) -> FloatArray:
    """db/dq, shape (paths, d1, d1), to a few digits."""
    shifts = shift * np.eye(q.shape[1])
    there = np.stack([drift(q - s) - drift(q + s) for s in -shifts], axis=2)
    return np.asarray(there / (2 * shift))


def _is_stable(drift: Drift, q: FloatArray, asked: FloatArray) -> FloatArray:
    """Whether perturbations decay, of the points that are asked for."""
    stable = np.zeros(len(q), dtype=bool)
    if asked.any():
        stable[asked] = np.linalg.eigvals(_slopes(drift, q[asked])).real.max(axis=1) < 0
    return stable
