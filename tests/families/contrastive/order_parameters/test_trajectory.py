"""Trajectories of the reduced ODEs: closed forms, refusals, the unit ball, and the sign of the drift."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from meanfield.errors import InputError
from meanfield.families.contrastive.density import solve_density
from meanfield.families.contrastive.order_parameters import solve_order_parameters, trajectory
from meanfield.families.contrastive.sgd.simulation import simulate_sgd
from meanfield.mckean_vlasov import order_parameters
from meanfield.results.checks import check
from meanfield.results.result import Result
from tests.example_problems import feature, features, gaussian, make_problem


def quadratic_rate(tau, m, m2, m4, m6, variance=0.0, opposite=False):
    """dQ/dt for one feature and sigma(x) = x^2, Q = q^2 (theory.md, section 8)."""
    kappa, nu, beta = m4 - 3, m2 - 1, m6 - 15

    def rate(_, Q):
        T4 = kappa * Q**2 + 6 * nu * Q * (1 - Q) + 3
        T6 = beta * Q**3 + 15 * kappa * Q**2 * (1 - Q) + 45 * nu * Q * (1 - Q) ** 2 + 15
        bracket = 2 * T6
        if variance and opposite:
            bracket = 2 * T6 - 4 * variance * T4 + 2 * variance**2 * T4
            bracket += 6 * variance**2 - 12 * variance**3 + 30 * variance**4
        elif variance:
            bracket = (2 + variance) * T6 + 13 * variance * T4 + 7 * variance**2 * T4
            bracket += 18 * variance**2 + 12 * variance**3 + 3 * variance**4
        diffusion = 8 * tau**2 / m * bracket
        return 8 * tau * (1 - Q) * (kappa * Q**2 + 3 * nu * Q * (1 - 2 * Q)) - diffusion * Q

    return rate


def three_point(m2, m4):
    return f'{{ law = "three_point", second_moment = {m2}, fourth_moment = {m4} }}', (m2, m4, m4**2 / m2)


def gaussian_law(m2):
    return gaussian(m2), (m2, 3 * m2**2, 15 * m2**3)


@pytest.mark.parametrize(
    ("law", "lines", "noise"),
    [
        (three_point(1.1, 6.05), (), {}),
        (three_point(0.9, 4.0), (), {}),
        (gaussian_law(1.4), (), {}),
        (three_point(1.1, 6.05), ('prior = { name = "l2", strength = 3.0 }',), {}),
        (three_point(1.0, 5.0), ("augmentation.variance = [0.3, 0.3]",), {"variance": 0.3}),
        (
            three_point(1.0, 5.0),
            ("augmentation = { variance = [0.3, 0.3], correlation = -1.0 }",),
            {"variance": 0.3, "opposite": True},
        ),
    ],
    ids=["three-point", "decay", "gaussian", "l2", "independent noise", "opposite noise"],
)
def test_trajectory_agrees_with_the_closed_form(law, lines, noise):
    hidden, moments = law
    run = solve_order_parameters(make_problem(features(feature(-0.5, hidden)), *lines))
    exact = solve_ivp(
        quadratic_rate(0.02, 10, *moments, **noise),
        (0.0, 20.0),
        [0.25],
        method="DOP853",
        t_eval=run.time.values,
        rtol=1e-12,  # a reference: rounding
        atol=1e-14,  # the same
    )
    assert run.status == "complete"
    assert abs(run.q[-1, 0] + 0.5) > 0.01
    # LSODA works at rtol 1e-11 per step; some hundred steps later, amplified by unstable growth
    assert run.q.values[:, 0] == pytest.approx(-np.sqrt(exact.y[0]), abs=2e-9)  # see the line above


def test_two_features_agree_with_the_closed_form():
    """g of theory.md, section 8, with Lambda = (16 tau^2/m) <Theta^6> by expansion over the two hidden variables."""
    tau, m, moments = 0.05, 10, ((1.1, 6.05, 6.05**2 / 1.1), (1.4, 3 * 1.4**2, 15 * 1.4**3))

    def rate(_, q):
        a, b = moments
        s = 1 - q @ q
        powers_a = {0: 1.0, 2: a[0] * q[0] ** 2, 4: a[1] * q[0] ** 4, 6: a[2] * q[0] ** 6}
        powers_b = {0: 1.0, 2: b[0] * q[1] ** 2, 4: b[1] * q[1] ** 4, 6: b[2] * q[1] ** 6}
        powers_e = {0: 1.0, 2: s, 4: 3 * s**2, 6: 15 * s**3}
        multinomial = {(6, 0, 0): 1, (4, 2, 0): 15, (2, 2, 2): 90}
        sixth = sum(
            multinomial[tuple(sorted((i, j, 6 - i - j), reverse=True))]
            * powers_a[i]
            * powers_b[j]
            * powers_e[6 - i - j]
            for i in (0, 2, 4, 6)
            for j in range(0, 7 - i, 2)
        )
        nu, kappa = np.array([a[0] - 1, b[0] - 1]), np.array([a[1] - 3, b[1] - 3])
        g = -4 * tau * q * (kappa * q**2 + 3 * nu * (1 - 2 * q**2) + 3 * nu[0] * nu[1] * q[::-1] ** 2)
        return q * (q @ g - 8 * tau**2 / m * sixth) - g

    hidden = [three_point(1.1, 6.05)[0], gaussian(1.4)]
    problem = make_problem(features(feature(0.4, hidden[0]), feature(0.3, hidden[1])), "model.learning_rate = 0.05")
    run = solve_order_parameters(problem)
    tight = {"rtol": 1e-12, "atol": 1e-14}  # a reference: rounding
    exact = solve_ivp(rate, (0, 20), [0.4, 0.3], method="DOP853", t_eval=run.time.values, **tight)
    assert run.q.values == pytest.approx(exact.y.T, abs=2e-9)  # LSODA at rtol 1e-11 over some hundred steps


def test_outputs_hold_the_closure_along_the_way():
    run = solve_order_parameters(make_problem())
    q = run.q.values[:, 0]
    slope = run.g.values[:, 0] * (q**2 - 1) - 0.5 * run.Lambda.values * q
    times = run.time.values
    # fourth-order differences of outputs 0.5 apart: q varies over times of about 5, so (0.5/5)^4/30
    central = (q[:-4] - 8 * q[1:-3] + 8 * q[3:-1] - q[4:]) / (12 * (times[1] - times[0]))
    assert central == pytest.approx(slope[2:-2], abs=1e-5)  # as computed in the line above


@pytest.mark.parametrize("prior", ["l1", "quartic"])
def test_nonlinear_prior_is_refused(prior):
    with pytest.raises(
        InputError, match=rf"prior.name = '{prior}'.*none, l2.*use the density, stationary states or SGD"
    ):
        solve_order_parameters(make_problem(f'prior.name = "{prior}"'))


def test_random_start_is_refused():
    with pytest.raises(InputError, match="initial_overlap = 'random'"):
        solve_order_parameters(make_problem(features(feature("random"))))


def interrupt(monkeypatch, module, name, after):
    """Ctrl-C in a call of a function of a module, when it has been called that many times."""
    original, calls = getattr(module, name), []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == after + 1:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(module, name, interrupted)


def test_ctrl_c_keeps_the_trajectory_before_it(monkeypatch):
    whole = solve_order_parameters(make_problem())
    interrupt(monkeypatch, order_parameters, "rate", after=100)
    run = solve_order_parameters(make_problem())
    reached = int(np.isfinite(run.q.values).all(axis=1).sum())
    assert run.status == "interrupted"
    assert 0 < reached < run.sizes["time"]
    for name in ("q", "g", "Lambda"):
        assert np.array_equal(run[name][:reached], whole[name][:reached])
        assert np.isnan(run[name][reached:]).all()
    assert "q_covariance" not in run
    check(Result.of(run))


def test_ctrl_c_keeps_the_covariance_before_it(monkeypatch):
    whole = solve_order_parameters(make_problem())
    original, calls = trajectory.VectorField.jacobian, []

    def interrupted(self, q):
        calls.append(q)
        if len(calls) == 60:
            raise KeyboardInterrupt
        return original(self, q)

    monkeypatch.setattr(trajectory.VectorField, "jacobian", interrupted)
    run = solve_order_parameters(make_problem())
    reached = int(np.isfinite(run.q_covariance.values).all(axis=(1, 2)).sum())
    assert run.status == "interrupted"
    assert 0 < reached < run.sizes["time"]
    assert np.array_equal(run.q, whole.q)
    assert np.array_equal(run.q_covariance[:reached], whole.q_covariance[:reached])
    check(Result.of(run))


@pytest.mark.parametrize(
    ("drift", "leaves", "what"),
    [
        (lambda q: 0.1 * q, 10 * np.log(2), r"\|q\| = 1\.007"),
        (lambda q: np.where(q < 0.72, 0.1, np.nan), 2.2, "q is not finite"),
    ],
    ids=["outwards", "not a number"],
)
def test_what_leaves_the_ball_fails_at_the_first_output_after_it(monkeypatch, drift, leaves, what):
    """Neither happens to a closure of ours: q = 0.5 exp(t/10), or 0.5 + t/10 up to 0.72, take its place."""
    monkeypatch.setattr(order_parameters, "rate", lambda closure, q: drift(q))
    run = solve_order_parameters(make_problem(features(feature(0.5))))
    missing = np.isnan(run.q.values[:, 0])
    failed = float(run.time[missing][0])
    assert failed <= leaves + 0.5  # outputs are 0.5 apart
    assert np.array_equal(missing, run.time.values >= failed)
    remedy = r"but overlaps lie in the unit ball; lower model\.learning_rate or raise model\.batch_size"
    assert re.fullmatch(rf"failed: at t = {failed:g}: {what}, {remedy}", run.attrs["status"])
    check(Result.of(run))


@pytest.mark.slow  # by default tests/families/contrastive/closures/test_closure_properties.py has fewer such examples
@settings(derandomize=True, max_examples=50, deadline=None)
@given(
    q=st.tuples(st.floats(-0.99, 0.99), st.floats(-0.99, 0.99)).filter(lambda q: q[0] ** 2 + q[1] ** 2 < 0.99),
    learning_rate=st.floats(1e-4, 1.0),
    batch_size=st.integers(2, 100),
    second_moment=st.floats(0.2, 3.0),
    excess=st.floats(1.0, 4.0),
    centering=st.sampled_from(["none", "population", "batch"]),
    activation=st.sampled_from(["linear", "quadratic", "tanh"]),
)
def test_overlaps_stay_in_the_unit_ball(q, learning_rate, batch_size, second_moment, excess, centering, activation):
    hidden, _ = three_point(second_moment, excess * second_moment**2)
    problem = make_problem(
        features(feature(q[0], hidden), feature(q[1], gaussian(second_moment))),
        f'model = {{ activation = "{activation}", centering = "{centering}" }}',
        f"model = {{ learning_rate = {learning_rate}, batch_size = {batch_size} }}",
    )
    run = solve_order_parameters(problem)
    assert run.status == "complete"
    assert (run.q**2).sum("feature").max() <= 1 + 1e-9  # the sphere repels: the error of LSODA at rtol 1e-11


def test_a_feature_that_can_be_learnt_grows_in_every_method():
    """m2 = 1.2 and small tau/m: with the printed sign of the drift q would decay (theory.md, sections 2 and 9)."""
    problem = make_problem(
        features(feature(0.1, gaussian(1.2))),
        "model = { learning_rate = 0.1, batch_size = 40 }",
        "time = { stop = 3.0, outputs = 3 }",
        "particles = { method = 'projected', dimension = 500, replicas = 8 }",  # of the law of plain steps
    )
    ode, density, sgd = solve_order_parameters(problem), solve_density(problem), simulate_sgd(problem)
    assert float(ode.q[-1, 0]) > 0.15
    assert float(density.q[-1, 0]) == pytest.approx(float(ode.q[-1, 0]), abs=1e-6)  # default accuracy of the density
    final = sgd.q.values[:, -1, 0]
    error = final.std(ddof=1) / np.sqrt(8)
    assert abs(final.mean() - float(ode.q[-1, 0])) < 4 * error  # standard error; t with 7 degrees, 0.5 % false alarms
    assert final.mean() - 4 * error > 0.1  # the same: it has grown beyond doubt
