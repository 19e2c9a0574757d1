"""Parameters of a training that compiled steps need, and the random numbers of a step, for one channel and several."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.ensembles.hidden_variables import HiddenDraws, hidden_draws
from meanfield.ensembles.streams import NORMALS, UNIFORMS, fill_normals, fill_uniforms
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.closures.closure import CENTERINGS
from meanfield.families.contrastive.closures.outputs import MeanOutputs, no_mean_outputs
from meanfield.families.contrastive.problem import Problem, without_velocity
from meanfield.numerics.compiled.scalar_functions import compile_loop
from meanfield.numerics.compiled.separate_calls import call
from meanfield.problems.in_time import InTime
from meanfield.problems.problem_keys import with_values
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

POPULATION, BATCH = CENTERINGS["population"], CENTERINGS["batch"]

BUFFERED = 1024
"""Least number of random numbers that are drawn at once: enough to vectorise, few enough for the first-level cache."""


class Training(NamedTuple):
    """Parameters of a problem that compiled code needs to take a step of SGD.

    Parameters
    ----------
    dimension, batch_size, channels : int
        N, m and d2.
    numbers : ndarray
        All numbers that may change from step to step: `rates`, the noise and `hidden` are parts of it.
    places : ndarray of int, shape (changes,)
        Which of the numbers change.
    in_time : ndarray, shape (steps, changes)
        What these are in each step from `first` on.
    first : int
    rates : ndarray, shape (3,)
        Learning rate, the strength of the prior relative to its largest one, and lambda.
    momentum : float
        mu, of plain steps; 0 for all others.
    value, derivative : int
        Addresses of the loops of sigma and sigma'.
    centering : int
        A value of `CENTERINGS`.
    penalty : int
        Address of psi'; not called where lambda = 0.
    noisy : bool
        Whether the views differ from the sample.
    noise, noise_factor, view_factor : ndarray, shape (2, 2)
        V, the covariance of the noise, and the lower triangular factors of V and of ones + V, the covariance of a
        coordinate of the two views that no feature has.
    normals, uniforms : int
        Numbers that one step takes from either stream, even.
    spare_normal, spare_uniform : int
        Which of them are left to the caller: d2 (d2 + 1)/2 normals and d2 uniforms. With one channel, noise orthogonal
        to w takes the d1 normals before.
    """

    dimension: int
    batch_size: int
    channels: int
    numbers: FloatArray
    places: IntArray
    in_time: FloatArray
    first: int
    rates: FloatArray
    momentum: float
    value: int
    derivative: int
    centering: int
    penalty: int
    hidden: HiddenDraws
    noisy: bool
    noise: FloatArray
    noise_factor: FloatArray
    view_factor: FloatArray
    normals: int
    uniforms: int
    spare_normal: int
    spare_uniform: int


def training_of(problem: Problem, noisy: bool | None = None) -> Training:
    """The training that a problem describes, with numbers of its own.

    Parameters
    ----------
    problem : Problem
    noisy : bool, optional
        Whether views differ from the sample at some time; if nothing is said, whether they do in this problem.
    """
    model = problem.model
    activation = problem.model.activation_functions
    settings = problem.decorrelation
    draws = hidden_draws(problem.hidden_laws)
    noise = problem.noise_covariance
    m, d1, d2 = model.batch_size, len(problem.features), model.channels
    noisy = bool(np.any(noise != 0)) if noisy is None else noisy
    # Besides hidden variables one channel takes e and two for zeta_l for each sample, and the noise orthogonal to w;
    # several take for each sample coordinates of the views beyond the features, and noise along the features.
    of_one, of_several = m * (1 + 2 * noisy) + noisy * d1, m * ((1 + noisy) * d2 + 2 * noisy * d1)
    beyond = of_one if d2 == 1 else of_several
    normals, uniforms = m * int(draws.normals[-1]) + beyond, m * int(draws.uniforms[-1])
    strength = problem.decorrelation_strength if d2 > 1 else 0.0
    share, momentum = model.shares(problem.particles.dimension)
    rates = np.array([share * model.learning_rate, 1.0, strength])
    numbers, (rates, noise, noise_factor, view_factor, *drawn) = _in_one(
        rates, noise, factor_of(noise), factor_of(1.0 + noise), draws.cumulative, draws.mean, draws.deviation, draws.box
    )
    cumulative, mean, deviation, box = drawn
    return Training(
        problem.particles.dimension,
        m,
        d2,
        numbers,
        np.empty(0, np.int64),
        np.empty((0, 0)),
        0,
        rates,
        momentum,
        compile_loop(activation.value),
        compile_loop(activation.slope),
        CENTERINGS[model.centering],
        settings.functions.address if settings is not None and strength > 0 else 0,
        draws._replace(cumulative=cumulative, mean=mean, deviation=deviation, box=box),
        noisy,
        noise,
        noise_factor,
        view_factor,
        _even(normals + d2 * (d2 + 1) // 2),
        _even(uniforms + d2),
        normals,
        uniforms,
    )


def is_noisy(problem: Problem) -> bool:
    """Whether views differ from the sample at some time."""
    return any(bool(each.noise_covariance.any()) for each in InTime(problem).extremes(problem.time.stop).values())


def outputs_of(problem: Problem) -> MeanOutputs:
    """Averages of the limit that SGD asks for: the mean output of one channel, if that is subtracted.

    Other SGD goes on where averages are hard or do not exist. A channel's mean output depends on its own overlaps
    alone, by the law of a problem with no other channel.
    """
    if problem.model.centering != "population":
        return no_mean_outputs()
    if problem.model.channels > 1:
        overlaps = {f"features[{k}].initial_overlap": 0.0 for k in range(len(problem.features))}
        alone = {"initial": None, "model.channels": 1, "model.initial_channel_overlap": None, "decorrelation": None}
        problem = with_values(problem, alone | overlaps)
    return Closure(without_velocity(problem)).mean_outputs


def _even(count: int) -> int:
    return count + count % 2


def factor_of(v: FloatArray) -> FloatArray:
    """The lower triangular L with L L^T = v, shape (..., 2, 2); v may be singular."""
    l11 = np.sqrt(v[..., 0, 0])
    l21 = np.divide(v[..., 0, 1], l11, out=np.zeros(l11.shape), where=l11 > 0)
    l22 = np.sqrt(np.maximum(v[..., 1, 1] - l21**2, 0.0))
    return np.stack([l11, np.zeros(l11.shape), l21, l22], axis=-1).reshape(v.shape)


def _in_one(*parts: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """All numbers of some arrays, and the arrays as views of them."""
    numbers = np.concatenate([part.ravel() for part in parts])
    ends = np.cumsum([part.size for part in parts])[:-1]
    return numbers, [view.reshape(part.shape) for view, part in zip(np.split(numbers, ends), parts, strict=True)]


@numba.njit(inline="always", error_model="numpy")
def enter_step(training, step):  # type: ignore[no-untyped-def]
    """Give a training the numbers of a step, where they change in time."""
    for i in range(training.places.size):
        training.numbers[training.places[i]] = training.in_time[step - training.first, i]


@numba.njit(inline="always", error_model="numpy")
def steps_at_once(training):  # type: ignore[no-untyped-def]
    """Number of steps whose random numbers are drawn at a time."""
    return max(1, BUFFERED // (training.normals + training.uniforms))


@numba.njit(inline="always", error_model="numpy")
def steps_together(training, steps):  # type: ignore[no-untyped-def]
    """Number of `steps` steps without new population means, which need compiled code that counts references."""
    return 1 if training.centering == POPULATION else steps


@numba.njit(inline="always", error_model="numpy")
def draw_numbers(training, key, replica, first, steps, numbers):  # type: ignore[no-untyped-def]
    """Draw the random numbers of steps `first`, `first` + 1, ..."""
    normals, uniforms = numbers
    call(fill_normals, key, replica, NORMALS, first * training.normals, normals[: steps * training.normals])
    call(fill_uniforms, key, replica, UNIFORMS, first * training.uniforms, uniforms[: steps * training.uniforms])


@numba.njit(inline="always", error_model="numpy")
def first_slot(training, step):  # type: ignore[no-untyped-def]
    """First of the slots for rejections that belong to a step: one per group and sample, and one per channel."""
    return step * (training.batch_size * training.hidden.box.size + training.channels)
