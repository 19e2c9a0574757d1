"""SGD on latent trees: the law of samples, the gradient of the loss of a batch, and means that follow the flow."""

import numpy as np
import pytest

import meanfield
from meanfield.comparison.comparison import compare
from meanfield.families.latent_tree import network
from meanfield.families.latent_tree.samples import Sampler, batch_slope, draw_batch
from meanfield.families.latent_tree.tables import Tables
from meanfield.networks.contrast import Contrast
from tests.families.latent_tree import enumeration
from tests.families.latent_tree.problems import case_b, drawn

STEPS_AWAY = 4.9
"""Standard errors that a mean of a fixed seed may be off: once in 1e6 seeds."""

KINDS = ("simple", "beta", "triplet", "infonce", "exact", "nt_xent", "batch_ratio")


def test_leaves_have_the_law_of_the_tree():
    problem = drawn((2, 1, 2), leaves=(-1.0, 1.0), seed=1)
    leaves, P = enumeration.leaf_law(problem)
    sampler, rng, count = Sampler(problem), np.random.default_rng(0), 40_000
    for z in (0, 1):
        found = sampler.views(rng, np.full(count, bool(z)))
        share = np.array([(found == row).all(axis=1).mean() for row in leaves])
        assert np.all(np.abs(share - P[z]) < STEPS_AWAY * np.sqrt(P[z] * (1 - P[z]) / count))
    share = sampler.roots(rng, count).mean()
    assert abs(share - 0.7) < STEPS_AWAY * np.sqrt(0.21 / count)


def by_definition(contrast, y):
    """Mean loss of a batch (views, anchors, outputs), of complex outputs; weights of `exact` are constant."""
    H, tau = contrast.negatives, contrast.temperature

    def r(a, b):
        return 0.5 * ((a - b) ** 2).sum(axis=-1)

    if contrast.kind == "nt_xent":
        flat = np.concatenate([y[0], y[1]])
        unit = flat / np.sqrt((flat**2).sum(axis=1, keepdims=True))
        B, e = len(y[0]), np.exp(unit @ unit.T / tau)
        e[np.arange(2 * B), np.arange(2 * B)] = 0.0
        return -np.log(e[np.arange(2 * B), (np.arange(2 * B) + B) % (2 * B)] / e.sum(axis=1)).mean()
    plus, minus = r(y[0], y[1]), np.array([r(y[0], y[2 + k]) for k in range(H)])
    if contrast.kind in ("simple", "beta"):
        return ((1 + contrast.beta) * plus - minus[0]).mean()
    if contrast.kind == "triplet":
        return (tau * np.log(1 + np.exp((plus - minus[0] + contrast.margin) / tau))).mean()
    if contrast.kind == "infonce":
        return -np.log(np.exp(-plus / tau) / (np.exp(-plus / tau) + np.exp(-minus / tau).sum(axis=0))).mean()
    if contrast.kind == "exact":
        xi = [1 / tau / (1 + np.exp(r(y[2 + H].real, y[3 + H + k].real) / tau)) for k in range(H)]
        return (np.array(xi) * (plus - minus)).sum(axis=0).mean()
    p, q = (((y[0] - y[k]) ** 2).mean() for k in (1, 2))
    return -np.exp(-p / tau) / (np.exp(-p / tau) + np.exp(-q / tau))


@pytest.mark.parametrize("kind", KINDS)
def test_batches_have_the_derivative_of_their_loss(kind):
    H = 2 if kind in ("infonce", "exact") else 1
    more = {"margin": 0.2} if kind == "triplet" else {"beta": 0.3} if kind == "beta" else {}
    problem = drawn((2, 2), nodes=3, kind=kind, temperature=0.7, negatives=H, **more)
    rng = np.random.default_rng(3)
    y = rng.normal(size=(*draw_batch(problem, Sampler(problem), rng)[:, :5].shape[:2], 3))
    step = rng.normal(size=y.shape)
    value = by_definition(problem.loss.contrast, y + 1e-30j * step)
    found, slope = batch_slope(problem.loss.contrast, y)
    assert found == pytest.approx(value.real, rel=1e-12)  # rounding
    assert np.sum(slope * step) == pytest.approx(value.imag / 1e-30, rel=1e-11)  # rounding of sums


@pytest.mark.parametrize("kind", ["triplet", "infonce", "exact", "nt_xent"])
def test_gradients_of_batches_have_the_mean_of_the_population(kind):
    problem = drawn((2, 2), nodes=2, bias=True, normalised=True, kind=kind, temperature=0.5, seed=10, batch_size=16)
    weights, sampler, rng = problem.initial_weights, Sampler(problem), np.random.default_rng(1)
    output, found = problem.network.normalisation, []
    for _ in range(300):
        leaves = draw_batch(problem, sampler, rng)
        activity = network.forward(weights, leaves.reshape(-1, leaves.shape[-1]))
        slope = batch_slope(problem.loss.contrast, output.value(activity.last).reshape(*leaves.shape[:2], -1))[1]
        found.append(
            network.gradient(weights, activity, output.back(activity.last, slope.reshape(activity.last.shape))).vector
        )
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    exact = Tables(problem).loss_and_gradient(weights)[1].vector
    assert np.abs(exact).max() > 1e-3  # else nothing is tested
    assert np.all(np.abs(mean - exact) <= STEPS_AWAY * error + 1e-15)  # rounding of what is 0


