"""The vector field and its Jacobian against closed forms, and where there is none."""

import numpy as np
import pytest

from meanfield import InputError
from meanfield.families.contrastive.order_parameters.field import VectorField
from tests.example_problems import feature, features, gaussian, make_problem

THREE_POINT = '{ law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }'
TWO = features(feature(0.3, gaussian(1.2)), feature(0.4, THREE_POINT))


def closed_form(q):
    """Theory.md, section 8, for two features; fourth and sixth moments 3 m2^2, 15 m2^3 and m4, m4^2/m2."""
    tau, m = 0.02, 10
    nu = np.array([0.2, 0.1])
    kappa = np.array([3 * 1.2**2, 6.05]) - 3
    beta = np.array([15 * 1.2**3, 6.05**2 / 1.1]) - 15
    Q, other = q**2, q[::-1] ** 2
    g = -4 * tau * q * (kappa * Q + 3 * nu * (1 - 2 * Q) + 3 * nu * nu[::-1] * other)
    rest = 1 - Q.sum()
    sixth = 15 + np.sum(beta * Q**3 + 15 * kappa * Q**2 * (1 - Q) + 45 * nu * Q * (1 - Q) ** 2)
    sixth += 15 * (kappa * nu[::-1] * Q**2 * other).sum() + 90 * nu.prod() * Q.prod() * rest
    return q * (q @ g - 8 * tau**2 / m * sixth) - g


def test_agrees_with_closed_form_for_two_features():
    points = np.random.default_rng(0).normal(size=(20, 2)) * 0.4
    points = points[np.linalg.norm(points, axis=1) < 1]
    right = np.array([closed_form(q) for q in points])
    np.testing.assert_allclose(VectorField(make_problem(TWO))(points), right, atol=1e-13)  # rounding


@pytest.mark.parametrize("q", [[0.0, 0.0], [0.3, -0.5], [0.9999, 0.0]])
def test_jacobian_agrees_with_complex_step_of_closed_form(q):
    right = np.array([closed_form(np.array(q) + 1e-30j * e).imag / 1e-30 for e in np.eye(2)]).T
    found = VectorField(make_problem(TWO)).jacobian(np.array(q))
    np.testing.assert_allclose(found, right, atol=3e-11)  # truncation h^4 = 1e-12, rounding 1e-16/h where h is 2e-5


def test_outside_the_unit_ball_there_is_no_field():
    field = VectorField(make_problem(TWO))
    values, slope = field.equations(np.array([0.8, 0.7]))
    assert np.isnan(values).all()
    assert np.isnan(slope).all()


def test_priors_that_do_not_close_are_refused():
    with pytest.raises(InputError, match=r"prior\.name = 'l1'.*none, l2"):
        VectorField(make_problem(TWO, 'prior = { name = "l1", strength = 1.0 }'))
