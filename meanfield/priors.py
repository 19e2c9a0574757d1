"""Priors on the weights: the force phi(w) = Phi'(w) per unit of strength, by name.

Adding a prior means adding one entry to `PRIORS`. The functions are written with numpy
operations that work on arrays and, compiled by numba, on scalars.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Prior:
    """A prior of unit strength.

    Parameters
    ----------
    force : callable
        phi(w); SGD subtracts (tau/N) strength phi(w) at every step.
    potential : callable
        Phi(w) with Phi' = phi. The density solver uses differences of it, so phi may jump.
    linear : bool
        True where phi is proportional to w: the order parameters then close (theory.md, section 2).
    """

    force: Callable[[Any], Any]
    potential: Callable[[Any], Any]
    linear: bool = False


def _zero(w: Any) -> Any:
    return 0.0 * w


def _identity(w: Any) -> Any:
    return 1.0 * w


def _half_square(w: Any) -> Any:
    return 0.5 * w * w


def _sign(w: Any) -> Any:
    return np.sign(w)


def _absolute(w: Any) -> Any:
    return np.abs(w)


def _cube(w: Any) -> Any:
    return w * w * w


def _quarter_fourth_power(w: Any) -> Any:
    return 0.25 * (w * w) * (w * w)


PRIORS: dict[str, Prior] = {
    "none": Prior(_zero, _zero, linear=True),
    "l2": Prior(_identity, _half_square, linear=True),
    "l1": Prior(_sign, _absolute),
    "quartic": Prior(_cube, _quarter_fourth_power),
}
