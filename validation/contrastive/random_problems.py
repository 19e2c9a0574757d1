"""Random contrastive problems by a stated law, which covers every built-in activation, prior and law.

A seed fixes a problem. Its file says all that was drawn, with few digits, and leaves everything else at its default, so
that a problem on which a method fails is the text of `random_text(seed)`.

| drawn | law |
|---|---|
| activation, prior, centring, hidden laws, coordinate laws | each of those listed here equally likely |
| strength of the prior | log-uniform from 0.03 to 10 |
| learning rate | log-uniform from 0.003 to 1 |
| batch size | each of `BATCH_SIZES` equally likely, 2 or more under batch centring |
| features | one in two of three problems, two in the others |
| second moment of a hidden variable | uniform from 0.7 to 2; the kurtosis of a three-point law uniform from 2 to 6 |
| fourth moment of a three-point coordinate | uniform from 2 to 12 |
| initial overlap | uniform from -0.65 to 0.65 for each feature |
| augmentation | in half of the problems; variances uniform from 0.02 to 0.6, correlation uniform from -0.9 to 0.9 |
| last time | log-uniform from 1 to 100, with 21 outputs |
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tomli_w

from meanfield.families.contrastive.problem import Problem
from meanfield.problems.file import parse_problem

ACTIVATIONS = (
    *("linear", "quadratic", "cubic", "relu", "leaky_relu", "abs", "hard_tanh"),
    *("erf", "tanh", "sigmoid", "softplus", "gelu", "silu", "sin"),
)
PRIORS = ("none", "l2", "l1", "elastic_net", "smooth_l1", "log_cosh", "quartic", "cauchy", "double_well")
CENTERINGS = ("none", "population", "batch")
HIDDEN_LAWS = ("gaussian", "rademacher", "uniform", "laplace", "three_point")
COORDINATE_LAWS = ("gaussian", "rademacher", "uniform", "laplace", "three_point")
BATCH_SIZES = (1, 2, 5, 10, 50, 500, 5000)

STRENGTH = (0.03, 10.0)
LEARNING_RATE = (0.003, 1.0)
LAST_TIME = (1.0, 100.0)
SECOND_MOMENT = (0.7, 2.0)
HIDDEN_KURTOSIS = (2.0, 6.0)
COORDINATE_FOURTH_MOMENT = (2.0, 12.0)
OVERLAP = (-0.65, 0.65)
NOISE_VARIANCE = (0.02, 0.6)
NOISE_CORRELATION = (-0.9, 0.9)
OUTPUTS = 21


class _Draws:
    """Draws of one problem, rounded so that its file is short and says exactly what was drawn."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def chance(self, probability: float) -> bool:
        return bool(self._rng.random() < probability)

    def one_of(self, choices: tuple[Any, ...]) -> Any:
        return choices[self._rng.integers(len(choices))]

    def uniform(self, ends: tuple[float, float]) -> float:
        return round(float(self._rng.uniform(*ends)), 4)

    def log_uniform(self, ends: tuple[float, float]) -> float:
        return float(f"{np.exp(self._rng.uniform(*np.log(ends))):.4g}")


def random_data(seed: int) -> dict[str, Any]:
    """Data of the problem of a seed, without what has a default."""
    draws = _Draws(seed)
    centering = draws.one_of(CENTERINGS)
    sizes = BATCH_SIZES[1:] if centering == "batch" else BATCH_SIZES
    data: dict[str, Any] = {
        "title": f"Random problem {seed}",
        "model": {
            "activation": draws.one_of(ACTIVATIONS),
            "centering": centering,
            "learning_rate": draws.log_uniform(LEARNING_RATE),
            "batch_size": draws.one_of(sizes),
        },
        "features": [_feature(draws) for _ in range(1 if draws.chance(2 / 3) else 2)],
    }
    if draws.chance(0.5):
        variance = [draws.uniform(NOISE_VARIANCE), draws.uniform(NOISE_VARIANCE)]
        data["augmentation"] = {"variance": variance, "correlation": draws.uniform(NOISE_CORRELATION)}
    data["prior"] = {"name": draws.one_of(PRIORS), "strength": draws.log_uniform(STRENGTH)}
    return data | {"time": {"stop": draws.log_uniform(LAST_TIME), "outputs": OUTPUTS}}


def _feature(draws: _Draws) -> dict[str, Any]:
    hidden: dict[str, Any] = {"law": draws.one_of(HIDDEN_LAWS), "second_moment": draws.uniform(SECOND_MOMENT)}
    if hidden["law"] == "three_point":
        kurtosis = draws.uniform(HIDDEN_KURTOSIS)
        hidden["fourth_moment"] = round(kurtosis * hidden["second_moment"] ** 2, 4)
    coordinate: dict[str, Any] = {"law": draws.one_of(COORDINATE_LAWS)}
    if coordinate["law"] == "three_point":
        coordinate["fourth_moment"] = draws.uniform(COORDINATE_FOURTH_MOMENT)
    return {"hidden": hidden, "coordinate": coordinate, "initial_overlap": draws.uniform(OVERLAP)}


def random_text(seed: int) -> str:
    """Problem file of a seed."""
    return tomli_w.dumps(random_data(seed))


def random_problem(seed: int) -> Problem:
    """Problem of a seed."""
    problem: Problem = parse_problem(random_text(seed))
    return problem
