"""How long one evaluation of the closures takes, (q) -> (g, Lambda), on one core.

Measured is one evaluation inside compiled code at |q| = 0.5. The notes add one at |q| = 0.9999, where the
pre-activations nearly lose their Gaussian part; the two mean outputs, which SGD with population centring asks for at
every step; a call from Python; and what it takes to tabulate everything once per problem. The same averages of the same
problem as an update rule, from the step alone, are the last table.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np

import meanfield
from meanfield import Rule
from meanfield.contrastive import Problem
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.closures.expectation import overlap_table
from meanfield.families.contrastive.closures.outputs import mean_outputs
from meanfield.families.contrastive.closures.views import bracket_table
from meanfield.families.update_rule.order_parameters.equations import Equations
from meanfield.ingredients.activations import ACTIVATIONS
from meanfield.mckean_vlasov.closures import closure_values
from validation.benchmarks.table import Row, Table
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


def square(s, rate):  # type: ignore[no-untyped-def]
    """Step of a square on both views without noise."""
    return 4.0 * rate * s**3


def sigmoid(s, rate):  # type: ignore[no-untyped-def]
    """The same of a hyperbolic tangent."""
    return 2.0 * rate * np.tanh(s) * (1.0 - np.tanh(s) ** 2)


def bent(s, rate):  # type: ignore[no-untyped-def]
    """The same of a rectified line."""
    return 2.0 * rate * s * (s > 0.0)


def square_of_first(s1, s2, rate):  # type: ignore[no-untyped-def]
    """Step of a square along the first of two views."""
    return 2.0 * rate * s1 * s2**2


def square_of_second(s1, s2, rate):  # type: ignore[no-untyped-def]
    """The same along the second."""
    return 2.0 * rate * s2 * s1**2


def sigmoid_of_first(s1, s2, rate):  # type: ignore[no-untyped-def]
    """Step of a hyperbolic tangent along the first of two views."""
    return rate * np.tanh(s2) * (1.0 - np.tanh(s1) ** 2)


def sigmoid_of_second(s1, s2, rate):  # type: ignore[no-untyped-def]
    """The same along the second."""
    return rate * np.tanh(s1) * (1.0 - np.tanh(s2) ** 2)


STEPS = {"quadratic": Rule(square), "tanh": Rule(sigmoid), "relu": Rule(bent, kinks=("s",))}
rule_of_quadratic, rule_of_tanh, rule_of_relu = STEPS.values()
VIEWS = {"quadratic": (square_of_first, square_of_second), "tanh": (sigmoid_of_first, sigmoid_of_second)}


def as_a_rule(activation: str, count: int, noisy: bool) -> Row:
    """One evaluation of the equations of an update rule, and of the closure of the same problem."""
    noise = CORRELATED if noisy else None
    problem = make_problem(activation, [THREE_POINT] * count, noise, "none")
    model: dict[str, Any] = {"rule_parameters": {"rate": 0.1}, "batch_size": 4, "constraint": "sphere"}
    given: dict[str, Any] = {"model": model, "data": {"signal": "orthogonal"}, "time": {"stop": 1.0}}
    if noisy:
        gains = [f"{__name__}:{each.__name__}" for each in VIEWS[activation]]
        given["draws"] = [{"views": 2, "view_covariance": [[0.3, 0.15], [0.15, 0.3]], "gain": {"s": gains}}]
    else:
        model["rule"] = STEPS[activation]
    features = [{"hidden": THREE_POINT, "initial_overlap": 0.5 / np.sqrt(count)}] * count
    equations = Equations(meanfield.Problem(family="update_rule", features=features, **given))
    rules = equations.rules(equations.choose([(0.0, equations.start)], 1e-8, {}), lambda choice: choice.rule)
    velocity, closure = equations.velocity(0, rules), Closure(problem)
    q = np.full(count, 0.5 / np.sqrt(count))
    asked, tabulated, compiled = seconds(
        lambda: velocity(0.0, equations.start),
        lambda: closure(q),
        lambda: evaluate(closure.compiled[0], q, CALLS),
        rounds=5,
    )
    label = f"{activation}, {count} feature{'s' * (count > 1)}, {'correlated' if noisy else 'no'} noise"
    times = f"closure {1e6 * tabulated:.1f} us from Python, {1e6 * compiled / CALLS:.2f} us in compiled code"
    return Row(label, 1e6 * asked, "us", note=times)


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
    rows = [as_a_rule(activation, count, noisy=False) for activation in STEPS for count in (1, 3)]
    rows += [as_a_rule(activation, count, noisy=True) for activation in VIEWS for count in (1, 3)]
    yield Table("The same averages from the step alone", ONE_THREAD, tuple(rows))
