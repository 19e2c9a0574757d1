"""The chain and plain SGD of one problem have one limit, for every f.

The chain's inputs are Gaussian and those of plain SGD are f(U), so that means over replicas differ by O(1/N): what is
tested is their difference, extrapolated from N and 2 N to 1/N = 0. Q, R and the generalisation error are held at the
end of training in which E[Delta g'] is far from 0, so that a student learns any mean that single inputs have. The seeds
are fixed; had they been drawn at random, a number would be beyond its bound in `FALSE_ALARM` of all runs of a test.
"""

from functools import cache

import numpy as np
import pytest
from scipy.stats import norm

from meanfield.families.hidden_manifold.particles.simulation import simulate_sgd
from meanfield.ingredients.nonlinearities import NONLINEARITIES
from tests.families.hidden_manifold.particles.problems import TWO_BLOCKS, make_problem

FALSE_ALARM = 1e-2
NUMBERS = 8
STRONG = ('teacher.activation = "relu"', "training.learning_rate = 0.3", "time = { stop = 2.0, outputs = 2 }")


@cache
def numbers(f, method, seed, N, replicas, *lines):
    """Q, R and the generalisation error at the end, shape (replicas, NUMBERS)."""
    run = simulate_sgd(
        make_problem(
            *(TWO_BLOCKS, *STRONG, f'inputs.nonlinearity = "{f}"', f"particles.dimension = {N}", *lines),
            f'particles = {{ method = "{method}", replicas = {replicas}, seed = {seed}, snapshots = [] }}',
        )
    )
    end = run.isel(time=-1)
    Q, R = end["Q"].values[:, (0, 0, 1), (0, 1, 1)], end["R"].values.reshape(replicas, -1)
    return np.concatenate([Q, R, end["generalisation_error"].values[:, None]], axis=1)


def difference(f, N, replicas, *lines):
    """Mean over replicas of plain SGD less that of the chain, and the square of its standard error."""
    plain = numbers(f, "plain", 5, N, replicas, *lines)
    chain = numbers(f, "chain", 6, N, 4 * replicas)
    return plain.mean(axis=0) - chain.mean(axis=0), sum(x.var(axis=0, ddof=1) / len(x) for x in (plain, chain))


def largest_deviation(f, N, replicas, *lines):
    """Largest difference in the limit, in standard errors; of numbers that nobody moves, such as R of an even f, 0."""
    (coarse, coarse_square), (fine, fine_square) = (difference(f, n, replicas, *lines) for n in (N, 2 * N))
    error = np.sqrt(4 * fine_square + coarse_square)
    return np.abs(np.where(error > 1e-9, 2 * fine - coarse, 0) / np.maximum(error, 1e-9)).max()


def test_columns_of_one_length_are_what_the_limit_assumes():
    bound = norm.isf(FALSE_ALARM / 2 / NUMBERS)
    assert largest_deviation("quadratic", 60, 30) < bound
    assert largest_deviation("quadratic", 60, 30, 'particles.column_lengths = "random"') > 2 * bound


@pytest.mark.slow  # 10 s each
@pytest.mark.parametrize("f", NONLINEARITIES)
def test_plain_sgd_has_the_limit_of_the_chain(f):
    assert largest_deviation(f, 150, 150) < norm.isf(FALSE_ALARM / 2 / NUMBERS / len(NONLINEARITIES))
