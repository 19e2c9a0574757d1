"""Outcomes of many paths of the ODE: their ends, and the times at which they escape from q = 0.

The limit N -> infinity of a random start is deterministic once its amplitudes Y are drawn: the path that leaves the
origin like sqrt(N) q = sum_k v_k exp(j_k t) Y_k (theory.md, section 5). At finite N the noise of every step acts on the
paths, to the next order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from meanfield.families.contrastive.order_parameters.table import BallTable, into_ball
from meanfield.families.contrastive.order_parameters.trajectory import StepNoise
from meanfield.families.contrastive.random_starts.start import RandomStart
from meanfield.numerics.ode import Tolerance
from meanfield.numerics.paths import Flags, Margin, Velocity, follow_paths
from meanfield.typing import FloatArray

TOLERANCE = Tolerance(relative=1e-6, absolute=1e-9)
"""Tolerance of a step of q: a tenth of the error of the table that the drift is taken from."""


TAKE_OFF = 0.01
"""|q| up to which paths are linear: what is left out is of the order of its square."""


@dataclass(frozen=True)
class Outcomes:
    """Escape times and ends of some paths.

    Parameters
    ----------
    escape_time : ndarray, shape (paths,)
        Time at which |q| first reaches the overlap that counts as escape; infinite if it never does.
    end : ndarray, shape (paths, d1)
        Overlaps q at the end: a stable state, to a few digits.
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
        Start of a problem in which some direction grows.
    N : float
    amplitudes : ndarray, shape (paths, growing)
        Amplitudes Y, for instance from `RandomStart.amplitudes`.
    overlap : float
        Norm |q| that counts as escape.

    Returns
    -------
    Outcomes

    Raises
    ------
    InputError
        If no direction grows.
    """
    start.check_grows()
    since, q = take_off(start, N, amplitudes)
    rate = float(start.growth_rates[0])
    drift = start.drift
    decay = _fastest_decay(drift, q.shape[1])

    def settled(q: FloatArray, speed: FloatArray) -> Flags:
        radius, velocity = np.linalg.norm(q, axis=1), np.linalg.norm(speed, axis=1)
        # Paths that pass a saddle so slowly go on, and would be taken for undecided; their chance is about 1e-4.
        slow = velocity < 1e-4 * rate * radius
        # A stable state may be close.
        distance = _distance_to_rest(drift, q, speed, slow | (velocity < 1e-3 * decay * radius))
        # Where decay is far faster than growth, as close to |q| = 1, errors of steps keep paths from being slow.
        return np.asarray((slow & np.isfinite(distance)) | (distance < 1e-5 * radius))

    paths = follow_paths(
        drift,
        q,
        TOLERANCE,
        first_step=0.1 / rate,
        longest_step=1.5 / decay,  # half of the stable step, so that paths come to rest
        arrived=settled,
        margin=beyond(overlap),
        stop=400.0 / rate,
    )
    return Outcomes(since + paths.event, paths.end)


def beyond(overlap: float) -> Margin:
    """Margin |q| - overlap at many points: not negative where q has escaped."""
    return lambda q: np.asarray(np.linalg.norm(q, axis=1) - overlap)


def take_off(start: RandomStart, N: float, amplitudes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Times, (paths,), and points, (paths, d1), at which linear paths reach |q| = `TAKE_OFF`."""
    rates = start.growth_rates[: start.growing]
    logs = np.log(np.abs(amplitudes) / np.sqrt(N) / TAKE_OFF)
    # |q| lies between its largest component and sqrt(growing) times that.
    last = -(logs / rates).max(axis=1)
    first = last - 0.5 * np.log(start.growing) / rates[-1]
    for _ in range(60):
        middle = 0.5 * (first + last)
        inside = np.exp(2 * (logs + rates * middle[:, None])).sum(axis=1) < 1.0
        first, last = np.where(inside, middle, first), np.where(inside, last, middle)
    components = np.sign(amplitudes) * TAKE_OFF * np.exp(logs + rates * last[:, None])
    return last, components @ start.directions[:, : start.growing].T


def _fastest_decay(drift: Velocity, features: int) -> float:
    """Fastest decay rate of db/dq along paths from the origin."""
    directions = np.random.default_rng(0).standard_normal((24, features))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    radii = np.linspace(0.05, 0.95, 19)
    points = radii[:, None, None] * directions
    outward = np.einsum("rnk,nk->rn", drift(points.reshape(-1, features)).reshape(points.shape), directions) > 0
    reached = radii <= radii[outward.any(axis=1)].max(initial=0.0) + (radii[1] - radii[0])
    slopes = _slopes(drift, points[reached].reshape(-1, features))
    return float(np.abs(np.linalg.eigvals(slopes)).max())


