"""Gauss rules of discrete laws against sums over all values, and closures with them against formulas."""

import numpy as np
import pytest

from meanfield import solve_order_parameters
from meanfield.families.contrastive.closures import Closure, closure
from meanfield.families.contrastive.closures.gauss_rule import gauss_rule
from meanfield.problems.file import parse_problem


@pytest.mark.parametrize("degree", [1, 2, 6, 14])
@pytest.mark.parametrize("law", ["standard_normal", "standard_cauchy"])
def test_moments_are_those_of_the_law(law, degree):
    rng = np.random.default_rng(0)
    values, probability = getattr(rng, law)(200), rng.dirichlet(np.ones(200))
    probability[:3] = 0.0
    values = np.append(values, values[-1])  # twice the same
    probability = np.append(probability, 0.1) / (probability.sum() + 0.1)
    nodes, weights = gauss_rule(values, probability, degree)
    assert len(nodes) == degree // 2 + 1
    x, t = values / np.abs(values).max(), nodes / np.abs(values).max()
    for power in range(degree + 1):
        size = np.sum(probability * np.abs(x) ** power)
        assert abs(np.sum(weights * t**power) - np.sum(probability * x**power)) < 1e-12 * size  # rounding
    beyond = 2 * len(nodes)
    missing = np.sum(probability * x**beyond) - np.sum(weights * t**beyond)
    assert missing > 1e-9 * np.sum(probability * x**beyond)  # the remainder is positive


def test_few_values_stay_as_they_are():
    values, probability = np.array([-1.0, 2.0]), np.array([0.5, 0.5])
    assert gauss_rule(values, probability, 2)[0] is values


def test_closures_of_many_samples_are_those_of_their_moments(tmp_path):
    c = np.random.default_rng(1).standard_t(4, size=3000)
    np.save(tmp_path / "c.npy", c)
    problem = parse_problem(
        """
        model = { activation = "quadratic", learning_rate = 0.1, batch_size = 5, centering = "none" }
        features = [{ hidden = { law = "empirical", file = "c.npy" }, initial_overlap = 0.5 }]
        time = { stop = 1.0 }
        """,
        tmp_path,
    )
    closure = Closure(problem, tabulated=False)
    assert len(closure.expectation.mixture.probability) == 4
    m2, m4, m6 = (np.mean(c**power) for power in (2, 4, 6))
    for q in (-0.9, 0.1, 0.6):
        s2 = 1.0 - q * q
        g, diffusion = closure(np.array([q]))
        drift = 12.0 * q * (q * q * m2 + s2) - 4.0 * (q**3 * m4 + 3.0 * q * s2 * m2)
        sixth = q**6 * m6 + 15.0 * q**4 * s2 * m4 + 45.0 * q * q * s2**2 * m2 + 15.0 * s2**3
        assert g[0] == pytest.approx(0.1 * drift, rel=1e-11)  # rounding of the table of brackets
        assert diffusion == pytest.approx(0.01 / 5.0 * 16.0 * sixth, rel=1e-11)  # the same


def test_fluctuations_of_many_values_are_those_of_sums_over_them(monkeypatch):
    """N times the covariance of q over runs takes moments up to the tenth."""
    values = np.random.default_rng(2).uniform(-2.0, 2.0, size=40)
    law = f"{{ law = 'discrete', values = {values.tolist()}, probabilities = {40 * [0.025]} }}"
    problem = parse_problem(
        f"""
        model = {{ activation = "quadratic", learning_rate = 0.1, batch_size = 5 }}
        features = [{{ hidden = {law}, initial_overlap = 0.5 }}]
        time = {{ stop = 1.0, outputs = 3 }}
        """
    )
    found = solve_order_parameters(problem)["q_covariance"].values
    monkeypatch.setattr(closure, "gauss_rule", lambda values, probability, degree: (values, probability))
    expected = solve_order_parameters(problem)["q_covariance"].values
    assert np.all(found[1:] > 0.0)
    assert np.allclose(found, expected, rtol=1e-9, atol=0)  # tolerance of the order parameters
