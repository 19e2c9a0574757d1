"""Covariance operators of the layers of a network on images, and what of the gradient they leave."""

from __future__ import annotations

import itertools

import numpy as np

from meanfield.errors import InputError
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.families.latent_tree.images.simulation import ImageSampler
from meanfield.networks.connections import Connections, pair_matrix
from meanfield.networks.contrast import Contrast
from meanfield.networks.dense import DenseWeights, forward, gradient
from meanfield.networks.normalisation import Normalisation
from meanfield.networks.population import Evaluation, Views, batch_weights, distances, evaluate, evaluate_batches
from meanfield.problems.base import check_problem
from meanfield.process.progress import counted
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

MOST_NUMBERS = 5e7
"""Largest number of entries of the connections that are kept of a layer: 400 megabytes."""

MOST_PAIRS = 1e8
"""Largest number of pairs of views: matrices of 800 megabytes."""

PAIRED = ("triplet", "infonce", "exact", "nt_xent")
"""Losses that depend on all pairs of views."""

MOST_COLUMNS = 4000
"""Largest number of columns of an operator: some seconds for its eigenvalues."""


class Population:
    """Finite population of images and views.

    Parameters
    ----------
    x : ndarray, shape (images views, pixels)
        Views of one image stand side by side.
    unaugmented : ndarray, shape (images, pixels)
    """

    def __init__(self, x: FloatArray, unaugmented: FloatArray) -> None:
        images = len(unaugmented)
        self.x, self.unaugmented = x, unaugmented
        each = len(x) // images
        self.views = Views(np.full(images, 1.0 / images), np.repeat(np.eye(images), each, axis=1)[None] / each)


def draw_population(problem: ImageProblem) -> Population:
    """Images and views that `[operator]` asks for.

    Raises
    ------
    InputError
        If there are fewer images.
    """
    settings, sampler = problem.operator, ImageSampler(problem)
    rng = np.random.default_rng(settings.seed)
    trained, _ = problem.data.split
    if settings.images > len(trained):
        raise InputError(
            f"operator.images = {settings.images:,}: there are {len(trained):,} images to train on; lower it, or "
            "data.held_out"
        )
    chosen = rng.permutation(trained)[: settings.images]
    x = sampler.views(rng, np.repeat(chosen, settings.views))
    return Population(x, sampler.unaugmented(rng, chosen))


def check_layer_operators(problem: ImageProblem) -> None:
    """Refuse problems whose operators do not fit.

    Raises
    ------
    InputError
        With the size, and what to do instead.
    """
    settings, kind = problem.operator, problem.loss.kind
    if kind == "nt_xent" and settings.views < 2:
        raise InputError(
            f"operator.views = {settings.views}: loss.kind = 'nt_xent' takes batches of two views of every image; "
            "raise it to 2 or more"
        )
    views = settings.images * settings.views
    if kind in PAIRED and float(views) ** 2 > MOST_PAIRS:
        raise InputError(
            f"operator.images = {settings.images} with operator.views = {settings.views}: the loss '{kind}' takes "
            f"{float(views) ** 2:.3g} pairs of views, and at most {MOST_PAIRS:.3g} fit; lower one of the two"
        )
    rows = views if kind == "beta" and problem.loss.beta != 0.0 else settings.images
    widths = problem.widths
    columns = rows * widths[-1]
    weights = max(below * above for below, above in itertools.pairwise(widths))
    if columns > MOST_COLUMNS or float(columns) * weights > MOST_NUMBERS:
        raise InputError(
            f"operator.images = {settings.images}: operators have {columns:,} columns of up to {weights:,} weights, "
            f"and at most {MOST_COLUMNS:,} columns and {MOST_NUMBERS:.3g} numbers fit; lower operator.images, or "
            "network.widths"
        )


@solver
def find_layer_operators(problem: ImageProblem) -> Solved:
    """Covariance operators of all layers at the initial weights, over a finite population of images and views.

    Parameters
    ----------
    problem : ImageProblem
        `operator.images` images with `operator.views` views of each are the population.

    Returns
    -------
    xarray.Dataset
        `loss`, and by layer `gradient_norm`, of the gradient through all branches; `layer_operator_norm` and
        `layer_operator_top` of the operator OP of the loss with weights of pairs of images, for which -grad L = 2 OP
        vec W without biases up to `residue`, the rest relative to the gradient; `between_trace` and `within_trace`.
        `nt_xent` is the mean over batches of two views of all these images, and has normalised outputs.

    Raises
    ------
    InputError
        If operators do not fit.

    Notes
    -----
    Weights of pairs are those of latent_tree.md, section 1.3; only `triplet`, `infonce` and `nt_xent` leave a residue.
    """
    check_problem(problem, ImageProblem)
    check_layer_operators(problem)
    network = problem.network
    arrays = layer_operators(
        problem.loss.contrast, network.normalisation, problem.initial_weights, draw_population(problem)
    )
    layers = np.arange(1, 1 + len(network.widths))
    return Solved("layer_operator", arrays | {"level": layers})


def layer_operators(
    contrast: Contrast, normalisation: Normalisation, weights: DenseWeights, population: Population
) -> dict[str, FloatArray]:
    """Variables of `find_layer_operators` for any weights."""
    if contrast.kind == "nt_xent":
        normalisation = Normalisation(True)  # it compares directions
    made = Connections(weights, population.x, normalisation)
    last = made.activity.last
    outputs = normalisation.value(last)
    themselves = normalisation.value(forward(weights, population.unaugmented).last)
    if contrast.kind == "nt_xent":
        evaluation = evaluate_batches(outputs.reshape(len(themselves), -1, last.shape[1]), contrast.temperature)
    else:
        evaluation = evaluate(contrast, population.views, outputs[None], themselves)
    M = pair_matrix(main_part(contrast, population.views, evaluation, themselves), population.views)
    full, rest = (
        gradient(weights, made.activity, normalisation.back(last, slope)).W
        for slope in (evaluation.slope[0], evaluation.slope[0] + 2.0 * M @ outputs)
    )
    norms, rests = (np.array([np.linalg.norm(W) for W in part]) for part in (full, rest))
    operators = [made.operator(layer, M) for layer in counted(range(len(weights.W)), "operators", "layer")]
    between, within = zip(*(made.spread(layer, population.views) for layer in range(len(weights.W))), strict=True)
    return {
        "loss": np.array(evaluation.value),
        "gradient_norm": norms,
        "layer_operator_norm": np.array([operator.norm for operator in operators]),
        "layer_operator_top": np.array([operator.top for operator in operators]),
        "residue": np.divide(rests, norms, out=np.full(len(norms), np.nan), where=norms > 0.0),
        "between_trace": np.maximum(between, 0.0),
        "within_trace": np.maximum(within, 0.0),
    }


def main_part(contrast: Contrast, views: Views, evaluation: Evaluation, unaugmented: FloatArray) -> Evaluation:
    """Loss with weights of pairs of samples in place of those of views, where it has none of its own."""
    if evaluation.pull is None:
        return evaluation
    if contrast.kind == "nt_xent":
        weight = batch_weights(unaugmented, contrast.temperature)
    else:
        weight = contrast.negatives * contrast.weight(distances(unaugmented, unaugmented))
    return Evaluation(np.nan, evaluation.slope, between=weight)