def _slopes(drift: Velocity, q: FloatArray, shift: float = 1e-4) -> FloatArray:
    """Jacobian db/dq, shape (paths, d1, d1), to a few digits."""
    shifts = shift * np.eye(q.shape[1])
    there = np.stack([drift(q - s) - drift(q + s) for s in -shifts], axis=2)
    return np.asarray(there / (2 * shift))


def _distance_to_rest(drift: Velocity, q: FloatArray, speed: FloatArray, asked: Flags) -> FloatArray:
    """Length of Newton's step at each point of the selection where perturbations decay; infinite elsewhere."""
    distance = np.full(len(q), np.inf)
    if asked.any():
        slopes = _slopes(drift, q[asked])
        stable = np.linalg.eigvals(slopes).real.max(axis=1) < 0
        steps = np.linalg.solve(slopes[stable], speed[asked][stable, :, None])[..., 0]
        distance[np.flatnonzero(asked)[stable]] = np.linalg.norm(steps, axis=1)
    return distance


def langevin_outcomes(
    start: RandomStart, N: float, overlap: float, stop: float, paths: int = 4096, seed: int = 0
) -> Outcomes:
    """Paths of the overlaps with noise, from a random start at finite N.

        dq = b(q) dt + N^(-1/2) S(q)^(1/2) dB,   sqrt(N) q(0) uniform on the sphere (theory.md, section 4)

    What the limit leaves out and this has: noise that acts on paths that are no longer small, so that S(q) replaces
    S(0) and pushes those near a separatrix to either side, and the law of the start at finite N. What both leave out is
    that steps are 1/N apart, and may be large. The cost does not grow with N.

    Parameters
    ----------
    start : RandomStart
        Start of a problem with one or two features; no direction need grow.
    N : float
    overlap : float
        Norm |q| that counts as escape.
    stop : float
        Time at which paths end.
    paths : int
        Number of paths: chances come with standard errors below 0.5/sqrt(paths).
    seed : int

    Returns
    -------
    Outcomes

    Raises
    ------
    InputError
        If there are more than two features, or S(q) is not known.

    Notes
    -----
    Half a step of drift, a step of noise, half a step of drift: of weak order 2.
    """
    features = start.field.features
    noise = BallTable(StepNoise(start.field), features)
    rng = np.random.default_rng(seed)
    q = uniform_overlaps(rng, paths, features, N)
    rate = max(float(start.growth_rates[0]), start.field.problem.model.rate)
    # The error of the splitting is of second order in these multiples of the inverse rates of growth and decay.
    steps = int(np.ceil(stop / min(0.1 / rate, 0.7 / _fastest_decay(start.drift, features))))
    step = stop / steps
    tolerance = Tolerance(relative=1e-5, absolute=1e-6)  # below the errors of the splitting and of the table
    escape = np.full(paths, np.inf)

    def drift(q: FloatArray, since: float, length: float) -> FloatArray:
        found = follow_paths(start.drift, q, tolerance, first_step=length, margin=beyond(overlap), stop=length)
        np.minimum(escape, since + found.event, out=escape)
        return into_ball(found.end)

    q = drift(q, 0.0, 0.5 * step)
    for k in range(steps):
        now = (k + 0.5) * step
        kick = np.einsum("nij,nj->ni", _lower(noise(q)), rng.standard_normal(q.shape))
        q = drift(into_ball(q + np.sqrt(step / N) * kick), now, step if k < steps - 1 else 0.5 * step)
    return Outcomes(escape, q)


def uniform_overlaps(rng: Generator, paths: int, features: int, N: float) -> FloatArray:
    """The first coordinates of points that are uniform on the unit sphere in N dimensions, shape (paths, features)."""
    normals = rng.standard_normal((paths, features))
    length = np.einsum("nk,nk->n", normals, normals) + rng.chisquare(N - features, paths)
    return np.asarray(normals / np.sqrt(length)[:, None])


def _lower(S: FloatArray) -> FloatArray:
    """Lower Cholesky factors of covariances of at most two variables, singular ones included."""
    factor = np.zeros_like(S)
    factor[:, 0, 0] = np.sqrt(np.maximum(S[:, 0, 0], 0.0))
    if S.shape[1] == 2:
        factor[:, 1, 0] = np.divide(S[:, 1, 0], factor[:, 0, 0], out=np.zeros(len(S)), where=factor[:, 0, 0] > 0)
        factor[:, 1, 1] = np.sqrt(np.maximum(S[:, 1, 1] - factor[:, 1, 0] ** 2, 0.0))
    return factor
