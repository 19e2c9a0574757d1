"""Closure of several channels: the averages P, D and Lambda over a batch as functions of the overlaps q and M.

    P_fk      = < alpha_k (c_f + eta_1,f) + beta_k (c_f + eta_2,f) >
    D_kl      = < alpha_k Theta_1,l + beta_k Theta_2,l >
    Lambda_kl = (tau^2/m) < (1+v11) alpha_k alpha_l + (1+v22) beta_k beta_l + (1+v12)(alpha_k beta_l + beta_k alpha_l) >

Source: several_channels.md, sections 1 and 3.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from meanfield.errors import InputError
from meanfield.families.contrastive.channels.averages import exact_averages
from meanfield.families.contrastive.channels.fourier import fourier_averages
from meanfield.families.contrastive.channels.kinks import PanelRule
from meanfield.families.contrastive.channels.one_sample import BatchLaw, Rule
from meanfield.families.contrastive.channels.polynomials import terms_at
from meanfield.families.contrastive.channels.randomised import Draw, PenaltyAverages, randomisations_of
from meanfield.families.contrastive.channels.rules import (
    ACCURATE,
    LARGEST_CHANGE,
    Method,
    Quadrature,
    Vector,
    batch_law_of,
    refined,
    vector_by,
)
from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.activations import Activation
from meanfield.typing import FloatArray

ACCURATE_FOURIER = 1e-7
"""Largest change of averages by a Fourier integral; where it is not reached random batches are taken."""

PROBES = np.concatenate(
    [-np.geomspace(1e6, 30.0, 200), np.linspace(-29.9973, 29.9981, 6001), np.geomspace(30.0, 1e6, 200)]
)
"""Pre-activations at which signs of an activation are looked at; 0 is not among them."""


class BatchAverages(NamedTuple):
    """Averages over a batch: P, shape (d1, d2), and D and Lambda, shape (d2, d2)."""

    P: FloatArray
    D: FloatArray
    Lambda: FloatArray


Vectors = Callable[[float, BatchLaw], Vector]
"""Function from the strength of the penalty and the law of a batch to averages."""


class BatchMethod(NamedTuple):
    """Method for averages over a batch, and how accurate its quadrature over one sample must be.

    Parameters
    ----------
    average : callable
        From the strength of the penalty and the law of a batch to the averages.
    accurate, worst : float
        See `refined`.
    collapsed : bool
        Whether it must be accurate where channels have become equal, too.
    penalty_at_random : bool
        Whether the averages lack the penalty, whose contribution comes from random batches.
    """

    average: Callable[[float, BatchLaw], Method]
    accurate: float
    worst: float
    collapsed: bool = False
    penalty_at_random: bool = False


class ChannelClosure:
    """P(q, M), D(q, M) and Lambda(q, M) of one problem.

    Parameters
    ----------
    problem : Problem
        Contrastive problem of one or more channels.
    noisy : bool
        Whether the noise of views changes in time, so that views may differ at other times.

    Attributes
    ----------
    problem : Problem
        The one whose averages these are.
    nodes : int
        Number of nodes of the quadrature over one sample.
    error : float
        Change of the averages by a finer quadrature over one sample, relative to their size.
    randomisations : list of ChannelClosure
        The same averages by independent random batches, whose mean this closure is; empty where there is no chance.
    trial : ChannelClosure
        Averages that cost as much as those of one randomisation, but come from ordinary random numbers; where there is
        no chance these averages.
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

    def __init__(self, problem: Problem, noisy: bool = False) -> None:
        self.problem, self.noisy = problem, noisy
        self.kinks = problem.model.activation_functions.kinks
        self.randomisations: list[ChannelClosure] = []
        self.trial = self
        self.at_random = False
        self.compared: ChannelClosure | None = None
        self.linear = False
        self._shape = len(problem.features), problem.model.channels
        self._tau = problem.model.rate
        self._batch = batch_law_of(problem, noisy)
        self._vectors = self._choose()
        self._vector = self._vectors(problem.decorrelation_strength, self._batch)

    def at(self, problem: Problem) -> ChannelClosure:
        """Averages of a problem with other rates, strengths, noise or moments, and nothing else.

        Their quadrature is that of the closure, whose own strength is no smaller.
        """
        if problem is self.problem:
            return self
        same = (problem.augmentation, problem.hidden_laws) == (self.problem.augmentation, self.problem.hidden_laws)
        return self._with(self._vectors, problem, self._batch if same else batch_law_of(problem, self.noisy))

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
        d1, d2 = self._shape
        if q.shape != (d1, d2) or M.shape != (d2, d2):
            raise ValueError(f"q has shape {q.shape} and M {M.shape}, but there are {d1} feature(s) and {d2} channels")
        values = self._vector(q, M)
        P, D, noise = np.split(values, [d1 * d2, d1 * d2 + d2 * d2])
        return BatchAverages(P.reshape(d1, d2), D.reshape(d2, d2), self._tau**2 * noise.reshape(d2, d2))

    def _choose(self) -> Vectors:
        """Averages at each strength by the first method whose quadrature over one sample is accurate enough."""
        law, strength = self._batch.sample, self.problem.decorrelation_strength
        for method in self._methods():
            states = self.states(method.collapsed)
            found = refined(
                method.average(strength, self._batch), law, self.kinks, states, method.accurate, method.worst
            )
            if found.error <= method.worst:
                break
        else:
            raise InputError(
                f"model.activation = '{self.problem.model.activation}': the quadrature over one sample of "
                f"{law.directions} Gaussian directions changes by {found.error:.2g} when it is made finer; use a "
                "smooth activation, fewer channels or features, no augmentation, or SGD"
            )
        self.error, self.at_random = found.error, method.penalty_at_random
        self.nodes = found.rule.at(law, *states[0]).weights.size
        if self.at_random:
            return self._with_random_batches(found, method)

        def by(rule: Rule | PanelRule) -> Vectors:
            return lambda strength, batch: vector_by(rule, method.average(strength, batch), batch.sample)

        self.compared = None if found.compared is None else self._with(by(found.compared))
        return by(found.rule)

    def _methods(self) -> list[BatchMethod]:
        settings, strength = self.problem.decorrelation, self.problem.decorrelation_strength
        activation = self.problem.model.activation_functions
        batch, views, channels = self._batch, self._batch.sample.views, self._shape[1]
        absolute = settings is not None and strength > 0 and settings.penalty == "absolute"
        self.linear = absolute and not batch.centred and bool((activation.values(PROBES) >= 0).all())
        square = settings is not None and settings.penalty == "square"
        exactly = strength == 0 or square or self.linear
        largest, linear = strength if exactly else 0.0, self.linear

        def exact(strength: float, batch: BatchLaw) -> Method:
            terms = terms_at(strength, channels, views, batch.size, batch.by_batch, largest, linear)
            return partial(exact_averages, batch, terms)

        if exactly:
            return [BatchMethod(exact, ACCURATE, LARGEST_CHANGE)]
        # 1e-3 is accurate enough, as the rest comes from random batches.
        at_random = BatchMethod(lambda _, batch: exact(0.0, batch), 1e-3, LARGEST_CHANGE, penalty_at_random=True)
        if not absolute or channels != 2 or views != 1 or batch.by_batch:
            return [at_random]

        def by_fourier(strength: float, batch: BatchLaw) -> Method:
            return partial(fourier_averages, batch, strength)

        if batch.size == 1 and not batch.centred:  # C is the product of the outputs of the sample itself
            self.kinks = (*self.kinks, *_zeros(activation))
            return [BatchMethod(by_fourier, ACCURATE, LARGEST_CHANGE)]
        return [BatchMethod(by_fourier, ACCURATE_FOURIER, ACCURATE_FOURIER, collapsed=True), at_random]

    def _with(self, vectors: Vectors, problem: Problem | None = None, batch: BatchLaw | None = None) -> ChannelClosure:
        """Copy of the closure with other averages, which take no random batches of their own."""
        closure: ChannelClosure = object.__new__(ChannelClosure)
        closure.__dict__.update(self.__dict__)
        closure.problem = self.problem if problem is None else problem
        closure.randomisations = []
        closure.trial = closure
        closure.compared = None
        closure._tau = closure.problem.model.rate
        closure._vectors = vectors
        closure._batch = self._batch if batch is None else batch
        closure._vector = vectors(closure.problem.decorrelation_strength, closure._batch)
        return closure

    def states(self, collapsed: bool) -> list[tuple[FloatArray, FloatArray]]:
        """States at which rules are compared: channels that have learnt the same feature, or each one, and the start.

        The first is where most rules fail, so that it spares the others.
        """
        d1, d2 = self._shape
        learnt, alike = np.zeros((d1, d2)), np.zeros((d1, d2))
        learnt[np.arange(d2) % d1, np.arange(d2)] = alike[0] = 0.95
        M = learnt.T @ learnt
        np.fill_diagonal(M, 1.0)
        start = np.asarray(self.problem.initial_overlap, dtype=float).reshape(d1, d2)
        states = [(start, self.problem.initial_channel_overlap), (learnt, M)]
        return [(alike, np.ones((d2, d2))), *states] if collapsed else states

    def _with_random_batches(self, found: Quadrature, method: BatchMethod) -> Vectors:
        """Averages without the penalty by quadrature, and what it changes by random batches."""
        batch, settings = self._batch, self.problem.decorrelation
        assert settings is not None
        draws, trial = randomisations_of(batch.sample, batch.size)

        def with_penalty(draw: Draw) -> ChannelClosure:
            def by(rule: Rule | PanelRule) -> Vectors:
                def vectors(strength: float, batch: BatchLaw) -> Vector:
                    extra = PenaltyAverages(batch, draw, settings.functions.address, found.rule)
                    free = vector_by(rule, method.average(0.0, batch), batch.sample)
                    return _sum_of(free, partial(extra, strength))

                return vectors

            closure = self._with(by(found.rule))
            if draw is draws[0] and found.compared is not None:
                closure.compared = self._with(by(found.compared))
            return closure

        self.trial, self.randomisations = with_penalty(trial), [with_penalty(draw) for draw in draws]

        def mean(strength: float, batch: BatchLaw) -> Vector:
            each = [closure._vectors(strength, batch) for closure in self.randomisations]
            return lambda q, M: np.asarray(np.mean([vector(q, M) for vector in each], axis=0))

        return mean


def _zeros(activation: Activation) -> list[float]:
    """Places where sigma changes its sign."""
    values = activation.values(PROBES)
    changes = np.flatnonzero(values[:-1] * values[1:] < 0)
    return [float(brentq(activation.value, PROBES[i], PROBES[i + 1], xtol=1e-15)) for i in changes]


def _sum_of(first: Vector, second: Vector) -> Vector:
    return lambda q, M: first(q, M) + second(q, M)
