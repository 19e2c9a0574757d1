"""SGD of the studies on latent trees, exact averages, and chances of lucky nodes, against independent ones."""

from itertools import product

import numpy as np
import pytest
import xarray as xr
from scipy.stats import multivariate_normal

from meanfield.families.latent_tree import network
from meanfield.families.latent_tree.operators import operators
from meanfield.families.latent_tree.samples import Sampler, batch_slope
from meanfield.families.latent_tree.tables import Tables
from validation.latent_tree.figures import (
    batch_size,
    figure_3,
    lucky,
    norms,
    rounding,
    seeds,
    single_precision,
    theorem_6,
)
from validation.latent_tree.figures.printed import printed
from validation.latent_tree.figures.runs import LATENTS
from validation.latent_tree.figures.sgd import advance
from validation.latent_tree.figures.trees import READINGS, law_of_leaves, problem_of, scores, start_of, unnormalised
from validation.latent_tree.figures.trials import LARGEST

pytestmark = pytest.mark.slow  # a study with code of its own, which takes longer to compile than to run

BATCH = 128


def leaves_of(moves, seed):
    """Leaves of the first batch, from the same random bits."""
    edges, samples = len(moves), 3 * BATCH
    bits = np.random.SFC64(seed).random_raw(-(-(edges + 1) * samples // 4)).view(np.uint16)
    bits = bits[: (edges + 1) * samples].reshape(edges + 1, samples)
    values = [np.concatenate([bits[-1, :BATCH], bits[-1, :BATCH], bits[-1, 2 * BATCH :]]) % 2 == 1]
    for edge, move in enumerate(moves):
        values.append(values[edge // 2] ^ (bits[edge] < move))
    return np.array(values[-(edges // 2 + 1) :], dtype=float).T


@pytest.mark.parametrize("reading", ["as printed", "public code"])
def test_steps_follow_the_gradient_of_the_library(reading):
    problem = problem_of(READINGS[reading], 0.7, 3, 0, depth=3)
    start, output = problem.initial_weights, problem.network.normalisation
    net, moves, training = start_of(problem)
    advance(net, moves, training._replace(rate=1.0), (5,), 1)
    leaves = leaves_of(moves, (5,))
    activity = network.forward(start, leaves)
    _, slope = batch_slope(problem.loss.contrast, output.value(activity.last).reshape(3, BATCH, -1))
    exact = network.gradient(start, activity, output.back(activity.last, slope.reshape(activity.last.shape))).vector
    step = start.vector - np.concatenate([part.ravel() for parts in net for part in parts])
    assert np.abs(step - exact).max() < 2e-7  # rounding of weights in single precision
    assert np.abs(exact).max() > 1e-3


def test_batches_have_the_law_of_the_tree():
    problem = problem_of(READINGS["public code"], 0.7, 2, 3, depth=3)
    _, moves, _ = start_of(problem)
    found = np.concatenate([leaves_of(moves, (seed,)) for seed in range(20)])
    others = Sampler(problem).views(np.random.default_rng(0), np.arange(len(found)) % 2 == 1)
    own, other = np.cov(found.T), np.cov(others.T)
    # each entry is a mean of products of deviation 1/4 at most: 5 of them leave a false alarm once in 3e4 seeds
    assert np.abs(own - other).max() < 5 * 0.25 * np.sqrt(2 / len(found))
    assert np.abs(own - np.diag(np.diag(own))).max() > 0.1


@pytest.mark.torch
def test_weights_are_those_that_torch_draws():
    torch = pytest.importorskip("torch")
    torch.manual_seed(4 + seeds.WEIGHT_SEED_OFFSET)
    W, b = seeds.initial_weights(4, 3, 3)
    for weights, biases in zip(W, b, strict=True):
        for row, bias in zip(weights, biases, strict=True):
            layer = torch.nn.Linear(row.shape[1], row.shape[0])
            assert np.abs(row - layer.weight.detach().numpy()).max() < 1e-7  # rounding of numbers below 1
            assert np.abs(bias - layer.bias.detach().numpy()).max() < 1e-7  # the same


def test_means_before_training_are_those_of_print():
    found = {reading: [] for reading in READINGS}
    for reading, seed in product(READINGS, seeds.TRIALS):
        problem = problem_of(READINGS[reading], 0.9, 10, seed)
        tables = unnormalised(problem)
        found[reading].append(scores(tables, tables.forward(problem.initial_weights))[list(LATENTS.values())])
    wanted = printed()["mean"].sel(low=0.9, nodes=10, column="initial").values
    assert np.abs(np.mean(found["public code"], axis=0) - wanted).max() < LARGEST  # says where it is defined
    assert np.abs(np.mean(found["as printed"], axis=0) - wanted).max() > 2 * LARGEST  # other signs, other trees


def test_scores_in_single_precision():
    problem = problem_of(READINGS["public code"], 0.7, 3, 1, depth=3)
    tables, weights = unnormalised(problem), problem.initial_weights
    rng = np.random.default_rng(0)
    own = single_precision.scores(weights, single_precision.sample(problem.tree.polarities, rng))
    # a correlation of 64000 samples has the deviation 1/253 at most: 4.5 of it leave a false alarm in 2e4 seeds
    assert np.abs(own - scores(tables, tables.forward(weights))).max() < 4.5 / 253
    z = rng.integers(2, size=single_precision.SAMPLES).astype(np.float32)
    found = single_precision.correlations(z, np.stack([z, 1 - z]))
    assert found == pytest.approx(1.0, abs=1e-5)  # sums in single precision
    constant = np.repeat(np.linspace(0.1, 1.0, 30, dtype=np.float32)[:, None], len(z), axis=1)
    assert single_precision.correlations(z, constant).max() > 0.5  # of rounding, as nothing varies


@pytest.mark.torch
def test_chance_of_high_scores_is_that_of_sums_by_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=single_precision.SAMPLES).astype(np.float32)
    constant = np.repeat(rng.uniform(0.3, 2.0, (150, 1)).astype(np.float32), len(z), axis=1)

    def add(batches):
        # samples first, as the public code has them, whose sums torch takes in an order of its own
        return torch.from_numpy(np.moveaxis(batches, -1, 0).copy()).sum(dim=0).numpy()

    other, own = (single_precision.correlations(z, constant, order) > 0.5 for order in (add, rounding.in_blocks))
    assert own.mean() > 0.1
    assert (
        np.mean(other != own) < 0.1
    )  # scores are 0 or 1 by the last digits of sums: with another law 0.4 would differ


@pytest.mark.parametrize("add", rounding.ORDERS.values())
def test_sums_of_batches_in_any_order(add):
    batches = np.random.default_rng(0).uniform(size=(5, 3, 128)).astype(np.float32)
    exact = batches.sum(axis=-1, dtype=float)
    assert add(batches).dtype == np.float32
    assert np.abs(add(batches) / exact - 1.0).max() < 127 * 2.0**-24  # 127 roundings of positive numbers
    assert np.abs(add(batches) - exact).max() > 0.0


def test_orders_of_sums_are_judged_by_the_same_constants():
    rng = np.random.default_rng(0)
    own = rng.random((1, rounding.DRAWS, 4, 100)) < 0.3
    cases = [*rounding.ORDERS, rounding.LAST_DIGIT]
    high = xr.DataArray(np.repeat(own, len(cases), axis=0), {"case": cases}, ("case", "draw", "size", "one"))
    numbers = xr.Dataset({"high": high})
    assert [s.holds for s in rounding.judge(numbers)] == [True] * 5
    numbers.high[1] |= rng.random(own.shape[1:]) < 0.1
    numbers.high[2, :, 0] = True
    numbers.high[3] = ~numbers.high[3]
    assert [s.holds for s in rounding.judge(numbers)] == [False, False, True, False, False]


def test_scores_are_those_of_enumerated_leaves():
    problem = problem_of(READINGS["as printed"], 0.7, 3, 1, depth=3)
    tables, weights = unnormalised(problem), problem.initial_weights
    leaves = np.indices((2,) * 8).reshape(8, -1).T.astype(float)
    u = network.forward(weights, leaves).last
    law = 0.5 * law_of_leaves(tables)  # of root and leaves
    z = np.repeat([0.0, 1.0], len(leaves))
    best = [abs(np.cov(z, np.tile(row, 2), aweights=law.ravel(), bias=True)) for row in u.T]
    best = max(c[0, 1] / np.sqrt(c[0, 0] * c[1, 1]) for c in best)
    assert scores(tables, tables.forward(weights))[0] == pytest.approx(best, rel=1e-12)  # rounding


def test_noise_of_one_triple_is_that_of_single_gradients():
    problem = batch_size.problem_of(0.02, 1)
    tables, weights = Tables(problem), problem.initial_weights
    leaves = np.indices((2,) * 4).reshape(4, -1).T.astype(float)
    P, p = law_of_leaves(tables), np.array(problem.tree.root)
    near, alone = np.einsum("z,zc,zd->cd", p, P, P), p @ P
    rows, chance = [], []
    for a, b, c in np.ndindex(16, 16, 16):
        activity = network.forward(weights, leaves[[a, b, c]])
        _, slope = batch_slope(problem.loss.contrast, activity.last[:, None])
        rows.append(network.gradient(weights, activity, slope[:, 0]).vector)
        chance.append(near[a, b] * alone[c])
    exact = np.cov(np.array(rows).T, aweights=chance, bias=True)
    assert (
        np.abs(batch_size.of_one_triple(tables, weights) - exact).max() < 1e-13 * np.abs(exact).max() + 1e-15
    )  # rounding


def test_lucky_nodes_have_the_chance_of_the_normal_law():
    for c, gamma in ((9.0, 0.2), (1.0, 0.5), (4.0, 0.8)):
        law = multivariate_normal(cov=[[1.0, -gamma], [-gamma, 1.0]], allow_singular=True)
        exact = law.cdf([-np.sqrt(c), 0.0])  # of minus both numbers
        assert lucky.chance(c, gamma) == pytest.approx(exact, rel=1e-4, abs=1e-8)  # that of scipy's quadrature
        assert (
            lucky.corrected_bound(np.array(c), gamma)
            <= lucky.chance(c, gamma)
            < lucky.printed_bound(np.array(c), gamma)
        )
    assert lucky.chance(9.0, 0.2) == pytest.approx(3.397672e-4, abs=5e-11)  # a unit of the last digit


def test_ring_follows_the_reference_path():
    found = figure_3.path((1.0, -2.0))
    at = round(60.0 / figure_3.STEP)
    # steps of Euler: rate^2 step time/2 = 9e-5, relative
    assert found[at] == pytest.approx([1.5979954499506, -2.0], rel=1e-4)
    assert found[-1].sum() == pytest.approx(0.0, abs=0.02)  # a step across the line


def test_variances_and_contractions():
    values = theorem_6.of_tree(0.7, 0)
    assert values[:, 2] == pytest.approx(values[:, 0], rel=1e-10)  # rounding
    assert values[0, 3] == pytest.approx(values[0, 4], rel=1e-10)  # the root has a constant Jacobian; rounding
    problem = problem_of(READINGS["as printed"], 0.7, 3, 1, depth=3)
    tables = unnormalised(problem)
    found = tables.forward(problem.initial_weights)
    operator = operators(tables, found, tables.evaluate(found))[1]
    K = operator.right.reshape(3, 6, 3)  # nodes, inputs, outputs
    scale = 0.25
    by_output = scale * np.einsum("hio,gjo->higj", K, K)
    by_node = scale * np.einsum("hio,hjp->iojp", K, K)
    expected = [np.linalg.norm(by_output.ravel()), np.linalg.norm(by_node.ravel())]
    assert norms.norms(operator, 3) == pytest.approx(expected, rel=1e-12)  # rounding
