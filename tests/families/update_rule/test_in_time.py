"""Numbers of samples that change in steps: the same as phases in all bits, and laws of hidden variables."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError

STEPS = {"model.batch_size": [1, 3], "data.noise": [1.0, 1.7]}
"""Numbers of samples before and after t = 0.5."""

PROBLEM = meanfield.Problem(
    family="update_rule",
    model={"rule": "perceptron", "rule_parameters": {"rate": 0.6}},
    features=[{"initial_overlap": 0.3}],
    prior={"name": "l2", "strength": 0.2},
    time={"stop": 1.0, "outputs": 5},
    particles={"dimension": 60, "replicas": 4, "seed": 3},
)

SPIKED = meanfield.Problem(
    family="update_rule",
    model={"rule": "oja", "rule_parameters": {"rate": 0.3}},
    data={"signal": "spiked"},
    features=[{"hidden": {"law": "gaussian", "second_moment": 2.0}, "initial_overlap": 0.4}],
    time={"stop": 1.0, "outputs": 5},
    order_parameters={"tolerance": 1e-10},
)


def jumping(values):
    return {"times": [0.0, 0.5], "values": values, "interpolation": "step"}


@pytest.mark.parametrize("method", ["order_parameters", "density", "particles"])
def test_steps_are_phases(method):
    """The same stretches and the same streams, so that all bits are the same."""
    later = {key: after for key, (_, after) in STEPS.items()}
    by_phases = meanfield.with_values(PROBLEM, {"phases": [{"stop": 0.5}, {"stop": 1.0, "set": later}]})
    by_steps = meanfield.with_values(PROBLEM, {key: jumping(values) for key, values in STEPS.items()})
    found, known = (meanfield.solve(each, method) for each in (by_steps, by_phases))
    for name in set(known.data_vars) - {"phase"}:
        assert np.array_equal(found[name], known[name], equal_nan=True), name


def test_a_law_that_changes_is_another_from_then_on():
    """A run goes on as one with the other law does that begins with what was reached."""
    key = "features[0].hidden.second_moment"
    found = meanfield.solve_order_parameters(meanfield.with_value(SPIKED, key, jumping([2.0, 3.0])))
    middle = found.isel(time=2)
    start = {
        "features[0].initial_overlap": float(middle["R"].item()),
        "students": [{"initial_norm": float(middle["Q"].item())}],
        "time.stop": 0.5,
        "time.outputs": 3,
    }
    rest = meanfield.solve_order_parameters(meanfield.with_values(SPIKED, start | {key: 3.0}))
    law = {"law": "gaussian", "second_moment": 3.0}
    phases = [{"stop": 0.5}, {"stop": 1.0, "set": {"features[0].hidden": law}}]
    same = meanfield.solve_order_parameters(meanfield.with_value(SPIKED, "phases", phases))
    for name in ("R", "Q"):
        assert found[name].values[2:] == pytest.approx(rest[name].values, abs=1e-9)  # ten times the tolerance, of two
        assert np.array_equal(found[name], same[name])


def test_samples_that_change_smoothly_say_what_to_do():
    with pytest.raises(InputError, match=r"^data\.noise: changes smoothly, .*interpolation = 'step'"):
        meanfield.with_value(PROBLEM, "data.noise", {"schedule": "linear", "start": 1.0, "end": 2.0, "duration": 1.0})
    with pytest.raises(InputError, match=r"batch_size: is 1\.\d+ at t = .* whole number"):
        meanfield.with_value(PROBLEM, "model.batch_size", {"times": [0.0, 1.0], "values": [1, 3]})


def test_explain_says_what_changes():
    text = str(meanfield.explain(meanfield.with_values(PROBLEM, {key: jumping(each) for key, each in STEPS.items()})))
    text = " ".join(text.split())
    assert "(1 at t = 0, 3 at t = 0.5, in steps) samples per step" in text
    assert "white noise of variance 1 at t = 0, 1.7 at t = 0.5, in steps" in text
