"""Studies of sparse learning: the limit of batch lasso against scikit-learn, and their cheap statements."""

from importlib import import_module

import numpy as np
import pytest
import xarray as xr

from meanfield.ingredients.laws.coordinate import ThreePointCoordinate
from validation.update_rule.sparse import random_problems
from validation.update_rule.sparse.batch_lasso import batch_lasso
from validation.update_rule.sparse.cases import SIGMA, SPARSE

LAW = ThreePointCoordinate(**SPARSE).quadrature(3)


SLOW = pytest.mark.slow  # coordinate descent at N = 2,000, and whole grids


@pytest.mark.parametrize(
    ("samples", "factor", "N"),
    [(1.0, 1.5, 800), *(pytest.param(*each, 2000, marks=SLOW) for each in ((0.6, 1.8), (1.0, 1.5), (2.0, 1.0)))],
)
def test_batch_lasso_has_the_limit_of_state_evolution(samples, factor, N):
    """Against coordinate descent of scikit-learn for four problems."""
    Lasso = pytest.importorskip("sklearn.linear_model").Lasso
    limit = batch_lasso(factor, samples, *LAW, SIGMA)
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        u = ThreePointCoordinate(**SPARSE).sample(rng, (N,))
        x = rng.standard_normal((round(samples * N), N)) / np.sqrt(N)
        labels = x @ u + SIGMA * rng.standard_normal(len(x))
        w = Lasso(alpha=limit.strength / len(x), fit_intercept=False, tol=1e-6).fit(x, labels).coef_
        found.append([np.mean((w - u) ** 2), np.mean(w[u != 0] != 0), np.mean(w[u == 0] != 0)])
    spread = np.maximum(np.std(found, axis=0, ddof=1) / 2.0, 1.0 / N)  # one of the 4 N/5 coordinates of all supports
    assert np.all(np.abs(np.mean(found, axis=0) - limit[:3]) < 7.5 * spread)  # Student's law: 0.5 % each are beyond
    assert spread.max() < 0.03


STUDIES = [
    ("principal_components", {"STRENGTHS": (0.0, 0.2)}),
    *(
        pytest.param(name, {}, marks=SLOW)
        for name in ("online_lasso", "penalties", "perceptrons", "strength_schedule", "early_stopping")
    ),
]
"""Studies, and parts of their grids on which their statements hold, too."""


@pytest.mark.parametrize(("name", "grid"), STUDIES)
def test_statements_of_studies_hold(name, grid, monkeypatch):
    study = import_module(f"validation.update_rule.sparse.{name}")
    for constant, values in grid.items():
        monkeypatch.setattr(study, constant, values)
    numbers = study.theory()
    assert [str(statement) for statement in study.judge(numbers) if not statement.holds] == []
    assert grid or len(study.draw(numbers).axes) >= 2


@pytest.mark.slow
def test_densities_of_random_rules_are_honest():
    for seed in range(4, 8):
        linear, other = random_problems.row(f"linear {seed}"), random_problems.row(f"other {seed}")
        for scheme in random_problems.SCHEMES:
            assert linear[f"{scheme} complete"]
            assert linear[f"{scheme} ratio"] <= 1.0
        assert other["both_complete"]
        assert other["apart"] <= 1.0
    particles = random_problems.row("particles 4")
    assert particles["particles_complete"]
    assert 0.0 < particles["particles_error"] <= random_problems.ASKED
    assert 0.0 < particles["particles_apart"] <= 1.0


@pytest.mark.parametrize(
    ("changes", "holds"),
    [({}, True), ({"apart": 11}, False), ({"apart": 10}, True), ({"error": 1}, False)],
)
def test_particles_that_miss_more_than_chance_or_are_not_exact_are_noticed(changes, holds):
    """11 or more of 50 come by chance in one of 230 studies if each is beyond in 9 %, 10 or more in one of 80."""
    wrong = {"apart": (0.5, 1.1), "complete": (1.0, 0.0), "error": (1e-3, 3e-3)}
    numbers = {name: ("problem", np.ones(50)) for name in ("both_complete", "apart")}
    numbers |= {name: (("problem", "scheme"), np.full((50, 2), 0.1)) for name in ("seconds", "ratio")}
    for name, (right, other) in wrong.items():
        numbers[f"particles_{name}"] = "problem", np.where(np.arange(50) < changes.get(name, 0), other, right)
    numbers["complete"] = ("problem", "scheme"), np.ones((50, 2))
    assert random_problems.judge(xr.Dataset(numbers))[4].holds == holds
