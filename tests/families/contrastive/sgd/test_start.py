"""Features and weights at t = 0: exact overlaps, laws, and independence of how the work is shared out."""

import numpy as np
import pytest
from scipy.stats import beta, chi2, ks_2samp, kstest, norm, spearmanr

from meanfield.ensembles.streams import stream_key
from meanfield.families.contrastive.sgd.simulation import simulate_sgd
from meanfield.families.contrastive.sgd.start import draw_features, draw_overlap, draw_weights
from tests.example_problems import feature, features, make_problem

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


RANDOM = {
    "one": features(feature("random")),
    "two": STARTS["random"],
    "three": features(*(feature("random", coordinate="laplace") for _ in range(3))),
}


@pytest.mark.parametrize(
    ("dimension", "start"),
    [
        # by default each number of features once, and each dimension once
        pytest.param(dimension, start, marks=() if start == by_default else pytest.mark.slow)
        for dimension, by_default in ((5, "three"), (64, "one"), (10**9, "two"))
        for start in RANDOM
    ],
)
def test_overlaps_without_weights_have_their_law(start, dimension):
    """q_k^2 and 1 - s^2 are beta variables, signs are fair, and replicas are independent.

    Fixed seeds; false-alarm rate 1e-3 of the 9 cases together, of which each p-value has its share (Bonferroni).
    """
    problem = make_problem(RANDOM[start], f"particles.dimension = {dimension}")
    q, s = draw_overlap(problem, stream_key(9), range(3, 3 + 100_000))
    d1, N = q.shape[1], dimension
    assert (q**2).sum(axis=1) + s**2 == pytest.approx(1, abs=1e-14)  # on the sphere: rounding
    p = [kstest(x, "uniform").pvalue for x in beta.cdf(q.T**2, 0.5, (N - 1) / 2)]
    p += [kstest(beta.cdf((q**2).sum(axis=1), d1 / 2, (N - d1) / 2), "uniform").pvalue]
    p += [2 * norm.sf(abs(x)) for x in np.sign(q).sum(axis=0) / np.sqrt(len(q))]
    p += [spearmanr(q[1:, 0], q[:-1, 0]).pvalue]
    assert min(p) > 1e-3 / 9 / len(p)  # false-alarm rate of the docstring


@pytest.mark.parametrize(
    ("dimension", "start"),
    [
        # by default both dimensions once; a single feature has no products to compare
        pytest.param(dimension, start, marks=() if start == by_default else pytest.mark.slow)
        for dimension, by_default in ((5, "three"), (64, "two"))
        for start in RANDOM
    ],
)
def test_overlaps_without_weights_are_those_with_weights(start, dimension):
    """Two samples, of q_k, s and products; fixed seeds, false-alarm rate 1e-3 of the 6 cases together (Bonferroni)."""
    problem = make_problem(RANDOM[start], f"particles.dimension = {dimension}")
    rng, right = np.random.default_rng(10), []
    for _ in range(3000):
        U = draw_features(problem, rng)
        right.append(U.T @ draw_weights(problem, U, rng) / dimension)
    right = np.array(right)
    q, s = draw_overlap(problem, stream_key(11), range(50_000))
    pairs = list(zip(q.T, right.T, strict=True))
    pairs += [(s, np.sqrt(1 - (right**2).sum(axis=1)))]
    pairs += [(q[:, 0] * q[:, k], right[:, 0] * right[:, k]) for k in range(1, q.shape[1])]
    p = [ks_2samp(*pair, method="asymp").pvalue for pair in pairs]
    assert min(p) > 1e-3 / 6 / len(p)  # false-alarm rate of the docstring


def test_overlaps_without_weights_do_not_depend_on_how_replicas_are_shared_out():
    problem = make_problem(RANDOM["two"], "particles.dimension = 64")
    q, s = draw_overlap(problem, stream_key(12), range(10))
    for part in (range(3, 7), range(9, 10)):
        some, rest = draw_overlap(problem, stream_key(12), part)
        assert np.array_equal(some, q[part.start : part.stop])
        assert np.array_equal(rest, s[part.start : part.stop])


def test_overlaps_without_weights_are_exact_where_they_are_given():
    q, s = draw_overlap(make_problem(STARTS["two"]), stream_key(13), range(4))
    assert np.array_equal(q, np.tile([0.5, 0.3], (4, 1)))
    assert s == pytest.approx(np.sqrt(1 - 0.34), rel=1e-15)  # rounding


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


def test_coinciding_columns_are_drawn_again():
    """Of two Rademacher columns with N = 4 one in eight pairs is dependent."""
    tables = features(feature(0.3, coordinate="rademacher"), feature(0.2, coordinate="rademacher"))
    run = simulate_sgd(make_problem(tables, "particles = { dimension = 4, replicas = 40 }", "time.stop = 0.25"))
    assert run.status == "complete"
    assert np.isfinite(run.U.values).all()
