"""Random starts at finite N, to the next order: the noise of every step, acting on the nonlinear ODE.

    dq = b(q) dt + N^(-1/2) S(q)^(1/2) dB,   sqrt(N) q(0) uniform on the sphere (theory.md, section 4)

What the limit leaves out and this has: noise that acts on paths that are no longer small, so that S(q) replaces S(0)
and pushes those near a separatrix to either side, and the law of the start at finite N. What both leave out is that
steps are 1/N apart, and may be large. The cost does not grow with N.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from meanfield.families.contrastive.order_parameters.noise import StepNoise
from meanfield.families.contrastive.order_parameters.table import BallTable, into_ball
from meanfield.families.contrastive.random_starts.outcomes import Outcomes, beyond, fastest_decay
from meanfield.families.contrastive.random_starts.start import RandomStart
from meanfield.numerics.ode import Tolerance
from meanfield.numerics.paths import follow_paths
from meanfield.typing import FloatArray

TOLERANCE = Tolerance(relative=1e-5, absolute=1e-6)
"""Tolerance of a step of drift: below the error of the splitting, and that of the table of the drift."""


def langevin_outcomes(
    start: RandomStart, N: float, overlap: float, stop: float, paths: int = 4096, seed: int = 0
) -> Outcomes:
    """Paths of the overlaps with noise, from a random start.

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
    rate = max(float(start.growth_rates[0]), start.field.problem.model.learning_rate)
    # The error of the splitting is of second order in these multiples of the inverse rates of growth and decay.
    steps = int(np.ceil(stop / min(0.1 / rate, 0.7 / fastest_decay(start.drift, features))))
    step = stop / steps
    escape = np.full(paths, np.inf)

    def drift(q: FloatArray, since: float, length: float) -> FloatArray:
        found = follow_paths(start.drift, q, TOLERANCE, first_step=length, margin=beyond(overlap), stop=length)
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
