"""Moving averages of weights: SGD keeps them beside the weights, and the limit knows their order parameters."""

import numpy as np
import pytest

import meanfield
from meanfield.families.contrastive.sgd.steppers import prepare_steppers
from meanfield.families.contrastive.variables import AVERAGES_OF_CHANNELS
from meanfield.problems.file import format_problem
from meanfield.problems.in_time import InTime
from tests.example_problems import make_problem
from tests.families.contrastive.channels.problems import standard
from tests.references_in_time import inside, integrated, replicas_and_statistics, stopped, verdicts

RATE = 1.5
NAMES = ("q_average", "overlap_average", "norm_average")
PROBLEM = make_problem(
    "time = { stop = 3.0, outputs = 4 }", "model.learning_rate = 0.03", f"model.average_rate = {RATE}"
)
SMALL = meanfield.with_values(PROBLEM, {"particles.dimension": 40, "time.stop": 1.0, "time.outputs": 3})
CHANNELS = meanfield.with_values(
    standard(), {"model.average_rate": RATE, "time": {"stop": 1.0, "outputs": 3}, "particles.dimension": 40}
)
MOVING = {
    "model.learning_rate": {"schedule": "warmup_cosine", "peak": 0.05, "warmup": 0.7, "duration": 2.5},
    "phases": [{"stop": 1.3}, {"stop": 3.0, "set": {"model.batch_size": 3}}],
}


def closed_form(problem, q):
    """g and Lambda of a quadratic activation without noise and centring, one feature; theory.md, section 8."""
    tau, m, law = problem.model.learning_rate, problem.model.batch_size, problem.features[0].hidden
    nu, kappa = law.second_moment - 1.0, law.fourth_moment - 3.0
    beta = law.fourth_moment**2 / law.second_moment - 15.0  # m6 = m4^2/m2, as of any three-point law
    sixth = beta * q**6 + 15.0 * kappa * q**4 * (1.0 - q**2) + 45.0 * nu * q**2 * (1.0 - q**2) ** 2 + 15.0
    return -4.0 * tau * q * (kappa * q**2 + 3.0 * nu * (1.0 - 2.0 * q**2)), 16.0 * tau**2 / m * sixth


@pytest.mark.parametrize("changes", [{}, MOVING], ids=["constant", "schedule and phases"])
def test_the_limit_is_that_of_scipy_with_closed_forms(changes):
    problem = meanfield.with_values(PROBLEM, changes)
    in_time = InTime(problem)

    def velocity(t, y, low, high):
        q, average, overlap, norm = y
        g, diffusion = closed_form(in_time(inside(t, low, high)), q)
        turning = q * g - 0.5 * diffusion
        moved = overlap * turning - g * average
        return [q * turning - g, RATE * (q - average), moved + RATE * (1 - overlap), 2 * RATE * (overlap - norm)]

    known = integrated(velocity, [0.5, 0.5, 1.0, 1.0], problem.time.outputs_at, in_time.corners)
    found = meanfield.solve_order_parameters(problem)
    together = np.column_stack(
        [found["q"].values[:, 0], found["q_average"].values[:, 0], found[NAMES[1]], found[NAMES[2]]]
    )
    assert together == pytest.approx(known, abs=1e-8)  # the accuracy that results of order parameters state


@pytest.mark.slow  # the limit is that of SciPy above, and runs take each step below
@pytest.mark.parametrize(("method", "dimension"), [("projected", 400), ("plain", 200)])
def test_sgd_agrees_with_the_limit_and_with_no_rate_a_fifth_away(method, dimension):
    """Verdicts are wrong once in 20 times by chance; the seed is fixed."""
    problem = meanfield.with_value(
        PROBLEM, "particles", {"method": method, "dimension": dimension, "replicas": 16, "seed": 1}
    )
    found = verdicts(problem, "order_parameters", "model.average_rate", [0.8 * RATE, 1.2 * RATE])
    assert found == ["AGREES", "DIFFERS", "DIFFERS"]


