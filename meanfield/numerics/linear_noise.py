"""Covariance of many small random steps about a trajectory, to leading order in their size.

Steps of dx = b(x) dt with a covariance S dt/N of their own give runs that start at one point the covariance C/N, with

    dC/dt = J C + C J^T + S(x_t),   J = db/dx at x_t,   C(0) = 0.

Where J and S take long, Chebyshev series on intervals of time take their place.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from meanfield.errors import InputError
from meanfield.numerics.ode import Tolerance, solve_ode
from meanfield.typing import FloatArray


def interpolant(
    function: Callable[[FloatArray], FloatArray],
    start: float,
    stop: float,
    what: str,
    tolerance: float = 1e-6,
    nodes: int = 10,
) -> Callable[[float], FloatArray]:
    """Function of time that costs little, in place of one that takes long.

    Parameters
    ----------
    function : callable
        Smooth function of times, shape (n,), to arrays of one shape for each of them.
    start, stop : float
        Times between which it is asked for.
    what : str
        Name of the function, for messages.
    tolerance : float
        Size of the last two Chebyshev coefficients relative to the values: the first that are left out are as small.
    nodes : int, optional
        Number of values, and coefficients, of an interval.

    Raises
    ------
    InputError
        If the function is not finite, or not resolved by 128 intervals.
    """
    points = np.asarray(chebyshev.chebpts1(nodes))
    to_coefficients = np.linalg.inv(chebyshev.chebvander(points, nodes - 1))
    found: dict[float, FloatArray] = {}
    left = [[(start, stop)]]
    while left:  # both halves of an interval at once, as more values cost less together
        pair = left.pop()
        count = len(found) + len(pair) + 2 * len(left)
        values = function(np.concatenate([0.5 * (low + high) + 0.5 * (high - low) * points for low, high in pair]))
        for (low, high), inside in zip(pair, np.split(values, len(pair)), strict=True):
            coefficients = np.tensordot(to_coefficients, inside, axes=1)
            # What is smooth needs no more than 128 intervals.
            if not np.isfinite(inside).all() or count > 128:
                raise InputError(f"{what} between t = {low:.6g} and {high:.6g}: not finite, or not smooth")
            if np.abs(coefficients[-2:]).max(initial=0.0) <= tolerance * np.abs(inside).max(initial=0.0):
                found[low] = coefficients
            else:
                left.append([(low, 0.5 * (low + high)), (0.5 * (low + high), high)])
    edges = [*sorted(found), stop]

    def value(t: float) -> FloatArray:
        i = min(max(bisect_right(edges, t) - 1, 0), len(found) - 1)
        x = (2.0 * t - edges[i] - edges[i + 1]) / (edges[i + 1] - edges[i])
        return np.asarray(chebyshev.chebval(x, found[edges[i]]))

    return value


TOLERANCE = Tolerance(relative=1e-9, absolute=1e-8)
"""Tolerance of a step of the logarithms of variances, and of correlations: the next order in 1/N is far larger at any N
that is simulated."""

LARGEST_COVARIANCE = 1e12
"""Largest N times the covariance: overlaps lie in the unit ball, so it is at most N, and no N is larger than this."""


def covariance_along(
    drift_and_noise: Callable[[float], tuple[FloatArray, FloatArray]],
    size: int,
    times: FloatArray,
    start: FloatArray | None = None,
) -> tuple[FloatArray, bool]:
    """N times the covariance of a state along a trajectory.

    Parameters
    ----------
    drift_and_noise : callable
        J and S, shape (size, size), at any time between the first and the last.
    size : int
        Number of variables.
    times : ndarray, shape (times,)
    start : ndarray, shape (size, size), optional
        C at the first of the times; zero, if nothing is said.

    Returns
    -------
    C : ndarray, shape (times, size, size)
        C_t; NaN from where it is larger than it can be at any N, as happens on the way out of unstable points.
    interrupted : bool
        Whether Ctrl-C ended the integration; C_t is NaN from there.

    Notes
    -----
    What is integrated are log(1 + C_ii/offset_i) and the correlations of i and j: entries of C differ by many orders of
    magnitude on the way out of an unstable point, and the large ones multiply the rounding errors of J.
    """
    first = np.zeros((size, size)) if start is None else start
    if times.size < 2:
        return np.repeat(first[None], times.size, axis=0), False
    # The integrator asks several times for the same t: corrections, and differences in C.
    drift_and_noise = lru_cache(maxsize=1)(drift_and_noise)
    noise, later = (np.diag(drift_and_noise(t)[1]) for t in times[[0, -1]])
    if noise.max() <= 1e-6 * later.max():  # a rate that begins with 0
        noise = later
    variances = np.diag(first) + noise * (times[-1] - times[0])
    # Variances are offset under their logarithm, because a direction may have no noise.
    offset = np.maximum(variances, max(1e-12 * float(variances.max()), np.finfo(float).tiny))
    scale, diagonal = np.sqrt(offset), slice(None, None, size + 1)

    def covariance(y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        R, logarithms = y.reshape(size, size).copy(), y[diagonal]
        length = scale * np.exp(0.5 * logarithms)
        scales = length[:, None] * length
        R.flat[diagonal] = offset * np.expm1(logarithms) / scales.flat[diagonal]
        return R * scales, R, scales

    def derivative(t: float, y: FloatArray) -> FloatArray:
        (J, S), (C, R, scales) = drift_and_noise(t), covariance(y)
        drift = J @ C
        relative = (drift + drift.T + S) / scales
        growth = relative.flat[diagonal]
        change = (relative - 0.5 * R * (growth[:, None] + growth)).ravel()
        change[diagonal] = growth
        return change

    def margin(t: float, y: FloatArray) -> float:
        return float(LARGEST_COVARIANCE - (offset * np.expm1(y[diagonal])).max())  # no covariance is above variances

    deviations = np.sqrt(np.diag(first) + offset)
    y = first / np.outer(deviations, deviations)
    np.fill_diagonal(y, np.log1p(np.diag(first) / offset))
    solution = solve_ode(derivative, y.ravel(), times, TOLERANCE, stops=[margin], interruptible=True)
    return np.array([covariance(y)[0] for y in solution.values]), solution.status == "interrupted"


def covariance_in_stretches(
    stretches: Iterable[tuple[FloatArray, Callable[[float], tuple[FloatArray, FloatArray]]]],
    size: int,
    times: FloatArray,
    start: FloatArray | None = None,
) -> tuple[FloatArray, bool]:
    """N times the covariance of a state along a trajectory whose J and S jump or bend at some times.

    Parameters
    ----------
    stretches : iterable of (ndarray, callable)
        Times of a stretch, its ends and the output times in between, and J and S there.
    size, times, start
        See `covariance_along`.

    Returns
    -------
    C, interrupted
        See `covariance_along`; C is NaN at times that no stretch has.
    """
    last = np.zeros((size, size)) if start is None else start
    C, interrupted = np.full((len(times), size, size), np.nan), False
    C[0] = last
    for inside, drift_and_noise in stretches:
        found, interrupted = covariance_along(drift_and_noise, size, inside, last)
        C[np.isin(times, inside)] = found[np.isin(inside, times)]
        last = found[-1]
        if interrupted or not np.isfinite(last).all():
            break
    return C, interrupted


MOST_HALVINGS = 12

UNKNOWN = "the covariance of runs is not known at all times, as it grows beyond all bounds on the way"

_NODES, _WEIGHTS = 0.5 * np.array(np.polynomial.legendre.leggauss(5)) + [[0.5], [0.0]]
_INNER = ((_NODES[:, None] ** np.arange(1, 6)) / np.arange(1, 6)) @ np.linalg.inv(np.vander(_NODES, increasing=True))
"""Gauss nodes and weights of (0, 1), and integrals from 0 to each node of the polynomial that is 1 at another alone."""


class NoiseInTime(NamedTuple):
    """State along a trajectory, and N times its covariance over runs at and between all times.

    Parameters
    ----------
    times : ndarray, shape (times,)
    mean : ndarray, shape (times, size)
    covariance : ndarray, shape (times, size, times, size)
        Of runs that start at one point.
    by_start : ndarray, shape (times, size, size)
        Derivatives of the state by that at the start.
    of_runs : callable
        The same state in a Dataset of runs, shape (replica, times, size).
    """

    times: FloatArray
    mean: FloatArray
    covariance: FloatArray
    by_start: FloatArray
    of_runs: Callable[[Any], FloatArray]


def noise_in_time(
    stretches: Sequence[tuple[FloatArray, Callable[[float], tuple[FloatArray, FloatArray]]]],
    times: FloatArray,
    mean: FloatArray,
    of_runs: Callable[[Any], FloatArray],
) -> NoiseInTime:
    """Covariance between all times: from that at the earlier one J carries it on to the later one.

    Parameters
    ----------
    stretches
        See `covariance_in_stretches`; together they have all of the times.
    times, mean, of_runs
        See `NoiseInTime`.

    Raises
    ------
    InputError
        If the covariance is larger than it can be at any N.
    """
    size = mean.shape[1]
    steps = np.tile(np.eye(size), (len(times), 1, 1))
    arisen = np.zeros_like(steps)
    for inside, drift_and_noise in stretches:
        for low, high in itertools.pairwise(inside):
            step, new = _carried(drift_and_noise, low, high, size)
            k = int(np.searchsorted(times, high))
            steps[k], arisen[k] = step @ steps[k], step @ arisen[k] @ step.T + new
    covariance, by_start = np.zeros((len(times), size, len(times), size)), steps.copy()
    for k in range(1, len(times)):
        by_start[k] = steps[k] @ by_start[k - 1]
        covariance[k, :, :k] = np.tensordot(steps[k], covariance[k - 1, :, :k], axes=1)
        covariance[:k, :, k] = covariance[k, :, :k].transpose(1, 2, 0)
        covariance[k, :, k] = steps[k] @ covariance[k - 1, :, k - 1] @ steps[k].T + arisen[k]
    if not covariance.max() < LARGEST_COVARIANCE:
        raise InputError(UNKNOWN)
    return NoiseInTime(times, mean, covariance, by_start, of_runs)


def _carried(
    drift_and_noise: Callable[[float], tuple[FloatArray, FloatArray]], low: float, high: float, size: int
) -> tuple[FloatArray, FloatArray]:
    """Derivative of the state at the end of an interval by that at its start, and the covariance that arises in it.

    On each of several parts J takes the derivative on by collocation at Gauss nodes; S is summed up at the same ones.
    """
    count = len(_NODES) * size
    known: FloatArray | None = None
    for halvings in range(MOST_HALVINGS):
        step, new = np.eye(size), np.zeros((size, size))
        for first, last in itertools.pairwise(np.linspace(low, high, 2**halvings + 1)):
            length = last - first
            J, S = map(np.array, zip(*(drift_and_noise(first + length * x) for x in _NODES), strict=True))
            implicit = np.einsum("ij,jab->iajb", length * _INNER, J).reshape(count, count)
            start = np.tile(np.eye(size), (len(_NODES), 1))
            inside = np.linalg.solve(np.eye(count) - implicit, start).reshape(-1, size, size)
            part = np.eye(size) + length * np.einsum("i,iab,ibc->ac", _WEIGHTS, J, inside)
            onward = part @ np.linalg.inv(inside)
            step = part @ step
            new = part @ new @ part.T + length * np.einsum("i,iab,ibc,idc->ad", _WEIGHTS, onward, S, onward)
        deviations = np.sqrt(np.maximum(np.diag(new), 1e-12 * np.diag(new).max()))  # a direction may have no noise
        found = np.array([step / np.abs(step).max(), new / np.maximum(np.outer(deviations, deviations), 1e-300)])
        if known is not None and np.abs(found - known).max() < 1e-8:  # in units of their size
            return step, new
        if not np.isfinite(found).all():
            break
        known = found
    raise InputError(UNKNOWN)
