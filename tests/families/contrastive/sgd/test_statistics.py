"""Statistics of SGD against the full record of the same ensemble."""

import numpy as np
import pytest

import meanfield
from meanfield.ensembles.statistics import LEVELS
from tests.example_problems import feature, features, make_problem


@pytest.mark.parametrize("method", ["plain", "projected", "chain"])
def test_ensembles_are_summed_up_as_their_record_says(method):
    lines = (
        "time = { stop = 0.5, outputs = 3 }",
        "model.learning_rate = 0.5",
        f"particles = {{ method = '{method}', dimension = 30, replicas = 50, escape_overlap = 0.6, snapshots = [] }}",
        features(feature(0.5), feature(0.2)),
        'prior = { name = "l2", strength = 2.0 }',
    )
    whole = meanfield.simulate_sgd(make_problem(*lines))
    summed = meanfield.simulate_sgd(make_problem(*lines, "particles.record = 'statistics'"))
    assert summed.attrs["method"] == "ensemble"
    assert int(summed["count"]) == 50
    assert summed.q_mean.values == pytest.approx(whole.q.values.mean(axis=0), abs=1e-14)  # rounding
    expected = [30 * np.cov(whole.q.values[:, t].T) for t in range(3)]
    assert summed.q_covariance.values == pytest.approx(np.array(expected), abs=1e-12)  # rounding, times N
    assert np.array_equal(summed.q_quantile, np.quantile(whole.q, LEVELS, axis=0))
    assert np.array_equal(summed.escape_time, whole.escape_time, equal_nan=True)
    assert np.array_equal(summed.winner, whole.winner)
    assert summed.r_mean.values == pytest.approx(2.0, abs=1e-12)  # rounding


def test_comparison_takes_statistics_for_replicas():
    lines = ("time = { stop = 0.5, outputs = 3 }", "model.learning_rate = 0.5", "particles.method = 'chain'")
    whole = make_problem(*lines, "particles = { dimension = 30, replicas = 50 }")
    summed = make_problem(
        *lines, "particles = { method = 'chain', dimension = 30, replicas = 50, record = 'statistics' }"
    )
    limit = meanfield.solve_order_parameters(whole)
    first, second = (meanfield.compare(limit, meanfield.simulate_sgd(problem)) for problem in (whole, summed))
    for name in ("q_difference", "q_standard_error"):
        assert second[name].values == pytest.approx(first[name].values, rel=1e-9, nan_ok=True)  # rounding
