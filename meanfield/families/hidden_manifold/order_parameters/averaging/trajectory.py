"""Trajectories of the order parameters where inputs have a mean: overlaps move by averages over a fast chain."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.families.hidden_manifold.order_parameters.averaging.stationary_averages import GROUPS, FastChains
from meanfield.families.hidden_manifold.order_parameters.integration import Path
from meanfield.families.hidden_manifold.order_parameters.legs import Leg, driven, legs_of, observed
from meanfield.families.hidden_manifold.order_parameters.system import System, make_system, start_of, unpacked
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.refinement import missed
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

RELAXATION_STEP = 0.5
"""Length of a step in units of the fastest relaxation: the method of Runge and Kutta of order 4 is off by 2e-4 of what
relaxes as fast."""

UNUSED_RULE_SIZE = 2
"""Points of a rule that is not used: expectations are averages over samples."""

SIMPSON = 2e-4
"""Largest change of what training moves when steps are halved, by the most that it moves; as `RELAXATION_STEP`."""

OUTPUT_AVERAGES = 4
"""Averages at an output time: its generalisation error is that of one state, and not of all on the way to it."""

COMPARED = ("Q", "R", "v", "generalisation_error")

MANY_RELAXATIONS = 3.0
"""Relaxation times in N steps from which SGD follows the average; its overlaps lag behind by the inverse of that."""

QUANTILES = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
"""Shares of the law of the fields' means that results hold quantiles of."""


class _Batch(NamedTuple):
    """Trajectories of a batch of groups, NaN at output times that were not reached.

    Parameters
    ----------
    states : ndarray, shape (groups, times, n)
    errors : ndarray, shape (groups, times)
        Generalisation error.
    relaxation : ndarray, shape (times,)
    mean : ndarray, shape (times, components, students)
        Mean of the means of the fields.
    quantiles : ndarray, shape (quantiles, times, components, students)
    status : str
    """

    states: FloatArray
    errors: FloatArray
    relaxation: FloatArray
    mean: FloatArray
    quantiles: FloatArray
    status: str


def averaged(problem: Problem, times: FloatArray) -> tuple[System, Path, dict[str, FloatArray], str]:
    """Solution whose errors by chance are within `order_parameters.averaging_tolerance`, as far as batches suffice.

    Its observables come with three standard errors, the law of the fields' means, and a warning.

    Parameters
    ----------
    problem : Problem
        See `meanfield.families.hidden_manifold.regimes.check_averages`.
    times : ndarray, shape (times,)
    """
    tolerance = problem.order_parameters.averaging_tolerance
    digits = math.ceil(-math.log10(tolerance)) + 1  # the spectrum adds nothing to errors by chance
    nodes = problem.inputs.eigenvalues.nodes(6 + digits)  # six nodes besides those for digits
    legs = [
        leg
        for leg in legs_of(driven(problem), lambda each: make_system(each, nodes, UNUSED_RULE_SIZE, problem))
        if leg.start < times[-1]
    ]
    system = legs[0].system
    batches = list[_Batch]()
    needed = 1
    while len(batches) < min(needed, 16):  # four times as many batches of groups halve the error
        batches.append(_follow(problem, legs, times, len(batches)))
        if batches[-1].status != "complete":
            batches = batches[:-1] or batches
            break
        errors = _errors(legs, times, batches)
        needed = max(math.ceil(len(batches) * (_largest(errors) / tolerance) ** 2), 1)
    errors = _errors(legs, times, batches)
    states = np.concatenate([batch.states for batch in batches])
    state = unpacked(system, states.mean(axis=0))
    found = observed(legs, times, state)
    found["field_mean"] = np.mean([batch.mean for batch in batches], axis=0)
    found |= errors | {
        "generalisation_error": np.concatenate([batch.errors for batch in batches]).mean(axis=0),
        "field_mean_quantile": np.mean([batch.quantiles for batch in batches], axis=0),
        "quantile": QUANTILES,
        "relaxation_steps": np.mean([batch.relaxation for batch in batches], axis=0),
    }
    status = batches[0].status
    warning = _warning(problem, _largest(errors), float(np.nanmax(found["relaxation_steps"], initial=0.0)))
    path = Path(state, found["generalisation_error"], status)
    return system, path, found, warning if status == "complete" else ""


def _errors(legs: list[Leg], times: FloatArray, batches: list[_Batch]) -> dict[str, FloatArray]:
    """Three standard errors of what is compared."""
    states = np.concatenate([batch.states for batch in batches], axis=0)
    each = [observed(legs, times, unpacked(legs[0].system, y)) for y in states]
    seen = {name: np.array([group[name] for group in each]) for name in each[0]}
    seen["generalisation_error"] = np.concatenate([batch.errors for batch in batches])
    factor = 3.0 / math.sqrt(len(states))  # 1 of 100 numbers exceeds 3 standard errors by chance
    return {f"{name}_error": factor * seen[name].std(axis=0, ddof=1) for name in COMPARED}


