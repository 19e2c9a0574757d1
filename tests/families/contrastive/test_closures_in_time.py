"""Batch sizes, noise of views and laws of hidden variables that change in time by schedules, in the limit.

The reference is that of phases: SciPy, with the vector field of the constant problem of each time.
"""

import numpy as np
import pytest

import meanfield
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.limit import stages_of
from meanfield.mckean_vlasov.closure_in_time import ClosureInTime, nodes_in_time
from meanfield.problems.problem_keys import at_time
from tests.example_problems import make_problem
from tests.families.contrastive.test_in_time import LINES
from tests.families.contrastive.test_phases import SCHEMES, covariance, overlaps
from tests.references_in_time import random_schedule

BATCH = {"times": [0.0, 1.7, 3.0], "values": [4, 20, 9], "interpolation": "step"}
NOISE = {"schedule": "cosine", "start": 0.6, "end": 0.05, "duration": 4.0}

CHEAP = {"augmentation.variance[0]": {"schedule": "linear", "start": 0.2, "end": 0.5, "duration": 9.0}}
"""Closures that are polynomials in time, as there is no correlation."""


def base(*lines):
    return make_problem(
        *LINES, "model.learning_rate = 0.1", "prior = { name = 'l2', strength = 0.5 }",
        "augmentation = { variance = [0.2, 0.3], correlation = 0.0 }", *lines,
    )  # fmt: skip


def above(rng, least, largest):
    """Schedule between two numbers."""
    found = random_schedule(rng, largest - least)
    if "values" in found:
        return found | {"values": [least + value for value in found["values"]]}
    if "peak" in found:
        return found | {"start": least, "peak": largest, "end": least}
    return found | {"start": largest, "rate": 0.2 * found["rate"]}  # above `least` for these numbers


def scheduled(seed):
    """Problem in which two numbers follow random schedules, of a random activation."""
    rng = np.random.default_rng(seed)
    choices = {
        "model.batch_size": BATCH,
        "augmentation.variance[0]": above(rng, 0.05, 0.6),
        "augmentation.correlation": above(rng, 0.0, 0.9),
        "features[0].hidden.second_moment": above(rng, 0.4, 1.4),
        "model.learning_rate": above(rng, 0.03, 0.15),
    }
    keys = rng.choice(list(choices), 2, replace=False)
    activation = ["quadratic", "cubic", "tanh"][rng.integers(3)]
    return meanfield.with_values(base(), {"model.activation": activation} | {str(key): choices[key] for key in keys})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 32))
def test_order_parameters_follow_schedules_of_closures(seed):
    problem = scheduled(seed)
    found = meanfield.solve_order_parameters(problem)
    assert found.attrs["status"] == "complete"
    assert found["q"].values == pytest.approx(overlaps(problem), abs=1e-8)  # ODE_ACCURACY


def test_g_and_the_noise_are_those_of_their_time():
    problem = meanfield.with_values(base(), CHEAP)
    found = meanfield.solve_order_parameters(problem).isel(time=3)
    g, diffusion = Closure(at_time(problem, float(found["time"])))(found["q"].values)
    assert found["g"].values == pytest.approx(g, rel=1e-7)  # RESOLVED, relative to the largest g
    assert float(found["Lambda"]) == pytest.approx(diffusion, rel=1e-7)  # as in the line above


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("noise", [CHEAP, {"augmentation.variance[1]": NOISE}])
def test_densities_follow_schedules_of_closures_within_their_estimated_error(noise, scheme):
    values = {"model.batch_size": BATCH, "density.scheme": scheme}
    problem = meanfield.with_values(base(), values | noise)
    found = meanfield.solve_density(problem)
    assert found.attrs["status"] == "complete"
    error = np.abs(found["q"].values - overlaps(problem))
    assert np.all(error <= found["q_error"].values + 1e-9)  # RESOLVED, of g, over a unit of time
    assert found["q_error"].max() <= 1e-6  # density.tolerance


