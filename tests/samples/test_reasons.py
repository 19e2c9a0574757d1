"""Verdicts on own runs that keep a sample of their data name what the problem does not assume."""

import numpy as np
import pytest

import meanfield
from tests.samples.test_problem_from import NEURON, neuron

SHORT = meanfield.with_values(
    NEURON,
    {"particles.dimension": 100, "particles.replicas": 8, "particles.snapshots": (0.0, 2.0), "time.outputs": 3},
)


@pytest.fixture(scope="module")
def runs():
    """Runs that learn twice as fast as the problem says, as results of own code."""
    sgd = meanfield.simulate_sgd(meanfield.with_value(SHORT, "model.learning_rate", 0.15), workers=1)
    arrays = {name: sgd[name].values for name in ("q", "r")}
    weights = np.full((8, 3, 100), np.nan)
    weights[:, [0, 2]] = sgd["weights"].values
    return meanfield.runs(SHORT, time=sgd["time"].values, weights=weights, U=sgd["U"].values, **arrays)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("", "The samples of its data contradict nothing in the problem (though 1500 samples cannot show"),
        ("common radius", "As is to be expected: |a|^2/N scatters by "),
        ("repeated samples", "As is to be expected: every sample was used 4"),
    ],
)
def test_the_verdict_says_why(runs, kind, words):
    x, _, u = neuron(kind)
    own = runs.assign(samples=(("sample", "coordinate"), x), U=runs["U"].copy(data=np.broadcast_to(u, (8, 100, 1))))
    report = meanfield.compare(meanfield.solve_order_parameters(SHORT), own)
    assert report.attrs["verdict"] == "DIFFERS"
    assert report["reason"].item().startswith(words)
    assert ("a larger N will not help" in report["reason"].item()) is bool(kind)


def test_without_samples_no_reason_in_them_is_given(runs):
    reason = meanfield.compare(meanfield.solve_order_parameters(SHORT), runs)["reason"].item()
    assert reason.startswith("The largest difference")
