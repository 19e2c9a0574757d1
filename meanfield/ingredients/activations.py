"""Activation functions sigma of the network, by name, and the part of a problem that names one.

An activation is sigma and sigma', scalar functions of one real number that numba compiles, and the points where sigma'
jumps. Adding one means adding an entry to `ACTIVATIONS`; one that takes parameters is a function of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from meanfield.ingredients.named_functions import NamesFunctions
from meanfield.ingredients.part import NamedValues, Parameters
from meanfield.ingredients.user_functions import Catalogue, WithSlope, check_with_slope
from meanfield.numerics.compiled.scalar_functions import compile_scalar, evaluate
from meanfield.typing import FloatArray

INTERPOLATION_ROUNDING = 1e-13
"""Largest difference between a polynomial activation and its interpolation, relative to the sum of its terms."""

CHECK_POINTS = np.concatenate([-np.geomspace(0.03, 300.0, 41), np.geomspace(0.03, 300.0, 41)])
"""Arguments at which an activation is compared with that interpolation."""


@dataclass(frozen=True)
class Activation(WithSlope):
    """Activation function sigma with its derivative and its kinks.

    Parameters
    ----------
    value : callable
        sigma, a function of one float.
    derivative : callable, optional
        sigma'. Without it differences are taken, which evaluate sigma at 14 points, and for which it must be smooth
        between kinks.
    kinks : tuple of float
        Where sigma, sigma' or a higher derivative jumps.
    """

    def values(self, x: FloatArray) -> FloatArray:
        """Values of sigma at all elements of an array."""
        return evaluate(self.value, x)

    def slopes(self, x: FloatArray) -> FloatArray:
        """Values of sigma' at all elements of an array."""
        return evaluate(self.slope, x)

    @cached_property
    def addresses(self) -> tuple[int, int]:
        """Addresses of the compiled sigma and sigma'."""
        return compile_scalar(self.value), compile_scalar(self.slope)

    @cached_property
    def growth(self) -> float:
        """Power gamma with which sigma grows, 0 if it is bounded, infinite if it grows faster than any."""
        if self.polynomial:
            return float(len(self.polynomial) - 1)
        far = np.linspace(0.5e4, 1e4, 501)
        near, twice = (np.abs(self.values(np.array([x, -x]))).max(axis=1) for x in (far, 2 * far))
        if not np.all(np.isfinite([near, twice])):
            return math.inf
        growing = (near > 0) & (twice > 1.05 * near)
        powers = np.log2(np.divide(twice, near, where=growing, out=np.ones(2)))
        return float(np.round(powers, 3).max())

    @cached_property
    def polynomial(self) -> tuple[float, ...]:
        """Coefficients in ascending powers, if sigma is a polynomial of degree 4 at most to rounding; else none."""
        if self.kinks:
            return ()
        nodes = np.array([-2.0, -1.0, 1.0, 2.0, 3.0])
        powers = np.vander(nodes, increasing=True)
        coefficients = np.linalg.solve(powers, self.values(nodes))
        if not np.all(np.isfinite(coefficients)):
            return ()
        coefficients[np.abs(coefficients) < INTERPOLATION_ROUNDING * np.abs(coefficients).max()] = 0.0
        powers = np.vander(CHECK_POINTS, nodes.size, increasing=True)
        off = np.abs(self.values(CHECK_POINTS) - powers @ coefficients)
        # Negated, because values may be no numbers.
        if not np.all(off <= INTERPOLATION_ROUNDING * (np.abs(powers) @ np.abs(coefficients))):
            return ()
        return tuple(float(a) for a in np.trim_zeros(coefficients, "b"))

    @property
    def highest_power(self) -> float:
        """Power of c in the fastest growing average: of c^2, c sigma sigma' and sigma^2 sigma'^2."""
        return max(2.0, 2 * self.growth, 4 * self.growth - 2)


def _one(x: float) -> float:
    return 1.0


def sign(x: float) -> float:
    """Sign of x, 0 of 0."""
    return 1.0 if x > 0 else -1.0 if x < 0 else 0.0


def identity(x: float) -> float:
    """The number x itself."""
    return x


def square(x: float) -> float:
    """x^2."""
    return x * x


def twice(x: float) -> float:
    """2 x, the derivative of x^2."""
    return 2.0 * x


def cube(x: float) -> float:
    """x^3."""
    return x * x * x


def _thrice_square(x: float) -> float:
    return 3.0 * x * x


