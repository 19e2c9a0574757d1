"""Interacting particles of the limit of several vectors: coordinates of the weights, each with its features.

Particles share the overlaps q and M and the work of the prior, which are averages over them. Steps are of second order:
Heun, with the mean of Lambda at both ends. The noise of a step is made uncorrelated with features and weights, and of
unit covariance, *in the sample*, as the noise of SGD is orthogonal to features and weights. What is left of chance in
the overlaps comes from averages of the prior alone; for a linear prior they follow the order parameters without any.

Each of the independent runs has its normal steps and steps of twice the length. Two steps and the long one beside them
take the same noise, so that their difference is the error of the steps with little of chance in it.
Source: several_channels.md, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.ensembles.streams import VECTOR, fill_normals, stream_key
from meanfield.errors import BlowUpError
from meanfield.ingredients.priors import PriorSettings
from meanfield.process.cores import one_thread
from meanfield.process.progress import progress_bar
from meanfield.several_vectors.limit import LONGEST, JointLimit, Stretch
from meanfield.several_vectors.sample import draw_sample
from meanfield.typing import FloatArray, IntArray


class Particles:
    """Particles of one run, and a step of them.

    Parameters
    ----------
    limit : JointLimit
        Of d2 vectors and d1 features.
    sample : ndarray, shape (1 + d1 + d2, n)
        From `draw_sample`.
    matched : bool
        Whether noise is made uncorrelated with features and weights in the sample. Without it the law is the same as
        the number of particles grows, and chance is larger.

    Attributes
    ----------
    weights : ndarray, shape (d2, n)
    features : ndarray, shape (d1, n)

    Notes
    -----
    Ones, features, weights, the prior's forces and normal numbers are the rows of one array, so that the products of
    all of them are one matrix product, and so is a step.
    """

    def __init__(self, limit: JointLimit, sample: FloatArray, matched: bool = True) -> None:
        q, M = limit.initial_q, limit.initial_M
        d1, d2 = q.shape
        self._limit, self._matched = limit, matched
        self._u, self._w = slice(1, 1 + d1), slice(1 + d1, 1 + d1 + d2)
        self._phi, self._normals = slice(1 + d1 + d2, 1 + d1 + 2 * d2), slice(1 + d1 + 2 * d2, None)
        self._rows = np.empty((1 + d1 + 3 * d2, sample.shape[1]))
        self._rows[: 1 + d1] = sample[: 1 + d1]
        self._ahead = self._rows[: 1 + d1 + 2 * d2].copy()
        self.features, self.weights = self._rows[self._u], self._rows[self._w]
        self.weights[:] = q.T @ self.features + _semidefinite_factor(M - q.T @ q) @ sample[1 + d1 :]

    def moments(self, prior: PriorSettings) -> FloatArray:
        """q, M and r in one vector, shape (d1 d2 + d2^2 + d2,)."""
        q, M, work = self._overlaps(self._products(self._rows[: self._normals.start], prior))
        return np.concatenate([q.ravel(), M.ravel(), np.diag(work)])

    def step(self, stretch: Stretch, time: float, dt: float, normals: FloatArray) -> bool:
        """Take a step from a time on, with independent normal numbers, shape (d2, n); false if it is far too long."""
        rows, prior, normalised = self._rows, stretch.prior, self._limit.normalised
        ahead = self._ahead
        last = self._normals.start
        rows[self._normals] = normals
        products = self._products(rows, prior)
        drift, noise = self._drift(products[:last, :last], stretch, time)
        unit = self._unit_noise(products)
        here = np.zeros_like(unit)
        here[:, self._w] = np.eye(len(unit))
        move = here + np.sqrt(dt) * _semidefinite_factor(noise) @ unit
        move[:, :last] += dt * drift
        if not normalised(move @ rows, ahead[self._w]):
            return False
        drift_ahead, noise_ahead = self._drift(self._products(ahead, prior), stretch, time + dt)
        move = here + np.sqrt(dt) * _semidefinite_factor(0.5 * (noise + noise_ahead)) @ unit
        move[:, :last] += 0.5 * dt * drift
        return normalised(move @ rows + 0.5 * dt * drift_ahead @ ahead, self.weights)

    def _products(self, rows: FloatArray, prior: PriorSettings) -> FloatArray:
        """Averages of products of the rows over the particles, with the prior's forces at the weights."""
        rows[self._phi] = prior.force(rows[self._w])
        return np.asarray(rows @ rows.T / rows.shape[1])

    def _overlaps(self, products: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """q, M and E[w phi(w)^T]."""
        return products[self._u, self._w], products[self._w, self._w], products[self._w, self._phi]

    def _drift(self, products: FloatArray, stretch: Stretch, time: float) -> tuple[FloatArray, FloatArray]:
        """Drift of the weights as a combination of rows, shape (d2, 1 + d1 + 2 d2), and the covariance of the noise."""
        motion = stretch.motion(time, *self._overlaps(products))
        drift = np.zeros((len(motion.noise), len(products)))
        drift[:, self._u] = motion.of_features
        drift[:, self._w] = motion.of_weights
        drift[:, self._phi] = -stretch.pull_at(time) * np.eye(len(drift))
        return drift, motion.noise

    def _unit_noise(self, products: FloatArray) -> FloatArray:
        """Noise of unit covariance as a combination of rows, shape (d2, 1 + d1 + 3 d2)."""
        normals, known = self._normals, self._phi.start
        unit = np.zeros((len(self.weights), len(products)))
        unit[:, normals] = np.eye(len(unit))
        if self._matched:
            inverse = np.linalg.pinv(products[:known, :known], rcond=1e-12, hermitian=True)
            share = products[normals, :known] @ inverse
            left = products[normals, normals] - share @ products[:known, normals]
            scale = np.linalg.inv(np.linalg.cholesky(left))
            unit[:, normals], unit[:, :known] = scale, -scale @ share
        return unit


def _semidefinite_factor(covariance: FloatArray) -> FloatArray:
    """F with F F^T = covariance, shape (d2, d2); rows that are equal in the covariance are equal."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


@dataclass(frozen=True)
class Size:
    """Numbers of a computation.

    Parameters
    ----------
    particles : int
        n, of each run.
    steps : int
        Steps between two output times, even.
    """

    particles: int
    steps: int


@dataclass
class Runs:
    """Moments q, M and r of runs at the output times, NaN where these were not reached.

    Parameters
    ----------
    fine, coarse : ndarray, shape (runs, outputs, moments)
        By normal steps, and by steps of twice the length.
    features : ndarray, shape (runs, kept, d1)
    weights : ndarray, shape (runs, snapshots, kept, d2)
        Of the first particles of each run.
    status : str
    """

    fine: FloatArray
    coarse: FloatArray
    features: FloatArray
    weights: FloatArray
    status: str = "complete"


def march(limits: Sequence[JointLimit], size: Size, label: str = "particles", matched: bool = True) -> Runs:
    """Follow runs to the last output time; see `Particles` for what is not described here.

    Parameters
    ----------
    limits : sequence of JointLimit
        That of each run: one limit with coefficients of their own.
    size : Size
    label : str
        Of the progress bar.
    matched : bool
    """
    limit, count = limits[0], len(limits)
    d1, d2 = limit.initial_q.shape
    key = stream_key(limit.seed)
    outputs, snapshots = len(limit.times), limit.snapshots
    kept = min(size.particles, 2**13)
    samples = [draw_sample(limit, size.particles, key, run) for run in range(count)]
    fine, coarse = ([Particles(limit, sample, matched) for sample in samples] for _ in range(2))
    moments = d1 * d2 + d2 * d2 + d2
    runs = Runs(
        np.full((count, outputs, moments), np.nan),
        np.full((count, outputs, moments), np.nan),
        np.array([particles.features[:, :kept].T for particles in fine]),
        np.full((count, len(snapshots), kept, d2), np.nan),
    )
    knots = np.unique([*limit.times, *(time for time in limit.corners if time < limit.times[-1])])
    ends = _ends_of_steps(limit.times, size.steps, knots)
    first = 0
    try:
        with one_thread(), progress_bar((outputs - 1) * count, label, unit="interval") as bar:
            for output, time in enumerate(limit.times):
                last = int(np.searchsorted(knots, time))
                for run in range(count):
                    both, prior = (fine[run], coarse[run]), limits[run].stretch_at(time).prior
                    for interval in range(first, last):
                        stretch = limits[run].stretch_at(knots[interval])
                        if not _interval(stretch, both, knots, ends, (key, run), interval):
                            runs.status = _too_long(limit, output).status
                            return runs
                    runs.fine[run, output], runs.coarse[run, output] = (each.moments(prior) for each in both)
                    if output in snapshots:
                        runs.weights[run, snapshots.index(output)] = fine[run].weights[:, :kept].T
                    bar.update(output > 0)
                first = last
    except KeyboardInterrupt:
        runs.status = "interrupted"
    return runs


def _ends_of_steps(times: FloatArray, steps: int, knots: FloatArray) -> IntArray:
    """Number of the step at each knot, for outputs at a mean distance that takes `steps`; steps come in pairs."""
    lengths = np.diff(knots) / times[-1]
    pairs = np.ceil(0.5 * steps * (len(times) - 1) * lengths - 1e-9)  # rounding must not add a pair
    return np.append(0, np.cumsum(2 * np.maximum(pairs, 1).astype(int)))


def _interval(
    stretch: Stretch,
    both: tuple[Particles, Particles],
    knots: FloatArray,
    ends: IntArray,
    stream: tuple[FloatArray, int],
    interval: int,
) -> bool:
    """March from one knot to the next by normal and by long steps; false if a step is far too long."""
    steps = range(ends[interval], ends[interval + 1])
    start, dt = float(knots[interval]), float(np.diff(knots)[interval] / len(steps))
    fine, coarse = both
    shape = fine.weights.shape
    numbers = int(np.prod(shape))
    drawn = np.empty(numbers + numbers % 2)
    first = np.empty(shape)
    try:
        for number, step in enumerate(steps):
            fill_normals(*stream, VECTOR, step * drawn.size, drawn)
            normals, time = drawn[:numbers].reshape(shape), start + number * dt
            if not fine.step(stretch, time, dt, normals):
                return False
            if step % 2 == 0:
                first[:] = normals
            elif not coarse.step(stretch, time - dt, 2.0 * dt, np.sqrt(0.5) * (first + normals)):
                return False
    except np.linalg.LinAlgError:  # averages that are not finite, or particles that are all but equal
        return False
    return True


def _too_long(limit: JointLimit, output: int) -> BlowUpError:
    free = np.isnan(limit.lengths)
    what = "change their length by half within a step"
    if free.all():
        what = f"have lengths above {LONGEST:g}, infinite in finite time"
    elif free.any():
        what += f", or have lengths above {LONGEST:g}"
    return BlowUpError(
        float(limit.times[output - 1]),
        f"the particles of the limit {what}",
        f"{limit.words.slower} or prior.strength",
    )
