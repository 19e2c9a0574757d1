"""Learning rates, batches, label noise and weight decay that change in time: order parameters, densities and SGD.

Random schedules have fixed seeds. The reference integrates the published rates of committee machines by SciPy, anew
from each corner of a schedule on.
"""

import itertools

import numpy as np
import pytest

import meanfield
from meanfield.families.hidden_manifold.particles.steppers import prepare_steppers
from meanfield.problems.base import corners_of
from tests.families.hidden_manifold.problems import problem
from tests.families.hidden_manifold.test_committee import GAUSSIAN, published_rates
from tests.references_in_time import inside, integrated, random_schedule

ONE_UNIT = {
    "teacher": {"overlap": [[1.0]], "output_weights": [1.0]},
    "student": {"output_weights": [0.8], "on_teacher": [[0.3]], "elsewhere": [[0.5]]},
}
TWO_BLOCKS = {"nonlinearity": "linear", "spectrum": {"law": "atoms", "eigenvalues": [0.4, 1.6]}}
LARGEST = {"learning_rate": 1.0, "output_learning_rate": 0.5, "label_noise": 0.8, "weight_decay": 0.6}
SIZES = {"time": {"stop": 6.0, "outputs": 9}, "particles": {"dimension": 40, "replicas": 2}}


def random_training(seed):
    """Values of all keys, each of which changes in time."""
    rng = np.random.default_rng(seed)
    batches = {"times": [0.0, rng.uniform(1.0, 4.0)], "values": rng.choice([1.0, 2.0, 5.0], 2), "interpolation": "step"}
    schedules = {key: random_schedule(rng, largest) for key, largest in LARGEST.items()}
    return schedules | {"batch_size": batches | {"values": batches["values"].tolist()}}


def driven(training, **changes):
    return problem(
        **{"inputs": GAUSSIAN, "order_parameters": {"tolerance": 1e-10}} | SIZES | changes, training=training
    )


def changed(given, **training):
    return meanfield.with_values(given, {f"training.{key}": value for key, value in training.items()})


def reference(given):
    """Q, R and v at the output times, shape (times, numbers)."""
    K, M, T = given.students, given.teachers, given.teacher_overlap
    vt, X = np.array(given.teacher.output_weights), given.initial_on_teacher

    def velocity(t, y, low, high):
        numbers = given.training.numbers_at(np.array([inside(t, low, high)]))[:, 0]
        dR, dQ, dv, _ = published_rates(
            y[: K * K].reshape(K, K), y[K * K : -K].reshape(K, M), T, y[-K:], vt, numbers.tolist()
        )
        return np.concatenate([dQ.ravel(), dR.ravel(), dv])

    R = X @ T
    start = np.concatenate([(R @ X.T + given.student.rest).ravel(), R.ravel(), given.student.output_weights])
    return integrated(velocity, start, given.time.outputs_at, corners_of(given))


def numbers_of(result):
    """Q, R and v of a result, as `reference` has them, after leading dims."""
    leading = result["v"].shape[:-1]
    return np.concatenate([result[name].values.reshape(*leading, -1) for name in ("Q", "R", "v")], axis=-1)


@pytest.mark.parametrize("seed", range(10))
def test_order_parameters_follow_any_schedules(seed):
    given = driven(random_training(seed), **ONE_UNIT)
    found = meanfield.solve_order_parameters(given)
    assert found.attrs["status"] == "complete"
    assert np.abs(numbers_of(found) - reference(given)).max() < 1e-8  # a hundred times the tolerance


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 150))
def test_order_parameters_of_two_units_follow_any_schedules(seed):
    given = driven(random_training(seed))
    assert np.abs(numbers_of(meanfield.solve_order_parameters(given)) - reference(given)).max() < 1e-8  # as above


SCHEDULED = {
    "learning_rate": 0.7,
    "output_learning_rate": 0.2,
    "batch_size": 2,
    "label_noise": 0.3,
    "weight_decay": 0.1,
}


