"""Learnability from no information: growth rates of small overlaps, and Prop. 3 for any activation.

With s_l, p_l, ybar_l and D as in `meanfield.families.contrastive.closures.closure`, and all averages at q = 0, write A
= <D^2(s1 s2)>, M for the second moments E[c c^T] and a for the mean of c. Stein's lemma makes A out of first
derivatives, so kinks need no care. If q = 0 is stationary, that is if a = 0 or <D(s1 s2)> = 0, the drift gain begins
with

    -dg/dq = tau [A (M - 1) - 2 <p1> <p2> a a^T],

where the last term is there for centred outputs only: ybar follows q where c has a mean. Under a linear phi

    db/dq = -dg/dq - Lambda/2.

For one feature, or several with E[c_k c_l] = 0, it is diagonal, and no entry knows of other features: A and Lambda are
averages over e and the noise. A feature is learnable if its entry is positive, that is for a = 0 if

    E[c^2] > 1 + Lambda/(2 tau A)    for A > 0,        E[c^2] < 1 - Lambda/(2 tau |A|)    for A < 0.

Prop. 3 has the first case only. Outputs that are largest in the middle, such as exp(-x^2), have A < 0 and learn
features whose second moment is small; where A = 0 nothing is learnable. Batches multiply -dg/dq by 1 - 1/m and have a
Lambda of their own (theory.md, section 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.closures.closure import CENTERINGS
from meanfield.families.contrastive.closures.gaussian_averages import over_gaussians
from meanfield.families.contrastive.closures.mixture import Mixture
from meanfield.families.contrastive.order_parameters.field import check_closes
from meanfield.families.contrastive.problem import Problem
from meanfield.typing import FloatArray

CLOSURE_ERROR = 1e-9
"""Relative error of the averages of a closure; smaller ones count as 0."""


@dataclass(frozen=True)
class Origin:
    """Expansion of the closure about q = 0, where that is stationary.

    Parameters
    ----------
    gain : ndarray, shape (d1, d1)
        -dg/dq.
    diffusion : float
        Lambda.
    slope : float
        tau A, by which the gain changes with a second moment; 0 where it is but rounding.
    """

    gain: FloatArray
    diffusion: float
    slope: float

    def modes(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues of the gain and directions, as columns; in the order of the features where it is diagonal."""
        if np.count_nonzero(self.gain - np.diag(np.diag(self.gain))) == 0:
            return np.diag(self.gain).copy(), np.eye(len(self.gain))
        values, directions = np.linalg.eigh(self.gain)
        return values[::-1], directions[:, ::-1]


@dataclass(frozen=True)
class Learnability:
    """Growth of small overlaps under a linear phi; all quantities are dimensionless.

    Parameters
    ----------
    growth_rates : ndarray, shape (d1,)
        Eigenvalues of db/dq at q = 0: of the features in their order, or from the largest on where hidden variables are
        correlated.
    directions : ndarray, shape (d1, d1)
        The overlaps that grow at these rates, as columns of unit length.
    learnable_moments : tuple of float
        Second moments between these two are learnable, whatever the law: Prop. 3's threshold and infinity; 0 and an
        upper bound for outputs that are largest in the middle; NaN where no second moment is. Where outputs are centred
        and c has a mean a, it is E[c^2] - 2 <p1> <p2> a^2/A that counts.
    diffusion : float
        Lambda at q = 0.
    """

    growth_rates: FloatArray
    directions: FloatArray
    learnable_moments: tuple[float, float]
    diffusion: float

    @property
    def learnable(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether each of the growth rates is positive, shape (d1,)."""
        return np.asarray(self.growth_rates > 0)


def learnability(problem: Problem) -> Learnability:
    """Growth rates of small overlaps, and the range of learnable second moments.

    Parameters
    ----------
    problem : Problem
        With a prior that closes the ODEs; `meanfield.families.contrastive.stationary.growth_rate_at_zero` takes any.
        The start does not matter.

    Raises
    ------
    InputError
        If phi is not linear, or q = 0 is not stationary.

    Notes
    -----
    Source: theory.md, section 7, and the module's text.
    """
    check_closes(problem)
    at = origin(Closure(problem))
    gains, directions = at.modes()
    return Learnability(gains - 0.5 * at.diffusion, directions, _learnable_moments(at), at.diffusion)


def origin(closure: Closure) -> Origin:
    """Expansion of the closure about q = 0.

    Raises
    ------
    InputError
        If q = 0 is not stationary.
    """
    law = closure.expectation.mixture
    mean, second = _moments(law)
    nowhere = np.zeros(len(mean))
    b = closure.brackets(nowhere)
    curvature, drift = float(b[0]), b[4:]
    size = math.sqrt(max(b[1], b[2]))
    if np.abs(drift).max() > CLOSURE_ERROR * size:
        raise InputError(
            f"features.hidden: a law with mean {_rounded(mean)} moves the overlaps away from q = 0 at the rate "
            f"{_rounded(closure.learning_rate * drift)} with this activation, so that there is no growth from small "
            "overlaps; use hidden variables of mean 0"
        )
    if abs(curvature) <= CLOSURE_ERROR * size:
        curvature = 0.0
    gain = curvature * (second - np.eye(len(mean))) - _pull_of_means(closure, mean)
    _, diffusion = closure(nowhere)
    return Origin(closure.learning_rate * gain, diffusion, closure.learning_rate * curvature)


def _pull_of_means(closure: Closure, mean: FloatArray) -> FloatArray:
    """2 <p1> <p2> a a^T for centred outputs, else 0, shape (d1, d1)."""
    outer = np.outer(mean, mean)
    if closure.centering == CENTERINGS["none"] or not np.any(mean):
        return np.zeros_like(outer)
    slopes = over_gaussians(closure.expectation.table, np.zeros(1), np.ones(1))[0, 0, 1:3]  # B at q = 0, whatever c
    keep = 1.0 - 1.0 / closure.batch_size if closure.centering == CENTERINGS["batch"] else 1.0
    return np.asarray(2.0 * keep * slopes.prod() * outer)


def _moments(law: Mixture) -> tuple[FloatArray, FloatArray]:
    """E[c], shape (d1,), and E[c c^T], shape (d1, d1)."""
    mean = law.probability @ law.mean
    second = np.einsum("a,ak,al->kl", law.probability, law.mean, law.mean)
    own = law.probability @ law.variance + law.half_width**2 / 3
    if law.scale_probability.size:
        own = own + (law.scale_probability * law.scale_variance).sum(axis=1)
    return np.where(np.abs(mean) <= CLOSURE_ERROR * np.sqrt(np.diag(second)), 0.0, mean), second + np.diag(own)


def _learnable_moments(at: Origin) -> tuple[float, float]:
    if at.slope == 0.0:
        return math.nan, math.nan
    end = 1.0 + 0.5 * at.diffusion / at.slope
    return (end, math.inf) if at.slope > 0 else (0.0, end) if end > 0 else (math.nan, math.nan)


def _rounded(vector: FloatArray) -> str:
    return ", ".join(f"{x:.4g}" for x in vector)
