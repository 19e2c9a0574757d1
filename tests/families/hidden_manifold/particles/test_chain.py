"""The chain of Gram matrices against plain SGD: at every N the same law of everything, where inputs are Gaussian.

Ensembles with different seeds are compared by Kolmogorov-Smirnov tests: all order parameters at two times,
and products of pairs of them, centred by the mean of both samples together, which leaves the test exact. The seeds are
fixed. Had they been drawn at random, the tests would raise a false alarm with probability below `FALSE_ALARM` all
together: each case has an equal share of it, and each statistic an equal share of that (Bonferroni).

Eigenspaces have few dimensions and learning rates are large: there a mistake in the number of degrees of freedom, or a
missing term, changes everything.
"""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import ttest_ind

from meanfield.errors import InputError
from meanfield.families.hidden_manifold.particles.simulation import simulate_sgd
from meanfield.families.hidden_manifold.particles.steppers import Chain
from tests.families.hidden_manifold.particles.problems import LINEAR, MEANS, SCALES, TWO_BLOCKS, make_problem
from tests.oracles.p_values import same_law

FALSE_ALARM = 1e-2  # of this file
PLAIN, CHAIN = 160, 480  # replicas

FAST = "training = { learning_rate = 0.6, output_learning_rate = 0.4 }"
WITH_ZEROS = (
    'inputs.spectrum = { law = "atoms", eigenvalues = [0.0, 1.5], weights = [0.33333333333, 0.66666666667] }',
    "inputs.aspect_ratio = 1.5",
    "particles.dimension = 12",  # all of its dimensions are those of the eigenvalue 1.5
)
BATCHES = "training = { batch_size = 3, label_noise = 0.5, weight_decay = 1.2 }"
CASES = {
    "two blocks, teacher in the upper": (
        'inputs.spectrum = { law = "atoms", eigenvalues = [0.4, 1.6], teacher = [0.1, 1.9] }',
        "particles.dimension = 20",
    ),
    "more latents than inputs": WITH_ZEROS,
    "means and scales": (
        TWO_BLOCKS,
        "inputs.components = [{ weight = 0.3, mean = [2.0, 0.5], mean_elsewhere = 1.5, scale = 0.5 }, "
        "{ weight = 0.7, mean = [-0.8571428571428571, -0.21428571428571427], scale = 1.2 }]",
        "particles.dimension = 24",
    ),
    "batches of noisy labels, with decay": (
        TWO_BLOCKS,
        "particles.dimension = 24",
        BATCHES,
    ),
}


def order_parameters(problem):
    """Order parameters and, last, the error at half time and at the end, shape (replicas, 2, numbers)."""
    result = simulate_sgd(problem)
    assert result.attrs["status"] == "complete"
    Q, Omega = (result[name].values[:, 1:, (0, 0, 1), (0, 1, 1)] for name in ("Q", "Omega"))
    others = [result[name].values[:, 1:] for name in ("R", "field_mean", "v", "generalisation_error")]
    return np.concatenate([part.reshape(len(part), 2, -1) for part in (Q, Omega, *others)], axis=2)


SIMPLER = "two blocks, teacher in the upper"
"""Case of two eigenvalues, as both of the others have them."""


@pytest.mark.parametrize(
    "lines",
    [pytest.param(lines, id=name, marks=[pytest.mark.slow] * (name == SIMPLER)) for name, lines in CASES.items()],
)
def test_the_law_is_that_of_plain_sgd(lines):
    lines = (LINEAR, FAST, "time = { stop = 2.0, outputs = 3 }", *lines)
    plain, chain = (
        order_parameters(
            make_problem(
                *lines, f'particles = {{ method = "{method}", replicas = {replicas}, seed = {seed}, snapshots = [] }}'
            )
        )
        for method, replicas, seed in (("plain", PLAIN, 21), ("chain", CHAIN, 22))
    )
    both = np.concatenate([plain, chain])
    centred = [x - both.mean(axis=0) for x in (plain, chain)]
    varying = np.flatnonzero(both[..., :-1].std(axis=(0, 1)) > 1e-9)
    pairs = list(combinations(varying[:12], 2))  # of Q, Omega and R
    p = [same_law(plain[:, t, i], chain[:, t, i]) for t in range(2) for i in varying]
    p += [same_law(*(x[:, 1, i] * x[:, 1, j] for x in centred)) for i, j in pairs]
    # Errors of plain SGD are measured on samples, those of the chain exact: their means alone are the same.
    p += [ttest_ind(plain[:, t, -1], chain[:, t, -1], equal_var=False).pvalue for t in range(2)]
    assert len(varying) >= 10
    assert min(p) > FALSE_ALARM / len(CASES) / len(p)


