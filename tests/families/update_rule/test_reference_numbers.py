"""Order parameters against numbers of update_rules.md, section 10: closed forms, solved to 1e-12."""

from __future__ import annotations

import numpy as np
import pytest

import meanfield
from tests.families.update_rule.problems import feature, problem

LAST_DIGIT = 1.5e-10
"""Error of numbers with ten digits, and of solutions to 1e-9 whose errors are ten times smaller."""

TWO = [{"initial_norm": 0.5}, {"initial_norm": 0.4, "initial_overlap": [0.1]}]
THREE_POINT = {"law": "three_point", "second_moment": 1.5, "fourth_moment": 6.0}
SIGN = {"law": "discrete", "values": [-1.0, 1.0], "probabilities": [0.5, 0.5]}
NOISY = {"data": {"coins": {"flip": 0.1}}, "prior": {"name": "l2", "strength": 0.2}}
SPIKED = {"data": {"signal": "spiked"}}

# of R by students, then the lower triangle of Q, then side variables, at t = 1 and 4
CASES = {
    "PCA on the sphere": (
        lambda: problem("oja", 0.5, features=[feature(0.3, 2.0)], model={"constraint": "sphere"}, **SPIKED),
        [0.5669436644, 1.0, 0.8340864474, 1.0],
    ),
    "Oja's own rule": (
        lambda: problem("own_oja", 0.5, features=[feature(0.3, 2.0)], students=[{"initial_norm": 0.5}], **SPIKED),
        [0.6986858269, 1.0474654240, 0.9341679859, 1.2499553178],
    ),
    "ICA, Rademacher": (
        lambda: problem(
            "ica", -0.05, features=[feature(0.5, hidden=SIGN)], model={"constraint": "sphere"},
            data={"signal": "orthogonal"},
        ),
        [0.5010333849, 1.0, 0.5043579209, 1.0],
    ),
    "ICA, three points": (
        lambda: problem(
            "ica", 0.005, features=[feature(0.5, hidden=THREE_POINT)], model={"constraint": "sphere"},
            data={"signal": "orthogonal"},
        ),
        [0.5026868923, 1.0, 0.5107700270, 1.0],
    ),
    "regression, l2": (
        lambda: problem(
            "regression", 0.8, numbers={"sigma": 0.5}, features=[feature(0.1)], students=[{"initial_norm": 0.5}],
            data={"normals": ["eps"]}, prior={"name": "l2", "strength": 0.1},
        ),
        [0.5681506018, 0.7081629612, 0.8673335078, 0.9135134439],
    ),
    "Hebb": (
        lambda: problem("hebb", 0.7, features=[feature(0.2)]),
        [0.7585191926, 2.0253513655, 2.4340767702, 8.8447297235],
    ),
    "perceptron": (
        lambda: problem("perceptron", 0.7, features=[feature(0.2)]),
        [0.3905274875, 0.8309904999, 0.6820254327, 0.7224230615],
    ),
    "Adatron": (
        lambda: problem("adatron", 0.7, features=[feature(0.2)]),
        [0.3222141623, 0.7483120065, 0.4741712767, 0.4721652859],
    ),
    "phase retrieval": (
        lambda: problem("phase_retrieval", 0.05, features=[feature(0.2)], students=[{"initial_norm": 0.7}]),
        [0.2100461928, 0.6489423721, 0.2517458493, 0.5584988186],
    ),
    "Oja with imputation": (
        lambda: problem(
            "imputing", 0.5, features=[feature(0.3, 4.0)], model={"constraint": "sphere"},
            data={"signal": "spiked", "observed": 0.4},
        ),
        [0.5013889426, 1.0, 0.8097831050, 1.0],
    ),
    "PETRELS": (
        lambda: problem(
            "petrels", features=[feature(0.3, 4.0)], students=[{"initial_norm": 0.8}],
            data={"signal": "spiked", "observed": 0.4},
            side={"gain": {"start": 0.5, "step": "tests.families.update_rule.own_rules:petrels_gain"}},
        ),
        [0.6209164362, 1.2299631063, 0.6387683418, 1.5328914028, 3.3232543591, 1.2017612166],
    ),
    "subspace, polar": (
        lambda: problem(
            "oja", 0.3, features=[feature([0.3, 0.05], 3.0), feature([0.1, 0.2], 1.5)], students=[{}, {}],
            model={"constraint": "polar"}, **SPIKED,
        ),
        [
            *(0.5711657083, 0.1105534513, 0.0854934539, 0.2838205530, 1.0, 0.0, 1.0),
            *(0.9002570001, -0.0259336076, 0.0812370306, 0.6423892831, 1.0, 0.0, 1.0),
        ],
    ),
    "subspace, QR": (
        lambda: problem(
            "oja", 0.3, features=[feature([0.3, 0.05], 3.0), feature([0.1, 0.2], 1.5)], students=[{}, {}],
            model={"constraint": "gram_schmidt"}, **SPIKED,
        ),
        [
            *(0.5741773463, 0.1220372133, 0.0621270635, 0.2790754207, 1.0, 0.0, 1.0),
            *(0.9035638404, 0.0497860328, -0.0251894336, 0.6409819763, 1.0, 0.0, 1.0),
        ],
    ),
    "committee of one": (
        lambda: problem(
            "committee_of_one", 1.2, numbers={"sigma": 0.3}, features=[feature(0.2)], students=[{"initial_norm": 0.6}],
            data={"normals": ["eps"]},
        ),
        [0.4868023381, 0.6494154058, 0.8500389860, 0.8681226914],
    ),
    "ReLU": (
        lambda: problem("relu_student", 0.7, features=[feature(0.2)]),
        [0.3424826946, 0.8458095811, 0.6852007214, 0.7811147870],
    ),
}  # fmt: skip

