import numpy as np
import pytest

import meanfield
from meanfield.comparison import format_comparison
from meanfield.errors import InputError
from meanfield.extend import DensitySettings
from meanfield.problems.file import parse_problem
from tests.example_problems import SMALL

TEXT = (
    SMALL.replace("stop = 1.0\noutputs = 3", "stop = 2.0\noutputs = 5")
    .replace("cells = 200\nfeature_nodes = 15", "cells = 400\nfeature_nodes = 31")
    .replace("dimension = 64\nreplicas = 3", "dimension = 200\nreplicas = 4")
)


@pytest.fixture(scope="module")
def problem():
    return parse_problem(TEXT)


@pytest.fixture(scope="module")
def results(problem):
    return {
        "density": meanfield.solve_density(problem),
        "ODE": meanfield.solve_order_parameters(problem),
        "SGD": meanfield.simulate_sgd(problem),
    }


@pytest.fixture(scope="module")
def report(results):
    return meanfield.compare(*results.values(), labels=list(results))


@pytest.mark.parametrize(("dim", "word"), [("time", "q"), ("feature", "q")])
def test_a_part_of_a_result_is_refused(results, dim, word):
    part = results["ODE"].isel({dim: 0})
    with pytest.raises(InputError, match=rf"ODE: '{word}' has no dim '{dim}'; compare whole results"):
        meanfield.compare(part, results["SGD"], labels=["ODE", "SGD"])


def test_pairs_and_what_each_is_compared_in(report):
    assert list(report["pair"].values) == ["density - ODE", "density - SGD", "ODE - SGD"]
    ode, sgd, both = (report.isel(pair=i) for i in range(3))
    assert np.isfinite(ode["q_difference"]).all()
    assert np.isnan(ode["q_standard_error"]).all()
    assert np.isfinite(sgd["W1"]).all()
    assert np.isfinite(sgd["KS_given_u"]).all()
    assert np.isnan(both["W1"]).all()
    assert np.isnan(both["r_difference"]).all()


def test_difference_is_in_standard_errors_of_the_replicas(report, results):
    sgd, ode = results["SGD"]["q"], results["ODE"]["q"]
    pair = report.isel(pair=2)
    difference = (sgd.mean("replica") - ode).values
    assert np.allclose(pair["q_difference"], difference, atol=1e-15)  # rounding
    error = sgd.std("replica", ddof=1).values / 2
    assert np.allclose(pair["q_standard_error"][1:], error[1:], rtol=1e-12)  # rounding; four replicas
    assert np.isnan(pair["q_standard_error"][0]).all()  # all replicas start alike


def test_no_distance_to_oneself(results):
    report = meanfield.compare(results["density"], results["density"])
    assert list(report["pair"].values) == ["density 1 - density 2"]
    assert (report["P_l1"] == 0).all()
    assert (report["q_difference"] == 0).all()


def test_densities_on_other_cells_and_nodes_are_comparable(problem, results):
    finer = meanfield.solve_density(
        meanfield.with_value(problem, "density", DensitySettings(cells=800, feature_nodes=31))
    )
    other = meanfield.solve_density(
        meanfield.with_value(problem, "density", DensitySettings(cells=400, feature_nodes=41))
    )
    for dataset in (finer, other):
        report = meanfield.compare(results["density"], dataset)
        # both solve the same equation; 400 cells leave an error of a few 1e-3 in P
        assert float(report["P_l1"].max()) < 1e-2
        assert float(report["P_l1"].max()) > 0


def test_table_names_every_pair(report):
    text = format_comparison(report)
    assert "density - SGD" in text
    assert "standard errors" in text
    assert "W1 distance of w given u" in text


def test_two_features_have_groups_for_each():
    text = TEXT.replace(
        "[time]",
        '[[features]]\nhidden = { law = "gaussian" }\ncoordinate = { law = "rademacher" }\n'
        "initial_overlap = 0.2\n[time]",
    ).replace("feature_nodes = 31", "feature_nodes = 15")
    problem = parse_problem(text)
    report = meanfield.compare(meanfield.solve_density(problem), meanfield.simulate_sgd(problem))
    groups = report["group_u"].isel(pair=0).values
    assert np.isfinite(groups[0]).sum() == 5
    assert np.array_equal(groups[1][np.isfinite(groups[1])], [-1.0, 1.0])
    ratio = (report["W1_given_u"] / report["W1_expected_given_u"]).values
    assert np.nanmax(ratio) < 4  # all that differs is sampling and the O(1/sqrt(N)) fluctuation of q


def test_a_wrong_density_is_far_away(problem, results):
    """Shift the density's overlap by a tenth: distances must leave the sampling distance."""
    wrong = results["density"].copy(deep=True)
    wrong["P"], wrong["P_w"] = wrong["P"].roll(w=20), wrong["P_w"].roll(w=20)
    report = meanfield.compare(wrong, results["SGD"])
    assert float((report["W1"] / report["W1_expected"]).min()) > 5


def test_interrupted_runs_are_compared_where_they_are_finite(results):
    partial = results["density"].copy(deep=True)
    partial["q"][3:] = np.nan
    partial.attrs["status"] = "interrupted"
    report = meanfield.compare(partial, results["ODE"])
    assert np.isfinite(report["q_difference"].values).sum() == 3


def test_different_problems_are_refused_by_name(results):
    other = meanfield.solve_order_parameters(parse_problem(TEXT.replace("0.05", "0.06")))
    with pytest.raises(InputError, match=r"model\.learning_rate = 0\.05 against 0\.06"):
        meanfield.compare(results["density"], other)
    other = meanfield.solve_order_parameters(parse_problem(TEXT.replace("6.05", "7.0")))
    with pytest.raises(InputError, match=r"features\[0\]\.hidden\.fourth_moment = 6\.05 against 7\.0"):
        meanfield.compare(results["density"], other)


def test_a_prior_that_one_problem_lacks_is_named(results):
    other = parse_problem(TEXT + '[prior]\nname = "l2"\n')
    with pytest.raises(InputError, match=r"prior\.name = 'none' against 'l2'"):
        meanfield.compare(results["ODE"], meanfield.solve_order_parameters(other))


def test_settings_of_the_methods_may_differ(problem, results):
    finer = meanfield.with_values(problem, {"title": "other", "density": {"cells": 300, "feature_nodes": 31}})
    meanfield.compare(results["ODE"], meanfield.solve_density(finer))


def test_failed_runs_single_results_and_comparisons_are_refused(results, report):
    failed = results["ODE"].copy()
    failed.attrs["status"] = "failed: at t = 1: too fast"
    with pytest.raises(InputError, match="failed: at t = 1"):
        meanfield.compare(results["density"], failed)
    with pytest.raises(InputError, match="two or more"):
        meanfield.compare(results["density"])
    with pytest.raises(InputError, match="is itself a comparison"):
        meanfield.compare(results["density"], report)
    with pytest.raises(InputError, match="one label each"):
        meanfield.compare(*results.values(), labels=["a"])
