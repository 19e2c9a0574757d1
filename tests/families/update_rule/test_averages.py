"""Moving averages of weights, and velocities that last, as trained vectors of their own, against linear equations."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield
from tests.families.update_rule.problems import OWN, feature

RATE, A, NOISE = 0.7, 0.5, 0.25


def averaged(t, y):
    """Regression with noise, and dw' = a (w - w') dt beside it."""
    R, Ra, Q, C, P = y
    gain = RATE**2 * (1.0 + NOISE - 2.0 * R + Q)
    return [
        RATE * (1.0 - R), A * (R - Ra), 2.0 * RATE * (R - Q) + gain, RATE * (Ra - C) + A * (Q - C), 2.0 * A * (C - P)
    ]  # fmt: skip


def lasting(t, y):
    """dw = a p dt, and dp = -a p dt with the gain of regression."""
    R, Rp, Q, C, P = y
    gain = RATE**2 * (1.0 + NOISE - 2.0 * R + Q)
    return [
        A * Rp, RATE * (1.0 - R) - A * Rp, 2.0 * A * C, A * (P - C) + RATE * (R - Q),
        2.0 * (RATE * (Rp - C) - A * P) + gain,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("students", "draw", "velocity", "start"),
    [
        (
            [{"group": "s"}, {"group": "p", "initial_overlap": [1.0]}],
            {"gain": {"s": "regression"}, "move": {"p": {"s": "ahead", "p": "behind"}}},
            averaged,
            [0.3, 0.3, 1.0, 1.0, 1.0],
        ),
        pytest.param(  # moves of one group along another are in the case above
            [{"group": "s"}, {"group": "p", "initial_norm": 1e-12}],
            {"gain": {"p": "regression"}, "move": {"s": {"p": "ahead"}, "p": {"p": "behind"}}},
            lasting,
            [0.3, 0.0, 1.0, 0.0, 1e-12],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["average", "velocity"],
)
def test_what_remembers_is_one_more_vector(students, draw, velocity, start):
    draw = {
        key: {
            group: OWN + held if isinstance(held, str) else {of: OWN + f for of, f in held.items()}
            for group, held in named.items()
        }
        for key, named in draw.items()
    }
    given = meanfield.Problem(
        family="update_rule", model={"rule_parameters": {"rate": RATE, "sigma": 0.5, "a": A}},
        data={"normals": ["eps"]}, groups=[{"name": "s"}, {"name": "p"}],
        features=[feature(start[:2])], students=students, draws=[draw], time={"stop": 8.0, "outputs": 5},
    )  # fmt: skip
    found = meanfield.solve_order_parameters(given)
    known = solve_ivp(velocity, (0.0, 8.0), start, t_eval=found["time"], rtol=1e-11, atol=1e-12).y
    i, j = [0, 0, 1], [0, 1, 1]
    numbers = np.vstack([found["R"].values[:, :, 0].T, found["Q"].values[:, i, j].T])
    assert np.abs(numbers - known).max() <= 1e-6  # order_parameters.tolerance
