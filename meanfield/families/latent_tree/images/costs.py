"""Predicted cost of covariance operators: numbers of products and passes, times the processor time of one."""

from __future__ import annotations

import math

import numpy as np

from meanfield.explanation.prediction import Prediction, prediction_of, seconds_of
from meanfield.families.latent_tree.images.operators import (
    PAIRED,
    draw_population,
    fits,
    jacobians_of,
    kept_numbers,
    operator_columns,
)
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.networks.convolutional_jacobians import ConvolutionalJacobians
from meanfield.networks.jacobians import BLOCKS, COLUMNS, PROBES, SUMS, estimate
from meanfield.problems.problem_keys import with_values
from meanfield.typing import FloatArray

TRIAL = 1 << 19
"""Largest number of activations of the views of a trial."""

PRODUCTS = COLUMNS * (1 + BLOCKS) + PROBES + 1
"""Products with the operator of a layer, by its weights the last."""

FEW_WEIGHTS = 1 << 17
"""Weights of a layer in a trial: as many columns of them as are kept fit into no cache."""

USUAL_SUMS = 4 * SUMS
"""Usual number of random sums for both traces."""


def operator(problem: ImageProblem) -> Prediction:
    """Cost of the operators of all layers at the initial weights."""
    settings, exact = problem.operator, fits(problem)
    few = max(1, min(settings.images * settings.views, TRIAL // _activations(problem)))
    images = min(settings.images, max(2, few // settings.views))
    trial = with_values(problem, {"operator.images": images, "operator.views": max(1, few // images)})
    population = draw_population(trial)
    jacobians = jacobians_of(problem.initial_weights, population.x, single=not exact)
    share = settings.images * settings.views / len(population.x)
    by_last = np.ones((COLUMNS, *jacobians.last.shape))
    a_pass = seconds_of(lambda: jacobians.pulls(by_last)) * share / COLUMNS
    work = np.array(_work(problem), dtype=float)
    # A product changes the layers above alone, up and down; a pass goes down, and takes weights of all on its way.
    above = float(np.cumsum(work[::-1]).sum() / work.sum())
    pairs = 3e-7 * float(settings.images * settings.views) ** 2 * (problem.loss.kind in PAIRED)
    if exact:
        seconds = pairs + (6.0 + above) * a_pass + _exact(problem, jacobians, share)
    else:
        # losses, gradients and statistics in double precision take 25 passes in single precision
        seconds = pairs + (PRODUCTS * above + USUAL_SUMS + 25) * a_pass
        seconds += sum(_weights(problem)) * seconds_of(_estimate_of_nothing) / FEW_WEIGHTS
    how = "exact" if exact else "estimates"
    contents = f"operators of {len(work)} layers, {how}"
    return prediction_of("operator", seconds, kept_numbers(problem), 8 * len(work), contents)


def _estimate_of_nothing() -> None:
    """Estimate of an operator whose products cost nothing: random steps, and their orthonormal columns."""
    estimate(_Diagonal(), np.random.default_rng(0))


class _Diagonal:
    """Products with a diagonal matrix."""

    size = FEW_WEIGHTS

    def apply(self, steps: FloatArray) -> FloatArray:
        """See `LayerProducts.apply`."""
        return np.asarray(steps * np.linspace(1.0, 2.0, self.size))


def _work(problem: ImageProblem) -> list[int]:
    """Products of numbers that a view takes in each layer."""
    convolutional = problem.convolutional
    if convolutional is None:
        return _weights(problem)
    return [n * pixels for n, pixels in zip(_weights(problem), convolutional.pixels, strict=True)]


def _weights(problem: ImageProblem) -> list[int]:
    """Numbers of weights by layer."""
    convolutional = problem.convolutional
    if convolutional is None:
        return [below * above for below, above in zip(problem.widths, problem.widths[1:], strict=False)]
    return [math.prod(layer.shape) for layer in convolutional.layers]


def _activations(problem: ImageProblem) -> int:
    convolutional = problem.convolutional
    return sum(problem.widths) if convolutional is None else convolutional.activations


def _exact(problem: ImageProblem, jacobians: object, share: float) -> float:
    """Seconds of connections of all views, of their products, and of eigenvalues."""
    settings, outputs, weights = problem.operator, problem.network.widths[-1], float(sum(_weights(problem)))
    views, columns = settings.images * settings.views, operator_columns(problem)
    normalised = problem.network.output_normalisation or problem.loss.kind == "nt_xent"
    sides = 2 if normalised else 1
    mixed = float(columns * views) * weights * (outputs if isinstance(jacobians, ConvolutionalJacobians) else 1)
    of_matrices = (1 + sides) * mixed + (2 + sides) * float(columns) ** 2 * weights
    # Eigenvalues of a matrix that is not symmetric take hundreds of times as long as a product of two such matrices.
    eigen = (100.0 if normalised else 3.0) * float(columns) ** 3 + 9.0 * float(views) ** 3
    x = np.ones((256, 256))
    seconds = seconds_of(lambda: x @ x) * (of_matrices + len(_weights(problem)) * eigen) / 256.0**3
    if isinstance(jacobians, ConvolutionalJacobians):
        layers = range(len(_weights(problem)))
        each = sum(seconds_of(lambda layer=layer: list(jacobians.each(layer))) for layer in layers)  # type: ignore[misc]
        seconds += (2 + sides) * share * each
    return seconds