@pytest.mark.slow
@pytest.mark.parametrize("noise", [CHEAP, {"augmentation.variance[1]": NOISE}])
def test_covariances_follow_schedules_of_closures(noise):
    problem = meanfield.with_values(base(), {"model.batch_size": BATCH} | noise)
    right = covariance(problem)
    found = meanfield.solve_order_parameters(problem)["q_covariance"].values[:, 0, 0]
    assert np.abs(found - right).max() <= 1e-5 * right.max()  # 1e-8 a step, and 1e-6 for S in time


@pytest.mark.parametrize(
    "smooth", [CHEAP, pytest.param({"features[1].hidden.second_moment": NOISE}, marks=pytest.mark.slow)]
)
def test_densities_of_two_features_follow_steps_and_what_is_smooth(smooth):
    one = {"hidden": {"law": "rademacher", "second_moment": 1.1}, "coordinate": {"law": "rademacher"}}
    two = {"features": [one | {"initial_overlap": q} for q in (0.5, 0.3)], "model.batch_size": BATCH, "time.stop": 2.0}
    problem = meanfield.with_values(meanfield.with_values(base(), two), smooth)
    found = meanfield.solve_density(problem)
    assert found.attrs["status"] == "complete"
    error = np.abs(found["q"].values - meanfield.solve_order_parameters(problem)["q"].values)
    assert np.all(error <= found["q_error"].values + 1e-8)  # ODE_ACCURACY


def test_a_number_that_is_constant_for_a_while_has_one_closure_then():
    table = {"times": [0.0, 2.0, 4.0, 6.0], "values": [0.2, 0.2, 0.5, 0.5]}
    stages = stages_of(meanfield.with_value(base(), "augmentation.variance[0]", table))
    assert [(stage.start, isinstance(stage.closure, ClosureInTime)) for stage in stages] == [
        (0.0, False), (2.0, True), (4.0, False),
    ]  # fmt: skip


def test_nodes_in_time_are_few_and_a_stretch_that_they_do_not_resolve_is_halved():
    ((_, nodes),) = nodes_in_time(lambda t: np.array([[t**2, 1.0 + t]]), 0.0, 3.0, 8)
    assert len(nodes) == 3  # of polynomials of degree 2
    parts = nodes_in_time(lambda t: np.array([[1.0 / (0.05 + t)]]), 0.0, 1.0, 32)
    assert len(parts) > 1
    assert [start for start, _ in parts] == sorted(start for start, _ in parts)
    with pytest.raises(meanfield.InputError, match="not smooth"):
        nodes_in_time(lambda t: np.array([[abs(t - 0.3)]]), 0.0, 1.0, 16)


@pytest.mark.parametrize(
    ("key", "schedule", "said"),
    [
        ("model.batch_size", {"times": [0.0, 1.0], "values": [4, 9]}, r"model\.batch_size.*whole number.*step"),
        ("augmentation.variance[0]", {"schedule": "linear", "start": 0.1, "end": -0.1, "duration": 2.0}, "at least 0"),
        (
            "features[0].hidden.second_moment",
            {"schedule": "linear", "start": 1.0, "end": 5.0, "duration": 2.0},
            r"features\[0\]\.hidden: at t = .*second_moment\^2",
        ),
    ],
)
def test_values_that_no_time_allows_are_refused(key, schedule, said):
    with pytest.raises(meanfield.InputError, match=said):
        meanfield.with_value(base(), key, schedule)


def test_what_changes_is_explained():
    law = {"law": "gaussian", "second_moment": {"schedule": "linear", "start": 0.5, "end": 1.5, "duration": 3.0}}
    values = {"model.batch_size": BATCH, "augmentation.variance[0]": NOISE, "features[0].hidden": law}
    text = str(meanfield.explain(meanfield.with_values(base(), values)))
    assert all(words in text for words in ("cosine from 0.6", "linear from 0.5 to 1.5", "20 at t = 1.7"))
