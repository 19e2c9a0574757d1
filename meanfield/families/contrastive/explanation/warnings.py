"""Warnings about a problem in which nothing moves, nothing is learnt, or an accuracy is out of reach."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from meanfield.errors import InputError
from meanfield.explanation.prediction import Prediction
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.explanation.wording import moments
from meanfield.families.contrastive.learnability.learnability import learnability
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.stationary.uninformed import learning_margin, noise_ratio, why_none
from meanfield.ingredients.unnamed_kinks import kinks_to_name
from meanfield.mckean_vlasov.condensation import coarsening
from meanfield.mckean_vlasov.condensation.recognition import LEAST_WEIGHTS, NOTABLE, enough_weights, percent
from meanfield.mckean_vlasov.drive import reference_of
from meanfield.mckean_vlasov.order_parameters import rate
from meanfield.numerics.quadrature import gaussian_trapezoid
from meanfield.problems.base import schedules_of

ZERO_RATE = 1e-12
"""Largest rate that counts as 0, by rounding."""

OVERLAPS = np.concatenate([-np.linspace(0.02, 0.999, 50), np.linspace(0.02, 0.999, 50)])
"""Overlaps at which a single feature is checked for a drift away from 0."""


def warnings_of(problem: Problem, predicted: list[Prediction]) -> list[str]:
    """Warnings about a problem, each a sentence with a remedy; see `meanfield.problems.family.Family.warnings`."""
    found = list(_of_the_settings(problem, predicted))
    if problem.model.channels > 1:
        return [*_of_channels(problem), *found]
    found += _of_the_prior(problem)
    try:
        closure = Closure(reference_of(problem))
    except InputError:
        return found  # the methods say so themselves
    if schedules_of(problem) or problem.phases:  # what is learnt, and when, follows from rates at all times
        return [*_of_the_start(problem, closure), *found]
    return [
        *_of_the_start(problem, closure),
        *_of_learning(problem, closure),
        *_of_condensation(problem, closure),
        *found,
    ]


def _of_channels(problem: Problem) -> Iterator[str]:
    """Warnings about channels that stay equal, and about penalties of something else than covariances."""
    q, M = problem.initial_overlap, problem.initial_channel_overlap
    equal = [
        (k, j)
        for j in range(q.shape[1])
        for k in range(j)
        if np.array_equal(q[:, k], q[:, j]) and np.array_equal(np.delete(M[k], [k, j]), np.delete(M[j], [k, j]))
    ]
    if equal and not problem.random_start:
        k, j = equal[0]
        where = "in the limit and in SGD" if M[k, j] == 1.0 else "in the limit, while noise tells them apart in SGD"
        yield (
            f"channels {k + 1} and {j + 1} start alike, q(0) = {q[:, k].tolist()}: they stay alike {where}, whatever "
            "the penalty; make features.initial_overlap different"
        )
    if problem.decorrelation_strength > 0 and problem.model.centering == "none":
        yield (
            "model.centering = 'none': the penalty takes products of outputs whose means are part of them, not "
            "covariances; set it to 'population' or 'batch' unless that is meant"
        )


def _of_the_prior(problem: Problem) -> Iterator[str]:
    """Warning about kinks of a user's prior, at which the density and stationary states need to know where to cut."""
    prior = problem.prior
    kinks = kinks_to_name(prior.name, prior.functions) if reference_of(problem).prior.strength > 0 else ""
    if kinks:
        yield f"{kinks}; otherwise density and stationary states may miss their accuracy, while SGD is right"


def _of_the_start(problem: Problem, closure: Closure) -> Iterator[str]:
    """Warnings about overlaps that stay 0 in the limit."""
    if problem.random_start:
        return
    q = problem.initial_overlap
    g, _ = closure(q)
    still = [k for k in np.flatnonzero(q == 0) if abs(g[k]) <= ZERO_RATE]
    if len(still) == len(q):
        yield (
            "q(0) = 0 is stationary: in the limit nothing moves, and SGD leaves it by its noise alone; give a start, "
            "say initial_overlap = 0.1"
        )
    elif still:
        names = ", ".join(str(k + 1) for k in still)
        yield f"feature {names} starts at q = 0 and stays there in the limit; give it a start if it shall take part"


