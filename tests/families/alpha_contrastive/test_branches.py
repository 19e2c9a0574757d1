"""Branches of critical points against searches in between, power iteration, and its constants (section 3)."""

import numpy as np
import pytest

import meanfield
from meanfield.families.alpha_contrastive.critical_points.branches import at_value
from meanfield.families.alpha_contrastive.critical_points.solver import SECOND_ORDER_BOUND, existence_constants
from meanfield.families.alpha_contrastive.limit.fields import mixture_field
from meanfield.numerics.continuation import crossings
from meanfield.results.states import branches_of
from meanfield.sweep.reductions import reduced
from tests.families.alpha_contrastive.problems import LAW_F, kernel, problem, solved
from tests.families.alpha_contrastive.test_critical_points import MIXTURE

SPACE = {"law": "points", "points": [[1.0, 0.2, 0.1], [-0.3, 1.1, 0.2], [0.2, -0.4, 0.9], [-0.5, -0.5, -0.8]]}


@pytest.mark.parametrize(
    ("activation", "law", "importance", "key", "start", "stop", "turning"),
    [
        ("quadratic", LAW_F, kernel("gaussian", 1.0), "importance.temperature", 0.2, 2.0, 4),
        pytest.param(  # kinks are in the test of walls
            *("relu", MIXTURE, None, "data.covariance", 0.05, 0.6, 1), marks=pytest.mark.slow
        ),
        pytest.param(  # another number of the law above
            *("relu", MIXTURE, None, "data.probabilities[0]", 0.1, 0.6, 1), marks=pytest.mark.slow
        ),
        pytest.param(
            *("tanh", SPACE, kernel("gaussian", 1.0), "importance.temperature", 0.4, 2.0, None), marks=pytest.mark.slow
        ),
    ],
)
def test_branches_cross_every_critical_point_in_between(activation, law, importance, key, start, stop, turning):
    given = problem(activation, law, importance)
    result = meanfield.alpha_contrastive.continue_critical_points(given, key, start, stop, 21)
    assert turning is None or int(result["turning"].sum()) == turning  # folds, where pairs of points appear
    value = start + 0.37 * (stop - start)
    points = meanfield.solve(at_value(given, key, value), "critical_points")
    w = np.array([x for b in branches_of(result) for x in crossings(b["w"].values, b["parameter"].values, value)])
    apart = np.linalg.norm(points["w"].values[:, None] - w, axis=2)
    assert len(w) == points.sizes["point"]
    assert apart.min(axis=1).max() < 5e-3  # linear between points of a branch, 0.05 apart


def test_branches_end_at_walls():
    """Points of ReLU between walls at tau = 0.3, which come from walls as the temperature falls."""
    result = meanfield.alpha_contrastive.continue_critical_points(
        problem("relu", LAW_F, kernel("gaussian", 0.3)), "importance.temperature", 0.3, 2.0
    )
    for branch in branches_of(result):
        for end in (branch.isel(point=0), branch.isel(point=-1)):
            inside = 0.3 < float(end["parameter"]) < 2.0
            z = np.abs(np.array(LAW_F["points"]) @ end["w"].values)
            assert not inside or z.min() < 1e-3 or int(end["turning"]) == 1  # steps of a lost branch


def test_what_branches_do_not_depend_on():
    with pytest.raises(meanfield.InputError, match="critical points do not depend on it; vary a number of importance"):
        meanfield.alpha_contrastive.continue_critical_points(problem(), "time.stop", 1.0, 2.0)


def test_sweeps_count_critical_points():
    """Maxima of law F with h = x^2 against the temperature: 4, 6, 8 by the theory page (section 12)."""
    for tau, count in ((1.0, 4), (0.3, 6), (0.1, 8)):
        kept = reduced(solved("critical_points", "quadratic", LAW_F, kernel("gaussian", tau)), ["critical_points"])
        assert [int(kept[name]) for name in ("stable_between_walls", "stable_on_walls")] == [count, 0]


def test_roughness_and_power_iteration():
    """R3: a gap of .0536 and a roughness of .1105; and power iteration itself beside each point."""
    points = solved("critical_points", "relu", MIXTURE)
    third = points.isel(point=2)
    assert abs(float(third["gap"]) - 0.0536) < 5e-5  # digits of the page
    assert abs(float(third["roughness"]) - 0.1105) < 5e-5  # the same
    given = problem("relu", MIXTURE)
    field = mixture_field(given, given.data)
    for k in range(points.sizes["point"]):
        w, beside = points["w"].values[k], 1e-4
        for sign in (1.0, -1.0):
            start = w + sign * beside * np.array([-w[1], w[0]])
            end = field.matrix(start) @ start
            end /= np.linalg.norm(end)
            factor = np.linalg.norm(end - w) / beside
            assert abs(factor - float(points["power_factor"][k])) < 1e-2  # of second order in the distance, 1e-4


def test_second_order_of_eigenvectors_is_bounded():
    """`SECOND_ORDER_BOUND` over the gap, squared, by random changes of random matrices."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = np.sort(rng.uniform(0.0, 1.0, 4))
        gap = values[-1] - values[-2]
        V = rng.standard_normal((4, 4))
        V = (V + V.T) / np.linalg.norm(V + V.T, 2)
        e = 1e-3 * gap
        top = np.linalg.eigh(np.diag(values) + e * V)[1][:, -1]
        top *= np.sign(top[-1])
        first = np.append(e * V[:-1, -1] / (values[-1] - values[:-1]), 1.0)
        assert (
            np.linalg.norm(top - first) < 1.01 * SECOND_ORDER_BOUND * (e / gap) ** 2
        )  # the third order is 1e-3 of the second
    constants = existence_constants(np.array([0.1, 0.5]), 1.0, 0.0)
    np.testing.assert_allclose((constants["mu"], constants["omega"]), 0.04, rtol=1e-14)  # rounding


def test_kernels_have_their_own_probabilities():
    changed = at_value(problem("relu", MIXTURE), "data.probabilities[0]", 0.2)
    np.testing.assert_allclose(changed.data.probabilities, [0.2, 0.48, 0.32], rtol=1e-14)  # rounding
