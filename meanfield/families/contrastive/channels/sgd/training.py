"""Parameters of the training of several channels that compiled code needs to take a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.closures.closure import CENTERINGS
from meanfield.families.contrastive.closures.outputs import MeanOutputs, no_mean_outputs
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.draws import HiddenDraws, hidden_draws
from meanfield.numerics.compiled.scalar_functions import compile_loop
from meanfield.problems.problem_keys import with_values
from meanfield.typing import FloatArray


class Training(NamedTuple):
    """Parameters of a problem of several channels, for compiled code.

    Parameters
    ----------
    dimension, batch_size, channels : int
        N, m and d2.
    learning_rate : float
    value, derivative : int
        Addresses of the loops of sigma and sigma'.
    centering : int
        A value of `CENTERINGS`.
    strength : float
        lambda.
    penalty : int
        Address of psi'; not called where lambda = 0.
    hidden : HiddenDraws
    noisy : bool
        Whether the views differ from the sample.
    noise_factor, view_factor : ndarray, shape (2, 2)
        Lower triangular factors of V, the covariance of the noise, and of ones + V, that of a coordinate of the two
        views that no feature has.
    normals, uniforms : int
        Numbers that one step takes from either stream, even.
    spare_normal, spare_uniform : int
        Which of them are left to the caller: d2 (d2 + 1)/2 normals and d2 uniforms.
    """

    dimension: int
    batch_size: int
    channels: int
    learning_rate: float
    value: int
    derivative: int
    centering: int
    strength: float
    penalty: int
    hidden: HiddenDraws
    noisy: bool
    noise_factor: FloatArray
    view_factor: FloatArray
    normals: int
    uniforms: int
    spare_normal: int
    spare_uniform: int


def training_of(problem: Problem) -> Training:
    """The training that a problem of several channels describes."""
    model, activation, settings = problem.model, problem.model.activation_functions, problem.decorrelation
    draws, noise = hidden_draws(problem.hidden_laws), problem.noise_covariance
    m, d1, d2 = model.batch_size, len(problem.features), model.channels
    noisy = bool(np.any(noise != 0))
    # Hidden variables, the coordinates of the views beyond the features, and the noise along the features.
    normals = m * int(draws.normals[-1] + (1 + noisy) * d2 + 2 * noisy * d1)
    uniforms = m * int(draws.uniforms[-1])
    strength = problem.decorrelation_strength
    return Training(
        problem.particles.dimension,
        m,
        d2,
        model.learning_rate,
        compile_loop(activation.value),
        compile_loop(activation.slope),
        CENTERINGS[model.centering],
        strength,
        settings.functions.address if settings is not None and strength > 0 else 0,
        draws,
        noisy,
        _factor(noise),
        _factor(1.0 + noise),
        _even(normals + d2 * (d2 + 1) // 2),
        _even(uniforms + d2),
        normals,
        uniforms,
    )


def channel_outputs(problem: Problem) -> MeanOutputs:
    """Averages of the limit that SGD asks for: the mean output of one channel, if that is subtracted.

    A channel's mean output depends on its own overlaps alone, by the law of a problem with no other channel.
    """
    if problem.model.centering != "population":
        return no_mean_outputs()
    overlaps = {f"features[{k}].initial_overlap": 0.0 for k in range(len(problem.features))}
    alone = {"model.channels": 1, "model.initial_channel_overlap": None, "decorrelation": None} | overlaps
    return Closure(with_values(problem, alone)).mean_outputs


def _even(count: int) -> int:
    return count + count % 2


def _factor(v: FloatArray) -> FloatArray:
    """The lower triangular L with L L^T = v, shape (2, 2); v may be singular."""
    l11 = np.sqrt(v[0, 0])
    l21 = v[0, 1] / l11 if l11 > 0 else 0.0
    return np.array([[l11, 0.0], [l21, np.sqrt(max(v[1, 1] - l21**2, 0.0))]])
