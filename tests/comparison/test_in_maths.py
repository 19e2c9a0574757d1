"""What notebooks and reports say in formulas of a comparison, against what judges."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr
from scipy.stats import t as student

import meanfield
from meanfield.comparison.rotations import Deviations, one_sample, rotation_test, two_samples
from meanfield.comparison.sides import stated_error
from meanfield.comparison.wording import IN_MATHS, in_maths
from meanfield.explanation.explanation import Explanation
from meanfield.problems.variable import TESTS
from meanfield.report.content import Table
from meanfield.results.result import Result
from tests.example_problems import SMALL


def pair(test, p_value, **levels):
    return xr.Dataset({"test": test, "p_value": p_value} | {f"{name}_chance": level for name, level in levels.items()})


def beyond(D, s, epsilon, freedom):
    chance = student.sf((np.abs(D) - epsilon) / s, freedom) + student.sf((np.abs(D) + epsilon) / s, freedom)
    return s * student.isf(0.5 * chance, freedom)


def test_each_way_to_judge_has_formulas_that_browsers_draw():
    assert {*IN_MATHS, "nothing"} == set(TESTS)
    for test in IN_MATHS:
        chance = float("nan") if test == "stated errors" else 0.3
        html = Table((), (), notes=in_maths(pair(test, chance, q=2.8, generalisation_error=3.1))).maths
        ElementTree.fromstring(f"<div>{re.sub(r'&(?!lt|gt|amp|quot)[a-zA-Z]+;', '', html)}</div>")  # well formed
        assert "<math" in html
        assert ("0.3" in html) == (test != "stated errors")
    assert in_maths(xr.Dataset({"p_value": 0.3})) == []  # of an older version
    assert in_maths(pair("nothing", float("nan"))) == []


def test_the_statistic_and_its_law_by_rotations_are_those_of_the_formulas():
    """Other rotations than those of the code: 4000 of either leave a standard error of 0.01 of p, and 0.04 are four."""
    rng, runs, places, epsilon = np.random.default_rng(1), 6, 5, 0.1
    rows = rng.normal(0.5, 1.0, (runs, places))
    quantity = Deviations(rows[:, :, None], np.full((places, 1), epsilon), {"q": lambda values: values[..., 0]})
    outcome = rotation_test(one_sample(np.ones(runs)), [quantity])

    def largest(mean, spread):
        return np.max(np.abs(mean) / (spread / np.sqrt(runs)))

    mean, s = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(runs)
    d = np.sign(mean) * beyond(mean, s, epsilon, runs - 1)
    T = largest(d, rows.std(axis=0, ddof=1))
    assert "the number of runs, or of batches of many, less one for each set of runs" in IN_MATHS["rotations"][0]
    assert two_samples(np.ones(runs), np.ones(4)).freedom == runs + 4 - 2
    assert outcome.deviations["q"].max() == pytest.approx(T, rel=1e-12)  # rounding of sums of six numbers
    within = rows - mean + d
    turned = [np.linalg.qr(rng.normal(size=(runs, runs)))[0] @ within for _ in range(4000)]
    found = np.mean([largest(each.mean(axis=0), each.std(axis=0, ddof=1)) >= T for each in turned])
    assert abs(found - outcome.p_value) < 0.04


def test_the_statistic_and_its_law_by_standard_errors_are_those_of_the_formulas():
    runs = 32
    settings = {"method": "chain", "dimension": 4096, "replicas": runs, "record": "statistics"}
    problem = meanfield.parse_problem(SMALL)
    problem = meanfield.with_values(problem, {f"particles.{key}": value for key, value in settings.items()})
    limit = meanfield.solve_order_parameters(problem)
    whole = meanfield.compare(limit, meanfield.simulate_sgd(problem, workers=1))
    for shown in (whole.meanfield, limit.meanfield, Explanation("", (), (), (), problem=problem)):
        assert "<math" in shown._repr_html_()
    report = whole.isel(pair=0)
    assert report["test"].item() == "standard errors"
    mean, s = report["q_difference"].values, report["q_standard_error"].values
    allowed = stated_error(Result.of(limit), "q")
    chances = 2.0 * student.sf(beyond(mean, s, allowed, runs - 1) / s, runs - 1)[np.isfinite(s)]
    assert report["p_value"].item() == pytest.approx(min(1.0, chances.size * chances.min()), rel=1e-9)  # rounding of d
