"""Regimes of inputs: whether the fields of the student have means that move within single steps of SGD."""

from __future__ import annotations

import math

from meanfield.errors import InputError
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.ingredients.activations import ACTIVATIONS


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
    if has_fast_means(problem):
        _check_one_exact_sample(problem)
        if problem.student.activation_functions is ACTIVATIONS["linear"]:
            _check_overshoot(problem)


def _check_one_exact_sample(problem: Problem) -> None:
    """Refuse steps that averages over fast means do not take: those of several samples, or with label noise."""
    for key, plain in (("batch_size", 1), ("label_noise", 0)):
        value = getattr(problem.training, key)
        if value != plain:
            raise InputError(
                f"training.{key} = {value:g}: inputs have a mean, along which the student moves within single steps, "
                f"and equations average over steps of one sample without label noise; set it to {plain}, or solve by "
                "particles"
            )


def _check_overshoot(problem: Problem) -> None:
    """Refuse learning rates with which steps of a linear student along the mean of inputs grow from step to step."""
    eta = problem.training.learning_rate
    length = sum(v * v for v in problem.student.output_weights)
    inputs = problem.inputs
    squares = [(p, m.mean**2) for (p, _), m in zip(inputs.gaussians, inputs.moments, strict=True)]
    if sum(p * math.log(max(abs(1.0 - eta * a * length), 1e-300)) for p, a in squares) < 0.0:
        return
    most = max(a for _, a in squares)
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
