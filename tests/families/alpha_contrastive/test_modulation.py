"""A fast top layer: theorem 5 and corollary 3 against all strings, plain SGD, and basins with a bonus."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.initial import Weights
from meanfield.families.alpha_contrastive.modulated_basins import chance_of_pattern
from meanfield.families.alpha_contrastive.particles.simulation import simulation_of
from meanfield.families.alpha_contrastive.population.solver import check_population, drift_of
from meanfield.plotting import plot_result
from tests.families.alpha_contrastive import networks
from tests.families.alpha_contrastive.problems import data as base
from tests.families.alpha_contrastive.problems import problem_from
from tests.families.alpha_contrastive.test_population import D, strings, two_layers
from validation.alpha_contrastive.figures.exact_flows import train_fast_top

TWO = {"patterns": [[0, 1, -1, -1], [2, -1, 1, -1]], "augmentation": False}
FILTERS = np.array([[[1.0 + 0.6 * np.cos(2 + k + 3 * a) for a in range(D)]] for k in range(4)])
FILTERS /= np.linalg.norm(FILTERS, axis=-1, keepdims=True)
START = {"law": "points", "values": FILTERS[:, 0].tolist(), "top": [[1.0] * 4] * 3}
FAST = {"filters": {"count": 1, "start": START}}
NORM = {"batch_norm": {"active": True, "differentiate_variance": False}}


def fast(law=None, population=None, **more):
    settings = {"fast_top": True} | (population or {})
    return two_layers(more.pop("activation", "relu"), law=TWO | (law or {}), population=settings, **(FAST | more))


def table(problem):
    """One-hot inputs of all strings, their generators and probabilities."""
    found = list(strings(problem))
    tokens = np.array([one[1] for one in found])
    x = problem.data.lengths[tokens][..., None] * np.eye(D)[tokens]
    return x, np.array([one[0] for one in found]), np.array([one[2] for one in found])


def theorem_5(problem, w):
    """Terms of the paper's flow by their definitions, string by string, and the right-hand side of (15) or (178)."""
    x, g, p = table(problem)
    z = np.einsum("ska,ka->sk", x, w)
    f, gated = np.maximum(z, 0.0), (z > 0.0)[..., None] * x
    if problem.model.batch_norm.active:
        sigma = np.sqrt(p @ f**2 - (p @ f) ** 2 + problem.model.batch_norm.epsilon)
        f, gated = f / sigma, gated / sigma[:, None]
    of = [p[g == c] / 0.5 for c in (0, 1)]
    mean = [np.einsum("s,ska->ka", of[c], gated[g == c]) for c in (0, 1)]
    A = np.einsum("s,ska,skb->kab", p, gated, gated)
    A -= np.einsum("ka,kb->kab", np.einsum("s,ska->ka", p, gated), np.einsum("s,ska->ka", p, gated))
    Delta = mean[1] - mean[0]
    L = A - 0.25 * np.einsum("ka,kb->kab", Delta, Delta)
    d, b = np.einsum("ka,kab,kb->k", w, L, w), np.sum(w * Delta, axis=1)
    level = np.linalg.eigvalsh(np.diag(d) + 0.25 * np.outer(b, b))[-1]
    ratio = b / (level - d)
    Z = np.linalg.norm(ratio)
    delta = 0.25 / (Z**2 * (level - d)) * (np.sum(b * ratio) - b * ratio)  # (143)
    push = np.einsum("k,kab,kb->ka", (ratio / Z) ** 2, A, w) + (delta * b)[:, None] * Delta
    return {"within": d, "separation": b, "modulation": delta, "difference": Delta, "top_eigenvalue": level}, push


@pytest.mark.parametrize("model", [{}, NORM | {"unit_filters": False}], ids=["theorem 5", "corollary 3"])
def test_terms_of_the_flow_are_those_of_all_strings(model):
    """At both ends of the exact flow, whose drift is the right-hand side of (15), and of (178) with normalisation."""
    problem = fast(model=model, time={"stop": 3.0, "outputs": 2})
    found = meanfield.solve(problem, "population")
    for i in (0, 1):
        w = found["weights"].values[i, :, 0]
        terms, push = theorem_5(problem, w)
        assert np.abs(terms["modulation"]).max() > 0.05  # else nothing is tested
        for name, wanted in terms.items():
            np.testing.assert_allclose(found[name].values[i], wanted, rtol=1e-10, atol=1e-12)  # rounding
        slope = drift_of(problem)(Weights(w[:, None], found["top"].values[i].reshape(3, -1))).slope.filters[:, 0]
        np.testing.assert_allclose(slope, push, rtol=1e-10, atol=1e-12)  # the same
        assert found["energy"].values[i] == pytest.approx(0.5 * terms["top_eigenvalue"], rel=1e-12)  # the same
        np.testing.assert_allclose(found["top"].values[i, 1:], 0.0)
    assert np.abs(found["weights"].values[1] - FILTERS).max() > 0.1


