"""Verdicts on own runs that keep a sample of their data name what the problem does not assume."""

import numpy as np
import pytest

import meanfield
from meanfield.samples.evidence import Evidence
from meanfield.samples.findings import findings_of
from meanfield.samples.problem_from import assumed_of
from tests.samples.test_problem_from import NEURON, neuron

SHORT = meanfield.with_values(
    NEURON,
    {"particles.dimension": 100, "particles.replicas": 8, "particles.snapshots": (0.0, 2.0), "time.outputs": 3},
)


def runs_of(problem, said=SHORT):
    """Runs of a problem as results of own code, which is said to train another."""
    sgd = meanfield.simulate_sgd(problem, workers=1)
    arrays = {name: sgd[name].values for name in ("q", "r")}
    weights = np.full((8, 3, 100), np.nan)
    weights[:, [0, 2]] = sgd["weights"].values
    return meanfield.runs(said, time=sgd["time"].values, weights=weights, U=sgd["U"].values, **arrays)


@pytest.fixture(scope="module")
def runs():
    """Runs that learn twice as fast as the problem says."""
    return runs_of(meanfield.with_value(SHORT, "model.learning_rate", 0.15))


def with_samples(runs, kind):
    x, _, u = neuron(kind)
    return runs.assign(samples=(("sample", "coordinate"), x), U=runs["U"].copy(data=np.broadcast_to(u, (8, 100, 1))))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("", "The samples of its data contradict nothing in the problem (though 1500 samples cannot show"),
        ("independent entries with heavy tails", "The samples of its data contradict nothing in the problem (though"),
        ("common radius", "As is to be expected: |a|^2/N scatters by "),
        ("repeated samples", "As is to be expected: every sample was used 4"),
    ],
)
def test_the_verdict_says_why(runs, kind, words):
    report = meanfield.compare(meanfield.solve_order_parameters(SHORT), with_samples(runs, kind))
    reason = report["reason"].item()
    assert report.attrs["verdict"] == "DIFFERS"
    assert reason.startswith(words)
    assert ("a larger N will not help" in reason) is words.startswith("As")
    assert ("A larger N tells whether it is what is too small to matter at this N, heavy tails: " in reason) is (
        kind.endswith("heavy tails")
    )


def test_without_samples_no_reason_in_them_is_given(runs):
    reason = meanfield.compare(meanfield.solve_order_parameters(SHORT), runs)["reason"].item()
    assert reason.startswith("The largest difference")


def test_of_runs_that_agree_it_is_said_where_their_samples_contradict_the_limit():
    runs, limit = runs_of(SHORT), meanfield.solve_order_parameters(SHORT)
    others = with_samples(runs_of(meanfield.with_value(SHORT, "particles.seed", 7)), "common radius")
    for first, kind, said in ((limit, "", False), (limit, "common radius", True), (others, "common radius", False)):
        report = meanfield.compare(first, with_samples(runs, kind))
        assert report.attrs["verdict"] == "AGREES"  # 1 seed in 20 would differ
        assert report["reason"].item().startswith("Data of the runs are not those") is said


def test_weights_are_held_against_samples_that_they_have_not_seen():
    """A sample itself as weights: its own field is sqrt(N), and others are of order 1."""
    x, _, u = neuron("")
    for over, named in ((0.0, True), (0.5, False)):
        e = Evidence(x, u, assumed_of(NEURON), 400.0, np.random.default_rng(0), ((over, x[:1].T),))
        assert any("fields of weights" in each.words for each in findings_of(e)) is named


def test_laws_that_a_result_names_and_nobody_opens_are_not_judged():
    law = {"samples": np.sqrt(5.5) * np.array([-1.0, *np.zeros(8), 1.0])}
    problem = meanfield.with_value(SHORT, "features[0].hidden", law)
    report = meanfield.compare(
        meanfield.solve_order_parameters(problem), with_samples(runs_of(problem, problem), "common radius")
    )
    assert "|a|^2/N scatters by" in report["reason"].item()
    assert "the hidden variables" not in report["reason"].item()
