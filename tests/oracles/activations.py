"""The built-in activations once more, written from their names, with the point masses that sigma'' has at kinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import erf, expit, ndtr


class Sigma(NamedTuple):
    """An activation.

    Attributes
    ----------
    value, slope, curvature : callable
        sigma, sigma' and, away from the kinks, sigma''.
    kinks : dict
        Where sigma' jumps -> by how much.
    growth : int
        sigma(x) = O(|x|^growth).
    """

    value: Callable
    slope: Callable
    curvature: Callable
    kinks: dict[float, float] = {}  # noqa: RUF012
    growth: int = 1


def _density(x):
    return np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)


def _sech2(x):
    return 4 * np.exp(-2 * np.abs(x)) / (1 + np.exp(-2 * np.abs(x))) ** 2


def _bell(x):
    """Slope of the sigmoid."""
    return expit(x) * expit(-x)


def _leaky(slope):
    return Sigma(
        lambda x: np.where(x > 0, x, slope * x), lambda x: np.where(x > 0, 1.0, slope), np.zeros_like, {0.0: 1 - slope}
    )


_GAUSS = 2 / np.sqrt(np.pi)

SIGMAS = {
    "linear": Sigma(lambda x: x, np.ones_like, np.zeros_like),
    "quadratic": Sigma(lambda x: x**2, lambda x: 2 * x, lambda x: 2 + 0 * x, growth=2),
    "cubic": Sigma(lambda x: x**3, lambda x: 3 * x**2, lambda x: 6 * x, growth=3),
    "relu": _leaky(0.0),
    "abs": _leaky(-1.0),
    "hard_tanh": Sigma(
        lambda x: np.clip(x, -1, 1), lambda x: np.where(abs(x) < 1, 1.0, 0.0), np.zeros_like, {-1.0: 1.0, 1.0: -1.0}, 0
    ),
    "erf": Sigma(
        erf, lambda x: _GAUSS * np.exp(-(x**2)), lambda x: -2 * _GAUSS * x * np.exp(-(x**2)), growth=0
    ),
    "tanh": Sigma(np.tanh, _sech2, lambda x: -2 * np.tanh(x) * _sech2(x), growth=0),
    "sigmoid": Sigma(expit, _bell, lambda x: -np.tanh(x / 2) * _bell(x), growth=0),
    "softplus": Sigma(lambda x: np.logaddexp(0, x), expit, _bell),
    "gelu": Sigma(
        lambda x: x * ndtr(x), lambda x: ndtr(x) + x * _density(x), lambda x: (2 - x**2) * _density(x)
    ),
    "silu": Sigma(
        lambda x: x * expit(x), lambda x: expit(x) + x * _bell(x), lambda x: (2 - x * np.tanh(x / 2)) * _bell(x)
    ),
    "sin": Sigma(np.sin, np.cos, lambda x: -np.sin(x), growth=0),
}  # fmt: skip

ACTIVATIONS = (*SIGMAS, "leaky_relu")


def sigma(name: str, parameters: dict | None = None) -> Sigma:
    """The activation of that name."""
    parameters = dict(parameters or {})
    if name == "leaky_relu":
        return _leaky(parameters.get("slope", 0.01))
    assert not parameters, parameters
    return SIGMAS[name]
