"""Penalties psi of the covariance of two channels, by name.

A penalty is psi and psi', scalar functions of one real number that numba compiles. Adding one means adding an entry to
`PENALTIES`; one that takes parameters is a function of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from meanfield.ingredients.activations import absolute, sign, square, twice
from meanfield.ingredients.user_functions import Catalogue, WithSlope, check_with_slope
from meanfield.numerics.compiled.scalar_functions import compile_scalar


@dataclass(frozen=True)
class Penalty(WithSlope):
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


make_penalty = Catalogue(PENALTIES, Penalty, check_with_slope)
"""Penalty that a problem file names."""