def test_modulation_where_views_share_nothing_but_the_generator():
    """With augmentation nothing varies within a generator, so that delta_k = p (1 - b_k^2/|b|^2)."""
    terms = meanfield.solve(fast({"augmentation": True}, time={"stop": 1.0, "outputs": 2}), "population").isel(time=0)
    np.testing.assert_allclose(terms["within"], 0.0)
    np.testing.assert_allclose(terms["difference"].values[3], 0.0)  # of a place that tells no generators apart
    b2 = terms["separation"].values ** 2
    np.testing.assert_allclose(terms["modulation"], 0.25 * (1.0 - b2 / b2.sum()), rtol=1e-12)  # rounding


def trained(filters, norm, seed, runs, *settings):
    """Filters of runs of plain SGD on the strings of TWO, shape (runs, places, d)."""
    w = train_fast_top(np.array(TWO["patterns"]), filters, norm, np.random.default_rng(seed), runs, *settings)
    return w.reshape(runs, *filters.shape)


def test_means_of_sgd_under_a_fast_top_follow_the_flow():
    """Within 3.5 standard errors of the flow at N = 16, and not of that of large batches.

    Of 12 numbers one is beyond that in 0.6 % of seeds, by the bound of Bonferroni; the seed is fixed. The last place
    tells nothing apart, and rests.
    """
    eta, stop = 0.02, 2.0
    more = {"time": {"stop": stop, "outputs": 2}, "training": {"batch_size": 16}}
    ends = [meanfield.solve(fast(population={"finite_batch": on}, **more), "population") for on in (True, False)]
    w = trained(FILTERS[:, 0], False, 1, 300, 16, eta, round(stop / eta))
    error = w.std(axis=0, ddof=1) / np.sqrt(len(w))
    far = [np.abs(w.mean(axis=0) - end["weights"].values[-1, :, 0])[:3] / error[:3] for end in ends]
    assert far[0].max() < 3.5
    assert far[1].max() > 5.0


def test_means_of_the_package_s_sgd_under_a_fast_top_follow_the_flow():
    """As the test above; and the top of every run is the top eigenvector of the covariance over all strings.

    Of 12 numbers one is beyond 3.5 standard errors in 0.6 % of seeds; the seed is fixed.
    """
    more = {"time": {"stop": 2.0, "outputs": 2}, "training": {"batch_size": 16, "learning_rate": 0.02}}
    problem = fast(population={"finite_batch": True}, particles={"replicas": 30, "seed": 2}, **more)
    runs, flow = meanfield.simulate_sgd(problem), meanfield.solve_population(problem)
    w = runs["weights"].values[:, -1, :, 0]
    far = np.abs(w.mean(axis=0) - flow["weights"].values[-1, :, 0])[:3] / w.std(axis=0, ddof=1)[:3] * np.sqrt(len(w))
    assert far.max() < 3.5
    assert np.abs(flow["weights"].values[-1] - flow["weights"].values[0]).max() > 0.1  # else nothing is tested
    x, _, p = table(problem)
    f = np.maximum(np.einsum("ska,ka->sk", x, w[0]), 0.0)
    s = np.linalg.eigh((f.T * p) @ f - np.outer(p @ f, p @ f))[1][:, -1]
    top = runs["top"].values[0, -1, :, :, 0]
    np.testing.assert_allclose(np.abs(top[0]), np.abs(s), atol=1e-12)  # rounding
    np.testing.assert_allclose(top[1:], 0.0)