SLOW = {
    "noisy Hebb": (
        lambda: problem("hebb_with_flips", 0.7, features=[feature(0.2)], **NOISY),
        [0.5687155643, 1.3708025809, 1.3201071621, 2.9141803423],
    ),
    "noisy perceptron": (
        lambda: problem("perceptron_with_flips", 0.7, features=[feature(0.2)], **NOISY),
        [0.2901266148, 0.5428017146, 0.2890249072, 0.1856851040],
    ),
    "noisy Adatron": (
        lambda: problem("adatron_with_flips", 0.7, features=[feature(0.2)], **NOISY),
        [0.2323035156, 0.4811113821, 0.1588983002, 0.0703051367],
    ),
    "two layers": (
        lambda: problem(
            "two_layers", 0.9, features=[feature([0.3, 0.05])], students=TWO,
            side={
                "first": {"start": 0.5, "step": "tests.families.update_rule.own_rules:first_layer"},
                "second": {"start": 0.8, "step": "tests.families.update_rule.own_rules:second_layer"},
            },
        ),
        [
            *(0.4105540978, 0.2325711941, 0.5215511491, 0.0982666605, 0.3620961803, 0.4954886005, 0.7498003354),
            *(0.5857469930, 0.5152762774, 0.5952013893, 0.1960451128, 0.4160933195, 0.5285969021, 0.7370950317),
        ],
    ),
    "committee of two": (
        lambda: problem("committee", 0.9, features=[feature([0.3, 0.05]), feature([0.1, 0.2])], students=TWO),
        [
            *(0.4487695299, 0.2496745602, 0.1931788262, 0.3654657525, 0.5725074482, 0.1338521025, 0.4569779542),
            *(0.5662068634, 0.3559642828, 0.2996095306, 0.5006683762, 0.6348591352, 0.2019586211, 0.5179095374),
        ],
    ),
}  # fmt: skip


def at(result, time):
    """Order parameters at a time, in the order of the numbers."""
    here = result.sel(time=time)
    triangle = np.tril_indices(result.sizes["student"])
    return [*here["R"].values.ravel(), *here["Q"].values[triangle], *(here["v"].values if "v" in here else [])]


@pytest.mark.parametrize(
    ("made", "known"),
    [
        *(pytest.param(*case, id=name) for name, case in CASES.items()),
        *(pytest.param(*case, id=name, marks=pytest.mark.slow) for name, case in SLOW.items()),
    ],
)
def test_order_parameters_are_those_of_closed_forms(made, known):
    tolerance = 1e-9 if made in [case for case, _ in CASES.values()] else 1e-6
    result = meanfield.solve(meanfield.with_value(made(), "order_parameters.tolerance", tolerance), "order_parameters")
    off = np.abs(np.array([*at(result, 1.0), *at(result, 4.0)]) - known).max()
    stated = max(float(result[f"{name}_error"].max()) for name in ("R", "Q", "v") if name in result)
    assert off <= stated + LAST_DIGIT
    assert stated <= 5.0 * tolerance  # which a warning says where it is above


def test_a_student_that_rests_at_its_teacher_lets_steps_be_too_long():
    """Nothing bounds steps there, and trials of those that are too long overflow; R^2 follows a logistic equation."""
    rate, start = 0.08, 0.3
    made = problem(
        "phase_retrieval", rate, features=[feature(start)], model={"constraint": "sphere"}, time={"stop": 50.0}
    )
    limit = meanfield.solve_order_parameters(made)
    growth = np.exp(-2.0 * rate * (2.0 - 6.0 * rate) * limit["time"].values)
    known = 1.0 / np.sqrt(1.0 + (1.0 / start**2 - 1.0) * growth)
    off = np.abs(limit["R"].values.ravel() - known).max()
    assert off <= float(limit["R_error"].max())
    assert float(limit["R_error"].max()) < 5e-6  # a tolerance of 1e-6, and what a warning would say
