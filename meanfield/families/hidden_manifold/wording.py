"""Hidden-manifold problems in words, and warnings about them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from meanfield.ensembles.averages import average_in_words
from meanfield.ensembles.momentum import momentum_in_words
from meanfield.errors import InputError
from meanfield.explanation.explanation import Statement, steps_in_words
from meanfield.explanation.prediction import Prediction
from meanfield.families.hidden_manifold.inputs import CENTRED, Component, Inputs
from meanfield.families.hidden_manifold.problem import Network, Problem
from meanfield.families.hidden_manifold.regimes import check_averages, has_fast_means
from meanfield.ingredients.laws.empirical import Empirical
from meanfield.ingredients.schedules.shapes import Schedule, in_words_of
from meanfield.ingredients.user_functions import is_address


def in_words(problem: Problem, look_up: bool = True) -> list[Statement]:
    """Sentences about a problem, in the order of its file; see `meanfield.explanation.explanation.in_words`."""
    inputs = problem.inputs
    return [
        ("inputs", _nonlinearity(inputs, look_up or not is_address(inputs.nonlinearity))),
        ("spectrum", inputs.eigenvalues.in_words("F F'/N", look_up)),
        ("latents", latents_in_words(inputs)),
        ("teacher", f"{_network(problem.teacher)}, on the latents"),
        ("student", f"{_network(problem.student)}, on the inputs; {_start(problem)}"),
        ("training", _training(problem)),
        ("time", steps_in_words(problem)),
    ]


def _nonlinearity(inputs: Inputs, known: bool) -> str:
    what = f"x = f(F'C/sqrt D), D/N = {inputs.aspect_ratio:g}, f = {inputs.nonlinearity}"
    if not known:
        return f"{what} (a user's own, not looked up)"
    f = inputs.function.moments(1.0)
    has_mean = abs(f.mean) > CENTRED
    centred = " less its mean" if inputs.centered and has_mean else ""
    centred += ", divided by its standard deviation" if inputs.standardise == "inputs" else ""
    share = f.slope**2 / (f.square - f.mean**2)
    left = f"; its mean {f.mean:.4g} is left in" if has_mean and not inputs.centered else ""
    return f"{what}{centred}: {share:.3g} of its variance is linear in the latents, the rest acts as noise{left}"


def latents_in_words(inputs: Inputs) -> str:
    """Law of the latents."""
    drawn = inputs.random_means
    if inputs.latents is not None:
        return _values(inputs, inputs.latents)
    if not inputs.components and drawn is None:
        return "standard Gaussian"
    if drawn is None:
        listed = "; ".join(_component(component) for component in inputs.components)
    else:
        whose = "one for each latent" if drawn.each == "latent" else "one for all latents"
        listed = (
            f"{drawn.components} of equal weight and variance 1, with means from [-{drawn.half_width:g}, "
            f"{drawn.half_width:g}), {whose}"
        )
    standardised = ", standardised" if inputs.standardise == "latents" else ""
    if inputs.components_drawn == "sample":
        return f"all latents of a sample have one component ({listed}){standardised}"
    limit = ""
    if not inputs.own_means:
        ((_, scale),) = inputs.gaussians
        limit = f", so that fields are those of one Gaussian with the standard deviation {scale:.4g}"
    return f"each latent draws its own component ({listed}){standardised}{limit}"


def _values(inputs: Inputs, latents: Empirical) -> str:
    known = "values" if latents.is_refused else f"{len(inputs.mixture):,} different values"
    standardised = ", standardised" if inputs.standardise == "latents" else ""
    limit = "" if latents.is_refused else f" of the standard deviation {inputs.gaussians[0][1]:.4g}"
    return (
        f"each latent draws one of the {known} in {latents.file}{standardised}, so that fields are those of one "
        f"Gaussian{limit}"
    )


def _component(component: Component) -> str:
    parts = [f"{component.weight:g}: s = {component.scale:g}"]
    if not isinstance(component.mean, tuple):
        parts.append(f"mean {component.mean:g}")
    elif any(component.mean):
        parts.append(f"mean along the teacher {', '.join(f'{x:g}' for x in component.mean)}")
    if component.mean_elsewhere:
        parts.append(f"mean elsewhere {component.mean_elsewhere:g}")
    return ", ".join(parts)


def _network(network: Network) -> str:
    units = len(network.output_weights)
    weights = ", ".join(f"{v:g}" for v in network.output_weights[:8])
    return f"{units} unit{'s' * (units > 1)} with {network.in_words} and output weights {weights}"


def _start(problem: Problem) -> str:
    if problem.initial is not None:
        return f"starts {problem.initial.in_words}"
    if problem.student.initial == "random":
        return f"starts at random with the variance {problem.student.rest[0, 0]:g}"
    return "starts with a part along the teacher's features"


def _training(problem: Problem) -> str:
    training = problem.training
    eta, eta_v, tau, variance, kappa = map(in_words_of, training.numbers)
    second = "the second layer is fixed" if training.second_layer == 0 else f"eta_v = {eta_v} of the second layer"
    several = f"samples per step: {tau}" if isinstance(training.batch_size, Schedule) else f"{tau} samples per step"
    samples = "one sample per step" if training.batch_size == 1 else several
    noise = f"; labels have noise of variance {variance}, errors none" if training.label_noise else ""
    decay = f"; weights decay at the rate kappa eta, kappa = {kappa}" if training.weight_decay else ""
    momentum = momentum_in_words(training, "rates eta/(1 - mu) and eta_v")
    average = average_in_words(training.average_rate)
    return f"one-pass SGD, {samples}, eta = {eta}, {second}{noise}{decay}{momentum}{average}"


def warnings_of(problem: Problem, predicted: list[Prediction]) -> list[str]:
    """Warnings about a problem, each a sentence with a remedy; see `meanfield.problems.family.Family.warnings`."""
    try:
        check_averages(problem)
    except InputError as error:
        return [f"{error}"]
    return [*_of_means(problem), *_of_the_inputs(problem), *_of_the_start(problem)]


def _of_means(problem: Problem) -> Iterator[str]:
    if has_fast_means(problem):
        yield (
            f"inputs.nonlinearity = '{problem.inputs.nonlinearity}' leaves inputs with a mean, along which the student "
            "moves within single steps: order_parameters averages over these moves by sampling, which is right if N is "
            "far larger than the number of steps that they remember (relaxation_steps in the result); set "
            "inputs.centered to true, or take one scale, for the ordinary theory"
        )


def _of_the_inputs(problem: Problem) -> Iterator[str]:
    if all(abs(m.slope) <= 1e-9 * m.square**0.5 for m in problem.inputs.moments):  # 0 to rounding
        yield (
            f"inputs.nonlinearity = '{problem.inputs.nonlinearity}' is uncorrelated with its argument: inputs are "
            "noise to the student in the limit, and nothing is learnt; take a function with an odd part"
        )
    if problem.particles.column_lengths == "random":
        yield (
            "particles.column_lengths = 'random': an f that is not odd gives each input a mean of its own, which SGD "
            "learns and the limit does not have; set it to 'equal' to see SGD follow the limit"
        )
    inputs = problem.inputs
    if inputs.components_drawn == "coordinate" and inputs.latents is None and len(inputs.mixture) > 1:
        yield (
            "components_drawn = 'coordinate': by the central limit theorem nothing is left of the mixture but its "
            "variance; set it to 'sample' to see clusters"
        )


def _of_the_start(problem: Problem) -> Iterator[str]:
    K = problem.students
    v = np.array(problem.student.output_weights)
    along = problem.initial_on_teacher
    if not v.any() and problem.training.second_layer == 0.0:
        yield (
            "student.output_weights are all 0 and fixed, so that nothing moves; change them, or set "
            "training.output_learning_rate"
        )
    alike = np.all(v == v[0]) and np.all(along == along[0]) and _alike(problem.student.rest)
    if problem.initial is None and K > 1 and alike:
        yield (
            "all units of the student start alike and stay alike in the limit, on the symmetric plateau; SGD leaves it "
            "by differences of order 1/sqrt(N), at a time that grows with log N; give student.on_teacher other rows"
        )


def _alike(G: np.ndarray) -> bool:
    """Whether a matrix is the same for any order of the units."""
    K = len(G)
    other = G[~np.eye(K, dtype=bool)]
    return bool(np.all(np.diag(G) == G[0, 0]) and np.all(other == other[0]))
