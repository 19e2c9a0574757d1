"""The chain of overlaps has the law of plain SGD, and is chosen where it applies.

Seeds are fixed. Had they been drawn at random, all comparisons of laws of this file together would raise a false alarm
with probability below `FALSE_ALARM`: every test has an equal share of it, and each of its p-values an equal share of
that (Bonferroni).
"""

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.families.update_rule.particles.simulation import chosen_method
from tests.families.update_rule.particles.problems import (
    FULL,
    MEANS,
    ORTHONORMAL,
    RULES,
    SEVERAL,
    SINGLE,
    TOGETHER,
    VIEWS,
    after,
    made,
    rows_after,
    stepper_maker,
)
from tests.oracles.p_values import all_above, same_law
from tests.references_in_time import table

FALSE_ALARM = 1e-3

LAPLACE = [each | {"hidden": {"law": "laplace", "second_moment": 1.2}} for each in FULL["features"]]
CLASSES = [
    {"probability": 0.6, "mean": [1.0, 0.5], "noise": 0.5},
    {"probability": 0.4, "mean": [-1.2, 0.3], "noise": 2.5},
]
SCALE = {"law": "student_t", "degrees_of_freedom": 6.0, "of": "sample"}
BARE = [{key: value for key, value in each.items() if key != "hidden"} for each in FULL["features"]]
CASES = {
    "spiked, l2, three samples": (FULL, {"model": {"batch_size": 3}, "prior": {"name": "l2", "strength": 0.5}}),
    "spiked, sphere": (FULL, {"model": {"constraint": "sphere"}, "features": LAPLACE}),
    "orthogonal, polar": (FULL, ORTHONORMAL | {"model": {"constraint": "polar"}, "data": {"signal": "orthogonal"}}),
    "orthogonal, gram_schmidt, two samples": (
        FULL,
        ORTHONORMAL | {"model": {"constraint": "gram_schmidt", "batch_size": 2}, "data": {"signal": "orthogonal"}},
    ),
    "elliptical classes, two samples": (
        FULL,
        {"model": {"batch_size": 2}, "data": {"classes": CLASSES, "scale": SCALE}, "features": BARE},
    ),
    "orthogonal, noise of random size": (FULL, {"data": {"signal": "orthogonal", "scale": SCALE | {"of": "noise"}}}),
    "several draws": (SEVERAL, {}),
    "views": (VIEWS, {"prior": {"name": "l2", "strength": 0.5}}),
    "averages over samples": (MEANS, {}),
    "batches whose samples see each other": (TOGETHER, {}),
    "white noise": (SINGLE, {"model": {"rule": f"{RULES}:oja_itself", "rule_parameters": {"rate": 0.4}}}),
}
TESTS = 2 * len(CASES)


def compare(case, N, runs):
    base, tables = CASES[case]
    plain, chain = (
        rows_after(made(base, **tables, particles={"dimension": N, "method": method, "seed": seed}), runs)
        for method, seed in (("plain", 11), ("chain", 12))  # the streams of both have the same addresses
    )
    random = plain.std(axis=0) > 1e-9  # what a constraint keeps is not
    assert random.sum() >= 2
    all_above(FALSE_ALARM / TESTS, **{f"{j}": same_law(plain[:, j], chain[:, j]) for j in np.flatnonzero(random)})


# Averages over samples that steps read are those of the limit in test_means.py, and the other steps are those of views.
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * (case == "averages over samples")) for case in CASES]
)
def test_chain_has_the_law_of_plain_steps_where_dimensions_are_few(case):
    compare(case, 8, 200)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_chain_has_the_law_of_plain_steps(case):
    compare(case, 64, 20000)


def test_students_may_be_equal_and_in_the_span_of_features():
    tables = {"features": [{"initial_overlap": [1.0, 1.0]}], "students": [{}, {"initial_overlap": [1.0]}]}
    problem = made(SINGLE, **tables, particles={"method": "chain"})
    rows = after(problem, range(3), 100).rows
    np.testing.assert_array_equal(rows["Q"][:, 0, 0], rows["Q"][:, 1, 1])
    np.testing.assert_allclose(rows["Q"][:, 0, 1], rows["Q"][:, 0, 0], rtol=1e-13)  # rounding
    assert (rows["R"][:, 0, 0] ** 2 < rows["Q"][:, 0, 0]).all()


@pytest.mark.parametrize("method", ["plain", "chain"])
def test_numbers_do_not_depend_on_cuts_nor_on_those_that_go_along(method):
    problem = made(
        FULL,
        model={"rule_parameters": {"rate": table([0.0, 0.5], [0.1, 0.4], 1.0)}},
        phases=[{"stop": 0.5}, {"stop": 1.0, "set": {"model.batch_size": 2, "model.rule_parameters.rate": 0.2}}],
        particles={"method": method},
    )
    make, several = stepper_maker(problem), method == "chain"
    whole = make(range(3) if several else range(2, 3))
    whole.advance(0, 33)
    cut = make(range(2, 3))
    for first, count in ((0, 5), (5, 14), (19, 1)):
        cut.advance(first, count)
    resumed = make(range(2, 3))
    resumed.restore({name: np.array(value) for name, value in cut.state.items()})
    resumed.reached = cut.reached
    resumed.advance(20, 13)
    assert whole.reached[-1] == resumed.reached[-1] == 33
    for name, row in whole.rows.items():
        np.testing.assert_array_equal(row[-1], resumed.rows[name][0])


@pytest.mark.parametrize("method", ["plain", "chain"])
def test_steps_end_where_students_are_no_longer_finite(method):
    problem = made(
        SINGLE, model={"rule": f"{RULES}:oja_itself", "rule_parameters": {"rate": -50.0}}, particles={"method": method}
    )
    stepper = after(problem, range(1), 64)
    assert 0 < stepper.reached[0] < 64


def test_auto_takes_the_chain_where_it_applies():
    assert chosen_method(made(SINGLE, particles={"method": "auto"})) == "chain"
    assert chosen_method(made(SINGLE, particles={"method": "auto", "snapshots": [1.0]})) == "plain"
    assert chosen_method(made(SINGLE, particles={"method": "auto"}, prior={"name": "l1"})) == "plain"
    assert chosen_method(made(SINGLE, particles={"method": "auto"}, data={"observed": 0.5})) == "plain"
    assert chosen_method(made(SINGLE, particles={"method": "auto", "dimension": 3})) == "chain"
    assert chosen_method(made(FULL, particles={"method": "auto", "dimension": 5})) == "plain"


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"prior": {"name": "l1"}}, r"'chain' with prior.name = 'l1'.*set particles.method to 'plain', or change"),
        ({"data": {"observed": 0.5}}, r"data.observed = 0.5: .*masked; set .*, or set data.observed to 1"),
        ({"particles": {"dimension": 5, "method": "chain"}}, r"particles.dimension = 5: .* raise it to 6"),
    ],
)
def test_a_chain_that_does_not_apply_is_refused(tables, said):
    with pytest.raises(InputError, match=said):
        chosen_method(made(FULL, **({"particles": {"method": "chain"}} | tables)))
