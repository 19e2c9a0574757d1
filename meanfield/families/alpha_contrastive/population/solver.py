"""Exact flow of all weights: theta' = grad E with the importances held fixed, less the decay of weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from meanfield.ensembles.momentum import check_no_velocity
from meanfield.errors import BlowUpError, InputError
from meanfield.families.alpha_contrastive.initial import Weights, common_weights, few_filters, tangential
from meanfield.families.alpha_contrastive.laws import DiscreteLaw, GaussianMixture, Images
from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.limit.fields import discrete_field, mixture_field
from meanfield.families.alpha_contrastive.moments import harmonics_of, measured
from meanfield.families.alpha_contrastive.population.drift import (
    MOST_CARRIED,
    Drift,
    MixtureDrift,
    PointDrift,
    decides_drift,
)
from meanfield.families.alpha_contrastive.population.fast_top import (
    FastTop,
    check_average_of_top,
    check_fast_top,
    is_modulated,
)
from meanfield.families.alpha_contrastive.population.gaussians import GaussianInputs, check_gaussians
from meanfield.families.alpha_contrastive.population.inputs import TokenInputs, places_of
from meanfield.families.alpha_contrastive.population.kinks import carried_filters, is_carried, tolerance_of
from meanfield.families.alpha_contrastive.population.places import PlaceDrift
from meanfield.families.alpha_contrastive.population.strings import StringDrift, check_strings
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.families.alpha_contrastive.scores import effective_rank, scores_of
from meanfield.families.alpha_contrastive.settings import Model
from meanfield.ingredients.part import with_unchecked
from meanfield.numerics.moving_averages import average_along
from meanfield.numerics.ode import Tolerance, solve_in_stretches
from meanfield.numerics.refinement import missed
from meanfield.problems.base import check_problem
from meanfield.problems.in_time import InTime, Stretch, check_at_extremes, made_of
from meanfield.problems.phases import pieces_of
from meanfield.results.solved import Solved, solver
from meanfield.typing import BoolArray, FloatArray

KERNELS = ("quadratic", "gaussian")
"""Importances whose averages over tokens factorise given the generators."""


@solver
def solve_population(problem: Problem) -> Solved:
    """Exact flow of all weights on the energy of the population.

    Parameters
    ----------
    problem : Problem
        `population.tolerance` is the error of a step; with `population.finite_batch` the drift is the mean of that of
        batches of `training.batch_size`.

    Returns
    -------
    xarray.Dataset
        `energy`, `covariance_trace`, `weights` and their effective ranks `filter_rank`; for two layers `top`, its
        `top_rank`, and the scores `chi_plus` and `chi_minus`. The start is that of replica 0 of SGD. Under a fast top,
        with two generators and one filter in each place, the terms of theorem 5 of the paper, such as `modulation`.
        With `training.average_rate` `energy_average`, `weights_average` and `top_average` of averaged weights.

    Raises
    ------
    InputError
        If there are no exact averages; see `check_population`.

    Notes
    -----
    SGD with momentum m follows the flow at 1/(1 - m) times its speed, which is in the flow, and with
    `training.momentum_rate` weights and velocities together. Source: alpha_contrastive.md, sections 3, 4 and 6.
    """
    check_problem(problem, Problem)
    check_population(problem)
    flow = Flow(problem)
    if any(map(is_carried, flow.drifts)):
        return _carried(problem, flow)
    error, times = problem.population.tolerance, problem.time.outputs_at
    stretches, a = flow.in_time.stretches(problem.time.stop), problem.training.average_rate
    solution = solve_in_stretches(
        [(stretch.outputs(times), partial(flow.rate, stretch)) for stretch in stretches],
        flow.start,
        times,
        Tolerance(error, error),
        # Rounded kinks make the flow stiff where filters rest on them.
        integrator="LSODA" if any(drift.is_rounded for drift in flow.drifts) else "DOP853",
        check=lambda t, vector: _fault(flow.in_time(t), t, vector),
        dense=a is not None,
        label="exact flow",
        interruptible=True,
    )
    arrays = {"time": times} | flow.observables(solution.values) | harmonics_of(problem)
    if a is not None:
        averages, reached = np.full_like(solution.values, np.nan), np.isfinite(solution.values).all(axis=1)
        if solution.path is not None and reached.sum() > 1:
            followed = solution.path, flow.start, times[reached], flow.in_time.corners
            averages[reached] = average_along(*followed, a, Tolerance(error, error))
        arrays |= flow.observables_of_averages(averages)
    return Solved("population", arrays, solution.status)


def _carried(problem: Problem, flow: Flow) -> Solved:
    """Flow of filters that gather on walls."""
    found, tolerance = carried_filters(problem), tolerance_of(problem)
    arrays = {"time": problem.time.outputs_at} | flow.observables(found.result["filters"]) | harmonics_of(problem)
    if "average" in found.result:
        arrays |= flow.observables_of_averages(found.result["average"])
    remedy = "lower time.stop, or take a smooth activation"
    warning = missed("filters", found.change.largest, "population.tolerance", tolerance, remedy)
    return Solved("population", arrays, "interrupted" if found.interrupted else "complete", warning)


def _fault(problem: Problem, t: float, vector: FloatArray) -> BlowUpError | None:
    """Error of weights that the integrator could not follow up to an output time."""
    if np.all(np.isfinite(vector)):
        return None
    decay, tolerance = problem.training.weight_decay, problem.population.tolerance
    if decay * t > 1.0:
        remedy = f"training.weight_decay = {decay:g} takes weights to 0 in times of {1.0 / decay:.3g}; lower it"
    else:
        remedy = f"raise population.tolerance = {tolerance:g}, or lower time.stop"
    return BlowUpError(t, "the flow of the weights cannot be followed so far", remedy)


def drift_of(problem: Problem) -> Drift:
    """Exact drift of a problem that `check_population` lets through."""
    if problem.population.fast_top:
        return FastTop(problem)
    if problem.model.layers == 1:
        return MixtureDrift(problem) if isinstance(problem.data, GaussianMixture) else PointDrift(problem)
    return StringDrift(problem) if because_of_strings(problem) else PlaceDrift(problem)


def because_of_strings(problem: Problem) -> str:
    """Key because of which strings are enumerated; empty where averages given the generator are enough."""
    importance, augments = problem.importance, places_of(problem.data).augments
    if problem.model.normalise_outputs:
        return "model.normalise_outputs = true"
    if importance.kind not in KERNELS:
        return f"importance.kind = '{importance.kind}'"
    if importance.kind == "gaussian" and not augments:
        return "importance.kind = 'gaussian' without augmentation"
    if importance.kind == "gaussian" and importance.argument == "views":
        return "importance.argument = 'views' with importance.kind = 'gaussian'"
    return ""


class Flow:
    """Flow of all weights as a vector.

    Attributes
    ----------
    in_time : InTime
        Problem at each time.
    drifts : list of Drift
        At the start of each phase.
    number : int
        Number of weights, behind which are velocities that last.
    start : ndarray
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self.in_time = problem, InTime(problem)
        self._drift_of = made_of(drift_of, decides_drift)
        self.drifts = [self._drift_of(self.in_time(piece.start)) for piece in pieces_of(problem)]
        first = common_weights(problem)
        self._shapes = first.filters.shape, first.top.shape
        self.number = first.filters.size + first.top.size
        velocities = np.zeros(self.number if problem.training.momentum_rate is not None else 0)
        self.start = np.concatenate([self._joined(first), velocities])

    def weights(self, vector: FloatArray) -> Weights:
        """Weights in a vector, or in several."""
        split = int(np.prod(self._shapes[0]))
        parts = vector[..., :split], vector[..., split : self.number]
        return Weights(
            *(part.reshape(*vector.shape[:-1], *shape) for part, shape in zip(parts, self._shapes, strict=True))
        )

    def _joined(self, weights: Weights) -> FloatArray:
        return np.concatenate([part.ravel() for part in weights])

    def rate(self, stretch: Stretch[Problem], t: float, vector: FloatArray) -> FloatArray:
        """Rate of change of all weights, and of velocities that last, at a time of a stretch."""
        problem = stretch.at(t)
        training, model = problem.training, problem.model
        weights = self.weights(vector)
        slope = self._drift_of(problem)(weights).slope
        decayed = (by_part - training.weight_decay * part for part, by_part in zip(weights, slope, strict=True))
        force, b = self._along(model, weights, Weights(*decayed)), training.momentum_rate
        if b is None:
            return force / (1.0 - training.momentum)
        velocity = vector[self.number :]
        moved = self._along(model, weights, self.weights(velocity))
        return np.concatenate([moved, b * (force - velocity)])

    def _along(self, model: Model, weights: Weights, moves: Weights) -> FloatArray:
        """Moves along the spheres on which weights are kept."""
        kept = zip(weights, moves, (model.unit_filters, model.unit_top), (1, 2), strict=True)
        return self._joined(Weights(*(tangential(by, part, dims) if held else by for part, by, held, dims in kept)))

    def observables(self, states: FloatArray) -> dict[str, Any]:
        """Energy, scores and ranks of weights at all output times, in rows; NaN for rows that are not finite."""
        weights = self.weights(states)
        problems = [self.in_time(float(t)) for t in self._problem.time.outputs_at]
        reached = np.asarray(np.isfinite(states).all(axis=1))
        energy, trace = self._energies(weights, reached)
        arrays = {"energy": energy, "covariance_trace": trace, "weights": weights.filters}
        arrays["filter_rank"] = effective_rank(weights.filters)
        if self._problem.model.layers == 1:
            arrays |= measured(problems, weights.filters[:, 0])
        if self._problem.population.fast_top:
            tops, terms = np.zeros_like(weights.top), []
            for row, problem in enumerate(problems):
                drift, filters = self._drift_of(problem), weights.filters[row if reached[row] else 0]
                assert isinstance(drift, FastTop)
                if reached[row]:
                    tops[row] = drift.top(Weights(filters, tops[row]))
                terms.append(drift.modulation(filters) if is_modulated(problem) else {})
            weights = weights._replace(top=tops)
            arrays |= {name: np.stack([each[name] for each in terms]) for name in terms[0] if all(terms)}
        if self._problem.model.layers == 2:
            arrays["top"] = weights.top.reshape(*weights.top.shape[:2], *self._shapes[0][:2])
            arrays["top_rank"] = effective_rank(weights.top)
        scores = scores_of(problems, weights.filters)
        arrays |= {name: score for name, score in scores.items() if np.isfinite(score[reached]).all()}
        for name in arrays:
            arrays[name][~reached] = np.nan
        return arrays

    def observables_of_averages(self, states: FloatArray) -> dict[str, FloatArray]:
        """Averages of weights at all output times, from rows, and the energy of a network that has them."""
        weights = self.weights(states)
        energy, _ = self._energies(weights, np.asarray(np.isfinite(states).all(axis=1)))
        arrays = {"energy_average": energy, "weights_average": weights.filters}
        if self._problem.model.layers == 2:
            arrays["top_average"] = weights.top.reshape(*weights.top.shape[:2], *self._shapes[0][:2])
        return arrays

    def _energies(self, weights: Weights, reached: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Energy and trace of C_alpha of weights at the output times that were reached, NaN at others."""
        energy, trace = np.full((2, len(reached)), np.nan)
        for i in np.flatnonzero(reached):
            drift = self._drift_of(self.in_time(float(self._problem.time.outputs_at[i])))
            found = drift(Weights(weights.filters[i], weights.top[i]))
            energy[i], trace[i] = found.energy, found.covariance_trace
        return energy, trace


def check_population(problem: Problem) -> None:
    """Refuse problems without exact averages, or moving averages of what is no weight of its own."""
    check_at_extremes(problem, _check_at_one_time)
    check_average_of_top(problem)


def _check_at_one_time(problem: Problem) -> None:
    data = problem.data
    importance = problem.importance
    finite = problem.population.finite_batch
    if problem.population.fast_top:
        check_fast_top(problem)
    if problem.model.layers == 2:
        _check_two_layers(problem)
        return
    augments = isinstance(data, GaussianMixture) and data.augmentation
    if isinstance(data, DiscreteLaw):
        augments = data.sample_of is not None
    if augments and finite and importance.diagonal == "include":
        raise InputError(
            "population.finite_batch = true has no exact drift of one layer with importance.diagonal = 'include' where "
            "views differ; take 'exclude', or solve by particles"
        )
    if isinstance(data, GaussianMixture):
        if importance.kind != "quadratic":
            raise InputError(
                f"importance.kind = '{importance.kind}' depends on all filters and all samples of data.law = "
                "'gaussian_mixture', which are no finite number; take 'quadratic' or data.law = 'points', or solve by "
                "particles"
            )
        mixture_field(problem, data)
        return
    assert isinstance(data, DiscreteLaw)
    functions = Filter(problem.model.activation_functions)
    if functions.kinks and functions.straight is None and data.dimension > MOST_CARRIED:
        raise InputError(
            f"model.activation = '{problem.model.activation}' has kinks away from 0, and filters that gather there are "
            f"followed in at most {MOST_CARRIED} coordinates, but data have {data.dimension}; take another, or solve "
            "by particles"
        )
    if problem.training.momentum_rate is not None and is_carried(drift_of(problem)):
        check_no_velocity(problem.training, "SGD and flows of activations without kinks")
    if discrete_field(problem, data).pairs.normalised and finite:
        raise InputError(
            f"population.finite_batch = true has no exact drift for importance.kind = '{importance.kind}', which is "
            "divided by a sum over the batch; take 'quadratic' or 'gaussian', or solve by particles"
        )


def _check_two_layers(problem: Problem) -> None:
    data, other = problem.data, "or solve by particles"
    if isinstance(data, Images):
        raise InputError(f"data.law = 'images' has no exact flow; take 'tokens', {other}")
    law, why = places_of(data), because_of_strings(problem)
    functions = Filter(problem.model.activation_functions)
    if functions.kinks and functions.straight is None and not isinstance(law.inputs, TokenInputs):
        raise InputError(
            f"model.activation = '{problem.model.activation}' has kinks away from 0, at which filters of other data "
            f"than tokens come to rest; take another, {other}"
        )
    if why:
        check_strings(problem, why)
        return
    if isinstance(law.inputs, GaussianInputs):
        check_gaussians(problem, law.inputs, other)
    if problem.population.finite_batch and problem.model.batch_norm.active:
        raise InputError(
            "population.finite_batch = true has no exact drift with model.batch_norm, whose statistics are those of "
            f"the batch; set one to false, {other}"
        )
    few = with_unchecked(problem, filters=with_unchecked(problem.filters, count=few_filters(problem)))
    drift_of(few)(common_weights(few))
