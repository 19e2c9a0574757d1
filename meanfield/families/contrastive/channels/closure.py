"""Closure of several channels: the averages P, D and Lambda over a batch as functions of the overlaps q and M.

    P_fk      = < alpha_k (c_f + eta_1,f) + beta_k (c_f + eta_2,f) >
    D_kl      = < alpha_k Theta_1,l + beta_k Theta_2,l >
    Lambda_kl = (tau^2/m) < (1+v11) alpha_k alpha_l + (1+v22) beta_k beta_l + (1+v12)(alpha_k beta_l + beta_k alpha_l) >

Source: several_channels.md, sections 1 and 3.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from meanfield.errors import InputError
from meanfield.families.contrastive.channels.averages import exact_averages
from meanfield.families.contrastive.channels.fourier import fourier_averages
from meanfield.families.contrastive.channels.kinks import PanelRule
from meanfield.families.contrastive.channels.one_sample import Rule, fill_nodes, fill_outputs
from meanfield.families.contrastive.channels.polynomials import batch_terms
from meanfield.families.contrastive.channels.randomised import Batches, draw_batches, randomised_averages
from meanfield.families.contrastive.channels.rules import one_sample_of, rules_for
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.typing import FloatArray

ACCURATE = 1e-9
"""Change of the averages by a finer rule, relative to their size, below which a rule is taken as it is."""

ACCURATE_FOURIER = 1e-7
"""Largest change of averages by a Fourier integral; where it is not reached random batches are taken."""

LARGEST_CHANGE = 1e-2
"""Largest change by a finer rule of averages that are taken at all."""

RANDOMISATIONS = 8
"""Number of independent randomisations, from whose spread standard errors follow."""

MOST_NORMALS = 2**22
"""Largest number of normal numbers of a randomisation: 32 MB."""

MOST_BATCHES = 2**13
"""Number of batches of a randomisation where their normal numbers are not too many."""

LEAST_BATCHES = 2**8
"""Smallest number of batches of a randomisation."""

PROBES = np.concatenate(
    [-np.geomspace(1e6, 30.0, 200), np.linspace(-29.9973, 29.9981, 6001), np.geomspace(30.0, 1e6, 200)]
)
"""Pre-activations at which signs of an activation are looked at; 0 is not among them."""

MOST_DIMENSIONS = 21201
"""Largest dimension of Sobol points."""

Vector = Callable[[FloatArray, FloatArray], FloatArray]
"""Function from q and M to P, D and Lambda / tau^2 in one vector."""


class BatchAverages(NamedTuple):
    """Averages over a batch: P, shape (d1, d2), and D and Lambda, shape (d2, d2)."""

    P: FloatArray
    D: FloatArray
    Lambda: FloatArray


class ChannelClosure:
    """P(q, M), D(q, M) and Lambda(q, M) of one problem.

    Parameters
    ----------
    problem : Problem
        Contrastive problem of one or more channels.

    Attributes
    ----------
    error : float
        Change of the averages by a finer quadrature over one sample, relative to their size.
    randomisations : list of ChannelClosure
        The same averages by independent random batches, whose mean this closure is; empty where there is no chance.
    at_random : bool
        Whether the averages take random batches, so that they are not smooth functions of the overlaps.
    linear : bool
        Whether the penalty |C| acts as C, because outputs are never negative.
    kinks : tuple of float
        Where the derivative of an output jumps, or what else the averages have kinks at.
    compared : ChannelClosure or None
        The same averages by another quadrature over one sample, coarser if there is one, whose difference is an error;
        None where the quadrature is accurate to rounding.

    Raises
    ------
    InputError
        If a hidden law lacks moments, or the quadrature takes too many nodes or is not accurate.

    Notes
    -----
    All quantities are dimensionless. Averages are exact at every batch size, up to the quadrature over one sample: for
    the square penalty, without a penalty, and for |C| if outputs are never negative and not centred. For |C| of two
    channels with views without noise there is a Fourier series; all other penalties take random batches.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._d1, self._d2 = len(problem.features), problem.model.channels
        self._m, self._tau = problem.model.batch_size, problem.model.learning_rate
        self._by_batch, self._centred = problem.model.centering == "batch", problem.model.centering != "none"
        self._strength = problem.decorrelation_strength
        self._activation = problem.model.activation_functions.addresses
        self.kinks = problem.model.activation_functions.kinks
        self._law = one_sample_of(problem)
        V = self._law.noise
        self._factors = np.array([1 + V[0, 0], 1 + V[1, 1], 1 + V[0, 1]]) / self._m
        self.randomisations: list[ChannelClosure] = []
        self.at_random = False
        self.compared: ChannelClosure | None = None
        self.linear = False
        self._vector = self._choose()

    def __call__(self, q: FloatArray, M: FloatArray) -> BatchAverages:
        """Evaluate the averages.

        Parameters
        ----------
        q : array_like, shape (d1, d2)
        M : array_like, shape (d2, d2)
            Such that M - q^T q is positive semidefinite; rounding is repaired.

        Raises
        ------
        ValueError
            If q or M has another shape.
        """
        q, M = np.ascontiguousarray(q, dtype=float), np.ascontiguousarray(M, dtype=float)
        d1, d2 = self._d1, self._d2
        if q.shape != (d1, d2) or M.shape != (d2, d2):
            raise ValueError(f"q has shape {q.shape} and M {M.shape}, but there are {d1} feature(s) and {d2} channels")
        values = self._vector(q, M)
        P, D, noise = np.split(values, [d1 * d2, d1 * d2 + d2 * d2])
        return BatchAverages(P.reshape(d1, d2), D.reshape(d2, d2), self._tau**2 * noise.reshape(d2, d2))

    def _choose(self) -> Vector:
        settings = self.problem.decorrelation
        if settings is None or self._strength == 0.0:
            return self._refined(self._exactly(0.0), ACCURATE, LARGEST_CHANGE)
        if settings.penalty == "square":
            return self._refined(self._exactly(self._strength), ACCURATE, LARGEST_CHANGE)
        absolute = settings.penalty == "absolute"
        if absolute and not self._centred and self._never_negative():
            self.linear = True
            return self._refined(self._exactly(self._strength, linear=True), ACCURATE, LARGEST_CHANGE)
        if absolute and self._d2 == 2 and self._law.views == 1 and not self._by_batch:
            if self._m == 1 and not self._centred:  # C is the product of the outputs of the sample itself
                self.kinks = (*self.kinks, *self._zeros())
                return self._refined(self._by_fourier(), ACCURATE, LARGEST_CHANGE)
            try:
                return self._refined(self._by_fourier(), ACCURATE_FOURIER, ACCURATE_FOURIER, collapsed=True)
            except InputError:
                pass
        return self._at_random(settings.functions.address)

    def _never_negative(self) -> bool:
        return bool((self.problem.model.activation_functions.values(PROBES) >= 0).all())

    def _zeros(self) -> list[float]:
        """Places where sigma changes its sign."""
        sigma = self.problem.model.activation_functions.value
        values = evaluate(sigma, PROBES)
        changes = np.flatnonzero(values[:-1] * values[1:] < 0)
        return [float(brentq(sigma, PROBES[i], PROBES[i + 1], xtol=1e-15)) for i in changes]

    def _exactly(self, strength: float, linear: bool = False) -> Callable[[Rule | PanelRule], Vector]:
        terms = batch_terms(self._d2, self._law.views, self._m, self._by_batch, strength, linear)
        others = float(self._m - 1)

        def with_rule(rule: Rule | PanelRule) -> Vector:
            return lambda q, M: np.asarray(
                exact_averages(
                    self._law, self._laid(rule, q, M), self._activation, terms, self._centred, others, self._factors,
                    q, M,
                )
            )  # fmt: skip

        return with_rule

    def _by_fourier(self) -> Callable[[Rule | PanelRule], Vector]:
        others = float(self._m - 1)

        def with_rule(rule: Rule | PanelRule) -> Vector:
            return lambda q, M: np.asarray(
                fourier_averages(
                    self._law, self._laid(rule, q, M), self._activation, self._strength, self._centred, others,
                    self._factors, q, M,
                )
            )  # fmt: skip

        return with_rule

    def _laid(self, rule: Rule | PanelRule, q: FloatArray, M: FloatArray) -> Rule:
        """Nodes at these overlaps, which decide where kinks are."""
        return rule.at(self._law, q, M) if isinstance(rule, PanelRule) else rule

    def _refined(
        self, method: Callable[[Rule | PanelRule], Vector], accurate: float, worst: float, collapsed: bool = False
    ) -> Vector:
        """Averages by the first rule that a finer one does not change, or by the finest that there is.

        A rule that changes too much in one state is not tried in the others.
        """
        states = self.states(collapsed)
        self.error = np.inf
        self.compared = None
        vectors: list[Vector] = []

        @cache
        def values(k: int, state: int) -> FloatArray:
            return vectors[k](*states[state])

        coarser: Rule | PanelRule | None = None
        for k, rule in enumerate(rules_for(self._law, self.kinks)):
            vectors.append(method(rule))
            if coarser is not None:
                self._rule = coarser
                for i in range(len(states)):
                    change = np.abs(values(k, i) - values(k - 1, i)).max() / np.abs(values(k - 1, i)).max()
                    self.error = float(change) if i == 0 else max(self.error, float(change))
                    if self.error > worst:
                        break
                if self.error <= accurate:
                    self.compared = None if self.error <= ACCURATE else self.compared or self._with(vectors[k])
                    return vectors[k - 1]
                self.compared = self._with(vectors[k - 1])
            coarser = rule
        if coarser is not None and self.error <= worst:
            self._rule = coarser
            return vectors[-1]
        raise InputError(
            f"model.activation = '{self.problem.model.activation}': the quadrature over one sample of "
            f"{self._law.directions} Gaussian directions changes by {self.error:.2g} when it is made finer; use a "
            "smooth activation, fewer channels or features, no augmentation, or SGD"
        )

    def _with(self, vector: Vector) -> ChannelClosure:
        """Copy of the closure with other averages, which take no random batches of their own."""
        closure: ChannelClosure = object.__new__(ChannelClosure)
        closure.__dict__.update(self.__dict__)
        closure.randomisations = []
        closure.compared = None
        closure._vector = vector
        return closure

    def states(self, collapsed: bool) -> list[tuple[FloatArray, FloatArray]]:
        """States at which rules are compared: the start, channels that have learnt a feature each, or the same one."""
        learnt, alike = np.zeros((self._d1, self._d2)), np.zeros((self._d1, self._d2))
        learnt[np.arange(self._d2) % self._d1, np.arange(self._d2)] = alike[0] = 0.95
        M = learnt.T @ learnt
        np.fill_diagonal(M, 1.0)
        start = np.asarray(self.problem.initial_overlap, dtype=float).reshape(self._d1, self._d2)
        states = [(start, self.problem.initial_channel_overlap), (learnt, M)]
        return [*states, (alike, np.ones((self._d2, self._d2)))] if collapsed else states

    def _at_random(self, slope: int) -> Vector:
        """Averages without the penalty by quadrature, and what it changes by random batches."""
        law, m = self._law, self._m
        dimensions = m * (1 + law.directions)
        batches = MOST_BATCHES
        while batches > LEAST_BATCHES and batches * m * law.directions > MOST_NORMALS:
            batches //= 2
        if dimensions > MOST_DIMENSIONS or batches * m * law.directions > MOST_NORMALS:
            raise InputError(
                f"model.batch_size = {m}: averages of this penalty are taken over whole batches, and {LEAST_BATCHES} "
                f"of them take {LEAST_BATCHES * m * law.directions:,} normal numbers in {dimensions:,} dimensions, "
                f"where {MOST_NORMALS:,} in {MOST_DIMENSIONS:,} are the most; use the penalty 'square', or "
                "smaller batches"
            )
        free = self._refined(self._exactly(0.0), 1e-3, LARGEST_CHANGE)  # enough, as the rest comes from random batches
        compared, self.at_random = self.compared, True
        for i in range(RANDOMISATIONS):
            extra = self._extra(draw_batches(law, m, batches, seed=i), slope)
            closure = self._with(_sum_of(free, extra))
            if i == 0 and compared is not None:
                closure.compared = self._with(_sum_of(compared._vector, extra))
            self.randomisations.append(closure)
        each = [closure._vector for closure in self.randomisations]
        return lambda q, M: np.asarray(np.mean([vector(q, M) for vector in each], axis=0))

    def _extra(self, batches: Batches, slope: int) -> Vector:
        """Contribution of the penalty to the averages, by random batches."""

        def extra(q: FloatArray, M: FloatArray) -> FloatArray:
            means = self._mean_outputs(q, M) if self._centred else np.zeros(self._law.views * self._d2)
            return np.asarray(
                randomised_averages(
                    self._law, batches, self._activation, slope, self._strength, means, self._by_batch, self._factors,
                    q, M,
                )
            )  # fmt: skip

        return extra

    def _mean_outputs(self, q: FloatArray, M: FloatArray) -> FloatArray:
        """<sigma> of each output."""
        weight, theta, _ = fill_nodes(self._law, self._laid(self._rule, q, M), q, M)
        y, _ = fill_outputs(self._activation, theta)
        return np.asarray(y @ weight)


def _sum_of(first: Vector, second: Vector) -> Vector:
    return lambda q, M: first(q, M) + second(q, M)
