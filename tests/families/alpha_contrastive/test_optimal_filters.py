"""Networks with the best objective against references, duality and brute force (alpha_contrastive.md, section 4)."""

import numpy as np
import pytest

from meanfield.families.alpha_contrastive.limit.circle import on_circle
from meanfield.families.alpha_contrastive.limit.fields import discrete_field
from meanfield.families.alpha_contrastive.limit.networks import network_of, with_importance
from tests.families.alpha_contrastive.problems import LAW_F, kernel, problem, solved

PAGE = [(10.0, 1, 0.205794), (1.0, 2, 0.140809), (0.3, 3, 0.081537), (0.1, 4, 0.036609), (0.03, 5, 0.011619)]
"""Temperature, number of filters and objective on the theory page, whose filters are on a grid of 1440 angles."""


@pytest.mark.parametrize(("temperature", "atoms", "objective"), PAGE)
def test_references(temperature, atoms, objective):
    best = solved("optimal_filters", "relu", LAW_F, kernel("gaussian", temperature))
    assert best.sizes["atom"] == atoms
    # a grid misses a filter at a wall by up to 2e-3, and loses that times a slope of 0.01
    assert 0.0 <= float(best["G"]) - objective + 5e-7 <= 2e-5  # and the page rounds to 1e-6
    np.testing.assert_allclose(best["weight"].sum(), 1.0, atol=1e-14)  # rounding
    assert float(best["certificate_gap"]) <= 1e-9 * float(best["G"])  # where the search ends


@pytest.mark.parametrize(
    ("activation", "importance"), [("tanh", kernel("gaussian", 0.1)), ("relu", kernel("infonce", 0.1))]
)
def test_no_filter_on_a_fine_grid_is_better(activation, importance):
    given = problem(activation, LAW_F, importance)
    best = solved("optimal_filters", activation, LAW_F, importance)
    field = discrete_field(given, given.data)
    network = network_of(field, field.filter.value(best["w"].values @ field.atoms.T), best["weight"].values)
    np.testing.assert_allclose(network.objective, best["G"], rtol=1e-12)  # rounding
    energy = with_importance(field, network).energy(on_circle(np.linspace(-np.pi, np.pi, 20_001)))
    # the certificate of the result, and rounding
    assert energy.max() <= network.mean_energy + float(best["certificate_gap"]) + 1e-15
    # concave: weight moved to any filter of a coarse grid lowers the objective
    for w in on_circle(np.linspace(-np.pi, np.pi, 24)):
        outputs = field.filter.value(np.concatenate([best["w"].values, w[None]]) @ field.atoms.T)
        moved = network_of(field, outputs, np.append(0.99 * best["weight"].values, 0.01))
        assert moved.objective <= network.objective


def test_the_uniform_importance_needs_one_filter():
    best = solved("optimal_filters", "relu", LAW_F)
    points = solved("critical_points", "relu", LAW_F)
    assert best.sizes["atom"] == 1
    np.testing.assert_allclose(best["w"][0], points["w"][0], atol=1e-11)  # of roots
    np.testing.assert_allclose(best["G"], points["energy"][0], rtol=1e-13)  # rounding


def test_filters_of_space():
    """A third coordinate that no point uses changes nothing."""
    importance = kernel("gaussian", 0.3)
    space = LAW_F | {"points": [[*point, 0.0] for point in LAW_F["points"]]}
    best = solved("optimal_filters", "relu", space, importance, critical_points={"starts": 40})
    plane = solved("optimal_filters", "relu", LAW_F, importance)
    np.testing.assert_allclose(best["G"], plane["G"], rtol=1e-9)  # where both searches end
    assert "warning" not in best.attrs  # all cells of the sphere are looked at