def _largest(errors: dict[str, FloatArray]) -> float:
    return max(float(np.nanmax(error, initial=0.0)) for error in errors.values())


def _warning(problem: Problem, error: float, relaxation: float) -> str:
    what, tolerance = "averages, three standard errors,", problem.order_parameters.averaging_tolerance
    N = problem.particles.dimension
    found = [missed(what, error, "order_parameters.averaging_tolerance", tolerance)]
    if relaxation * MANY_RELAXATIONS > N:
        found.append(
            f"the means of the fields relax within {relaxation:.0f} steps, and SGD with particles.dimension = {N:,} "
            f"follows the average over their law only if that is far fewer than N; take N above "
            f"{MANY_RELAXATIONS * relaxation:.2g}"
        )
    return "; ".join(text for text in found if text)


def _follow(problem: Problem, legs: list[Leg], times: FloatArray, batch: int) -> _Batch:
    """Follow a batch of groups."""
    system = legs[0].system
    start = start_of(problem, system)
    chains = FastChains(problem, legs[0], start, batch)
    y = np.tile(start, (GROUPS, 1))
    t = 0.0
    status = "complete"
    states = np.full((GROUPS, len(times), len(start)), np.nan)
    errors = np.full((GROUPS, len(times)), np.nan)
    shape = (len(times), len(system.chance), system.students)
    relaxation = np.full(len(times), np.nan)
    mean = np.full(shape, np.nan)
    quantiles = np.full((len(QUANTILES), *shape), np.nan)
    with progress_bar(float(times[-1] - times[0]), f"order parameters, batch {batch + 1}", unit="t") as bar:
        try:
            for leg in legs:
                error, means = chains.settle(y) if leg is legs[0] else chains.enter(leg, y)
                for i in np.flatnonzero((times >= t) & ((times < leg.stop) | (leg is legs[-1]))):
                    if t < times[i]:
                        y = _advance(chains, y, t, times[i])
                        t = float(times[i])
                        repeated = [chains.averages(t, y) for _ in range(OUTPUT_AVERAGES)]
                        error = np.mean([a.errors for a in repeated], axis=0)
                        means = repeated[-1].field_means
                        bar.update(t - bar.n)
                    states[:, i] = y
                    errors[:, i] = error
                    relaxation[i] = chains.relaxation
                    mean[i] = means.mean(axis=0)
                    quantiles[:, i] = np.quantile(means, QUANTILES, axis=0)
                if leg is not legs[-1]:
                    y, t = _advance(chains, y, t, leg.stop), leg.stop
        except KeyboardInterrupt:
            status = "interrupted"
        except BlowUpError as error:
            status = error.status
    return _Batch(states, errors, relaxation, mean, quantiles, status)


def _advance(chains: FastChains, y: FloatArray, t: float, end: float) -> FloatArray:
    """States at the end, by the method of Runge and Kutta of order 4."""
    while t < end:
        first = chains.averages(t, y)
        left = _resolving(chains, t, end, max(math.ceil((end - t) * first.speed / RELAXATION_STEP), 1))
        h = (end - t) / left
        second = chains.averages(t + 0.5 * h, y + 0.5 * h * first.rates).rates
        third = chains.averages(t + 0.5 * h, y + 0.5 * h * second).rates
        fourth = chains.averages(t + h, y + h * third).rates
        y = np.asarray(y + h / 6.0 * (first.rates + 2.0 * second + 2.0 * third + fourth))
        t = t + h if left > 1 else end
    return y


def _resolving(chains: FastChains, t: float, end: float, steps: int) -> int:
    """So many steps or more, that Simpson's rule, which is that of Runge and Kutta in time, resolves the training."""

    def moved(training: FloatArray) -> FloatArray:
        eta, eta_v, batch, noise, decay = training
        return np.array([eta, eta_v, eta**2 / batch * (1.0 + noise), eta * decay, eta_v * decay])

    def mean(steps: int) -> FloatArray:
        weights = np.array([1.0, *([4.0, 2.0] * steps)[:-1], 1.0]) / (6.0 * steps)
        return np.asarray(moved(chains.training_at(np.linspace(t, end, 2 * steps + 1))) @ weights)

    allowed = SIMPSON * moved(chains.largest)
    coarse, fine = mean(steps), mean(2 * steps)
    while np.any(np.abs(coarse - fine) > allowed):
        steps *= 2
        coarse, fine = fine, mean(2 * steps)
    return steps
