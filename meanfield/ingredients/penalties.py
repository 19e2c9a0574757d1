"""Penalties psi of the covariance of two channels, by name.

A penalty is psi and psi', scalar functions of one real number that numba compiles. Adding one means adding an entry to
`PENALTIES`; one that takes parameters is a function of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from meanfield.arguments import as_numbers
from meanfield.ingredients.activations import absolute, sign, square, twice
from meanfield.ingredients.user_functions import build, check_with_slope, is_address, make_own
from meanfield.numerics.compiled.differences import difference
from meanfield.numerics.compiled.scalar_functions import ScalarFunction, compile_scalar


@dataclass(frozen=True)
class Penalty:
    """Penalty psi with its derivative and its kinks.

    Parameters
    ----------
    value : callable
        psi, a function of one float.
    derivative : callable, optional
        psi', which SGD and theory use; its value at a kink is theirs. Without it differences are taken, for which
        psi must be smooth between kinks.
    kinks : tuple of float
        Where psi' jumps.
    """

    value: ScalarFunction
    derivative: ScalarFunction | None = None
    kinks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinks", as_numbers(self.kinks, "kinks", "give a list of numbers, such as [0.0]"))

    @cached_property
    def slope(self) -> ScalarFunction:
        """Derivative psi', given or by differences."""
        return difference(self.value, self.kinks) if self.derivative is None else self.derivative

    @cached_property
    def address(self) -> int:
        """Address of the compiled psi'."""
        return compile_scalar(self.slope)


def _smooth_absolute(width: float = 0.1) -> Penalty:
    """Absolute value that is rounded where |x| is below `width`."""
    if not 0 < width < math.inf:
        raise ValueError(f"width = {width} must be a positive number, for instance 0.1")

    def value(x: float) -> float:
        return math.hypot(x, width) - width

    def derivative(x: float) -> float:
        return x / math.hypot(x, width)

    return Penalty(value, derivative)


PENALTIES: dict[str, Penalty | Callable[..., Penalty]] = {
    "square": Penalty(square, twice),
    "absolute": Penalty(absolute, sign, kinks=(0.0,)),
    "smooth_absolute": _smooth_absolute,
}


def make_penalty(name: str, parameters: tuple[tuple[str, float], ...] = (), folder: Path | None = None) -> Penalty:
    """Penalty that a problem file names, as `meanfield.ingredients.activations.make_activation` makes an activation."""
    if is_address(name):
        return make_own(Penalty, name, dict(parameters), folder, check_with_slope)
    return build(PENALTIES, name, dict(parameters))
