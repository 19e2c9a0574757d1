"""Learning rates and strengths of the prior that change in time: equations, densities and SGD.

Random schedules have fixed seeds. The reference integrates the reduced equations by SciPy between the corners, with
coefficients of the constant problem that are multiplied by hand.
"""

import numpy as np
import pytest

import meanfield
from meanfield.families.contrastive.closures import Closure
from meanfield.mckean_vlasov.drive import drive_of
from meanfield.problems.base import schedules_of
from meanfield.problems.problem_keys import at_time
from tests.example_problems import make_problem
from tests.references_in_time import inside, integrated, random_schedule

LINES = ("time = { stop = 6.0, outputs = 9 }", "density.tolerance = 1e-6", "particles.dimension = 400")


def driven(seed, prior="l2", **values):
    rng = np.random.default_rng(seed)
    schedules = {"model.learning_rate": random_schedule(rng, 0.15), "prior.strength": random_schedule(rng, 2.0)}
    return meanfield.with_values(make_problem(*LINES), {"prior.name": prior} | schedules | values)


def overlaps(problem):
    """Overlaps at the output times, with gain and noise of tau = 1 multiplied by tau and its square."""
    closure = Closure(meanfield.with_values(problem, {"model.learning_rate": 1.0, "prior.strength": 1.0}))
    schedule, times = schedules_of(problem)["model.learning_rate"], problem.time.outputs_at

    def velocity(t, q, low, high):
        tau = float(schedule.values_at(np.array(inside(t, low, high))))
        g, diffusion = closure(q)
        return q * (tau * q @ g - 0.5 * tau**2 * diffusion) - tau * g

    return integrated(velocity, problem.initial_overlap, times, schedule.corners)


@pytest.mark.parametrize("seed", range(6))
def test_order_parameters_follow_any_schedule(seed):
    problem = driven(seed)
    found = meanfield.solve_order_parameters(problem)
    assert found.attrs["status"] == "complete"
    assert found["q"].values == pytest.approx(overlaps(problem), abs=1e-8)  # ODE_ACCURACY


@pytest.mark.parametrize("seed", [10, 11])
@pytest.mark.parametrize("scheme", ["lagrangian", "eulerian"])
def test_densities_follow_schedules_within_their_estimated_error(seed, scheme):
    """A linear prior leaves the overlaps as they are, whatever its strength."""
    problem = driven(seed, **{"density.scheme": scheme})
    found = meanfield.solve_density(problem)
    assert found.attrs["status"] == "complete"
    error = np.abs(found["q"].values - overlaps(problem))
    assert np.all(error <= found["q_error"].values + 1e-10)  # the reference is good to 1e-10
    assert found["q_error"].max() <= 1e-6  # density.tolerance


def test_both_schemes_agree_under_a_prior_that_switches_on():
    problem = driven(12, prior="log_cosh")
    lagrangian, eulerian = (
        meanfield.solve_density(meanfield.with_value(problem, "density.scheme", scheme))
        for scheme in ("lagrangian", "eulerian")
    )
    for name in ("q", "r"):
        allowed = lagrangian[f"{name}_error"] + eulerian[f"{name}_error"]
        assert np.all(np.abs(lagrangian[name] - eulerian[name]) <= allowed)


def test_g_and_the_noise_have_the_factors_of_their_time():
    problem = driven(3)
    found = meanfield.solve_order_parameters(problem).isel(time=5)
    fixed = at_time(problem, float(found["time"]))
    g, diffusion = Closure(fixed)(found["q"].values)
    assert found["g"].values == pytest.approx(g, rel=1e-9)  # a table of the schedule, resolved to 1e-12
    assert float(found["Lambda"]) == pytest.approx(diffusion, rel=1e-9)  # as in the line above


@pytest.mark.parametrize("method", ["plain", "projected", "chain"])
def test_sgd_before_a_jump_is_that_of_the_number_and_differs_after_it(method):
    jump = {"times": [0.0, 3.0], "values": [0.07, 0.02], "interpolation": "step"}
    values = {"prior.name": "l2", "prior.strength": 0.5, "particles.method": method, "particles.dimension": 60}
    fixed = meanfield.with_values(make_problem(*LINES), {**values, "model.learning_rate": 0.07})
    problem = meanfield.with_value(fixed, "model.learning_rate", jump)
    found, known = (meanfield.simulate_sgd(each)["q"].values for each in (problem, fixed))
    assert np.array_equal(found[:, :5], known[:, :5])  # the fifth output is at the jump, t = 3
    assert not np.any(found[:, 5:] == known[:, 5:])


def test_a_drive_has_the_values_of_its_own_side_at_a_corner():
    drive = drive_of(lambda t: np.array([np.where(t < 1.0, 0.5, 1.0), 1.0 + 0.0 * t, t]), np.array([1.0]), 2.0)
    before, after = drive.room, drive.room
    drive.fill(1.0, 0.0, 1.0, before)
    drive.fill(1.0, 1.0, np.inf, after)
    assert before == pytest.approx([0.5, 1.0, 1.0, 0.0, 0.0, 1.0], abs=1e-11)  # a digit below RESOLVED: slopes
    assert after == pytest.approx([1.0, 1.0, 1.0, 0.0, 0.0, 1.0], abs=1e-11)  # a digit below RESOLVED: slopes