def _of_learning(problem: Problem, closure: Closure) -> Iterator[str]:
    """Warnings about features that are not learnt, or not within the time of the run."""
    linear = problem.prior.functions.linear
    try:
        grows = float(learnability(problem).growth_rates.max()) if linear else learning_margin(problem)
    except InputError:
        return
    if linear and len(problem.features) == 1 and not grows > 0 and not _is_held(closure):
        yield f"whatever the start, the overlap decays to 0: {_why_it_decays(problem, closure)}"
        return
    if grows <= 0:
        yield (
            f"below the threshold of learnability: no feature grows from q = 0 (rate {grows:.2g}); "
            f"{_threshold(problem)}"
        )
    elif problem.random_start:
        escape = math.log(problem.particles.dimension) / (2 * grows)
        if escape > problem.time.stop:
            yield (
                f"from a random start features escape at about t = {escape:.3g}, after time.stop = "
                f"{problem.time.stop:g}; raise time.stop"
            )
    fastest = max(abs(grows), _speed(problem, closure))
    if fastest * problem.time.stop < 0.05:  # hardly anything happens
        yield (
            f"the fastest rate is about {fastest:.2g}: hardly anything happens by time.stop = {problem.time.stop:g}; "
            f"raise it to some {10 / max(fastest, ZERO_RATE):.2g}"
        )


def _of_condensation(problem: Problem, closure: Closure) -> Iterator[str]:
    """Warning about a norm that goes to so few weights that SGD leaves the limit."""
    if noise_ratio(problem, closure) >= 1:
        return
    speed, N, stop = (
        problem.model.rate * problem.prior.strength,
        problem.particles.dimension,
        problem.time.stop,
    )
    flow = coarsening(problem.prior.functions, speed * stop)
    share = flow.share_at(speed * stop)
    if share >= NOTABLE:
        return
    until = flow.elapsed_at(LEAST_WEIGHTS / N) / speed
    left_behind = f"until about t = {until:.2g}, and N = {enough_weights(share)} to the end"
    yield (
        f"{why_none(problem, closure)}; unless a feature holds the weights, some {percent(share)} of them run away at "
        f"time.stop = {stop:g}: SGD with N = {N:,} follows the limit {left_behind if until < stop else 'to the end'}"
    )


def _threshold(problem: Problem) -> str:
    """Remedy in words: the second moments that would be learnable."""
    start = "a random start learns nothing" if problem.random_start else "an informed start may still hold"
    try:
        low, high = learnability(problem).learnable_moments
    except InputError:
        return start
    if math.isnan(low):
        return f"no second moment would be learnable with this activation; {start}"
    bound = f"above {low:.4g}" if math.isinf(high) else f"below {high:.4g}"
    return f"second moments {bound} are learnable; {start}"


def _is_held(closure: Closure) -> bool:
    """Whether a single overlap moves outward anywhere."""
    return any(q * rate(closure, np.array([q]))[0] > 0 for q in OVERLAPS)


def _why_it_decays(problem: Problem, closure: Closure) -> str:
    """Reason for the decay of a single overlap: the sampling noise, or the data."""
    if any(q * closure(np.array([q]))[0][0] < 0 for q in OVERLAPS):
        return (
            "the sampling noise, Lambda/2, outweighs the gain everywhere; lower model.learning_rate or raise "
            "model.batch_size"
        )
    return f"the data pull it there; {_threshold(problem).partition(';')[0]}"


def _speed(problem: Problem, closure: Closure) -> float:
    """Rate of change of the weights at the start: by the coefficients there, and by the prior on Gaussian weights."""
    g, diffusion = closure(problem.initial_overlap)
    w, weight = gaussian_trapezoid(400)  # two digits are enough, whatever the kinks of the prior
    force = problem.prior.force(w)
    r = float(weight @ (w * force))
    beside_length = force - r * w  # what is proportional to w the return to |w|^2 = N takes away
    pull = problem.model.rate * math.sqrt(float(weight @ beside_length**2))
    return float(np.linalg.norm(g)) + 0.5 * diffusion + pull


def _of_the_settings(problem: Problem, predicted: list[Prediction]) -> Iterator[str]:
    """Warnings about accuracies and sizes that the settings ask for."""
    yield from (p.warning for p in predicted if p.warning)
    if round(problem.time.stop * problem.particles.dimension) == 0:
        yield (
            f"SGD takes no step by time.stop = {problem.time.stop:g} with particles.dimension = "
            f"{problem.particles.dimension}; raise one of them"
        )
    N = problem.particles.dimension
    for k, feature in enumerate(reference_of(problem).features):
        second = 0.0 if feature.hidden is None else moments(feature.hidden)[0]
        if second > 0.1 * N:  # the feature part is not small beside the noise
            yield (
                f"features[{k}].hidden: E[c^2] = {second:.4g} is not small beside N = {N}, the squared length of the "
                "noise of a sample, so that SGD is far from its limit; standardise the data, lower the second moment, "
                "or raise particles.dimension"
            )
    for p in predicted:
        if p.applies and p.file > 2e9:
            remedy = "name fewer particles.snapshots" if p.method == "particles" else "lower time.outputs"
            yield f"the file of the {p.method} may take {p.file / 1e9:.3g} GB; {remedy}"
