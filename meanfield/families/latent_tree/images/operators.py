"""Covariance operators of the layers of a network on images, and what of the gradient they leave."""

from __future__ import annotations

import itertools
import math

import numpy as np
import psutil
from numpy.random import Generator

from meanfield.errors import InputError
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.families.latent_tree.images.replicas import ImageSampler
from meanfield.networks.connections import Connections, pair_matrix
from meanfield.networks.contrast import Contrast
from meanfield.networks.convolutional import ConvolutionalWeights, check_torch
from meanfield.networks.convolutional_jacobians import MOST_KEPT, ConvolutionalConnections, ConvolutionalJacobians
from meanfield.networks.dense import DenseWeights
from meanfield.networks.jacobians import (
    DenseJacobians,
    Estimate,
    Jacobians,
    LayerProducts,
    error_of_trace,
    estimate,
    spreads,
)
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
    if kind == "nt_xent" and problem.loss.beta != 0.0:
        raise InputError(
            f"loss.beta = {problem.loss.beta:g}: with loss.kind = 'nt_xent' it is trained, and has no operator; remove "
            "it, or take the kind 'beta'"
        )
    views = settings.images * settings.views
    if kind in PAIRED and float(views) ** 2 > MOST_PAIRS:
        raise InputError(
            f"operator.images = {settings.images} with operator.views = {settings.views}: the loss '{kind}' takes "
            f"{float(views) ** 2:.3g} pairs of views, and at most {MOST_PAIRS:.3g} fit; lower one of the two"
        )
    if problem.network.convolution is not None:
        check_torch()
    _check_memory(problem)


def fits(problem: ImageProblem) -> bool:
    """Whether operators are computed as they are, and not by products with random steps."""
    columns = operator_columns(problem)
    return columns <= MOST_COLUMNS and float(columns) * _largest(problem) <= MOST_NUMBERS


def operator_columns(problem: ImageProblem) -> int:
    """Number of columns of both factors of an operator."""
    settings = problem.operator
    beta = problem.loss.kind == "beta" and problem.loss.beta != 0.0
    return settings.images * (settings.views if beta else 1) * problem.network.widths[-1]


def _largest(problem: ImageProblem) -> int:
    """Number of weights of the largest layer."""
    convolutional = problem.convolutional
    if convolutional is None:
        return max(below * above for below, above in itertools.pairwise(problem.widths))
    return max(math.prod(layer.shape) for layer in convolutional.layers)


def kept_numbers(problem: ImageProblem) -> float:
    """Doubles that are kept at once."""
    convolutional, views = problem.convolutional, problem.operator.images * problem.operator.views
    steps = float(40 * _largest(problem))  # columns of products with random steps, copies included
    if convolutional is None:
        return steps + 4.0 * sum(problem.widths) * views
    each = convolutional.activations
    together = views if convolutional.batch_norm else 1  # a batch is normalised as a whole
    # Activations, their derivatives, and what lies between a convolution and the next one; and for products floats
    # with a byte each.
    return steps + 4.0 * each * together + 0.625 * min(float(each) * views, MOST_KEPT)


