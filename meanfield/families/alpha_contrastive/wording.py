"""Problems with pairwise importance in words, and warnings of what a run will meet."""

from __future__ import annotations

from meanfield.ensembles.averages import average_in_words
from meanfield.ensembles.momentum import momentum_in_words
from meanfield.errors import InputError
from meanfield.explanation.explanation import Statement
from meanfield.explanation.prediction import Prediction
from meanfield.families.alpha_contrastive.filters import FanInStart, FourierStart, GivenStart, RandomStart
from meanfield.families.alpha_contrastive.importance import USES_EPSILON, USES_TEMPERATURE, Importance
from meanfield.families.alpha_contrastive.laws import (
    Conditional,
    DiscreteLaw,
    GaussianMixture,
    Images,
    LatentCategorical,
    LatentSummation,
    Points,
    Tokens,
)
from meanfield.families.alpha_contrastive.limit.pairs import NORMALISED
from meanfield.families.alpha_contrastive.population.solver import check_population
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.ingredients.schedules.shapes import Schedule, in_words_of
from meanfield.ingredients.user_functions import is_address
from meanfield.problems.problem_keys import with_values


def in_words(problem: Problem, look_up: bool = True) -> list[Statement]:
    """Sentences about a problem, in the order of its file; see `meanfield.explanation.explanation.in_words`."""
    return [
        ("data", _data(problem)),
        ("network", _network(problem)),
        ("importance", _importance(problem.importance)),
        ("filters", _filters(problem)),
        ("training", _training(problem)),
        ("time", f"{problem.time.in_words}; t = eta k after k steps of SGD"),
    ]


def _data(problem: Problem) -> str:
    data = problem.data
    if isinstance(data, Points):
        views = "" if data.sample is None else f", views of {max(data.sample) + 1} samples"
        return f"{len(data.points)} points with {data.dimension} coordinates{views}"
    if isinstance(data, GaussianMixture):
        views = ", which views share alone" * data.augmentation
        return f"mixture of {len(data.means)} Gaussian(s) with {data.dimension} coordinates{views}{_changing(data)}"
    if isinstance(data, LatentCategorical):
        return f"one of {len(data.probabilities)} patterns with {data.dimension} coordinates"
    if isinstance(data, LatentSummation):
        return f"sum of {len(data.probabilities)} independent patterns with {data.dimension} coordinates"
    if isinstance(data, Images):
        views = "random parts of them are its views" if data.crop else "both views are the same"
        return f"images of {data.rows} x {data.columns} pixels in '{data.file}', in four receptive fields; {views}"
    if isinstance(data, Conditional):
        what = "points" if data.points is not None else "Gaussians"
        views = "views share it alone" if data.augmentation else "both views are the same"
        given = f"independent given one of {len(data.weights)} conditions"
        return f"{data.places} places with {what}, {given}; {views}{_changing(data)}"
    assert isinstance(data, Tokens)
    count = len(data.patterns) if data.patterns is not None else data.generators
    other = "are drawn anew in the second view" if data.augmentation else "are the same in both views"
    return f"{count} generators mark some of {data.places} places; the other tokens, of {data.vocabulary}, {other}"


def _changing(data: GaussianMixture | Conditional) -> str:
    """A covariance that changes in time."""
    return f"; covariance {data.covariance.in_words}" if isinstance(data.covariance, Schedule) else ""


def _network(problem: Problem) -> str:
    model = problem.model
    if model.layers == 1:
        return f"filters on the sphere, activation {model.activation}"
    outputs = f"{model.outputs} output{'s' * (model.outputs > 1)}"
    words = f"filters for each place, activation {model.activation}, and a linear top layer with {outputs}"
    words += ", divided by their length" * model.normalise_outputs
    words += "; batch normalisation behind the activation" * model.batch_norm.active
    words += ", always at its optimum" * problem.population.fast_top
    kept = ["filters"] * model.unit_filters + ["the top layer"] * model.unit_top
    return words + (f"; {' and '.join(kept)} kept at length 1" if kept else "")


def _importance(importance: Importance) -> str:
    if importance.kind == "quadratic":
        return "uniform: every pair of samples counts alike, as for the quadratic loss"
    numbers = [f"tau = {in_words_of(importance.temperature)}"] * (importance.kind in USES_TEMPERATURE)
    numbers += [f"epsilon = {in_words_of(importance.epsilon)}"] * (importance.kind in USES_EPSILON)
    own = " (a user's own function of d^2)" if is_address(importance.kind) else ""
    return f"{importance.kind}{own}" + (f", {', '.join(numbers)}" if numbers else "")


def _filters(problem: Problem) -> str:
    start, count = problem.filters.start, problem.filters.count
    if problem.initial is not None:
        where = problem.initial.in_words
    elif isinstance(start, FourierStart):
        where = "with a density of some harmonics on the circle"
    elif isinstance(start, RandomStart):
        where = f"at independent random directions, seed {start.seed}"
    elif isinstance(start, GivenStart):
        where = "at the directions that the file lists"
    elif isinstance(start, FanInStart):
        where = f"with weights uniform in +-{start.scale:g}/sqrt(fan-in)"
    else:
        where = "evenly in all directions"
    return f"they start {where}; {count} of them in SGD" + " for each place" * (problem.model.layers == 2)


def _training(problem: Problem) -> str:
    training = problem.training
    more = "".join(
        f", {name} {in_words_of(value)}"
        for name, value in (("momentum", training.momentum), ("weight decay", training.weight_decay))
        if value != 0.0
    )
    more += momentum_in_words(training, "") if training.momentum_rate is not None else ""
    batch, rate = in_words_of(training.batch_size), in_words_of(training.learning_rate)
    many = f"N pairs, N = {batch}" if isinstance(training.batch_size, Schedule) else f"{batch} pairs"
    return f"SGD in batches of {many}, eta = {rate}{more}{average_in_words(training.average_rate)}"


def toward_limit(problem: Problem) -> str:
    """Remedies for SGD far from a limit: larger batches, or a flow that knows their size; smaller steps; filters."""
    importance = problem.importance
    more = ""
    if problem.model.layers == 1 and not problem.density.noise:
        more = ", beside a density also a larger filters.count"
        alone = isinstance(problem.data, DiscreteLaw) and problem.data.sample_of is None
        if importance.diagonal == "exclude" and importance.kind in NORMALISED and alone:
            more += (
                " and importance.diagonal = 'include' (a density takes each atom for one sample, which makes no pair "
                "with itself, and batches hold atoms more than once)"
            )
    if problem.population.finite_batch:
        return f"a smaller training.learning_rate{more}"
    known = ""
    try:
        check_population(with_values(problem, {"population.finite_batch": True}))
        known = " or population.finite_batch = true"
    except InputError:  # there is no exact drift of batches
        pass
    return f"a larger training.batch_size{known}, and with a smaller training.learning_rate{more}"


def warnings_of(problem: Problem, predicted: list[Prediction]) -> list[str]:
    """Warnings about a problem, each a sentence with a remedy; see `meanfield.problems.family.Family.warnings`."""
    importance = problem.importance
    if problem.model.layers == 1 and importance.kind in ("infonce", "soft_triplet") and importance.epsilon != 0.0:
        return [
            f"importance.epsilon = {in_words_of(importance.epsilon)} has no effect in the limit of large batches, "
            "in which it is beside a sum over the batch, or cancels; "
            "meanfield.alpha_contrastive.contrastive_covariance takes it in for a batch"
        ]
    return []
