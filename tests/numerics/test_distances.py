import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linear_sum_assignment

from meanfield.numerics import distances

EDGES = np.linspace(-8, 8, 3201)
NORMAL = stats.norm.cdf(EDGES)


def law(edges, F, at):
    return np.interp(at, edges, F)


@pytest.mark.parametrize("seed", range(3))
def test_wasserstein_against_quantile_sample(seed):
    import ot  # imports half of scikit-learn, which no other test needs

    rng = np.random.default_rng(seed)
    sample, weights = rng.normal(0.3, 1.2, 400), rng.uniform(0.1, 2.0, 400)
    levels = (np.arange(200_000) + 0.5) / 200_000
    quantiles = np.interp(levels, NORMAL, EDGES)
    expected = stats.wasserstein_distance(sample, quantiles, u_weights=weights)
    value = distances.wasserstein(sample, weights, EDGES, NORMAL)
    assert value == pytest.approx(expected, rel=1e-4)  # the quantile sample is W1 = O(tail / 200000) from the law
    other = ot.wasserstein_1d(sample, quantiles, weights / weights.sum(), np.full(len(levels), 1 / len(levels)))
    assert value == pytest.approx(float(other), rel=1e-4)  # the same


def test_wasserstein_of_a_point_mass_is_exact():
    # E|X - 0.5| for X uniform on [0, 1], computed by hand
    edges, F = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    value = distances.wasserstein(np.array([0.5]), np.ones(1), edges, F)
    assert value == pytest.approx(0.25, abs=1e-15)  # rounding


def test_wasserstein_counts_points_outside_the_cells():
    edges, F = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    value = distances.wasserstein(np.array([3.0]), np.ones(1), edges, F)
    assert value == pytest.approx(2.5, abs=1e-15)  # rounding


def test_equal_weights_agree_with_scipys_kolmogorov_smirnov():
    sample = np.random.default_rng(4).normal(size=500)
    expected = stats.kstest(sample, lambda x: law(EDGES, NORMAL, x)).statistic
    value = distances.kolmogorov_smirnov(sample, np.ones(500), EDGES, NORMAL)
    assert value == pytest.approx(expected, abs=1e-14)  # rounding


def test_integer_weights_are_repetitions():
    rng = np.random.default_rng(5)
    sample, weights = rng.normal(size=60), rng.integers(1, 5, 60)
    repeated = np.repeat(sample, weights)
    for distance in (distances.wasserstein, distances.kolmogorov_smirnov):
        once = distance(sample, weights.astype(float), EDGES, NORMAL)
        assert once == pytest.approx(distance(repeated, np.ones(len(repeated)), EDGES, NORMAL), abs=1e-13)  # rounding


def test_expected_distances_are_the_means_over_samples():
    rng = np.random.default_rng(6)
    n, runs = 400, 400
    samples = rng.normal(size=(runs, n))
    ones = np.ones(n)
    w1 = [distances.wasserstein(s, ones, EDGES, NORMAL) for s in samples]
    ks = [distances.kolmogorov_smirnov(s, ones, EDGES, NORMAL) for s in samples]
    expected = distances.expected_wasserstein(n, EDGES, NORMAL * (1 - NORMAL))
    error = np.std(w1) / np.sqrt(runs)
    assert np.mean(w1) == pytest.approx(expected, abs=4 * error + 0.02 * expected)  # chance 6e-5; O(1/sqrt(n))
    expected = distances.expected_kolmogorov_smirnov(ones)
    error = np.std(ks) / np.sqrt(runs)
    assert np.mean(ks) == pytest.approx(expected, abs=4 * error + 0.03 * expected)  # the same


def test_distribution_function_and_density_are_inverse():
    rng = np.random.default_rng(7)
    edges = np.sort(rng.normal(size=12))
    P = rng.uniform(size=(3, 11))
    F = distances.distribution_function(edges, P)
    mass = (P * np.diff(edges)).sum(axis=1)
    assert np.allclose(distances.density_of(edges, F[0]), P[0] / mass[0], rtol=1e-12)  # rounding
    assert np.allclose(F[:, -1], 1, rtol=1e-15)  # rounding


def test_rebin_keeps_mass_and_merges_cells():
    edges = np.linspace(-1, 1, 9)
    P = np.random.default_rng(8).uniform(size=(2, 8))
    P /= (P * 0.25).sum(axis=1, keepdims=True)
    merged = distances.rebin(edges, P, edges[::2])
    assert np.allclose(merged, 0.5 * (P[:, ::2] + P[:, 1::2]), rtol=1e-12)  # rounding


def test_l1_distance_of_disjoint_densities_is_two():
    edges = np.array([0.0, 1.0, 2.0])
    value = distances.l1_distance(edges, np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    assert value == pytest.approx(2.0, abs=1e-15)  # rounding


def test_w1_on_a_circle_is_the_best_transport():
    """Points go to atoms of as much weight each, one by one, on the shorter way round."""
    rng = np.random.default_rng(2)
    for turned in (0.0, 2.5, -3.0):
        sample = np.sort((rng.normal(turned, 0.8, 40) + np.pi) % (2 * np.pi) - np.pi)
        atoms = np.sort(rng.uniform(-np.pi, np.pi, 40))
        apart = np.abs(sample[:, None] - atoms)
        cost = np.minimum(apart, 2 * np.pi - apart)
        edges = np.concatenate([[-np.pi], np.repeat(atoms, 2), [np.pi]])
        F = np.concatenate([[0.0], np.repeat(np.arange(41.0) / 40, 2)[1:-1], [1.0]])
        best = cost[linear_sum_assignment(cost)].mean()
        assert distances.circular_wasserstein(sample, edges, F) == pytest.approx(best, rel=1e-12)  # rounding
        assert distances.circular_wasserstein(atoms, edges, F) == pytest.approx(0.0, abs=1e-14)  # rounding
