"""How long one evaluation of the closures takes, (q) -> (g, Lambda), on one core.

Measured is one evaluation inside compiled code at |q| = 0.5. The notes add one at |q| = 0.9999, where the
pre-activations nearly lose their Gaussian part; the two mean outputs, which SGD with population centring asks for at
every step; a call from Python; and what it takes to tabulate everything once per problem.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np

from meanfield.contrastive import Problem
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.closures.expectation import overlap_table
from meanfield.families.contrastive.closures.outputs import mean_outputs
from meanfield.families.contrastive.closures.views import bracket_table
from meanfield.ingredients.activations import ACTIVATIONS
from meanfield.mckean_vlasov.closures import closure_values
from validation.benchmarks.table import Row, Table, run_benchmark
from validation.benchmarks.timing import ONE_THREAD, seconds

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
CALLS = 100
"""Number of calls from compiled code that are timed together, so that the call from Python does not count."""


def make_problem(activation: str, laws: list[dict[str, Any]], noise: dict[str, Any] | None, centering: str) -> Problem:
    model = {"activation": activation, "centering": centering, "learning_rate": 0.1, "batch_size": 4}
    features = [{"hidden": law, "initial_overlap": 0.1} for law in laws]
    return Problem.model_validate({"model": model, "features": features, "augmentation": noise, "time": {"stop": 1.0}})


@numba.njit
def evaluate(closure, q, calls):  # type: ignore[no-untyped-def]
    """Evaluations from compiled code."""
    total = 0.0
    for _ in range(calls):
        total += closure_values(closure, q)[0]
    return total


@numba.njit
def average_outputs(outputs, q, calls):  # type: ignore[no-untyped-def]
    """Mean outputs from compiled code."""
    total = 0.0
    for _ in range(calls):
        total += mean_outputs(outputs, q)[0]
    return total


def row(label: str, problem: Problem) -> Row:
    bracket_table.cache_clear()
    overlap_table.cache_clear()
    started = time.thread_time()
    closure = Closure(problem)
    compiled, _ = closure.compiled
    outputs = closure.mean_outputs
    built = 1e3 * (time.thread_time() - started)
    direction = np.ones(len(problem.features)) / np.sqrt(len(problem.features))
    half, edge = 0.5 * direction, 0.9999 * direction
    inside, at_edge, called, averaged = seconds(
        lambda: evaluate(compiled, half, CALLS),
        lambda: evaluate(compiled, edge, CALLS),
        lambda: closure(half),
        lambda: average_outputs(outputs, half, CALLS) if closure.centering else None,
        rounds=5,
        turn=0.005,
    )
    note = (
        f"|q| = 0.9999: {1e6 * at_edge / CALLS:.2f} us; from Python {1e6 * called:.1f} us; tabulated in {built:.1f} ms"
    )
    if closure.centering:
        note += f"; mean outputs {1e6 * averaged / CALLS:.2f} us"
    return Row(label, 1e6 * inside / CALLS, "us", note=note)


def tables() -> Iterator[Table]:
    row("", make_problem("quadratic", LAWS["uniform"], CORRELATED, "batch"))  # compiles
    rows = []
    for activation in ACTIVATIONS:
        for noise, centering in ((None, "none"), (CORRELATED, "batch")):
            problem = make_problem(activation, [THREE_POINT], noise, centering)
            rows.append(row(f"{activation}, {'correlated' if noise else 'no'} noise, centring {centering}", problem))
    yield Table("Closures of one three-point feature, by activation", ONE_THREAD, tuple(rows))
    rows = []
    for name, laws in LAWS.items():
        for activation in ("tanh", "relu"):
            rows.append(row(f"{activation}, {name}, no noise", make_problem(activation, laws, None, "none")))
            centred = make_problem(activation, laws, OPPOSITE, "population")
            rows.append(row(f"{activation}, {name}, opposite noise, centring population", centred))
    yield Table("Closures by hidden law", ONE_THREAD, tuple(rows))


if __name__ == "__main__":
    run_benchmark(tables, __file__, __doc__)