@pytest.mark.parametrize("method", ["plain", "chain"])
@pytest.mark.parametrize("key", SCHEDULED)
def test_sgd_before_a_jump_is_that_of_the_number_and_differs_after_it(method, key):
    fixed = driven(SCHEDULED, particles=SIZES["particles"] | {"method": method})
    jump = {"times": [0.0, 3.0], "values": [float(SCHEDULED[key]), 2.0 * SCHEDULED[key]], "interpolation": "step"}
    found, known = (meanfield.simulate_sgd(each)["Q"].values for each in (changed(fixed, **{key: jump}), fixed))
    assert np.array_equal(found[:, :5], known[:, :5])  # the fifth output is at the jump, t = 3
    assert not np.any(found[:, 5:] == known[:, 5:])


def test_chains_follow_the_equations_of_random_schedules():
    """Means of 100 chains at N = 1,000 are within five standard errors at the last time: 5e-6 false alarms."""
    particles = {"dimension": 1000, "replicas": 100, "method": "chain"}
    given = driven(random_training(20), **ONE_UNIT, particles=particles, time={"stop": 3.0, "outputs": 2})
    runs = numbers_of(meanfield.simulate_sgd(given))[:, -1]
    off = np.abs(runs.mean(axis=0) - reference(given)[-1]) / (runs.std(axis=0, ddof=1) / np.sqrt(len(runs)))
    assert off.max() < 5.0


def test_steps_do_not_depend_on_how_they_are_cut():
    given = driven(random_training(6), particles=SIZES["particles"] | {"method": "chain"})
    whole, cut = (prepare_steppers(given, "chain")(range(2)) for _ in range(2))
    whole.advance(0, 240)
    for first, last in itertools.pairwise([0, 1, 100, 131, 240]):
        cut.advance(first, last - first)
    assert all(np.array_equal(whole.state[name], cut.state[name]) for name in whole.kept)


FALLING = {"schedule": "linear", "start": 0.5, "end": -0.5, "duration": 6.0}


@pytest.mark.parametrize(
    ("training", "said"),
    [
        ({"label_noise": FALLING}, r"training\.label_noise: is -\S+ at t = 3\.\d+ of its schedule, .* at least 0"),
        ({"batch_size": {"times": [0.0, 2.0], "values": [1.0, 4.0]}}, r"batch_size: is 1\.\d+ at .* a whole number"),
    ],
)
def test_values_out_of_range_are_refused_with_their_time(training, said):
    with pytest.raises(meanfield.InputError, match=said):
        changed(driven({"learning_rate": 0.5}), **training)


def test_decay_that_turns_weights_over_is_refused_with_its_time():
    rising = {"times": [0.0, 2.0], "values": [0.0, 500.0], "interpolation": "step"}
    with pytest.raises(meanfield.InputError, match=r"weight_decay = 500 at t = 2: .* lower it to 80 or less"):
        meanfield.simulate_sgd(driven({"learning_rate": 0.5, "weight_decay": rising}))


@pytest.mark.parametrize("method", ["fixed_points", "assumptions"])
def test_what_has_no_time_refuses_schedules(method):
    given = driven({"learning_rate": FALLING | {"end": 0.1}})
    with pytest.raises(meanfield.InputError, match=r"training\.learning_rate: .* meanfield\.at_time\(problem, t\)"):
        meanfield.solve(given, method)
    if method == "fixed_points":
        assert meanfield.solve(meanfield.at_time(given, 6.0), method).attrs["status"] == "complete"


def test_averages_over_fast_means_refuse_a_second_layer_that_learns_alone():
    stopping = {"times": [0.0, 2.0], "values": [0.5, 0.0], "interpolation": "step"}
    given = driven(
        {"learning_rate": stopping, "output_learning_rate": 0.5}, inputs={"nonlinearity": "step", "centered": False}
    )
    with pytest.raises(meanfield.InputError, match=r"learning_rate is 0 from t = 2 to 6: .* differs from run to run"):
        meanfield.solve_order_parameters(given)


def test_words_say_what_schedules_do():
    jump = {"times": [0.0, 2.0], "values": [1.0, 4.0], "interpolation": "step"}
    given = driven({"learning_rate": 0.5, "batch_size": jump, "label_noise": FALLING | {"end": 0.1}})
    words = str(meanfield.explain(given)).replace("\n", " ")
    assert "samples per step: 1 at t = 0, 4 at t = 2, in steps" in " ".join(words.split())
    assert "noise of variance linear from 0.5 to 0.1 at t = 6" in " ".join(words.split())
