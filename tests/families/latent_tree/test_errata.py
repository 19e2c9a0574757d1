"""Errata of the paper (docs/errata/tian_2020.md): the right formula holds, and the printed one does not."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from meanfield.families.latent_tree.operators import operators
from meanfield.families.latent_tree.tables import Tables
from meanfield.networks.contrast import Contrast
from tests.families.latent_tree import enumeration
from tests.families.latent_tree.problems import case_b


def test_variance_that_the_root_explains():
    problem = case_b()
    leaves, P = enumeration.leaf_law(problem)
    p = np.array(problem.tree.root)
    means = P @ leaves  # of the leaves, given the root
    found = np.cov(means.T, aweights=p, bias=True)
    bottom, top = problem.tree.polarities
    for latent, places in ((0, slice(0, 2)), (1, slice(2, 4))):
        a, through = 0.5 * bottom[places], top[latent] ** 2  # leaves 0 and 1 have the selectivity 1/2
        pair = np.outer(a, a)
        root = p[1] - p[0]
        assert np.allclose(found[places, places], through * (1 - root**2) * pair, rtol=0, atol=1e-15)  # rounding
        assert not np.allclose(found[places, places], through * (1 - through) * pair, rtol=0.1)  # far beyond rounding


def test_latents_of_a_level_move_each_other():
    tables = Tables(case_b())
    weights = tables.problem.initial_weights
    found = tables.forward(weights)
    evaluation = tables.evaluate(found)
    gradient = tables.gradient(found, tables.by_last(found, evaluation.slope)).W[0]
    for latent, operator in enumerate(operators(tables, found, evaluation)[1:]):
        whole = -gradient[latent].ravel()
        missing = np.linalg.norm(whole - 2 * operator.matrix @ weights.W[0][latent].ravel())
        assert missing > 0.15 * np.linalg.norm(whole)


def test_slopes_of_the_weight_of_a_negative():
    contrast, h = Contrast("infonce", temperature=0.5), 1e-6

    def weight(positive, negative):
        return -contrast.of_triples(np.array([positive]), np.array([[negative]])).negative.item()

    F = weight(0.3, 0.7)
    size = F * (2 - F)
    slopes = [weight(0.3 + h, 0.7) - weight(0.3 - h, 0.7), weight(0.3, 0.7 + h) - weight(0.3, 0.7 - h)]
    assert np.array(slopes) / (2 * h) == pytest.approx([size, -size], rel=1e-8)  # h^2, and rounding/h


def test_number_of_nodes_for_a_lucky_one():
    c, gamma = 9.0, 0.2
    chance = quad(lambda y: norm.pdf(y) * norm.cdf(-gamma * y / np.sqrt(1 - gamma**2)), np.sqrt(c), np.inf)[0]
    assert np.log(0.05) / np.log1p(-chance) == pytest.approx(8815.5, abs=0.1)  # a unit of the last digit
