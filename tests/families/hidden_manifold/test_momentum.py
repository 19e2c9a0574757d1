"""Momentum: plain steps with a velocity, and the limit of the learning rates eta/(1 - mu) and eta_v/(1 - mu)."""

from functools import partial

import numpy as np
import pytest

import meanfield
from meanfield.families.hidden_manifold.particles.steppers import prepare_steppers
from meanfield.problems.file import format_problem
from tests.families.hidden_manifold.problems import problem
from tests.references_in_time import stopped

RATES = {"learning_rate": 0.2, "output_learning_rate": 0.1}
OTHERS = {"batch_size": 3, "label_noise": 0.3, "weight_decay": 0.2}
SMALL = {"dimension": 40, "replicas": 1}


def moving(**changes):
    return problem(
        **{"training": RATES | OTHERS | {"momentum": 0.6}, "time": {"stop": 3.0, "outputs": 4}}
        | {"order_parameters": {"tolerance": 1e-6}, "particles": SMALL}
        | changes
    )


def without(given, **values):
    return meanfield.with_values(given, {"training.momentum": 0.0} | {f"training.{k}": v for k, v in values.items()})


@pytest.mark.slow  # the two tests below are of all its numbers
@pytest.mark.parametrize("training", [RATES, RATES | OTHERS], ids=["one sample", "batches"])
def test_sgd_agrees_with_the_limit_of_the_larger_rates_and_with_no_other(training):
    """Verdicts are wrong once in 20 times by chance; the seed is fixed."""
    given = moving(
        training=training | {"momentum": 0.6},
        particles={"dimension": 500, "replicas": 16, "seed": 3, "snapshots": [3.0]},
    )
    sgd, right = meanfield.simulate_sgd(given), meanfield.solve_density(given)
    assert meanfield.compare(right, sgd).attrs["verdict"] == "AGREES"
    for still in (without(given), without(given, learning_rate=0.5), without(given, output_learning_rate=0.25)):
        wrong = meanfield.solve_density(still)
        wrong.attrs |= {name: right.attrs[name] for name in ("problem", "learning_rate")}  # of one problem
        wrong = wrong.assign_coords(eta=right["eta"])
        assert meanfield.compare(wrong, sgd).attrs["verdict"] == "DIFFERS"


@pytest.mark.parametrize("method", ["order_parameters", "density", "fixed_points"])
def test_the_limit_is_that_of_the_larger_rates(method):
    given = meanfield.with_value(moving(), "training.momentum", 0.5)
    found, known = (
        meanfield.solve(p, method) for p in (given, without(given, learning_rate=0.4, output_learning_rate=0.2))
    )
    for name in ("Q", "R", "v", "generalisation_error"):
        assert np.array_equal(found[name], known[name])


def test_a_step_adds_a_share_of_the_one_before():
    """With and without momentum first steps are equal; the second one moves weights by mu times the first one more."""
    tiny = {"learning_rate": 1e-7, "output_learning_rate": 1e-7}  # the error of the second step is as before
    moves = []
    for given in (moving(training=OTHERS | tiny | {"momentum": mu}) for mu in (0.6, 0.0)):
        stepper = prepare_steppers(given, "plain")(range(1))
        path = []
        for step in range(3):
            path.append(np.append(stepper.state["_W"].ravel(), stepper.state["_v"]))
            stepper.advance(step, 1)
        moves.append(np.diff(path, axis=0))
    (first, second), (known, other) = moves
    assert first == pytest.approx(known, abs=1e-15)  # rounding of weights of order 1
    assert second == pytest.approx(other + 0.6 * known, abs=1e-5 * np.abs(known).max())  # steps are 1e-7 of weights


def test_the_velocity_is_part_of_the_state():
    make = partial(prepare_steppers(moving(), "plain"), range(1))
    whole = make()
    whole.advance(0, 9)
    assert np.array_equal(stopped(make, 5, 9).state["_W"], whole.state["_W"])


def test_momentum_may_begin_in_a_phase():
    given = meanfield.with_value(
        without(moving()), "phases", [{"stop": 1.5}, {"stop": 3.0, "set": {"training.momentum": 0.6}}]
    )
    runs, first = meanfield.simulate_sgd(given), meanfield.simulate_sgd(meanfield.with_value(given, "phases", None))
    assert runs.attrs["status"] == "complete"
    assert np.array_equal(runs["Q"][:, :2], first["Q"][:, :2])


def test_what_knows_no_velocity_refuses_momentum():
    blocks = {"nonlinearity": "linear", "spectrum": {"law": "atoms", "eigenvalues": [0.4, 1.6]}}
    with pytest.raises(meanfield.InputError, match=r"'chain' with training\.momentum = 0\.6: .* to 'plain', or remove"):
        meanfield.simulate_sgd(moving(inputs=blocks, particles=SMALL | {"method": "chain"}))
    assert meanfield.simulate_sgd(moving(inputs=blocks)).attrs["status"] == "complete"
    with pytest.raises(meanfield.InputError, match=r"training\.momentum = 0\.6: .*remove it, set inputs\.centered"):
        meanfield.solve_order_parameters(moving(inputs={"nonlinearity": "step", "centered": False}))


def test_files_without_momentum_are_what_they_were():
    assert "momentum" in format_problem(moving())
    assert "momentum" not in format_problem(without(moving()))
    assert "momentum mu = 0.6" in " ".join(str(meanfield.explain(moving())).split())