@pytest.mark.parametrize(
    ("problem", "names"), [(SMALL, NAMES), (CHANNELS, AVERAGES_OF_CHANNELS)], ids=["one channel", "several"]
)
@pytest.mark.parametrize("method", ["projected", "plain"])
@pytest.mark.parametrize("phases", [None, [{"stop": 0.5}, {"stop": 1.0, "set": {"model.batch_size": 2}}]])
def test_each_step_moves_the_average_and_no_weight(problem, names, method, phases):
    problem = meanfield.with_values(problem, {"phases": phases})

    def make():
        return prepare_steppers(problem, method)(range(1))

    stepper = make()
    other = prepare_steppers(meanfield.with_value(problem, "model.average_rate", None), method)(range(1))
    average, U = other.snapshot["weights"][0].copy(), other.snapshot["U"][0]
    for step in range(40):
        other.advance(step, 1)
        w = other.snapshot["weights"][0]
        average = average + RATE / 40 * (w - average)
    stepper.advance(0, 13)
    stepper.advance(13, 27)
    assert np.array_equal(stepper.snapshot["weights"], other.snapshot["weights"])
    assert stepper.rows["q"].tobytes() == other.rows["q"].tobytes()
    for name, known in zip(names, (U.T, w.T, average.T), strict=True):
        assert stepper.rows[name][0] == pytest.approx(known @ average / 40, abs=1e-14)  # rounding of 40 numbers
    again = stopped(make, 23, 40)
    assert all(np.array_equal(again.rows[name], row) for name, row in stepper.rows.items())


def test_statistics_are_those_of_the_replicas():
    _, statistics = replicas_and_statistics(SMALL, NAMES)
    assert {"q_average_covariance", "overlap_average_variance", "norm_average_variance"} <= set(statistics)


def test_the_cheapest_steps_with_weights_are_taken():
    automatic = meanfield.with_values(SMALL, {"particles.method": "auto", "particles.snapshots": []})
    assert "projected" in meanfield.simulate_sgd(automatic).attrs["provenance"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"particles.method": "chain"}, r"'chain' with model\.average_rate = 1\.5: .*to 'projected', or remove"),
        ({"model.average_rate": 41.0}, r"model\.average_rate = 41 .*rate to 40 or less, or raise particles\.dimension"),
    ],
)
def test_what_cannot_be_averaged_says_what_to_do(changes, message):
    with pytest.raises(meanfield.InputError, match=message):
        meanfield.simulate_sgd(meanfield.with_values(SMALL, changes))
    for remedy in ({"particles.method": "projected"}, {"model.average_rate": 40.0}):
        assert meanfield.simulate_sgd(meanfield.with_values(SMALL, remedy)).attrs["status"] == "complete"


def test_rates_are_above_zero():
    with pytest.raises(meanfield.InputError, match=r"model\.average_rate = 0\.0: should be greater than 0"):
        meanfield.with_value(SMALL, "model.average_rate", 0.0)


def test_other_priors_do_not_close_and_sgd_takes_them():
    problem = meanfield.with_values(SMALL, {"prior": {"name": "l1", "strength": 0.5}})
    with pytest.raises(meanfield.InputError, match=r"prior\.name = 'l1': the order parameters close only .* or SGD"):
        meanfield.solve_order_parameters(problem)
    assert np.isfinite(meanfield.simulate_sgd(problem)["norm_average"]).all()


def test_results_without_the_key_are_what_they_were():
    without = meanfield.with_value(SMALL, "model.average_rate", None)
    assert "average" in format_problem(SMALL)
    assert "average" not in format_problem(without)
    both = [meanfield.solve_order_parameters(without), meanfield.simulate_sgd(without)]
    report = meanfield.compare(*both)
    assert not [name for each in (*both, report) for name in each.variables if "average" in name]
