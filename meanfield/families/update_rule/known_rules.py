"""Update rules that problem files name: classical ones of one trained vector, each with what it is known by."""

from __future__ import annotations

from typing import Any

import numpy as np

from meanfield.families.update_rule.rule import Rule


def _misclassified(y: Any, s: Any) -> Any:
    return s * y < 0


def _hebb(y: Any, rate: float) -> Any:
    return rate * np.sign(y)


def _perceptron(y: Any, s: Any, rate: float) -> Any:
    return rate * np.sign(y) * (s * y < 0)


def _adatron(y: Any, s: Any, rate: float) -> Any:
    return -rate * s * (s * y < 0)


def _regression(y: Any, s: Any, rate: float) -> Any:
    return rate * (y - s)


def _half_square(y: Any, s: Any) -> Any:
    return 0.5 * (y - s) ** 2


def _phase_retrieval(y: Any, s: Any, rate: float) -> Any:
    return rate * (y * y - s * s) * s


def _loss_of_squares(y: Any, s: Any) -> Any:
    return 0.25 * (y * y - s * s) ** 2


def _oja(s: Any, rate: float) -> Any:
    return rate * s


def _cube(s: Any, rate: float) -> Any:
    return rate * s**3


RULES: dict[str, Rule] = {
    "hebb": Rule(_hebb, kinks=("y", "s"), observables={"error": _misclassified}),
    "perceptron": Rule(_perceptron, kinks=("y", "s"), observables={"error": _misclassified}),
    "adatron": Rule(_adatron, kinks=("y", "s"), observables={"error": _misclassified}),
    "regression": Rule(_regression, observables={"error": _half_square}),
    "phase_retrieval": Rule(_phase_retrieval, observables={"error": _loss_of_squares}),
    "oja": Rule(_oja),
    "ica": Rule(_cube),
}
"""Update rules by name; all take the parameter `rate`."""
