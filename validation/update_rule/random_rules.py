"""Update rules with random coefficients, on which verdicts and predictions are tried."""

from __future__ import annotations

from typing import Any

import numpy as np

import meanfield


def _smooth(y: Any, s: Any, rate: float, k1: float, k2: float, k3: float) -> Any:
    return rate * (k1 * np.tanh(y) - k2 * np.tanh(s) + k3 * y * np.exp(-s * s))


def _kinked(y: Any, s: Any, rate: float, k1: float, k2: float, k3: float) -> Any:
    return rate * (k1 * np.sign(y) * (s * y < 0) - k2 * s + k3 * np.maximum(y, 0) * (s > 0))


def _noisy(y: Any, s: Any, eps: float, flip: float, rate: float, k1: float, k2: float, k3: float) -> Any:
    label = (k1 * y + k3 * eps) * (1 - 2 * flip)
    return rate * (label - k2 * s)


def _several(y: Any, s: Any, rate: float, k1: float, k2: float, k3: float) -> Any:
    missed = k1 * np.tanh(y).sum(axis=0) - k2 * np.tanh(s).sum(axis=0)
    return rate * (missed / np.cosh(s) + k3 * s / (1 + s * s))


def _signal(s: Any, c: Any, rate: float, k1: float, k2: float) -> Any:
    return rate * (k1 * np.tanh(s) + k2 * np.tanh(c))


def _squares(y: Any, s: Any) -> Any:
    return (y - s) ** 2


smooth = meanfield.Rule(_smooth, observables={"error": _squares})
kinked = meanfield.Rule(_kinked, kinks=("y", "s"), observables={"error": _squares})
noisy = meanfield.Rule(_noisy)
several = meanfield.Rule(_several)
signal = meanfield.Rule(_signal)

TABLES: dict[str, dict[str, Any]] = {
    "smooth": {},
    "kinked": {"prior": {"name": "l2", "strength": 0.2}},
    "noisy": {"data": {"coins": {"flip": 0.15}, "normals": ["eps"]}},
    "several": {"students": [{"initial_norm": 0.8}, {"initial_norm": 0.6}], "order_parameters": {"tolerance": 1e-3}},
    "signal": {"data": {"signal": "spiked"}, "model": {"constraint": "sphere"}},
}
"""What problems of each rule say besides."""


def problem_of(rule: str, seed: int, dimension: int = 1000) -> Any:
    """Problem of a rule of this module with random coefficients, start and batch size."""
    rng = np.random.default_rng(seed)
    tables = TABLES[rule]
    names = ("k1", "k2") if rule == "signal" else ("k1", "k2", "k3")
    numbers = {name: float(np.round(rng.uniform(0.4, 1.2), 3)) for name in names}
    numbers["rate"] = float(np.round(rng.uniform(0.3, 0.8), 3))
    students = len(tables.get("students", [{}]))
    hidden = {"law": "gaussian_mixture", "means": [-1.2, 1.2], "variances": [0.3, 0.3], "probabilities": [0.5, 0.5]}
    features = [
        {"initial_overlap": np.round(rng.uniform(0.05, 0.4, students), 3).tolist()}
        | ({"hidden": hidden} if rule == "signal" else {})
        for _ in range(students)
    ]
    model = {"rule": f"{__name__}:{rule}", "rule_parameters": numbers, "batch_size": int(rng.integers(1, 4))}
    return meanfield.Problem(
        family="update_rule",
        model=model | tables.get("model", {}),
        features=features,
        time={"stop": 3.0, "outputs": 4},
        particles={"dimension": dimension},
        **{key: value for key, value in tables.items() if key != "model"},
    )
