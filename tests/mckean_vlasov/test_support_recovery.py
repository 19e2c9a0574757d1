"""Support recovery of densities and SGD, against exact laws, fine solutions and counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

import meanfield
from meanfield.errors import InputError
from meanfield.mckean_vlasov.support_recovery import _Law
from tests.example_problems import feature as feature_table
from tests.example_problems import features, make_problem
from tests.families.update_rule.problems import feature, problem

pytestmark = pytest.mark.usefixtures("plain_figures")

THRESHOLDS = [0.1, 0.3, 0.77, 1.3]
THREE_POINT = {"law": "three_point", "fourth_moment": 5.0}
RATES = ("share_below", "true_positive_rate", "false_positive_rate", "sign_error_rate")


def lasso(tolerance=1e-6, strength=0.3, scheme="lagrangian", **particles):
    return problem(
        "regression", 0.8, numbers={"sigma": 0.5}, features=[feature(0.1, coordinate=THREE_POINT)],
        students=[{"initial_norm": 0.5}], data={"normals": ["eps"]}, prior={"name": "l1", "strength": strength},
        time={"stop": 4.0, "outputs": 5}, density={"tolerance": tolerance, "scheme": scheme},
        particles={"dimension": 1000, "replicas": 8, "snapshots": [1.0, 4.0]} | particles,
    )  # fmt: skip


@pytest.fixture(scope="module")
def density():
    return meanfield.solve_density(lasso())


@pytest.fixture(scope="module")
def runs():
    return meanfield.simulate_sgd(lasso())


def test_a_learning_rate_may_end_at_zero():
    falls = {"schedule": "cosine", "start": 0.05, "end": 0.0, "duration": 0.25}
    prior, time = 'prior = { name = "l1", strength = 0.3 }', "time = { stop = 0.25, outputs = 3 }"
    sgd = meanfield.simulate_sgd(meanfield.with_value(make_problem(prior, time), "model.learning_rate", falls))
    found = meanfield.support_recovery(sgd, THRESHOLDS, 0.8)
    assert np.isfinite(found["debiased_mean_square_error"]).all()


def test_rates_of_a_gaussian_law_are_exact():
    """Under a linear prior w given u is Gaussian with the mean R u and the variance Q - R^2."""
    task = problem(
        "perceptron", 0.7, features=[feature(0.2, coordinate=THREE_POINT)], prior={"name": "l2", "strength": 0.2},
        density={"tolerance": 1e-6},
    )  # fmt: skip
    found = meanfield.support_recovery(meanfield.solve_density(task), THRESHOLDS, 0.4)
    exact = meanfield.solve_order_parameters(task)
    R, Q = exact["R"].values.reshape(-1, 1), exact["Q"].values.reshape(-1, 1)
    root, u = np.sqrt(Q - R * R), np.sqrt(5.0)
    above, below = (ndtr(sign * (R * u - sign * np.array(THRESHOLDS)) / root) for sign in (1, -1))
    others = 2.0 * ndtr(-np.array(THRESHOLDS) / root)
    wanted = {
        "true_positive_rate": above + below,
        "false_positive_rate": others,
        "sign_error_rate": below,
        "share_below": 1.0 - 0.2 * (above + below) - 0.8 * others,
    }
    for name, value in wanted.items():
        away = np.abs(found[name].values.reshape(5, -1) - value)
        stated = found[f"{name}_error"].values.reshape(5, -1)
        assert np.all(away <= stated + 1e-9), name  # what order parameters err by
        assert stated.max() < 2e-5, name  # ten times the error of P at this tolerance
    squares = {"": 1.0, "debiased_": 1.5}  # w + 0.2 w/0.4
    for name, factor in squares.items():
        away = np.abs(found[f"{name}mean_square_error"].values.reshape(5, 1) - (1.0 + factor**2 * Q - 2.0 * factor * R))
        allowed = 2.0 * factor * exact["R_error"].values[:, 0] + factor**2 * exact["Q_error"].values[:, 0]
        assert np.all(away <= found[f"{name}mean_square_error_error"].values.reshape(5, 1) + allowed), name


@pytest.mark.parametrize("scheme", ["lagrangian", pytest.param("eulerian", marks=pytest.mark.slow)])
def test_errors_bound_the_distance_from_a_fine_solution(scheme, density):
    """Under l1, whose density has a corner at 0; thresholds lie within cells."""
    fine = meanfield.support_recovery(density, THRESHOLDS, 0.8)
    rough = meanfield.support_recovery(meanfield.solve_density(lasso(1e-3, scheme=scheme)), THRESHOLDS, 0.8)
    for name in (*RATES, "mean_square_error", "debiased_mean_square_error"):
        away = np.abs(rough[name] - fine[name])
        assert np.all(away <= rough[f"{name}_error"] + fine[f"{name}_error"]), name
        # An error of the density in L1 may lie where squares are largest.
        assert fine[f"{name}_error"].max() < (1e-2 if name.startswith("debiased") else 1e-3), name


def test_rates_of_sgd_are_counted(runs):
    found = meanfield.support_recovery(runs, [0.3, 1.0], 0.8)
    w, U = runs["weights"].values[..., 0], runs["U"].values[..., 0]
    for replica, snapshot in ((0, 0), (5, 1)):
        one, u = w[replica, snapshot], U[replica]
        at, support = found.isel(replica=replica, time=snapshot, feature=0), u != 0
        kept = np.abs(one) > 1.0
        assert at["share_below"][1] == pytest.approx(1.0 - kept.mean(), abs=1e-12)
        assert at["true_positive_rate"][1] == pytest.approx(kept[support].mean(), abs=1e-12)
        assert at["false_positive_rate"][1] == pytest.approx(kept[~support].mean(), abs=1e-12)
        assert at["sign_error_rate"][1] == pytest.approx((kept & (one * u < 0))[support].mean(), abs=1e-12)
        assert at["mean_square_error"] == pytest.approx(np.mean((one - u) ** 2))
        debiased = one + 0.3 * np.sign(one) / 0.8
        assert at["debiased_mean_square_error"][0] == pytest.approx(np.mean((debiased - u) ** 2))


def test_support_recovery_is_judged_saved_and_drawn(density, runs, tmp_path):
    found = [meanfield.support_recovery(each, THRESHOLDS, 0.8) for each in (density, runs)]
    assert meanfield.compare(*found).attrs["verdict"] == "AGREES"
    wrong = meanfield.support_recovery(meanfield.solve_density(lasso(1e-4, strength=0.36)), THRESHOLDS, 0.8)
    compared = meanfield.compare(wrong.assign_attrs(problem=density.attrs["problem"]), found[1])
    assert compared.attrs["verdict"] == "DIFFERS"  # a fifth more of the prior moves rates by 4 standard errors
    for number, each in enumerate(found):
        meanfield.save(each, tmp_path / f"{number}.nc")
        assert meanfield.load(tmp_path / f"{number}.nc").equals(each)
        assert len(meanfield.plotting.plot_result(each).axes) >= 6


def test_two_features_of_contrastive_learning():
    """Of the first, coordinates of SGD are near the three values and not at them; of the second all are support."""
    first = feature_table(0.4).replace('"gaussian"', '"three_point", fourth_moment = 4.0')
    task = make_problem(
        features(first, feature_table(0.3)), 'prior.name = "l1"', "time.stop = 1.0", "time.outputs = 3",
        "particles.dimension = 500", "particles.replicas = 8", "particles.snapshots = [1.0]",
    )  # fmt: skip
    found = [
        meanfield.support_recovery(each(task), THRESHOLDS) for each in (meanfield.solve_density, meanfield.simulate_sgd)
    ]
    assert len(meanfield.plotting.plot_result(found[0]).axes) >= 5
    assert np.isnan(found[0]["false_positive_rate"][:, 1]).all()
    assert np.isfinite(found[1]["false_positive_rate"][..., 0, :]).all()
    assert meanfield.compare(*found).attrs["verdict"] == "AGREES"


def test_narrow_laws_have_the_error_of_a_cell():
    edges = np.linspace(-1.0, 1.0, 21)
    F = ndtr((edges - 0.02) / 0.02)
    law = _Law(edges, F, ())
    values, errors = law.tails(np.array([0.03, 0.5]))
    exact = np.array([ndtr((-np.array([0.03, 0.5]) - 0.02) / 0.02), ndtr(-(np.array([0.03, 0.5]) - 0.02) / 0.02)])
    assert np.all(np.abs(values - exact) <= errors + 1e-12)  # rounding
    assert np.isnan(law.mean(np.square)).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((-0.1,), "threshold = -0.1: give numbers from 0 on"), (("0.1",), "threshold"), (([],), "threshold"),
     ((0.1, 0.0), "gain = 0.0: give positive numbers")],
)  # fmt: skip
def test_what_is_no_threshold_is_refused(density, arguments, words):
    with pytest.raises(InputError, match=words):
        meanfield.support_recovery(density, *arguments)


def test_results_without_weights_are_refused(density):
    with pytest.raises(InputError, match=r"kind 'order_parameters' holds no weights.*particles\.snapshots"):
        meanfield.support_recovery(meanfield.solve_order_parameters(problem("hebb", 0.5, features=[feature(0.2)])), 0.5)
    with pytest.raises(InputError, match="a path is no result"):
        meanfield.support_recovery("density.nc", 0.5)
