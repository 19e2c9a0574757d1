"""C(t) against closed forms and SGD, its stationary value, and where there is none."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from meanfield import simulate_sgd
from meanfield.errors import InputError
from meanfield.families.contrastive.order_parameters import solve_order_parameters
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.order_parameters.trajectory import StepNoise, stationary_covariance
from meanfield.numerics.linear_noise import LARGEST_COVARIANCE
from tests.example_problems import feature, features, gaussian, make_problem
from validation.contrastive.linearised import solve_corrections

INNER = ("time.stop = 40.0", "model = { learning_rate = 0.05, batch_size = 4 }")


def test_trajectory_agrees_with_the_closed_form():
    """validation/contrastive/linearised.py: one feature, sigma(x) = x^2, no noise."""
    problem = make_problem('prior = { name = "l2", strength = 2.0 }', "time.stop = 20.0")
    q, C, _ = solve_corrections(problem)
    run = solve_order_parameters(problem)
    assert run.q.values[-1, 0] == pytest.approx(q, abs=1e-9)  # LSODA at rtol 1e-11 over some hundred steps
    assert run.q_covariance.values[-1, 0, 0] == pytest.approx(C, rel=1e-6)  # 1e-8 a step, the same
    assert run.q_covariance.values[0, 0, 0] == 0


def test_two_features_agree_with_a_propagator():
    """C = int Phi S Phi^T with Phi from differences of trajectories, by Simpson's rule."""
    hidden = '{ law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }'
    problem = make_problem(
        features(feature(0.5, hidden), feature(0.4, gaussian(1.3))),
        "model = { learning_rate = 0.1, batch_size = 4 }",
        "time = { stop = 3.0, outputs = 61 }",
    )
    run, field = solve_order_parameters(problem), VectorField(problem)
    noise, t = StepNoise(field), run.time.values

    def end(q, i):
        tight = {"rtol": 1e-11, "atol": 1e-13}  # differences of 1e-4 keep seven digits
        return solve_ivp(lambda _, q: field(q), (t[i], 3.0), q, method="DOP853", **tight).y[:, -1]

    integrand = []
    for i in range(0, 61, 5):
        q, step = run.q.values[i], 1e-4 * np.eye(2)
        Phi = np.eye(2) if i == 60 else np.transpose([end(q + h, i) - end(q - h, i) for h in step]) / 2e-4
        integrand.append(Phi @ noise(q) @ Phi.T)
    simpson = np.array([1, *[4, 2] * 5, 4, 1]) * 0.25 / 3
    right = np.einsum("i,ifg->fg", simpson, integrand)
    found = run.q_covariance.values[-1]
    np.testing.assert_allclose(found, right, rtol=1e-4)  # (h/T)^4/180 of the integral, h = 0.25, times of order T = 1


def test_a_feature_that_is_not_met_grows_without_the_other():
    """By 10^16 in one unit of time: rounding must not make of it a covariance with the other, nor may C exceed N."""
    laws = '{ law = "laplace", second_moment = 18.0 }', gaussian(0.001)
    problem = make_problem(
        features(feature(-1e-66, laws[0]), feature(-0.3, laws[1])),
        'model = { activation = "tanh", learning_rate = 3.0, batch_size = 9 }',
        "time = { stop = 1.0, outputs = 3 }",
    )
    run = solve_order_parameters(problem)
    middle, last = run.q_covariance.values[1:]
    assert 1e6 < middle[0, 0] < LARGEST_COVARIANCE
    assert abs(middle[0, 1]) < 1e-13 * middle[0, 0]
    assert 0 < middle[1, 1] < 1e-2
    assert np.isnan(last).all()
    assert np.isfinite(run.q.values).all()


def test_a_large_variance_does_not_make_the_others_too_rough_to_integrate(monkeypatch):
    """Rounding errors of the Jacobian, times a variance of 10^12, are beyond the accuracy asked of the covariance."""
    problem = make_problem(
        features(
            feature(0.25, '{ law = "discrete", values = [3.0, 1.9], probabilities = [0.5, 0.5] }'),
            feature(1e-93, '{ law = "three_point", second_moment = 20.0, fourth_moment = 400.0 }'),
        ),
        'model = { activation = "leaky_relu", learning_rate = 1.8, batch_size = 11, centering = "population" }',
        "time = { stop = 1.0, outputs = 5 }",
    )
    calls = []
    plain = StepNoise.__call__
    monkeypatch.setattr(StepNoise, "__call__", lambda self, q: calls.append(q) or plain(self, q))
    run = solve_order_parameters(problem)
    assert run.q_covariance.values[1, 1, 1] > 1e6
    assert 20 < len(calls) < 500  # 10^5 times in the entries of C themselves


def test_long_after_the_start_it_is_that_of_the_fixed_point():
    problem = make_problem(features(feature(0.5), feature(0.1, gaussian(1.2))), *INNER)
    run = solve_order_parameters(problem)
    field = VectorField(problem)
    C = stationary_covariance(field, StepNoise(field), run.q.values[-1])
    found, allowed = run.q_covariance.values[-1], 1e-4 * np.abs(C).max()
    np.testing.assert_allclose(found, C, atol=allowed)  # what is left of the way, and errors of 1e-8 a step
    J = field.jacobian(run.q.values[-1])
    np.testing.assert_allclose(J @ C + C @ J.T, -StepNoise(field)(run.q.values[-1]), rtol=1e-9, atol=1e-12)  # rounding


def test_an_unstable_point_has_no_stationary_covariance():
    field = VectorField(make_problem())
    with pytest.raises(InputError, match=r"grow at the rate .*give a stable fixed point"):
        stationary_covariance(field, StepNoise(field), np.zeros(1))
    with pytest.raises(InputError, match="give a stable fixed point"):
        stationary_covariance(field, StepNoise(field), np.ones(1))  # no derivative


@pytest.mark.parametrize(
    "lines",
    [
        ['model.centering = "batch"'],
        [features(feature(0.5, '{ law = "student_t", degrees_of_freedom = 8.0, second_moment = 1.1 }'))],
    ],
)
def test_where_there_is_no_covariance_there_is_still_q(lines):
    run = solve_order_parameters(make_problem(*lines))
    assert run.status == "complete"
    assert "q_covariance" not in run


def test_the_spread_of_q_over_runs_of_sgd():
    """Theory.md, section 4, at a smaller scale than `validation/contrastive/figures/finite_n_bands.py`."""
    problem = make_problem(
        features(feature(0.5), feature(0.3, gaussian(1.2))),
        'model = { activation = "relu", learning_rate = 1.0, batch_size = 2 }',
        "augmentation = { variance = [0.3, 0.1], correlation = -0.5 }",
        "time.stop = 1.0",
        'particles = { method = "chain", dimension = 1000, replicas = 400, record = "statistics", seed = 1 }',
    )
    predicted = solve_order_parameters(problem).q_covariance.values[-1]
    found = simulate_sgd(problem).q_covariance.values[-1]
    ratio = np.sqrt(np.diag(found) / np.diag(predicted))
    # one false alarm in 500
    np.testing.assert_allclose(ratio, 1, atol=0.13)  # 3.5 % standard error over 400 runs, 1 % next order at N = 1000
    correlations = [C[0, 1] / np.sqrt(C[0, 0] * C[1, 1]) for C in (predicted, found)]
    assert correlations[1] == pytest.approx(correlations[0], abs=0.16)  # 3.2 standard errors, 1/sqrt(400)
