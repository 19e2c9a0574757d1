"""What schedules change in a training from step to step: rates, noise of views, and laws of hidden variables."""

from __future__ import annotations

from functools import cached_property, lru_cache
from operator import attrgetter
from threading import Lock

import numpy as np

from meanfield.ensembles.hidden_variables import changed_draws
from meanfield.families.contrastive.closures.closure import hidden_mixture
from meanfield.families.contrastive.closures.mixture import Mixture, reach_of
from meanfield.families.contrastive.closures.outputs import (
    MeanOutputs,
    averaged_outputs,
    no_mean_outputs,
    output_table,
)
from meanfield.families.contrastive.closures.polynomial_means import polynomial_means
from meanfield.families.contrastive.problem import FACTORS, Problem
from meanfield.families.contrastive.sgd.training import factor_of, training_of
from meanfield.ingredients.laws.base import HiddenPart
from meanfield.ingredients.part import with_unchecked
from meanfield.ingredients.schedules.shapes import Schedule, values_of
from meanfield.mckean_vlasov.drive import factors_of
from meanfield.numerics.piecewise import Table
from meanfield.problems.base import schedules_of
from meanfield.problems.in_time import InTime, made_of
from meanfield.typing import FloatArray, IntArray

AT_ONCE = 1 << 14
"""Number of steps of a stretch, whose numbers are made at once: up to 3 megabytes for each feature."""


class Changes:
    """Numbers of a training in each step of a problem with schedules.

    Parameters
    ----------
    problem : Problem
        Without phases.
    reference : Problem
        The same without schedules, with the largest rate and strengths.
    noisy : bool
        Whether views differ from the sample at some time.
    """

    def __init__(self, problem: Problem, reference: Problem, noisy: bool) -> None:
        share, _ = reference.model.shares(problem.particles.dimension)
        self._problem, self._largest = problem, share * reference.model.learning_rate
        self._factors = factors_of(problem, reference)
        self._schedules = schedules_of(problem)
        self._places = training_of(reference, noisy)
        self._places.numbers[:] = np.arange(len(self._places.numbers))  # each number is its own place
        of_stretch, outputs_at = self._of_stretch, self._outputs_at
        # for all replicas, which go through the same steps
        self.of_stretch, self.outputs_at = lru_cache(maxsize=16)(of_stretch), lru_cache(maxsize=AT_ONCE)(outputs_at)
        smooth = any(key not in FACTORS for key in self._schedules)
        self.centred = smooth and problem.model.centering == "population"
        """Whether mean outputs are subtracted that change from step to step: those of `outputs_at`."""
        self._in_time, self._one_thread = InTime(problem), Lock()
        self._law = made_of(_law_of_outputs, attrgetter("hidden_laws"))

    def laws_at(self, first: int, steps: int) -> tuple[HiddenPart, ...]:
        """Hidden laws whose moments are those of some steps, shape (steps, 1, 1), where they change."""
        times = self._times(first, steps)[:, None, None]
        return tuple(_with_moments(law, times) for law in self._problem.hidden_laws)

    def _of_stretch(self, number: int) -> tuple[IntArray, FloatArray]:
        """`Training.places` and `Training.in_time` of a stretch of `AT_ONCE` steps."""
        first, known = number * AT_ONCE, self._places
        times, parts = self._times(first, AT_ONCE), []
        if self._schedules.keys() & set(FACTORS):
            rate, strength = self._factors(times)
            decorrelation = self._problem.decorrelation
            penalty = values_of(0.0 if decorrelation is None else decorrelation.strength, times)
            parts.append((known.rates, np.stack([self._largest * rate, strength, penalty], axis=-1)))
        if any(key.startswith("augmentation") for key in self._schedules) and self._problem.augmentation:
            V = self._problem.augmentation.covariance_at(times)
            parts += [(known.noise, V), (known.noise_factor, factor_of(V)), (known.view_factor, factor_of(1.0 + V))]
        for group, law in enumerate(self.laws_at(first, AT_ONCE)):
            parts += changed_draws(known.hidden, law, group)
        places = np.concatenate([place.ravel() for place, _ in parts]).astype(np.int64)
        return places, np.concatenate([values.reshape(AT_ONCE, -1) for _, values in parts], axis=1)

    def _outputs_at(self, step: int) -> MeanOutputs:
        """Mean outputs of a step, in closed form of a polynomial activation."""
        with self._one_thread:
            problem = self._in_time(float(self._times(step, 1)[0]))
            law, (v1, v2) = self._law(problem), np.diag(problem.noise_covariance)
            polynomial = problem.model.activation_functions.polynomial
            if not polynomial:
                return averaged_outputs(self._sigma, law, v1, v2)
        return no_mean_outputs()._replace(polynomial=polynomial_means(polynomial, law, (v1, v2)))

    @cached_property
    def _sigma(self) -> Table:
        """Outputs up to the largest pre-activation of all times."""
        looked_at = (each.looked_at(0.0, self._problem.time.stop).tolist() for each in self._schedules.values())
        problems = [self._in_time(time) for time in sorted({time for times in looked_at for time in times})]
        reach = max(reach_of(self._law(each)) * np.sqrt(1.0 + each.noise_covariance.max()) for each in problems)
        return output_table(self._problem.model.activation_functions, reach)

    def _times(self, first: int, steps: int) -> FloatArray:
        """Times of steps, none of them after the end."""
        problem = self._problem
        return np.minimum(np.arange(first, first + steps) / problem.particles.dimension, problem.time.stop)


def _law_of_outputs(problem: Problem) -> Mixture:
    """Law of hidden variables, as far as means of outputs need it."""
    activation = problem.model.activation_functions
    return hidden_mixture(
        problem, len(activation.polynomial) - 1 if activation.polynomial else activation.highest_power
    )


def _with_moments(law: HiddenPart, times: FloatArray) -> HiddenPart:
    moments = {key: value.values_at(times) for key, value in law if isinstance(value, Schedule)}
    return with_unchecked(law, **moments) if moments else law
