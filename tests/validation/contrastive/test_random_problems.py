"""The law of random problems is what its page says; a false alarm of the tests of uniform laws has a chance of 1e-6."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom, kstest

from meanfield.ingredients.activations import ACTIVATIONS
from meanfield.ingredients.priors import PRIORS
from validation.contrastive import random_problems as law

PROBLEMS = [law.random_data(seed) for seed in range(2000)]
FEATURES = [feature for data in PROBLEMS for feature in data["features"]]
FALSE_ALARM = 1e-6


def values(*keys):
    return np.array([data[keys[0]][keys[1]] for data in PROBLEMS])


def assert_uniform(x, ends, spacing=lambda x: x):
    low, high = spacing(np.array(ends))
    assert kstest((spacing(np.asarray(x)) - low) / (high - low), "uniform").pvalue > FALSE_ALARM


def assert_equally_likely(drawn, choices):
    counts = Counter(drawn)
    assert set(counts) == set(choices)
    chance = FALSE_ALARM / (2 * len(choices))
    low, high = binom.ppf([chance, 1 - chance], len(drawn), 1 / len(choices))
    assert all(low <= count <= high for count in counts.values())


def test_everything_that_is_built_in_is_drawn():
    assert set(law.ACTIVATIONS) == set(ACTIVATIONS) - {"scaled_erf"}  # erf with another unit of length
    assert set(law.PRIORS) == set(PRIORS)


@pytest.mark.parametrize(
    ("keys", "ends"),
    [
        (("prior", "strength"), law.STRENGTH),
        (("model", "learning_rate"), law.LEARNING_RATE),
        (("time", "stop"), law.LAST_TIME),
    ],
)
def test_log_uniform_numbers(keys, ends):
    assert_uniform(values(*keys), ends, np.log)


def test_uniform_numbers():
    assert_uniform([f["hidden"]["second_moment"] for f in FEATURES], law.SECOND_MOMENT)
    assert_uniform([f["initial_overlap"] for f in FEATURES], law.OVERLAP)
    three_points = [f["hidden"] for f in FEATURES if f["hidden"]["law"] == "three_point"]
    assert_uniform([h["fourth_moment"] / h["second_moment"] ** 2 for h in three_points], law.HIDDEN_KURTOSIS)
    coordinates = [f["coordinate"] for f in FEATURES if f["coordinate"]["law"] == "three_point"]
    assert_uniform([c["fourth_moment"] for c in coordinates], law.COORDINATE_FOURTH_MOMENT)
    noises = [data["augmentation"] for data in PROBLEMS if "augmentation" in data]
    assert_uniform([v for noise in noises for v in noise["variance"]], law.NOISE_VARIANCE)
    assert_uniform([noise["correlation"] for noise in noises], law.NOISE_CORRELATION)


def test_choices_are_equally_likely():
    assert_equally_likely(values("model", "activation"), law.ACTIVATIONS)
    assert_equally_likely(values("prior", "name"), law.PRIORS)
    assert_equally_likely(values("model", "centering"), law.CENTERINGS)
    assert_equally_likely([f["hidden"]["law"] for f in FEATURES], law.HIDDEN_LAWS)
    assert_equally_likely([f["coordinate"]["law"] for f in FEATURES], law.COORDINATE_LAWS)
    assert_equally_likely(["augmentation" in data for data in PROBLEMS], (False, True))
    batch = values("model", "centering") == "batch"
    assert_equally_likely(values("model", "batch_size")[~batch], law.BATCH_SIZES)
    assert_equally_likely(values("model", "batch_size")[batch], law.BATCH_SIZES[1:])
    two = sum(len(data["features"]) == 2 for data in PROBLEMS)
    low, high = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], len(PROBLEMS), 1 / 3)
    assert low <= two <= high


def test_a_seed_fixes_a_valid_problem():
    for seed in range(100):
        problem = law.random_problem(seed)
        assert problem == law.random_problem(seed)
        assert problem.density.tolerance == 1e-6  # the default of the density, which nothing here overrides
    assert law.random_text(0) != law.random_text(1)
