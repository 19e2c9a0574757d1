"""What inputs do to the fields of the student: whether they have means that move within single steps of SGD."""

from __future__ import annotations

from meanfield.errors import InputError
from meanfield.families.hidden_manifold.problem import Problem

CENTRED = 1e-9
"""Largest mean of f, relative to its root mean square, that is 0 to rounding."""


def check_closes(problem: Problem) -> None:
    """Refuse inputs with a mean of length sqrt(N), in all samples or in those of a component.

    Each step of SGD moves the student's overlap with it by as much as the overlap itself: there are two time scales,
    and no differential equation for order parameters alone (hidden_manifold.md, section 4).

    Raises
    ------
    InputError
        With the key, its value and the remedy.
    """
    inputs = problem.inputs
    if inputs.latent_mean != 0.0:
        raise InputError(
            f"inputs.components.mean: every latent has the mean {inputs.latent_mean:.6g}, so that inputs have a mean "
            "of length sqrt(N), along which the student moves within single steps; make it 0, or solve by particles"
        )
    means = [moments.mean for moments in inputs.moments]
    size = max(moments.square for moments in inputs.moments) ** 0.5
    worst = max(means, key=abs)
    if abs(worst) <= CENTRED * size:
        return
    if len(means) == 1:
        raise InputError(
            f"inputs.nonlinearity = '{inputs.nonlinearity}' has the mean {worst:.6g}, and the student moves along it "
            "within single steps; set inputs.centered to true, or solve by particles"
        )
    raise InputError(
        f"inputs.nonlinearity = '{inputs.nonlinearity}' has other means at other inputs.components.scale (here "
        f"{', '.join(f'{mean:.4g}' for mean in means)}), so that the student moves along them within single steps; "
        "take an odd function, or one scale, or solve by particles"
    )
