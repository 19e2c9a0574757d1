"""Features and weights at t = 0: exact overlaps, laws, and independence of how the work is shared out."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from meanfield.particles import simulate_sgd
from meanfield.particles.start import draw_features, draw_weights
from tests.problems import feature, features, make_problem

SHORT = ("time = { stop = 0.125, outputs = 3 }", "particles = { dimension = 64, replicas = 4 }")
STARTS = {
    "one": features(feature(0.5)),
    "negative": features(feature(-0.9, coordinate="rademacher")),
    "two": features(feature(0.5), feature(0.3, coordinate="rademacher")),
    "three": features(feature(0.1), feature(0.0), feature(-0.7)),
    "random": features(feature("random"), feature("random", coordinate="rademacher")),
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("dimension", [5, 64, 1001])
def test_features_are_orthogonal_and_the_start_is_exact(start, dimension):
    problem = make_problem(STARTS[start], f"particles.dimension = {dimension}")
    rng = np.random.default_rng(5)
    U = draw_features(problem, rng)
    w = draw_weights(problem, U, rng)
    N = dimension
    assert pytest.approx(np.eye(U.shape[1]), abs=1e-10) == U.T @ U / N  # orthogonalised: rounding, and its condition
    assert w @ w / N == pytest.approx(1, abs=1e-12)  # normalised: rounding
    if start != "random":
        assert U.T @ w / N == pytest.approx(problem.initial_overlap, abs=1e-10)  # as exact as U^T U = N


def test_coordinates_keep_their_law():
    """A fixed seed; by the theorem of Kolmogorov and Smirnov a right law fails with probability 0.001."""
    problem = make_problem(STARTS["two"], "particles.dimension = 20000")
    U = draw_features(problem, np.random.default_rng(6))
    assert kstest(U[:, 0], "norm").pvalue > 1e-3  # false-alarm rate of the docstring
    # orthogonalising moves coordinates by O(1/sqrt(N)) = 0.007 times a few standard deviations
    assert np.abs(U[:, 1]) == pytest.approx(1, abs=0.05)  # see the line above
    plus = (U[:, 1] > 0).mean()
    assert abs(plus - 0.5) < 3.3 * 0.5 / np.sqrt(20000)  # standard error of a binomial; false-alarm rate 0.001


def test_random_start_is_uniform_on_the_sphere():
    """sqrt(N) q has the law of a coordinate on the sphere, nearly N(0, 1); fixed seed, false-alarm rate 0.002."""
    problem = make_problem(STARTS["random"], "particles.dimension = 400")
    rng = np.random.default_rng(7)
    scaled = []
    for _ in range(500):
        U = draw_features(problem, rng)
        w = draw_weights(problem, U, rng)
        scaled.append(U.T @ w / np.sqrt(400))
    scaled = np.array(scaled)
    assert kstest(scaled.ravel(), norm.cdf).pvalue > 1e-3  # half of the false-alarm rate
    squares = (scaled**2).sum()
    assert chi2.sf(squares, 1000) > 5e-4  # a quarter of it; the variance is 1 up to 1/N
    assert chi2.cdf(squares, 1000) > 5e-4  # a quarter of it


def test_weights_beyond_the_overlap_are_gaussian_and_independent_of_features():
    """w = U q + sqrt(1 - q^2) xi with xi ~ N(0, 1) nearly; fixed seed, false-alarm rate 0.002."""
    problem = make_problem(STARTS["one"], "particles.dimension = 20000")
    rng = np.random.default_rng(8)
    U = draw_features(problem, rng)
    xi = (draw_weights(problem, U, rng) - 0.5 * U[:, 0]) / np.sqrt(0.75)
    assert kstest(xi, "norm").pvalue > 1e-3  # half of the false-alarm rate
    assert kstest(xi[U[:, 0] > 1], "norm").pvalue > 1e-3  # the other half


def test_result_starts_where_the_problem_says():
    run = simulate_sgd(make_problem(STARTS["two"], *SHORT))
    assert run.q.values[:, 0] == pytest.approx(np.tile([0.5, 0.3], (4, 1)), abs=1e-12)  # exact: rounding
    w = run.weights.values
    assert (w**2).mean(axis=2) == pytest.approx(1, abs=1e-12)  # projected after every step: rounding
    q = np.einsum("rni,rn->ri", run.U.values, w[:, -1]) / 64
    assert run.q.values[:, -1] == pytest.approx(q, abs=1e-14)  # the last snapshot is the last output: rounding


def test_numbers_do_not_depend_on_the_number_of_workers():
    problem = make_problem(STARTS["one"], *SHORT, "augmentation.variance = [0.3, 0.1]")
    alone = simulate_sgd(problem, workers=1)
    for workers in (2, 5):
        shared = simulate_sgd(problem, workers=workers)
        for name in ("q", "r", "weights", "U"):
            assert np.array_equal(alone[name], shared[name])


def test_numbers_do_not_depend_on_the_number_of_replicas():
    four = simulate_sgd(make_problem(STARTS["one"], *SHORT))
    two = simulate_sgd(make_problem(STARTS["one"], *SHORT, "particles.replicas = 2"))
    for name in ("q", "r", "weights", "U"):
        assert np.array_equal(four[name][:2], two[name])
    assert np.ptp(four.q.values[:, -1]) > 0  # replicas differ from each other


def test_seeds_give_different_runs_that_repeat():
    first, again, other = (
        simulate_sgd(make_problem(STARTS["one"], *SHORT, f"particles.seed = {seed}")) for seed in (1, 1, 2)
    )
    assert np.array_equal(first.weights, again.weights)
    assert np.all(first.weights.values[:, -1] != other.weights.values[:, -1])


def test_coinciding_columns_are_drawn_again():
    """Of two Rademacher columns with N = 4 one in eight pairs is dependent."""
    tables = features(feature(0.3, coordinate="rademacher"), feature(0.2, coordinate="rademacher"))
    run = simulate_sgd(make_problem(tables, "particles = { dimension = 4, replicas = 40 }", "time.stop = 0.25"))
    assert run.status == "complete"
    assert np.isfinite(run.U.values).all()
