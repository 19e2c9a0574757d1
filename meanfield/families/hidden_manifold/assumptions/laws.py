"""The law of the latents of a problem beside that of the conventional theory, in numbers that need no training."""

from __future__ import annotations

from typing import Any

import numpy as np

from meanfield.families.hidden_manifold.order_parameters.system import moving_means
from meanfield.families.hidden_manifold.particles.uneven_inputs import input_moments
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.regimes import has_fast_means
from meanfield.numerics.quadrature import gaussian_trapezoid
from meanfield.typing import FloatArray

GAUSSIAN, COORDINATES, SAMPLES, MEANS = REGIMES = ("Gaussian", "I", "II", "III")
"""One standard Gaussian, and the regimes of hidden_manifold.md: components drawn per coordinate, components drawn per
sample with means of length O(1), and inputs with means of length sqrt(N)."""


def regime_of(problem: Problem) -> str:
    """Regime of a problem, one of `REGIMES`."""
    if has_fast_means(problem):
        return MEANS
    inputs = problem.inputs
    means, elsewhere = moving_means(problem)
    standard = not means.any() and not elsewhere.any() and all(scale == 1.0 for _, scale in inputs.gaussians)
    if inputs.components_drawn == "coordinate":
        return COORDINATES if len(inputs.mixture) > 1 or not standard else GAUSSIAN
    return GAUSSIAN if standard else SAMPLES


def law_arrays(problem: Problem) -> dict[str, Any]:
    """Variables of the report that describe the law of the latents in each of the Gaussians that they are."""
    chance, scale = np.array(problem.inputs.gaussians).T
    means, elsewhere = moving_means(problem)
    T = problem.teacher_overlap
    variance = scale**2
    return {
        "regime": np.array(regime_of(problem)),
        "component_weight": chance,
        "component_scale": scale,
        "component_mean_norm": np.sqrt(np.maximum(np.einsum("qa,ab,qb->q", means, T, means), 0.0) + elsewhere**2),
        "teacher_field_mean": means @ T,
        "input_mean": _input_means(problem),
        "f_slope": np.array([moments.slope for moments in problem.inputs.moments]),
        "f_square": np.array([moments.square for moments in problem.inputs.moments]),
        "radius_variance": np.array(chance @ variance**2 - (chance @ variance) ** 2),
        "teacher_kurtosis": kurtosis(chance, means @ T, np.multiply.outer(variance, np.diag(T))),
    }


def _input_means(problem: Problem) -> FloatArray:
    """Root mean square over inputs of their mean in each component."""
    inputs = problem.inputs
    if inputs.latent_mean == 0.0:
        return np.array([abs(moments.mean) for moments in inputs.moments])
    x, weight = gaussian_trapezoid(64)  # the means vary from input to input like a normal variable
    ((_, scale),) = inputs.gaussians
    means = input_moments(inputs.function, inputs.latent_mean * x, scale).mean - inputs.shift
    return np.sqrt([weight @ means**2])


def kurtosis(chance: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """E[(h - E h)^4]/Var(h)^2 of mixtures of normal variables, 3 if there is one component; NaN of a constant.

    Parameters
    ----------
    chance : ndarray, shape (components,)
    mean, variance : ndarray, shape (..., components, fields)

    Returns
    -------
    ndarray, shape (..., fields)
    """
    away = mean - np.einsum("q,...qk->...k", chance, mean)[..., None, :]
    second = np.einsum("q,...qk->...k", chance, variance + away**2)
    fourth = np.einsum("q,...qk->...k", chance, 3.0 * variance**2 + 6.0 * variance * away**2 + away**4)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(second > 0.0, fourth / second**2, np.nan)
