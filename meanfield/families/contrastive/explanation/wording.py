"""Wording of contrastive problems: sentences about the network, its training, the data, and the time."""

from __future__ import annotations

import math

import numpy as np

from meanfield.ensembles.averages import average_in_words
from meanfield.explanation.explanation import Statement, steps_in_words
from meanfield.families.contrastive.initial_state import InitialState
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.tables import Feature, Model
from meanfield.ingredients.laws.base import HiddenPart
from meanfield.ingredients.laws.empirical import Empirical, JointEmpirical
from meanfield.ingredients.laws.tails import StudentT
from meanfield.ingredients.part import Part
from meanfield.ingredients.priors import PriorSettings
from meanfield.ingredients.schedules.shapes import Schedule, in_words_of
from meanfield.ingredients.user_functions import is_address
from meanfield.problems.base import parts_in

SAMPLES = (Empirical, JointEmpirical)
"""Hidden laws whose samples are in a file."""

UNCORRELATED = 1e-6
"""Largest correlation of samples that is rounding."""


CENTERINGS = {
    "none": "outputs not centred",
    "population": "outputs less their mean over all data",
    "batch": "outputs less their mean over the batch",
}

EFFECTS = {
    "none": "nothing acts on the weights but the data",
    "l2": "phi(w) = w acts on the norm alone, which the projection to the sphere restores",
    "l1": "phi(w) = sign(w) pulls all weights alike: many small ones, few large ones",
    "elastic_net": "l1, with the rest as l2, which the projection undoes",
    "smooth_l1": "phi is linear up to a width and sign(w) beyond: few large weights, rounded at 0",
    "log_cosh": "phi(w) = tanh(w) is l1 rounded at 0: few large weights",
    "quartic": "phi(w) = w^3 pulls large weights most: sizes become more equal",
    "cauchy": "phi(w) = w/(1 + w^2) lets large weights go: most near 0, few far out",
    "double_well": "phi(w) = w^3 - w favours weights near +1 and -1",
}
"""Effect of each prior on the weights."""

LAWS = {"gaussian": "Gaussian", "laplace": "Laplace", "rademacher": "Rademacher (+-)", "student_t": "Student t"}
"""Names of laws that are not the word in the problem file with spaces."""


def in_words(problem: Problem, look_up: bool = True) -> list[Statement]:
    """Sentences about a problem, in the order of its file; see `meanfield.explanation.explanation.in_words`."""
    known = look_up or not is_address(problem.model.activation)
    statements = [("network", _network(problem.model, known)), ("training", _training(problem.model))]
    statements.append(("noise", _noise(problem)))
    for k, feature in enumerate(problem.features):
        label = "feature" if len(problem.features) == 1 else f"feature {k + 1}"
        statements.append((label, _feature(feature, look_up)))
    if problem.hidden is not None:
        statements.append(("hidden", _joint(problem.hidden, look_up)))
    if problem.initial is not None:
        statements.append(("start", _start(problem.initial, look_up)))
    if problem.initial_residual.law != "gaussian":
        law = _law(problem.initial_residual.law)
        statements.append(("start", f"weights not along the features are {law}, slightly smoothed"))
    statements += _channels(problem, look_up)
    return [*statements, ("prior", _prior(problem.prior, look_up)), ("time", steps_in_words(problem))]


def _network(model: Model, known: bool) -> str:
    name = model.activation + "".join(f", {key} = {value:g}" for key, value in model.activation_parameters.items())
    several = model.channels > 1
    channels = f"{model.channels} channels" if several else "one channel"
    if not known:
        return f"{channels}, activation '{name}' (a user's own, not looked up)"
    sigma, output = model.activation_functions, "y_k = sigma(w_k.x/sqrt N)" if several else "y = sigma(w.x/sqrt N)"
    return f"{channels} {output}, sigma = {name}: {_growth(sigma.growth)}, {_kinks(sigma.kinks)}"


