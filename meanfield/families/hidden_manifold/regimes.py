"""Regimes of inputs: whether the fields of the student have means that move within single steps of SGD."""

from __future__ import annotations

import numpy as np

from meanfield.errors import InputError
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.training import Training
from meanfield.ingredients.activations import ACTIVATIONS
from meanfield.problems.base import schedules_of


def has_fast_means(problem: Problem) -> bool:
    """Whether inputs have a mean of length sqrt(N), in all samples or in those of a component.

    Each step of SGD moves the student's overlap with it by as much as the overlap itself: there are two time scales,
    and no differential equation for order parameters alone (hidden_manifold.md, section 4).
    """
    if problem.inputs.is_uneven:
        return True
    moments = problem.inputs.moments
    size = max(m.square for m in moments) ** 0.5
    return bool(max(abs(m.mean) for m in moments) > 1e-9 * size)  # 0 to rounding


def check_averages(problem: Problem) -> None:
    """Refuse fast means over whose law the equations cannot be averaged; see `has_fast_means`.

    They can where all inputs have the same law, so that a single direction (1, 1, ..., 1) carries their means.

    Raises
    ------
    InputError
        With the key, its value and the remedy.
    """
    inputs = problem.inputs
    if inputs.latent_mean != 0.0:
        key = "components.mean" if inputs.latents is None else "latents"
        raise InputError(
            f"inputs.{key}: every latent has the mean {inputs.latent_mean:.6g}, so that each input has a mean and "
            "moments of its own, and overlaps do not close; set inputs.standardise to 'latents', which subtracts it, "
            "or solve by particles"
        )
    if inputs.own_means:
        raise InputError(
            "inputs.random_means.each = 'latent': means of length sqrt(D) move the student's fields within single "
            f"steps, and overlaps do not close with components_drawn = '{inputs.components_drawn}' and standardise = "
            f"'{inputs.standardise}'; solve by particles, or set them to 'coordinate' and 'latents'"
        )
    steady = not schedules_of(problem)
    if steady and has_fast_means(problem) and problem.student.activation_functions is ACTIVATIONS["linear"]:
        _check_overshoot(problem)


def check_remembers_nothing(training: Training) -> None:
    """Refuse momentum where inputs have a mean, see `has_fast_means`."""
    if training.remembers:
        raise InputError(
            f"training.{training.remembers}: the means of inputs move the student within single steps, over which "
            "averages know no velocity; remove it, set inputs.centered to true, or solve by particles"
        )


def _check_overshoot(problem: Problem) -> None:
    """Refuse learning rates with which steps of a linear student along the mean of inputs grow from step to step."""
    eta = problem.training.learning_rate
    length = sum(v * v for v in problem.student.output_weights)
    inputs = problem.inputs
    chance = np.array([p for p, _ in inputs.gaussians])
    squares, samples = np.array([m.mean**2 for m in inputs.moments]), problem.training.batch_size
    # What a step leaves of the overlap with the mean; of several samples it is drawn, with an error of 1 % or so.
    mean = squares if samples == 1 else np.random.default_rng(0).multinomial(samples, chance, 2**14) @ squares / samples
    left = np.log(np.maximum(np.abs(1.0 - eta * length * mean), 1e-300))
    if (left @ chance if samples == 1 else left.mean()) < 0.0:
        return
    most = float(squares.max())
    raise InputError(
        f"training.learning_rate = {eta:g}: steps of SGD along the mean of inputs, {most**0.5:.4g} in each of them, "
        f"overshoot further and further, and weights blow up; lower it below {2.0 / (most * length):.3g}, or set "
        "inputs.centered to true"
    )


def averages_close(problem: Problem) -> bool:
    """Whether the equations can be averaged over fast means; see `check_averages`."""
    try:
        check_averages(problem)
    except InputError:
        return False
    return True


def check_closes(problem: Problem) -> None:
    """Refuse fast means, for methods that need a differential equation for order parameters alone.

    Raises
    ------
    InputError
        With the key, its value and the remedy.
    """
    if not has_fast_means(problem):
        return
    check_averages(problem)
    inputs = problem.inputs
    means = [moments.mean for moments in inputs.moments]
    start = f"inputs.nonlinearity = '{inputs.nonlinearity}'"
    solve = "solve by order_parameters or particles"
    if len(means) == 1:
        raise InputError(
            f"{start} has the mean {means[0]:.6g}, and the student moves along it within single steps; set "
            f"inputs.centered to true, or {solve}"
        )
    raise InputError(
        f"{start} has other means at other inputs.components.scale (here "
        f"{', '.join(f'{mean:.4g}' for mean in means)}), so that the student moves along them within single steps; "
        f"take an odd function, or one scale, or {solve}"
    )
