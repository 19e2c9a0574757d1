"""Running statistics against NumPy's of the whole sample."""

from itertools import pairwise

import numpy as np
import pytest

from meanfield.ensembles import statistics
from meanfield.ensembles.statistics import LEVELS, RunningStatistics

RNG_SEED = 5


def sample(replicas, outputs=3, features=2):
    rng = np.random.default_rng(RNG_SEED)
    q = 0.3 + 1e-3 * rng.standard_normal((replicas, outputs, features)) @ np.array([[1.0, 0.5], [0.0, 2.0]])
    return q, rng.standard_normal((replicas, outputs)) ** 2


def fed(q, r, sizes):
    """Statistics of (q, r) with quantiles of q."""
    x = np.concatenate([q, r[:, :, None]], axis=2)
    running = RunningStatistics(*x.shape[1:], range(q.shape[2]))
    for first, last in pairwise(np.cumsum([0, *sizes])):
        running.add(x[first:last])
    return running


def test_moments_are_those_of_numpy_in_any_portions():
    q, r = sample(1000)
    x = np.concatenate([q, r[:, :, None]], axis=2)
    for sizes in ([1000], [1, 999], [300, 300, 400], [1] * 1000):
        running = fed(q, r, sizes)
        assert running.count == 1000
        assert running.mean == pytest.approx(x.mean(axis=0), rel=1e-13)  # rounding
        for t in range(3):
            expected = np.cov(x[:, t].T)
            assert running.covariance[t] == pytest.approx(expected, rel=1e-9, abs=1e-12)  # rounding of 1e-3 about 0.3


def test_quantiles_of_a_small_ensemble_are_exact():
    q, r = sample(1000)
    assert np.array_equal(fed(q, r, [400, 600]).quantiles, np.quantile(q, LEVELS, axis=0))


def test_quantiles_of_a_large_ensemble_are_as_fine_as_the_bins(monkeypatch):
    monkeypatch.setattr(statistics, "MOST_SORTED", 500)
    q, r = sample(20_000)
    running = fed(q, r, [300, 700, 19_000])
    exact, deviation = np.quantile(q, LEVELS, axis=0), q.std(axis=0)
    # a bin is 3 x the range of 500 (7 deviations) / 4000 wide; gaps of the sample in the tails are as wide as that
    assert np.abs(running.quantiles - exact).max() / deviation.min() < 0.03
    assert np.abs((running.quantiles - exact)[1:-1] / deviation).max() < 0.01  # see above, where the sample is dense


def test_quantiles_beyond_the_histogram_are_not_made_up(monkeypatch):
    monkeypatch.setattr(statistics, "MOST_SORTED", 10)
    q = np.concatenate([np.linspace(0, 1, 10), np.full(90, 50.0)])[:, None, None]
    quantiles = fed(q, np.zeros((100, 1)), [10, 90]).quantiles[:, 0, 0]
    assert np.isfinite(quantiles[:2]).all()  # 1 % and 5 %
    assert np.isnan(quantiles[2:]).all()


def test_equal_values_have_that_quantile(monkeypatch):
    monkeypatch.setattr(statistics, "MOST_SORTED", 10)
    quantiles = fed(np.full((50, 2, 1), 0.7), np.zeros((50, 2)), [5, 45]).quantiles
    assert quantiles == pytest.approx(0.7, abs=1e-13)  # rounding


def test_no_or_one_replica_has_no_spread():
    running = RunningStatistics(2, 2, [0])
    assert np.isnan(running.mean).all()
    assert np.isnan(running.quantiles).all()
    running.add(np.full((1, 2, 2), 0.5))
    assert running.mean[:, 0].tolist() == [0.5, 0.5]
    assert np.isnan(running.covariance).all()