def _channels(problem: Problem, look_up: bool) -> list[Statement]:
    """Sentences about the start of several channels, and about what keeps them apart."""
    if problem.model.channels == 1:
        return []
    statements = []
    if problem.initial is None or look_up:
        pairs = problem.initial_channel_overlap[np.triu_indices(problem.model.channels, 1)]
        shown = f"{pairs[0]:.4g}" if np.ptp(pairs) < UNCORRELATED else f"{pairs.min():.4g} to {pairs.max():.4g}"
        statements.append(("channels", f"pairs of channels start with overlaps M = {shown}"))
    settings = problem.decorrelation
    if settings is None or settings.strength == 0:
        nothing = "none: nothing keeps channels apart, and two of them may learn the same feature"
        return [*statements, ("decorrelation", nothing)]
    name = settings.penalty + "".join(f", {key} = {value:g}" for key, value in settings.parameters.items())
    own = " (a user's own, not looked up)" if is_address(name) and not look_up else ""
    what = "second moments" if problem.model.centering == "none" else "covariances"
    strength = in_words_of(settings.strength)
    text = f"{name}{own} of the {what} of the outputs of each two channels, strength lambda = {strength}"
    return [*statements, ("decorrelation", text)]


def _growth(power: float) -> str:
    if power == 0:
        return "bounded"
    return f"grows like |x|^{power:g}" if math.isfinite(power) else "grows faster than any power"


def _kinks(kinks: tuple[float, ...]) -> str:
    return f"kink at {', '.join(f'{kink:g}' for kink in kinks)}" if kinks else "no kinks"


def _moving(part: Part) -> dict[str, Schedule]:
    """Schedules of a part by their keys."""
    return {key: each for key, each in parts_in(part) if isinstance(each, Schedule)}


def _training(model: Model) -> str:
    tau, m = model.learning_rate, model.batch_size
    rate = in_words_of(tau)
    momentum = f", momentum mu = {model.momentum:g} (in the limit a rate of tau/(1 - mu))" if model.momentum else ""
    if model.momentum_rate is not None:
        momentum = f" with momentum 1 - b/N, b = {model.momentum_rate:g}, in steps of tau b/N"
    moves = isinstance(tau, Schedule) or isinstance(m, Schedule)
    noise = f" = {tau / m:.3g}" if not (moves or momentum) else ""
    average = average_in_words(model.average_rate)
    return (
        f"one-pass SGD, tau = {rate}{momentum}, batches of m = {in_words_of(m)}, {CENTERINGS[model.centering]}; "
        f"sampling noise enters as tau/m{noise}{average}"
    )


def _noise(problem: Problem) -> str:
    if problem.augmentation and _moving(problem.augmentation):
        variances = " and ".join(in_words_of(v) for v in problem.augmentation.variance)
        return f"variances {variances} per coordinate, correlation {in_words_of(problem.augmentation.correlation)}"
    V = problem.noise_covariance
    if not V.any():
        return "none: both views of a sample are the sample itself"
    similarity = (1 + V[0, 1]) / math.sqrt((1 + V[0, 0]) * (1 + V[1, 1]))
    kind = {-1.0: "opposite", 0.0: "independent", 1.0: "the same up to scale"}
    correlation = problem.augmentation.correlation if problem.augmentation else 0.0
    named = kind.get(correlation, f"correlation {correlation:g}")
    return (
        f"variances {V[0, 0]:g} and {V[1, 1]:g} per coordinate, {named}: "
        f"two views of a sample have cosine similarity {similarity:.3g}"
    )


def _feature(feature: Feature, look_up: bool) -> str:
    start = feature.initial_overlap
    parts = [] if feature.hidden is None else [f"hidden variable {_hidden(feature.hidden, look_up)}"]
    parts.append(f"coordinates {_law(feature.coordinate.law)}")
    if start is not None:  # otherwise a file says it
        parts.append("starts at random" if isinstance(start, str) else f"starts at q = {_numbers(start)}")
    return "; ".join(parts)


