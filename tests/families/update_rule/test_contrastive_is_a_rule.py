"""The first family as an update rule: both views without noise are one input, which takes the steps of both."""

import numpy as np
import pytest

import meanfield

TAU, BATCH_SIZE = 0.05, 10
LAWS = ({"law": "three_point", "second_moment": 1.5, "fourth_moment": 6.0}, {"law": "gaussian", "second_moment": 1.2})


def ascend(s, rate):
    """Each view adds tau sigma sigma' with sigma = s^2, the gradient of the product of both outputs."""
    return 2.0 * (rate * s**2 * 2.0 * s)


@pytest.mark.parametrize("starts", [(0.4,), pytest.param((0.4, 0.3), marks=pytest.mark.slow)])
def test_order_parameters_of_squares_are_those_of_the_first_family(starts):
    features = [{"hidden": law, "initial_overlap": q} for law, q in zip(LAWS, starts, strict=False)]
    shared = {"features": features, "time": {"stop": 4.0, "outputs": 5}}
    ours = {"rule": f"{__name__}:ascend", "rule_parameters": {"rate": TAU}, "batch_size": BATCH_SIZE}
    rule = meanfield.Problem(
        family="update_rule",
        model=ours | {"constraint": "sphere"},
        data={"signal": "orthogonal"},
        order_parameters={"tolerance": 1e-9},
        **shared,
    )
    model = {"activation": "quadratic", "centering": "none", "learning_rate": TAU, "batch_size": BATCH_SIZE}
    q = meanfield.solve(meanfield.Problem(model=model, **shared), "order_parameters")["q"].values
    R = meanfield.solve(rule, "order_parameters")["R"].values[:, 0]
    assert np.abs(q - R).max() < 1e-8  # ten times the tolerance of the one, and that of the other
    assert np.abs(q[-1] - q[0]).max() > 0.1
