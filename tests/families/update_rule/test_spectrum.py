"""Coordinates of different variance: reference numbers, and what must hold for any spectrum."""

from __future__ import annotations

import numpy as np
import pytest

import meanfield
from tests.families.update_rule.problems import feature, problem

POWER = {"law": "power_law", "exponent": 1.0, "range": 50.0}
LAST_DIGIT = 1.5e-10
"""Error of numbers with ten digits."""

CASES = {
    "phase retrieval": (
        lambda: problem(
            "phase_retrieval", 0.02, features=[feature(0.2)], students=[{"initial_norm": 0.7}],
            data={"spectrum": POWER},
        ),
        {
            1.0: (0.2041403470, 0.6782717721, 0.2126185627, 0.6362537602),
            4.0: (0.2218207680, 0.6413541265, 0.2632726631, 0.5537108248),
        },
    ),
    "logistic regression": (
        lambda: problem(
            "logistic", 1.0, features=[feature(0.1)], students=[{"initial_norm": 0.5}],
            data={"coins": {"coin": 0.5}, "spectrum": POWER}, prior={"name": "l2", "strength": 0.1},
        ),
        {
            1.0: (0.2263755409, 0.5055054471, 0.4138403042, 0.7003409392),
            4.0: (0.3965953267, 0.5450339930, 0.6310801899, 0.8895960816),
        },
    ),
    "PCA": (
        lambda: problem(
            "oja", 0.1, features=[feature(0.3, 12.0)], model={"constraint": "sphere"},
            data={"signal": "spiked", "spectrum": POWER},
        ),
        {1.0: (0.6977092063, 1.0, None, 1.7161803749), 4.0: (0.9222819278, 1.0, None, 2.5523551944)},
    ),
    "PCA at the edge": (
        lambda: problem(
            "oja", 0.2, features=[feature(0.3, 3.0)], model={"constraint": "sphere"},
            data={"signal": "spiked", "spectrum": POWER},
        ),
        {1.0: (0.3961391005, 1.0, None, 4.4811920399), 4.0: (0.0468945561, 1.0, None, 10.7711353163)},
    ),
}  # fmt: skip


def accurate(given, tolerance=1e-9):
    return meanfield.solve(meanfield.with_value(given, "order_parameters.tolerance", tolerance), "order_parameters")


SLOW = [*CASES][1:]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in CASES]
)
def test_reference_numbers(name):
    made, known = CASES[name]
    result = accurate(made())
    for time, numbers in known.items():
        here = result.sel(time=time)
        for name, number in zip(("R", "Q", "R_noise", "Q_noise"), numbers, strict=True):
            if number is not None:
                assert abs(here[name].item() - number) <= float(here[f"{name}_error"].max()) + LAST_DIGIT
    assert float(result["Q_error"].max()) <= 2e-8  # twenty times the tolerance, by steps of the coarser solution


@pytest.mark.slow
def test_logistic_regression_for_long():
    made = meanfield.with_value(CASES["logistic regression"][0](), "time", {"stop": 16.0, "outputs": 2})
    here = accurate(made).isel(time=-1)
    found = [here[name].item() for name in ("R", "Q", "R_noise", "Q_noise")]
    assert found == pytest.approx([0.5334561788, 0.6198180621, 0.7266914920, 0.9740481750], abs=LAST_DIGIT + 1e-9)


def test_regression_on_two_variances():
    """Errors at the eigenvalues obey equations that are linear, with a closed form."""
    two = {"law": "atoms", "eigenvalues": [0.5, 1.5]}
    result = accurate(
        problem(
            "regression", 0.6, numbers={"sigma": 0.4}, features=[feature(0.0)], students=[{"initial_norm": 0.5}],
            data={"normals": ["eps"], "spectrum": two}, time={"stop": 2.0, "outputs": 3},
        )
    )  # fmt: skip
    error = 1.0 - 2.0 * result["R_rho"] + result["Q_rho"].isel(student_=0)
    assert error.isel(time=-1).values.ravel() == pytest.approx([0.61332879, 0.22503498], abs=5e-9)  # digits printed


ONES = {"law": "atoms", "eigenvalues": [1.0, 1.0, 1.0], "weights": [0.5, 0.3, 0.2]}
PLAIN = {
    "two hidden variables and a batch": lambda **data: problem(
        "oja", 0.3, features=[feature([0.3, 0.05], 3.0), feature([0.1, 0.2], 1.5)], students=[{}, {}],
        model={"constraint": "gram_schmidt", "batch_size": 3}, data={"signal": "spiked", "noise": 0.7} | data,
    ),
    "noise beside the features": lambda **data: problem(
        "ica", 0.02, features=[feature(0.4, 2.0)], data={"signal": "orthogonal", "observed": 0.6} | data,
        prior={"name": "l2", "strength": 0.3},
    ),
    "side variables and moves": lambda **data: problem(
        "petrels", features=[feature(0.3, 4.0)], students=[{"initial_norm": 0.8}],
        data={"signal": "spiked", "observed": 0.4} | data,
        side={"gain": {"start": 0.5, "step": "tests.families.update_rule.own_rules:petrels_gain"}},
    ),
    "perceptron": lambda **data: problem("perceptron", 0.7, features=[feature(0.2)], data=data),
    "equal students": lambda **data: problem(
        "oja", 0.3, features=[feature([0.3, 0.3], 3.0)], students=[{}, {"initial_overlap": [1.0]}],
        data={"signal": "spiked"} | data,
    ),
}  # fmt: skip


@pytest.mark.parametrize("made", PLAIN.values(), ids=PLAIN)
def test_equal_variances_change_nothing(made):
    plain, same = (meanfield.solve(made(**more), "order_parameters") for more in ({}, {"spectrum": ONES}))
    for name in [name for name in ("R", "Q", "v", "observables") if name in plain]:
        # Both take the same quadrature, and steps far below their tolerance.
        assert np.abs(plain[name] - same[name]).max() <= 1e-2 * 1e-6
    assert np.abs(same["Q_noise"] - same["Q"]).max() <= 1e-12  # rounding
