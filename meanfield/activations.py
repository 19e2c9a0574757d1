"""Activation functions sigma of the network, by name.

An activation is three scalar functions of one real number, written with `math` so that numba
compiles them. Adding one means adding one entry to `ACTIVATIONS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from meanfield.scalar_functions import ScalarFunction, compile_scalar


@dataclass(frozen=True)
class Activation:
    """sigma with its first two derivatives.

    Parameters
    ----------
    value, derivative, second_derivative : callable
        sigma, sigma' and sigma'' as functions of one float.
    degree : int or None
        Degree of sigma if it is a polynomial: Gaussian expectations then have an exact finite rule.
    """

    value: ScalarFunction
    derivative: ScalarFunction
    second_derivative: ScalarFunction
    degree: int | None = None

    @cached_property
    def addresses(self) -> tuple[int, int, int]:
        """Addresses of the compiled sigma, sigma' and sigma''."""
        return (
            compile_scalar(self.value),
            compile_scalar(self.derivative),
            compile_scalar(self.second_derivative),
        )


def _identity(x: float) -> float:
    return x


def _one(x: float) -> float:
    return 1.0


def _zero(x: float) -> float:
    return 0.0


def _square(x: float) -> float:
    return x * x


def _twice(x: float) -> float:
    return 2.0 * x


def _two(x: float) -> float:
    return 2.0


_GAUSS = 2.0 / math.sqrt(math.pi)


def _erf(x: float) -> float:
    return math.erf(x)


def _erf_derivative(x: float) -> float:
    return _GAUSS * math.exp(-x * x)


def _erf_second_derivative(x: float) -> float:
    return -2.0 * x * _GAUSS * math.exp(-x * x)


def _tanh(x: float) -> float:
    return math.tanh(x)


def _tanh_derivative(x: float) -> float:
    y = math.tanh(x)
    return (1.0 - y) * (1.0 + y)


def _tanh_second_derivative(x: float) -> float:
    y = math.tanh(x)
    return -2.0 * y * (1.0 - y) * (1.0 + y)


ACTIVATIONS: dict[str, Activation] = {
    "linear": Activation(_identity, _one, _zero, degree=1),
    "quadratic": Activation(_square, _twice, _two, degree=2),
    "erf": Activation(_erf, _erf_derivative, _erf_second_derivative),
    "tanh": Activation(_tanh, _tanh_derivative, _tanh_second_derivative),
}