@pytest.mark.parametrize(
    "lines", [(TWO_BLOCKS, MEANS), WITH_ZEROS, (TWO_BLOCKS, BATCHES)], ids=["means", "zeros", "batches"]
)
def test_numbers_do_not_depend_on_how_steps_and_replicas_are_cut(lines):
    problem = make_problem(LINEAR, FAST, 'particles.method = "chain"', *lines)
    once = Chain(problem, range(3, 6))
    once.advance(0, 500)
    cut = [Chain(problem, range(3, 4)), Chain(problem, range(4, 6))]
    for part in cut:
        for first, last in ((0, 1), (1, 130), (130, 500)):
            part.advance(first, last - first)
    assert np.array_equal(once._gram, np.concatenate([part._gram for part in cut]))
    assert np.array_equal(once._v, np.concatenate([part._v for part in cut]))


def test_products_stay_those_of_vectors():
    """Gram matrices are symmetric, without negative eigenvalues, and those of the teacher never change."""
    chain = Chain(make_problem(LINEAR, FAST, TWO_BLOCKS, MEANS, "particles.dimension = 1000"), range(2))
    fixed = chain._gram[:, :, 2:, 2:].copy()
    chain.advance(0, 5000)
    assert np.array_equal(chain._gram, chain._gram.swapaxes(2, 3))
    assert np.linalg.eigvalsh(chain._gram).min() > -1e-9  # rounding of products up to 1e4
    assert np.array_equal(chain._gram[:, :, 2:, 2:], fixed)


def test_a_blow_up_ends_one_replica_and_not_the_others():
    lines = (LINEAR, TWO_BLOCKS, 'student.activation = "linear"', 'teacher.activation = "linear"')
    chain = Chain(make_problem(*lines, "training.learning_rate = 8.0"), range(3))
    calm = Chain(make_problem(*lines, "training.learning_rate = 0.1"), range(3))
    chain._gram[1], chain._v[1] = calm._gram[1], 0.0  # and never moves: v = 0 and eta_v = 0
    chain.advance(0, 2000)
    chain.advance(2000, 1000)
    assert chain.reached[1] == 3000
    assert 0 < chain.reached[0] < 3000
    assert all(np.all(np.isfinite(row)) for row in chain.rows.values())


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), "'marchenko_pastur': the chain follows one Gram matrix per eigenvalue"),
        ((TWO_BLOCKS, 'inputs.nonlinearity = "relu"', "inputs.centered = false"), "inputs have a mean"),
        ((TWO_BLOCKS, 'inputs.nonlinearity = "relu"', SCALES), "inputs have a mean"),
        ((TWO_BLOCKS, "particles.dimension = 16"), "a space of 4 dimensions has no room for 4 vectors"),
    ],
    ids=["spectrum", "uncentred", "scales", "small"],
)
def test_the_chain_is_refused_where_it_does_not_apply(lines, message):
    with pytest.raises(InputError, match=message):
        simulate_sgd(make_problem(*lines, 'particles.method = "chain"'))


def test_auto_takes_the_chain_only_where_its_law_is_exact():
    def steps(*lines):
        result = simulate_sgd(make_problem(*lines, "time.stop = 0.01"))
        return '"chain"' in result.attrs["provenance"], result.attrs.get("warning", "")

    assert steps(LINEAR, TWO_BLOCKS) == (True, "")
    assert steps(TWO_BLOCKS) == (False, "")
    assert steps(LINEAR) == (False, "")
    chain, warning = steps(TWO_BLOCKS, 'particles.method = "chain"')
    assert chain
    assert "limit of large N" in warning
