"""Closure of a problem: drift gain g and diffusion Lambda as functions of the overlaps q.

With e ~ N(0, 1), c ~ P_c, (zeta1, zeta2) ~ N(0, V) and Theta_l = c.q + sqrt(1 - q.q) e + zeta_l, write
s_l = sigma(Theta_l) - ybar_l, p_l = sigma'(Theta_l) and D = d/dTheta1 + d/dTheta2. Since h12 + h21 = 2 D(s1 s2),
theory.md, section 2, reads

    g      = tau (q <D^2 (s1 s2)> - <c D(s1 s2)>)
    Lambda = (tau^2/m) [(1 + v22) <s1^2 p2^2> + (1 + v11) <s2^2 p1^2> + 2 (1 + v12) <s1 s2 p1 p2>]

so g = -tau grad_q <s1 s2> at fixed ybar. D acts on B = c.q + sqrt(1 - q.q) e alone, so that only first derivatives of
sigma are needed: <D^2 (s1 s2)> is the average of the derivative of the tabulated <D(s1 s2) | B>, jumps included.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.closures.expectation import (
    BATCH,
    DRIFT_AND_DIFFUSION,
    OUTPUTS,
    Expectation,
    as_key,
    averages_at,
    averages_of,
    overlap_table,
    rows_at_many,
)
from meanfield.families.contrastive.closures.mixture import Mixture, reach_of
from meanfield.families.contrastive.closures.outputs import MeanOutputs, mean_outputs_of, no_mean_outputs
from meanfield.families.contrastive.closures.polynomial_means import polynomial_means
from meanfield.families.contrastive.closures.row_moments import row_moments
from meanfield.families.contrastive.closures.views import bracket_table
from meanfield.families.contrastive.problem import check_no_velocity, check_one_channel
from meanfield.mckean_vlasov.closures import TabulatedClosure, register_closure, tabulated_values
from meanfield.numerics.piecewise import with_values
from meanfield.numerics.quadrature import gauss_rules
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    from meanfield.families.contrastive.problem import Problem
    from meanfield.ingredients.activations import Activation
    from meanfield.ingredients.laws.base import Components

CENTERINGS = {"none": 0, "population": 1, "batch": 2}
"""Codes of the centrings in compiled code."""

WORST_CHANGE = 1e-6
"""Largest accepted change of a closure, relative to its size, when panels are made narrower."""


class Rates(NamedTuple):
    """Parameters by which averages give g and Lambda, for compiled code and NumPy.

    Parameters
    ----------
    centering : int
        A value of `CENTERINGS`.
    diffusion_factors : ndarray, shape (3,)
        Of <s1^2 p2^2>, <s2^2 p1^2> and <s1 s2 p1 p2> in Lambda.
    """

    centering: int
    batch_size: float
    learning_rate: float
    diffusion_factors: FloatArray


class Coefficients(NamedTuple):
    """Closure of several features for compiled code."""

    expectation: Expectation
    rates: Rates


@numba.njit(cache=True, nogil=True, error_model="numpy")
def brackets(averages, q, rates):  # type: ignore[no-untyped-def]
    """Averages ("brackets") from which g and Lambda are made; in NumPy also for many points, along a last axis.

    Parameters
    ----------
    averages : ndarray, shape (averages,)
        Those of `expectation`.
    q : ndarray, shape (d1,)
    rates : Rates

    Returns
    -------
    ndarray, shape (4 + d1,)
        <D^2(s1 s2)>, <s1^2 p2^2>, <s2^2 p1^2>, <s1 s2 p1 p2>, then <c_k D(s1 s2)>; for batch centring with the
        corrections in 1/m of theory.md, section 2.
    """
    last = DRIFT_AND_DIFFUSION + len(q)
    result = averages[:last].copy()
    if rates.centering == 2:
        keep = 1.0 - 1.0 / rates.batch_size
        spread = keep / rates.batch_size
        result *= keep
        for i in range(BATCH):
            result[1 + i] = keep * result[1 + i] + spread * averages[last + i]
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _from_brackets(b, q, rates):  # type: ignore[no-untyped-def]
    """g, shape (d1,), then Lambda, in one vector; in NumPy also for many points."""
    result = np.empty_like(b[: 1 + len(q)])
    for k in range(len(q)):
        result[k] = rates.learning_rate * (q[k] * b[0] - b[4 + k])
    factors = rates.diffusion_factors
    diffusion = factors[0] * b[1] + factors[1] * b[2] + factors[2] * b[3]
    result[len(q)] = np.maximum(diffusion, 0.0)  # rounding may leave -1e-17 of squares that vanish
    return result


@register_closure(Coefficients)
@numba.njit(cache=True, nogil=True, error_model="numpy")
def drift_and_diffusion(closure, q):  # type: ignore[no-untyped-def]
    """Drift and diffusion in one vector: g, shape (d1,), then Lambda."""
    return _from_brackets(brackets(averages_at(closure.expectation, q), q, closure.rates), q, closure.rates)


class Closure:
    """g(q) and Lambda(q) of one problem.

    Parameters
    ----------
    problem : Problem
        Contrastive problem.
    tabulated : bool
        Whether averages over a single hidden variable are tabulated in q, which pays after some hundred values.

    Raises
    ------
    InputError
        If the activation is not smooth between its kinks, a hidden law lacks the moments that it needs, or there are
        several channels.

    Notes
    -----
    All quantities are dimensionless. Source: theory.md, section 2.
    """

    def __init__(self, problem: Problem, tabulated: bool = True) -> None:
        check_one_channel(problem, "the closures g and Lambda")
        check_no_velocity(problem)
        self._problem = problem
        self._tabulated = tabulated
        self._shape = (len(problem.features),)
        self.learning_rate = problem.model.rate
        self.batch_size = float(problem.model.batch_size)
        self.centering = CENTERINGS[problem.model.centering]
        v = problem.noise_covariance
        factors = np.array([1 + v[1, 1], 1 + v[0, 0], 2 * (1 + v[0, 1])])
        diffusion_factors = self.learning_rate**2 / self.batch_size * factors
        self.rates = Rates(self.centering, self.batch_size, self.learning_rate, diffusion_factors)
        activation, noise, centred = self._averaged
        law = hidden_mixture(problem, activation.highest_power)
        independent = all(part.dimension == 1 for part in problem.hidden_laws)
        moments = row_moments(activation.polynomial, noise, centred, law, independent)
        self.expectation = Expectation(bracket_table(activation, noise, centred, reach_of(law)), law, moments)
        if moments.drift == 0 and sum(not part.exact for part in problem.hidden_laws) > 1:
            self._check()

    def __call__(self, q: FloatArray) -> tuple[FloatArray, float]:
        """Evaluate the closure.

        Parameters
        ----------
        q : array_like, shape (d1,)
            Overlaps with q.q <= 1.

        Returns
        -------
        g : ndarray, shape (d1,)
            Drift gain.
        Lambda : float
            Diffusion coefficient.

        Raises
        ------
        ValueError
            If q does not have one entry per feature.
        """
        q = np.ascontiguousarray(q, dtype=float)
        if q.shape != self._shape:
            raise ValueError(f"q has shape {q.shape}, but the problem has {self._shape[0]} feature(s)")
        if len(q) > 1:
            values = drift_and_diffusion(self.compiled[0], q)
        elif self._tabulated and abs(q[0]) < self.compiled[1]:
            values = tabulated_values(self.compiled[0], q)
        else:
            values = _from_brackets.py_func(self.brackets(q), q, self.rates)
        return values[:-1], float(values[-1])

    def brackets(self, q: FloatArray) -> FloatArray:
        """Averages from which g and Lambda are made, by quadrature; see the function of this name."""
        return self._brackets(self.expectation, q)

    def _brackets(self, expectation: Expectation, q: FloatArray) -> FloatArray:
        return np.asarray(brackets.py_func(averages_of(expectation, q), q, self.rates))

    @cached_property
    def compiled(self) -> tuple[Any, float]:
        """Closure for compiled code, and the largest |q| at which it holds: with one feature a table."""
        if self._shape != (1,):
            return Coefficients(self.expectation, self.rates), math.inf
        averages, reach = overlap_table(*self._averaged, as_key(self.expectation.mixture))
        q = np.sin(averages.nodes)[None]
        values = _from_brackets.py_func(brackets.py_func(averages.values, q, self.rates), q, self.rates)
        return TabulatedClosure(with_values(averages, values)), reach

    @cached_property
    def mean_outputs(self) -> MeanOutputs:
        """Mean outputs for compiled code; a placeholder if outputs are not centred."""
        activation, noise, centred = self._averaged
        if not centred:
            return no_mean_outputs()
        polynomial = polynomial_means(activation.polynomial, self.expectation.mixture, (noise[0], noise[2]))
        return mean_outputs_of(activation, noise, self.expectation, polynomial)

    def means(self, points: FloatArray) -> FloatArray:
        """The two mean outputs at many overlaps, shape (2, points) at points of shape (points, d1), by quadrature."""
        return rows_at_many(self.expectation, points)[OUTPUTS[:2], 0]

    @property
    def _averaged(self) -> tuple[Activation, tuple[float, float, float], bool]:
        """Activation, noise, and whether outputs are centred: all that averages depend on besides the features."""
        return self._problem.model.activation_functions, noise_of(self._problem), self.centering > 0

    def _check(self) -> None:
        """Refuse a law for which the sums of hidden variables are not resolved."""
        change = 0.0
        given = self.expectation
        finer = given._replace(mixture=given.mixture._replace(fineness=2.0))
        size = self._shape[0]
        for radius in (0.5, 0.9, 0.9999):  # values of |q|
            q = np.full(size, radius / math.sqrt(size))
            before, after = (self._brackets(each, q) for each in (given, finer))
            change = max(change, float((np.abs(after - before) / self._scales(after)).max()))
        if not change <= WORST_CHANGE:
            raise InputError(
                f"features.hidden: with finer quadrature of the joint law the closures change by {change:.2g}; use "
                "fewer features whose law is neither discrete nor Gaussian"
            )

    @staticmethod
    def _scales(values: FloatArray) -> FloatArray:
        """Scale of each bracket: the largest of those that are added to it."""
        scales = np.empty_like(values)
        drift = np.array([0, *range(DRIFT_AND_DIFFUSION, values.size)])
        scales[drift] = np.abs(values[drift]).max()
        scales[1:DRIFT_AND_DIFFUSION] = np.abs(values[1:DRIFT_AND_DIFFUSION]).max()
        return scales


def noise_of(problem: Problem) -> tuple[float, float, float]:
    """Covariance of the noise as v11, v12, v22, without noise that is too weak to change anything."""
    v = problem.noise_covariance
    # The covariance of a left-out noise with noise of unit strength is below 1e-10.
    v = np.where(np.minimum.outer(np.diag(v), np.diag(v)) < 1e-20, 0.0, v)
    return float(v[0, 0]), float(v[0, 1]), float(v[1, 1])


def _few_values(law: Components, power: float) -> Components:
    """Components with the same moments up to a power: of one variable with more values than that takes, few of them."""
    probability, mean, variance = law
    if mean.shape[1] != 1 or np.any(variance):
        return law
    likely = probability > 0.0
    count = int(power) // 2 + 1
    values, place = np.unique(mean[likely, 0], return_inverse=True)
    if count >= len(values):
        return law
    chances = np.asarray(np.bincount(place, probability[likely]), dtype=float)
    nodes, weight = gauss_rules(values[None], chances[None], count)
    return weight[0], nodes[0][:, None], np.zeros((count, 1))


def hidden_mixture(problem: Problem, power: float) -> Mixture:
    """Joint law of the hidden variables: a mixture of Gaussians, uniform variables and random variances.

    Parameters
    ----------
    power : float
        Highest power of a hidden variable that is averaged. Where the activation is a polynomial nothing else is, and
        of a variable with many values few will do.

    Raises
    ------
    InputError
        If a law lacks that moment.
    """
    laws = problem.hidden_laws
    none = np.ones(1), np.zeros((1, 1)), np.zeros((1, 1))
    parts = [law.components(power) if law.exact else none for law in laws]
    if problem.model.activation_functions.polynomial:
        parts = [_few_values(part, power) for part in parts]
    probability = np.array([math.prod(p) for p in product(*(part[0] for part in parts))])
    mean = np.array([np.concatenate(m) for m in product(*(part[1] for part in parts))])
    variance = np.array([np.concatenate(v) for v in product(*(part[2] for part in parts))])
    likely = probability > 0
    half_width = np.concatenate([np.full(law.dimension, law.box) for law in laws])
    random = {k: law.components(power) for k, law in enumerate(laws) if not law.exact and law.box == 0}
    values = max((len(part[0]) for part in random.values()), default=0)
    scale_probability, scale_variance = np.zeros((2, half_width.size, values))
    for k, (chance, _, widths) in random.items():
        scale_probability[k, : chance.size], scale_variance[k, : chance.size] = chance, widths[:, 0]
    return Mixture(
        probability[likely], mean[likely], variance[likely], half_width, scale_probability, scale_variance, 1.0
    )