def _start(initial: InitialState, look_up: bool) -> str:
    """Where weights start, and what a density takes them for."""
    if not look_up:
        return f"{initial.in_words} (not opened)"
    state = initial.atoms
    q = ", ".join(f"{number:.4g}" for number in state.overlap.ravel())
    if state.weights is not None:
        runs, N, channels = state.weights.shape
        law = f"weights of {runs} run(s) of N = {N}" + "; for a density their law given u, smoothed" * (channels == 1)
    elif state.law is not None:
        law = f"the density at {len(state.law.u)} nodes in u; SGD draws its weights from it"
    else:
        law = f"overlaps alone; what is not along the features is {_law('gaussian')}"
    return f"{initial.in_words}, q = {q}: {law}"


def _numbers(given: float | tuple[float, ...]) -> str:
    return ", ".join(f"{number:g}" for number in given) if isinstance(given, tuple) else f"{given:g}"


def _hidden(law: HiddenPart, look_up: bool) -> str:
    name = _law(law.law)  # type: ignore[attr-defined]
    if isinstance(law, SAMPLES):
        name = f"from the samples in {law.file}"
        if not look_up:
            return f"{name} (not opened)"
    if moving := _moving(law):
        return ", ".join([name, *(f"{key.replace('_', ' ')} {schedule.in_words}" for key, schedule in moving.items())])
    second, kurtosis = moments(law)
    tails = "no finite kurtosis" if math.isinf(kurtosis) else f"kurtosis {kurtosis:.4g} (Gaussian: 3)"
    return f"{name}, E[c^2] = {second:.4g}, {tails}"


def moments(law: HiddenPart) -> tuple[float, float]:
    """E[c^2] and E[c^4]/E[c^2]^2 of a law of one variable; the latter is infinite where it does not exist."""
    second = _moment(law, 2)
    if isinstance(law, StudentT):  # closed form, because quadratures end before the moments do
        nu = law.degrees_of_freedom
        return second, 3 * (nu - 2) / (nu - 4) if nu > 4 else math.inf
    return second, _moment(law, 4) / second**2


def _moment(law: HiddenPart, power: int) -> float:
    """E[c^2] or E[c^4] of a mixture of Gaussians."""
    if isinstance(law, StudentT):
        return law.second_moment
    probability, mean, variance = law.components(float(power))
    square, v = mean[:, 0] ** 2, variance[:, 0]
    return float(probability @ (square + v if power == 2 else square**2 + 6 * square * v + 3 * v**2))


def _joint(law: HiddenPart, look_up: bool) -> str:
    if isinstance(law, SAMPLES) and not look_up:
        return f"the variables of all features together, from the samples in {law.file} (not opened)"
    probability, mean, variance = law.components(2.0)
    second = np.diag(probability @ variance) + np.einsum("a,ak,al->kl", probability, mean, mean)
    deviation = np.sqrt(np.diag(second))
    largest = np.abs(second / np.outer(deviation, deviation) - np.eye(len(deviation))).max()
    shown = ", ".join(f"{value:.4g}" for value in np.diag(second))
    source = f"samples in {law.file}" if isinstance(law, SAMPLES) else f"{len(probability)} values"
    related = f"largest correlation {largest:.2g}" if largest > UNCORRELATED else "uncorrelated"
    return f"one joint law, {source}: E[c^2] = {shown}; {related}"


def _law(name: str) -> str:
    return LAWS.get(name, name.replace("_", "-"))


def _prior(prior: PriorSettings, look_up: bool) -> str:
    strength = in_words_of(prior.strength)
    if prior.name == "none" or strength == "0":
        return f"none: {EFFECTS['none']}; the order parameters close"
    name = prior.name + "".join(f", {key} = {value:g}" for key, value in prior.parameters.items())
    if is_address(prior.name) and not look_up:
        return f"'{name}' of strength {strength} (a user's own, not looked up)"
    effect = EFFECTS.get(prior.name, "a user's own")
    closes = "the order parameters close" if prior.functions.linear else "the order parameters do not close"
    return f"{name} of strength {strength}: {effect}; {closes}"