def test_means_of_sgd_follow_the_flow():
    training, particles = {"learning_rate": 0.01, "batch_size": 16}, {"replicas": 24, "score_samples": 50}
    problem = case_b(normalised=True, stop=1.0, training=training, particles=particles)
    flow, sgd = meanfield.solve(problem, "population"), meanfield.solve(problem, "particles")
    for name in ("loss", "selectivity"):
        error = sgd[name].std("replica", ddof=1) / np.sqrt(24)
        gap = np.abs(sgd[name].mean("replica") - flow[name])[1:]
        assert float((gap / error[1:]).max()) < 3.5  # the seed is fixed; the bias is of the order of the step
    assert str(compare(flow, sgd)["verdict"].values[0]) == "AGREES"
    later = meanfield.solve(case_b(normalised=True, stop=1.3), "population")  # as with a learning rate of 0.013
    error = sgd["loss"].std("replica", ddof=1)[-1] / np.sqrt(24)
    assert abs(float(sgd["loss"][-1].mean() - later["loss"][-1])) > 3.5 * float(error)


def test_sgd_whose_weights_become_infinite_says_what_bounds_them():
    """Those of the flow do at t = 1.277."""
    particles = {"replicas": 1, "score_samples": 50}
    training = {"learning_rate": 0.01, "batch_size": 64}
    result = meanfield.solve(case_b(stop=3.0, training=training, particles=particles), "particles")
    assert result.attrs["status"].startswith("failed: at t = ")
    assert "set network.output_normalisation = true, take a shorter time.stop, or lower" in result.attrs["status"]
    assert case_b(normalised=True).network.remedy == "lower training.learning_rate"


def test_scores_are_the_best_correlations_in_samples():
    problem = case_b(particles={"replicas": 1, "score_samples": 100_000})
    result = meanfield.solve(problem, "particles")
    best = np.abs(result["correlation"]).max("node")
    # a correlation r of n samples has a standard error below (1 - r^2 + 1)/sqrt(n); 5 of them, and the largest is kept
    assert np.all(np.abs(result["score"] - best) < 5 * 2 / np.sqrt(100_000))


def test_trees_that_do_not_fit_are_trained_by_sgd():
    problem = drawn((2,) * 6, nodes=2, normalised=True, kind="nt_xent")
    small = {"particles.replicas": 2, "particles.score_samples": 1000, "time.outputs": 2}
    result = meanfield.solve(meanfield.with_values(problem, small), "particles")
    assert "loss" not in result
    assert result["score"].shape == (2, 2, 63)
    assert np.isfinite(result["score"]).all()


def test_a_replica_does_not_depend_on_those_beside_it():
    few, many = (
        meanfield.solve(case_b(normalised=True, particles={"replicas": n, "score_samples": 20}), "particles")
        for n in (1, 5)
    )
    assert np.array_equal(few["weights"][0], many["weights"][0])


def test_contrast_refuses_losses_that_are_no_means_over_triples():
    with pytest.raises(ValueError, match="'exact' is no mean over triples"):
        Contrast("exact").of_triples(np.zeros(1), np.zeros((1, 1)))


@pytest.mark.slow
def test_means_of_sgd_are_off_the_flow_by_the_first_order_of_the_learning_rate():
    """A minute: the extrapolation of two learning rates to 0 is the flow."""
    rates, replicas, off, error = (0.2, 0.1, 0.05), 1500, [], []
    for rate in rates:
        training, particles = {"learning_rate": rate, "batch_size": 128}, {"replicas": replicas, "score_samples": 2}
        problem = case_b(normalised=True, stop=1.0, outputs=2, training=training, particles=particles)
        sgd, flow = meanfield.solve(problem, "particles"), meanfield.solve(problem, "population")
        found = [
            np.append(
                run["selectivity"].isel(time=-1).values.reshape(-1, 6),
                run["loss"].isel(time=-1).values.reshape(-1, 1),
                1,
            )
            for run in (sgd, flow)
        ]
        off.append(found[0].mean(axis=0) - found[1][0])
        error.append(found[0].std(axis=0, ddof=1) / np.sqrt(replicas))
    along = off[0] / np.linalg.norm(off[0])
    sizes = [each @ along for each in off]
    order = np.log(sizes[0] / sizes[2]) / np.log(rates[0] / rates[2])
    assert order == pytest.approx(1.0, abs=0.15)  # three standard errors of a share of 0.05, and the second order
    limit = 2 * off[2] - off[1]
    assert np.all(np.abs(limit) < 3.5 * np.hypot(2 * error[2], error[1]))  # for a fixed seed: one of 300 others fails
    assert np.abs(off[0] / error[0]).max() > 10  # else nothing is measured
