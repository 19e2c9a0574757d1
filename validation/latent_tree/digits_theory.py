"""Identities of covariance operators on real images at the start, and residues against the strength of views."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from scipy.sparse.linalg import LinearOperator, eigsh

import meanfield
from meanfield.families.latent_tree.images.operators import Population, draw_population, layer_operators, main_part
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.networks.connections import Connections, pair_matrix
from meanfield.networks.contrast import Contrast
from meanfield.networks.dense import DenseWeights, forward, gradient
from meanfield.networks.normalisation import Normalisation
from meanfield.networks.population import evaluate

PROBLEM: ImageProblem = meanfield.load_problem(Path(__file__).with_name("digits.toml"))

STRENGTHS = np.array([0.1, 0.2, 0.5, 1.0, 2.0])
"""Intensity and noise of views relative to those of the problem file, without shifts: no shift is below a pixel."""

CASES = {
    "simple": Contrast("simple"),
    "beta": Contrast("beta", beta=-0.5),
    "exact": Contrast("exact", temperature=0.5),
    "infonce": Contrast("infonce", temperature=0.5),
}

PLAIN = Normalisation(False)


def theory() -> xr.Dataset:
    """Identities at the initial weights, and the residue against the strength of views."""
    population, weights = draw_population(PROBLEM), PROBLEM.initial_weights
    strengths = np.array([residues(weights, strength) for strength in STRENGTHS])
    return xr.Dataset(
        {
            "identity": (("case", "layer"), [identity(contrast, weights, population) for contrast in CASES.values()]),
            "spectrum": ("layer", [spectrum(weights, population, layer) for layer in range(3)]),
            "strength_residue": (("strength", "layer"), strengths),
        },
        {"case": list(CASES), "layer": [1, 2, 3], "strength": STRENGTHS},
    )


def identity(contrast: Contrast, weights: DenseWeights, population: Population) -> list[float]:
    """|grad + 2 OP vec W|/|grad| of each layer without normalisation: the residue, computed through OP itself."""
    made = Connections(weights, population.x, PLAIN)
    themselves = forward(weights, population.unaugmented).last
    evaluation = evaluate(contrast, population.views, made.activity.last[None], themselves)
    M = pair_matrix(main_part(contrast, population.views, evaluation, themselves), population.views)
    found = []
    for layer, slope in enumerate(gradient(weights, made.activity, evaluation.slope[0]).W):
        operator = made.operator(layer, M)
        step = operator.left.T @ (operator.sign * (operator.right @ weights.W[layer].ravel()))
        found.append(float(np.linalg.norm(slope.ravel() + 2.0 * step) / np.linalg.norm(slope)))
    return found


def spectrum(weights: DenseWeights, population: Population, layer: int, count: int = 5) -> float:
    """Largest relative difference of leading eigenvalues of VE, in weights, and of the tangent kernel, in outputs.

    VE is applied by a directional derivative of mean outputs, and the kernel made of gradients: neither is taken from
    the library's operators.
    """
    images, W = len(population.unaugmented), weights.W[layer]
    each, found = len(population.x) // images, forward(weights, population.x)
    outputs = found.last.shape[1]

    def centred(values: np.ndarray) -> np.ndarray:
        means = values.reshape(images, each, -1).mean(axis=1)
        return means - means.mean(axis=0)

    def back(by_mean: np.ndarray) -> np.ndarray:
        return gradient(weights, found, np.repeat(by_mean / each, each, axis=0)).W[layer].ravel()

    def apply(step: np.ndarray) -> np.ndarray:
        moved = [part.astype(complex) for part in weights.W]
        moved[layer] = W + 1e-30j * step.reshape(W.shape)
        return back(centred(forward(DenseWeights(moved, []), population.x).last.imag / 1e-30) / images)

    start = np.random.default_rng(0).normal(size=W.size)
    operator = LinearOperator((W.size, W.size), matvec=apply, dtype=float)
    inner = np.sort(eigsh(operator, count, v0=start, tol=1e-12)[0])
    units = np.eye(images * outputs).reshape(-1, images, outputs)
    rows = np.array([back(unit - unit.mean(axis=0)) for unit in units])
    outer = np.linalg.eigvalsh(rows @ rows.T / images)[-count:]
    return float(np.abs(inner / outer - 1.0).max())


def residues(weights: DenseWeights, strength: float) -> np.ndarray:
    """Residues of InfoNCE by layer, for views of a strength."""
    views = PROBLEM.data.augmentation
    changed = {"shift": 0, "intensity": views.intensity * strength, "noise": views.noise * strength}
    weak = meanfield.with_values(PROBLEM, {f"data.augmentation.{key}": value for key, value in changed.items()})
    return layer_operators(CASES["infonce"], PROBLEM.network.normalisation, weights, draw_population(weak))["residue"]