def _check_memory(problem: ImageProblem) -> None:
    """Refuse operators whose products do not fit into the memory that is free.

    Raises
    ------
    InputError
        With what to lower.
    """
    needed = 8.0 * kept_numbers(problem)
    free = psutil.virtual_memory().available
    if needed > 0.8 * free:  # other programs need some memory, too
        raise InputError(
            f"operator.images = {problem.operator.images}, operator.views = {problem.operator.views}: operators of "
            f"this network take {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free; lower one of the two, or "
            "the layers of the network"
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
        vec W but for two parts, relative to the gradient: `residue`, which weights of pairs of images leave, and
        `bypass`, of outputs that paths around the weights of the layer carry; `between_trace` and `within_trace`.
        `nt_xent` is the mean over batches of two views of all these images, and has normalised outputs. Where operators
        do not fit, norms, tops and traces are estimates by products with random steps, as the attribute `warning` says,
        with their errors in variables with the suffix `_error`.

    Raises
    ------
    InputError
        If pairs of views or products do not fit, or there are convolutions without PyTorch.

    Notes
    -----
    Weights of pairs are those of latent_tree.md, section 1.3; only `triplet`, `infonce` and `nt_xent` leave a residue,
    and batches that are normalised, whose means and variances connections leave as they are. Biases, shifts and means
    of batches, and inputs that are added to the output of a block, go around weights.
    """
    check_problem(problem, ImageProblem)
    check_layer_operators(problem)
    exact, weights = fits(problem), problem.initial_weights
    # Another stream than that of the population.
    rng = None if exact else np.random.default_rng([problem.operator.seed, 1])
    arrays = layer_operators(
        problem.loss.contrast, problem.network.normalisation, weights, draw_population(problem), rng
    )
    warning = "" if exact else "norms, tops and traces are estimates by products with random steps"
    return Solved("layer_operator", arrays | {"level": np.arange(1, 1 + len(weights.W))}, warning=warning)


def layer_operators(
    contrast: Contrast,
    normalisation: Normalisation,
    weights: DenseWeights | ConvolutionalWeights,
    population: Population,
    rng: Generator | None = None,
) -> dict[str, FloatArray]:
    """Variables of `find_layer_operators` for any weights, with estimates where a generator is given."""
    if contrast.kind == "nt_xent":
        normalisation = Normalisation(True)  # it compares directions
    jacobians = jacobians_of(weights, population.x, single=rng is not None)
    outputs = normalisation.value(jacobians.last)
    themselves = normalisation.value(jacobians.last_of(population.unaugmented))
    if contrast.kind == "nt_xent":
        evaluation = evaluate_batches(outputs.reshape(len(themselves), -1, outputs.shape[1]), contrast.temperature)
    else:
        evaluation = evaluate(contrast, population.views, outputs[None], themselves)
    M = pair_matrix(main_part(contrast, population.views, evaluation, themselves), population.views)
    slope, every = evaluation.slope[0], range(len(weights.W))
    full = jacobians.gradient(normalisation.back(jacobians.last, slope))
    rest = jacobians.rests(normalisation, slope, -2.0 * M @ outputs)
    products = [LayerProducts(jacobians, layer, M, normalisation) for layer in every]
    around = [2.0 * each.bypass(outputs) for each in products]
    norms, rests, bypasses = (np.array([np.linalg.norm(W) for W in part]) for part in (full, rest, around))
    moving = np.where(norms > 0.0, norms, np.nan)
    found = {
        "loss": np.array(evaluation.value),
        "gradient_norm": norms,
        "residue": rests / moving,
        "bypass": bypasses / moving,
    }
    if rng is not None:
        return found | _estimated(jacobians, products, population.views, rng)
    if isinstance(weights, DenseWeights):
        made = Connections(weights, population.x, normalisation)
    else:
        made = ConvolutionalConnections(jacobians, normalisation)
    operators = [made.operator(layer, M) for layer in counted(every, "operators", "layer")]
    between, within = zip(*(made.spread(layer, population.views) for layer in every), strict=True)
    return found | {
        "layer_operator_norm": np.array([operator.norm for operator in operators]),
        "layer_operator_top": np.array([operator.top for operator in operators]),
        "between_trace": np.maximum(between, 0.0),
        "within_trace": np.maximum(within, 0.0),
    }


def jacobians_of(weights: DenseWeights | ConvolutionalWeights, x: FloatArray, single: bool) -> Jacobians:
    """Jacobians at weights; products with those of convolutions may be in single precision."""
    if isinstance(weights, DenseWeights):
        return DenseJacobians(weights, x)
    return ConvolutionalJacobians(weights, x, single)


def _estimated(
    jacobians: Jacobians, products: list[LayerProducts], views: Views, rng: Generator
) -> dict[str, FloatArray]:
    """Estimates of what no matrix is kept for, with the suffix `_error` their errors."""
    estimates = [estimate(each, rng) for each in counted(products, "operators by products", "layer")]
    found = {
        f"layer_operator_{name}": np.array([getattr(each, name) for each in estimates]) for name in Estimate._fields
    }
    normalisation = products[0].normalisation
    for name, sizes in zip(("between", "within"), spreads(jacobians, views, normalisation, rng), strict=True):
        found[f"{name}_trace"] = sizes.mean(axis=0)
        found[f"{name}_trace_error"] = error_of_trace(sizes)
    # Products and squares have the rounding of a Jacobian twice; ten times one draw of it is beyond any other.
    rounding = 20.0 * jacobians.rounding(products[0].mixed(rng.standard_normal(jacobians.last.shape)))
    for name in [name for name in found if not name.endswith("_error")]:
        found[f"{name}_error"] += rounding * found[name if name.endswith("trace") else "layer_operator_norm"]
    return found


def main_part(contrast: Contrast, views: Views, evaluation: Evaluation, unaugmented: FloatArray) -> Evaluation:
    """Loss with weights of pairs of samples in place of those of views, where it has none of its own."""
    if evaluation.pull is None:
        return evaluation
    if contrast.kind == "nt_xent":
        weight = batch_weights(unaugmented, contrast.temperature)
    else:
        weight = contrast.negatives * contrast.weight(distances(unaugmented, unaugmented))
    return Evaluation(np.nan, evaluation.slope, between=weight)