def test_means_of_sgd_with_batch_normalisation_follow_the_flow():
    """Lemma 6 with unit filters, by steps of two sizes continued to 0: the flow, and not that without normalisation.

    Of 12 numbers one is beyond 3.5 standard errors in 0.6 % of seeds; the seed is fixed. Batches of 512 are off by some
    1/512 of what the flow moves.
    """
    apart = [[0.9, 0.3, 0.2, 0.25], [0.3, 0.8, 0.4, 0.2], [0.2, 0.7, 0.3, 0.6], [0.7, 0.2, 0.5, 0.4]]
    start = {"filters": {"count": 1, "start": START | {"values": apart}}}
    stop, more = 0.3, {"time": {"stop": 0.3, "outputs": 2}, "training": {"batch_size": 512}} | start
    coarse, fine = (
        trained(np.array(apart), True, seed, 12, 512, stop / steps, steps) for seed, steps in ((1, 40), (2, 80))
    )
    mean = 2.0 * fine.mean(axis=0) - coarse.mean(axis=0)
    error = np.sqrt((4.0 * fine.var(axis=0, ddof=1) + coarse.var(axis=0, ddof=1)) / 12)
    ends = [meanfield.solve(fast(model=model, **more), "population") for model in (NORM, {})]
    far = [np.abs(mean - end["weights"].values[-1, :, 0])[:3] / error[:3] for end in ends]
    assert far[0].max() < 3.5
    assert far[1].max() > 20.0


def test_basins_in_the_plane_are_arcs():
    """Theorem 6: filters between -pi/2 and pi/4 + arcsin(c/(a sqrt 2)) come to the pattern, each of 300."""
    problem = problem_from(base(law={"law": "points", "points": [[1.0, 0.0], [0.0, 1.0]]}))
    eps = np.array([-0.7, -0.2, 0.0, 0.5])
    found = meanfield.alpha_contrastive.modulated_basins(problem, eps)
    y = np.random.default_rng(0).uniform(-1.0, 1.0, (300, 2))  # starts of the seed of the problem
    angle = np.arctan2(y[:, 1], y[:, 0])
    edge = np.pi / 4.0 + np.arcsin(eps * np.sqrt(1.5) / np.sqrt(2.0))
    assert np.abs(angle[:, None] - edge).min() > 1e-4  # no start is where steps of 0.2 would decide
    wanted = [np.mean((angle > -np.pi / 2.0) & (angle < each)) for each in edge]
    np.testing.assert_array_equal(found["basin_share"], wanted)


def test_chance_of_a_pattern_is_too_large_where_others_compete():
    """(155) at d = 20 and eps = 0.5 is 0.30, while a fifth of filters come to the pattern; without a bonus both agree.

    Of three numbers one is beyond 4 standard errors in 0.02 % of seeds.
    """
    data = {"law": "points", "points": np.eye(20).tolist()}
    problem = problem_from(base(law=data, critical_points={"starts": 1000}))
    found = meanfield.alpha_contrastive.modulated_basins(problem, [0.0, 0.5])
    np.testing.assert_allclose(found["chance"], chance_of_pattern(np.array([0.0, 0.5]), 20))
    away = (found["chance"] - found["basin_share"]) / found["basin_share_error"]
    assert abs(float(away[0])) < 4.0
    assert float(away[1]) > 6.0


def test_the_chance_is_drawn_along_the_range_of_advantages():
    found = meanfield.alpha_contrastive.modulated_basins(fast(critical_points={"starts": 10}), [-0.5, 1.0])
    line = plot_result(found).axes[0].lines[0]
    at = np.array([-0.5, -0.0125, 0.4])  # steps of 201 points
    np.testing.assert_allclose(np.interp(at, *line.get_data()), chance_of_pattern(at, D), atol=1e-4)  # of their squares


def test_advantages_increase():
    with pytest.raises(InputError, match=r"advantages = .* give one or more numbers that increase"):
        meanfield.alpha_contrastive.modulated_basins(fast(), [0.5, 0.0])


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ({"importance": {"kind": "gaussian"}}, "fast_top = true is for importance.kind = 'quadratic'"),
        ({"model": {"normalise_outputs": True}}, "fast_top = true is for outputs that are linear"),
    ],
)
def test_what_has_no_fast_top_is_refused(case, words):
    for check in (check_population, simulation_of):
        with pytest.raises(InputError, match=words):
            check(fast(**case))


def test_only_two_generators_and_single_filters_have_terms():
    """The fast top itself has no such limits; its vector is that of all strings."""
    law = {"patterns": [[0, 1, -1, -1], [2, -1, 1, -1], [1, 1, 0, -1]]}
    problem = fast(law, time={"stop": 1.0, "outputs": 2})
    found = meanfield.solve(problem, "population").isel(time=-1)
    assert "modulation" not in found
    x, _, p = table(problem)
    f = networks.hidden(problem, found["weights"].values, x)
    C = np.einsum("s,sk,sl->kl", p, f, f) - np.outer(p @ f, p @ f)
    s = found["top"].values[0].ravel()
    np.testing.assert_allclose(C @ s, 2.0 * float(found["energy"]) * s, atol=1e-12)  # rounding
