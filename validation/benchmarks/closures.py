"""How long one evaluation of the closures takes, (q) -> (g, Lambda), on one core.

Columns: what it takes to tabulate everything once per problem; the median time of one evaluation inside compiled code
at |q| = 0.5, and at |q| = 0.9999, where the pre-activations nearly lose their Gaussian part; of the two mean outputs,
which SGD with population centring asks for at every step, at |q| = 0.5; and of one call from Python at |q| = 0.5.
"""

from __future__ import annotations

import argparse
from statistics import median
from timeit import repeat
from typing import Any

import numba
import numpy as np

from meanfield import Problem
from meanfield.activations import ACTIVATIONS
from meanfield.closures import Closure
from meanfield.closures.brackets import bracket_table
from meanfield.closures.closure import drift_and_diffusion, mean_outputs
from meanfield.closures.overlap_table import overlap_table

THREE_POINT = {"law": "three_point", "second_moment": 1.1, "fourth_moment": 6.05}
LAWS: dict[str, list[dict[str, Any]]] = {
    "gaussian": [{"law": "gaussian", "second_moment": 1.2}],
    "three_point": [THREE_POINT],
    "uniform": [{"law": "uniform"}],
    "laplace": [{"law": "laplace"}],
    "student_t": [{"law": "student_t", "degrees_of_freedom": 12.0}],
    "3 x three_point": [THREE_POINT] * 3,
    "3 x uniform": [{"law": "uniform"}] * 3,
    "3 x laplace": [{"law": "laplace"}] * 3,
}
CORRELATED = {"variance": [0.3, 0.3], "correlation": 0.5}
OPPOSITE = {"variance": [0.3, 0.3], "correlation": -1.0}
SHARE = 2e4
"""Microseconds that the calls of one measurement take together."""


def make_problem(activation: str, laws: list[dict[str, Any]], noise: dict[str, Any] | None, centering: str) -> Problem:
    model = {"activation": activation, "centering": centering, "learning_rate": 0.1, "batch_size": 4}
    features = [{"hidden": law, "initial_overlap": 0.1} for law in laws]
    return Problem.model_validate({"model": model, "features": features, "augmentation": noise, "time": {"stop": 1.0}})


def microseconds(work: Any) -> float:
    """Median time of one of the calls that `work` is told to make."""
    work(1)
    calls = max(1, int(SHARE / (1 + 1e6 * min(repeat(lambda: work(1), number=1, repeat=3)))))
    return 1e6 * median(repeat(lambda: work(calls), number=1, repeat=7)) / calls


@numba.njit
def evaluate(expectation, q, centering, batch_size, learning_rate, factors, calls):  # type: ignore[no-untyped-def]
    """Evaluations from compiled code."""
    total = 0.0
    for _ in range(calls):
        total += drift_and_diffusion(expectation, q, centering, batch_size, learning_rate, factors)[0]
    return total


@numba.njit
def average_outputs(expectation, q, calls):  # type: ignore[no-untyped-def]
    """Mean outputs from compiled code."""
    total = 0.0
    for _ in range(calls):
        total += mean_outputs(expectation, q)[0]
    return total


def row(label: str, problem: Problem) -> None:
    bracket_table.cache_clear()
    overlap_table.cache_clear()
    built = 1e3 * repeat(lambda: Closure(problem), number=1, repeat=1)[0]
    closure = Closure(problem)
    direction = np.ones(len(problem.features)) / np.sqrt(len(problem.features))
    half, edge = 0.5 * direction, 0.9999 * direction
    settings = closure.centering, closure.batch_size, closure.learning_rate, closure._diffusion_factors
    times = [microseconds(lambda calls, q=q: evaluate(closure.expectation, q, *settings, calls)) for q in (half, edge)]
    outputs = f"{'-':>12}"
    if closure.centering:
        outputs = f"{microseconds(lambda calls: average_outputs(closure.expectation, half, calls)):>12.2f}"
    called = microseconds(lambda calls: [closure(half) for _ in range(calls)])
    print(f"{label:<46}{built:>9.1f} ms {times[0]:>10.2f} {times[1]:>12.2f} {outputs} {called:>12.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    row("", make_problem("quadratic", LAWS["uniform"], CORRELATED, "batch"))  # compiles
    print(f"\n{'':<58}{'compiled, microseconds':^38}{'Python':>11}")
    print(
        f"{'activation, law, noise, centering':<46}{'tabulate':>12} {'|q| = 0.5':>10} {'|q| = 0.9999':>12}"
        f" {'mean outputs':>12} {'|q| = 0.5':>12}"
    )
    for activation in ACTIVATIONS:
        row(f"{activation}, three_point, none, none", make_problem(activation, [THREE_POINT], None, "none"))
        row(
            f"{activation}, three_point, correlated, batch",
            make_problem(activation, [THREE_POINT], CORRELATED, "batch"),
        )
    for name, laws in LAWS.items():
        for activation in ("tanh", "relu"):
            row(f"{activation}, {name}, none, none", make_problem(activation, laws, None, "none"))
            row(f"{activation}, {name}, opposite, population", make_problem(activation, laws, OPPOSITE, "population"))


if __name__ == "__main__":
    main()
