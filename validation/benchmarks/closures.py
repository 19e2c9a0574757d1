"""How long one evaluation of the closures takes, (q) -> (g, Lambda), on one core.

Columns: what it takes to tabulate the activation once per problem, then the median time of one call at |q| = 0.5, the
call itself included, and of one at |q| = 0.9999, where the pre-activations nearly lose their Gaussian part. The last
column is the share of the first call that is spent outside the compiled code.
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
from meanfield.closures.closure import drift_and_diffusion

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
CALLS = 200


def make_problem(activation: str, laws: list[dict[str, Any]], noise: dict[str, Any] | None, centering: str) -> Problem:
    model = {"activation": activation, "centering": centering, "learning_rate": 0.1, "batch_size": 4}
    features = [{"hidden": law, "initial_overlap": 0.1} for law in laws]
    return Problem.model_validate({"model": model, "features": features, "augmentation": noise, "time": {"stop": 1.0}})


def microseconds(work: Any, calls: int) -> float:
    """Median time of one call of `work`."""
    work()
    return 1e6 * median(repeat(work, number=calls, repeat=7)) / calls


@numba.njit
def many(expectation, q, centering, batch_size, learning_rate, factors, calls):  # type: ignore[no-untyped-def]
    """The same calls from compiled code."""
    total = 0.0
    for _ in range(calls):
        total += drift_and_diffusion(expectation, q, centering, batch_size, learning_rate, factors)[0]
    return total


def row(label: str, problem: Problem) -> None:
    bracket_table.cache_clear()
    built = 1e3 * repeat(lambda: Closure(problem), number=1, repeat=1)[0]
    closure = Closure(problem)
    direction = np.ones(len(problem.features)) / np.sqrt(len(problem.features))
    inside, edge = 0.5 * direction, 0.9999 * direction
    calls = max(1, int(CALLS / (1 + microseconds(lambda: closure(edge), 1) / 200)))
    at_half, at_edge = (microseconds(lambda q=q: closure(q), calls) for q in (inside, edge))  # type: ignore[misc]
    settings = closure.centering, closure.batch_size, closure.learning_rate, closure._diffusion_factors
    compiled = microseconds(lambda: many(closure.expectation, inside, *settings, calls), 1) / calls
    outside = max(0.0, 1 - compiled / at_half)
    print(f"{label:<46}{built:>9.1f} ms {at_half:>10.1f} us {at_edge:>10.1f} us {outside:>8.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    row("", make_problem("quadratic", LAWS["uniform"], CORRELATED, "batch"))  # compiles
    print(
        f"\n{'activation, law, noise, centering':<46}{'tabulate':>12} {'|q| = 0.5':>13} {'|q| = 0.9999':>13}"
        f" {'outside':>8}"
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
