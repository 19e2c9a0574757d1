"""Laws with many values, of which polynomials need few: closures against formulas, and against sums over all."""

import numpy as np
import pytest

from meanfield import solve_order_parameters
from meanfield.families.contrastive.closures import Closure, closure
from meanfield.problems.file import parse_problem


@pytest.mark.parametrize("law", [{"df": 4}, {"df": 1}], ids=["heavy tails", "no moments"])
def test_closures_of_many_samples_are_those_of_their_moments(tmp_path, law):
    c = np.random.default_rng(1).standard_t(**law, size=3000)
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
    monkeypatch.setattr(closure, "_few_values", lambda law, power: law)
    expected = solve_order_parameters(problem)["q_covariance"].values
    assert np.all(found[1:] > 0.0)
    assert np.allclose(found, expected, rtol=1e-9, atol=0)  # tolerance of the order parameters
