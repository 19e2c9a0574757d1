"""Rules that are as fine as asked for, gap by gap, and no finer."""

import numpy as np
import pytest

from meanfield.ingredients.laws.coordinate import GaussianCoordinate, LaplaceCoordinate, UniformCoordinate
from meanfield.numerics.fine_rules import COARSEST, Rule

LAWS = [GaussianCoordinate(), UniformCoordinate(), LaplaceCoordinate()]
VALUES = np.linspace(-2.0, 2.0, 17)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.law)
def test_nodes_are_as_close_as_each_gap_asks_for(law):
    spacing = np.full(16, 1.0)
    spacing[[3, 9]] = 0.05, 0.004
    x, _ = Rule.between(law, VALUES, spacing).nodes
    gap = np.clip(np.searchsorted(VALUES, 0.5 * (x[1:] + x[:-1])) - 1, 0, 15)
    assert (np.diff(x) <= np.minimum(spacing, COARSEST)[gap] * (1 + 1e-12)).all()  # rounding
    everywhere, _ = Rule.between(law, VALUES, np.full(16, 0.004)).nodes
    assert len(x) < 0.25 * len(everywhere)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.law)
def test_rules_average_smooth_functions(law):
    """With moments and a function that is as steep as the finest gap allows, wherever it is steep."""
    spacing = np.full(16, 1.0)
    spacing[9] = 0.004
    x, weight = Rule.between(law, VALUES, spacing).nodes
    assert weight.sum() == pytest.approx(1.0, abs=1e-14)  # rounding
    assert weight @ x**2 == pytest.approx(1.0, abs=1e-5)  # 1e-8 is left out at both ends, where x is up to 14
    below, doubled = Rule.between(law, VALUES, np.full(16, 0.02), halved=True).nodes
    assert (below < 0.0).all()
    assert doubled @ below**2 == pytest.approx(1.0, abs=1e-5)  # as above
    step = np.tanh((x - 0.4) / 0.02)  # within gap 9
    fine, fine_weight = Rule.between(law, VALUES, np.full(16, 0.002)).nodes
    assert weight @ step == pytest.approx(fine_weight @ np.tanh((fine - 0.4) / 0.02), abs=1e-9)  # five nodes a width
    coarse, coarse_weight = Rule.between(law, VALUES, np.full(16, 1.0)).nodes
    assert abs(coarse_weight @ np.tanh((coarse - 0.4) / 0.02) - fine_weight @ np.tanh((fine - 0.4) / 0.02)) > 1e-4


def test_equal_demands_share_a_rule():
    spacing = np.linspace(0.03, 0.06, 16)
    first, second = (Rule.between(LAWS[0], VALUES, scale * spacing) for scale in (1.0, 1.0 + 1e-9))
    assert first.nodes[0] is second.nodes[0]