def _relu(x: float) -> float:
    return max(x, 0.0)


def step(x: float) -> float:
    """Step function, 1/2 at its jump."""
    return 1.0 if x > 0 else 0.0 if x < 0 else 0.5


def absolute(x: float) -> float:
    """|x|."""
    return abs(x)


def _clip(x: float) -> float:
    return min(max(x, -1.0), 1.0)


def _inside(x: float) -> float:
    return 1.0 if abs(x) < 1 else 0.0 if abs(x) > 1 else 0.5


def _leaky_relu(slope: float = 0.01) -> Activation:
    """Leaky ReLU: `slope` x for x < 0, else x."""
    if not math.isfinite(slope):
        raise ValueError(f"slope = {slope} must be a finite number, for instance 0.01")

    def value(x: float) -> float:
        return x if x > 0 else slope * x

    def derivative(x: float) -> float:
        return 1.0 if x > 0 else slope if x < 0 else 0.5 * (1 + slope)

    return Activation(value, derivative, kinks=(0.0,))


_GAUSS = 2.0 / math.sqrt(math.pi)


def _erf(x: float) -> float:
    return math.erf(x)


def _erf_derivative(x: float) -> float:
    return _GAUSS * math.exp(-x * x)


def _scaled_erf(x: float) -> float:
    return math.erf(x * math.sqrt(0.5))


def _scaled_erf_derivative(x: float) -> float:
    return math.sqrt(2.0 / math.pi) * math.exp(-0.5 * x * x)


def tanh(x: float) -> float:
    """Hyperbolic tangent."""
    return math.tanh(x)


def _tanh_derivative(x: float) -> float:
    y = math.tanh(x)
    return (1.0 - y) * (1.0 + y)


def _sigmoid(x: float) -> float:
    return 0.5 + 0.5 * math.tanh(0.5 * x)


def _sigmoid_derivative(x: float) -> float:
    y = math.tanh(0.5 * x)
    return 0.25 * (1.0 - y) * (1.0 + y)


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _gelu(x: float) -> float:
    return x * 0.5 * math.erfc(-x / math.sqrt(2.0))


def _gelu_derivative(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0)) + x * math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def _silu(x: float) -> float:
    return x * (0.5 + 0.5 * math.tanh(0.5 * x))


def _silu_derivative(x: float) -> float:
    y = math.tanh(0.5 * x)
    return 0.5 + 0.5 * y + 0.25 * x * (1.0 - y) * (1.0 + y)


def _sin(x: float) -> float:
    return math.sin(x)


def _cos(x: float) -> float:
    return math.cos(x)


ACTIVATIONS: dict[str, Activation | Callable[..., Activation]] = {
    "linear": Activation(identity, _one),
    "quadratic": Activation(square, twice),
    "cubic": Activation(cube, _thrice_square),
    "relu": Activation(_relu, step, kinks=(0.0,)),
    "leaky_relu": _leaky_relu,
    "abs": Activation(absolute, sign, kinks=(0.0,)),
    "hard_tanh": Activation(_clip, _inside, kinks=(-1.0, 1.0)),
    "erf": Activation(_erf, _erf_derivative),
    "scaled_erf": Activation(_scaled_erf, _scaled_erf_derivative),
    "tanh": Activation(tanh, _tanh_derivative),
    "sigmoid": Activation(_sigmoid, _sigmoid_derivative),
    "softplus": Activation(_softplus, _sigmoid),
    "gelu": Activation(_gelu, _gelu_derivative),
    "silu": Activation(_silu, _silu_derivative),
    "sin": Activation(_sin, _cos),
}


make_activation = Catalogue(ACTIVATIONS, Activation, check_with_slope)
"""Activation that a problem file names."""


class NamesActivation(NamesFunctions):
    """The table `[model]` of a problem, as far as it names an activation."""

    function_key: ClassVar[str] = "model.activation"
    parameters_key: ClassVar[str] = "activation_parameters"
    make: ClassVar[Any] = make_activation

    activation: str = Field(description=f"one of {', '.join(ACTIVATIONS)}, or your own as 'package.module:name'")
    activation_parameters: Parameters = Field(
        default=NamedValues(),
        description="numbers that the activation takes, for instance { slope = 0.1 } for leaky_relu",
    )

    @property
    def activation_functions(self) -> Activation:
        """The activation that `activation` names.

        Raises
        ------
        InputError
            If it is a user's own and cannot be imported.
        """
        found: Activation = self.found()
        return found
