"""Fixed points of update rules: all roots of closed forms, their rates, symmetries, and what attracts starts."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.optimize import root

import meanfield
from meanfield.errors import InputError
from meanfield.plotting import plot_result
from meanfield.results.text import describe
from tests.families.update_rule.problems import feature, problem
from tests.families.update_rule.test_draws import HERE as DRAWS
from tests.families.update_rule.test_draws import gan, gaussian
from tests.families.update_rule.test_jacobian import committee, phase_retrieval
from tests.families.update_rule.test_reference_numbers import CASES, SIGN, SLOW, SPIKED

CLOSED = 1e-9
"""Error of states whose averages are exact: Newton's method ends at 1e-11 of rates that are 0.01 and more."""

RATE = 1e-8
"""Error of growth rates, by differences of 1e-10 of derivatives up to 10."""


@cache
def states_of(name, **options):
    return meanfield.solve((CASES | SLOW)[name][0](), "fixed_points", **options)


def ica(rate):
    return problem("ica", rate, features=[feature(0.5, hidden=SIGN)], model={"constraint": "sphere"},
                   data={"signal": "orthogonal"})  # fmt: skip


def pca(rate, omega=2.0):
    return problem("oja", rate, features=[feature(0.3, omega)], model={"constraint": "sphere"}, **SPIKED)


def test_principal_component_is_learnt_below_the_threshold():
    tau, omega = 0.5, 2.0
    found = states_of("PCA on the sphere")
    q = np.sqrt((2 * omega - tau) / (omega * (2 + tau)))
    np.testing.assert_allclose(found["R"].values.ravel(), [q, 0.0], rtol=0.0, atol=CLOSED)
    grows = tau * omega - tau**2 / 2
    np.testing.assert_allclose(found["growth_rate"], [-2 * grows, grows], rtol=0.0, atol=RATE)
    assert found["copies"].values.tolist() == [2.0, 1.0]
    assert found["kind"].values.tolist() == ["stable node", "unstable node"]
    assert found.attrs["indices_add_up"] == "true"
    above = meanfield.find_fixed_points(pca(2 * omega + 0.1))
    np.testing.assert_allclose(above["R"], [[[0.0]]], rtol=0.0, atol=CLOSED)
    assert int(above["stability"][0]) == 1


def rate_of_ica(tau):
    """Polynomial dq/dt of the negative cube with c = -1 or 1, by powers of q."""
    q, p = np.polynomial.Polynomial([0, 1]), np.polynomial.Polynomial([1, 0, -1])
    noise = tau**2 * (q**6 + 15 * q**4 * p + 45 * q**2 * p**2 + 15 * p**3)
    return -tau * p * (q**3 + 3 * q * p - 3 * q * (q**2 + p)) - 0.5 * q * noise


@pytest.mark.parametrize("tau", [0.05, 0.2])
def test_independent_component_has_all_roots_of_the_closed_form(tau):
    roots = rate_of_ica(tau).roots()
    real = np.sort(roots.real[(np.abs(roots.imag) < 1e-9) & (roots.real > -1e-9) & (roots.real < 1.0)])
    found = states_of("ICA, Rademacher") if tau == 0.05 else meanfield.find_fixed_points(ica(-tau))
    order = np.argsort(found["R"].values.ravel())
    np.testing.assert_allclose(found["R"].values.ravel()[order], real, rtol=0.0, atol=CLOSED)
    rates = rate_of_ica(tau).deriv()(real)
    np.testing.assert_allclose(found["growth_rate"].values[order], rates, rtol=0.0, atol=RATE)
    assert len(real) == (3 if tau == 0.05 else 1)  # nothing is learnt beyond the threshold
    assert found.attrs["indices_add_up"] == "true"


def test_regression_rests_at_the_noise():
    tau, sigma, decay = 0.8, 0.5, 0.1
    (R,), (Q,) = (states_of("regression, l2")[name].values.ravel() for name in ("R", "Q"))
    assert pytest.approx(tau / (tau + decay), abs=CLOSED) == R
    noise = tau**2 * (1 - 2 * R + sigma**2)
    assert pytest.approx((2 * tau * R + noise) / (2 * tau + 2 * decay - tau**2), abs=CLOSED) == Q
    free = problem("regression", tau, numbers={"sigma": sigma}, features=[feature(0.1)], data={"normals": ["eps"]})
    rest = meanfield.find_fixed_points(free)
    left = 1.0 - 2.0 * rest["R"].item() + rest["Q"].item()
    assert left == pytest.approx(tau * sigma**2 / (2 - tau), abs=CLOSED)
    np.testing.assert_allclose(rest["eigenvalue_real"], [[-tau, -tau * (2 - tau)]], rtol=0.0, atol=RATE)


def test_phase_retrieval_has_all_states():
    """Those of R = 0 are roots of a cubic, of which two are real besides Q = 0; the others are learnt, Q = 1."""
    tau, found = 0.05, states_of("phase retrieval")
    cubic = np.polynomial.Polynomial([2 * tau + 3 * tau**2, -6 * tau - 6 * tau**2, 15 * tau**2])
    known = np.array([[1.0, 1.0], [0.0, 0.0], *([0.0, Q] for Q in cubic.roots().real)])
    here = np.column_stack([found["R"].values.ravel(), found["Q"].values.ravel()])
    assert len(here) == len(known)
    for state in known:
        number = np.abs(here - state).max(axis=1).argmin()
        np.testing.assert_allclose(here[number], state, rtol=0.0, atol=10 * CLOSED)  # Q is up to 8
        J = np.stack([phase_retrieval(state + 1e-30j * unit).imag / 1e-30 for unit in np.eye(2)], axis=1)
        values = np.sort(np.linalg.eigvals(J))[::-1]
        np.testing.assert_allclose(found["eigenvalue_real"].values[number], values, rtol=1e-6, atol=RATE)
        assert found["copies"].values[number] == (2.0 if state[0] else 1.0)


def rates_of_perceptron(y):
    """Closed form at rate 0.7 with weight decay 0.2."""
    (R, Q), tau, decay = y, 0.7, 0.2
    omega = R / np.sqrt(Q)
    short = tau * (1 - omega) / np.sqrt(2 * np.pi)
    noise = tau**2 * np.arccos(omega) / np.pi
    return [short - decay * R, -2 * np.sqrt(Q) * short + noise - 2 * decay * Q]


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
def test_error_bounds_what_averages_lack(tolerance):
    decay = {"prior": {"name": "l2", "strength": 0.2}, "order_parameters": {"tolerance": tolerance}}
    found = meanfield.find_fixed_points(problem("perceptron", 0.7, features=[feature(0.2)], **decay))
    exact = root(rates_of_perceptron, [0.3, 0.15], tol=1e-14).x
    for name, value in zip(("R", "Q"), exact, strict=True):
        assert abs(found[name].item() - value) <= found[f"{name}_error"].item() + CLOSED
        assert found[f"{name}_error"].item() <= tolerance
    assert found["residual"].item() < 1e-11
    assert found["kind"].item() == "stable focus"


@pytest.mark.slow
def test_subspaces_are_continua_unless_students_are_ordered():
    found = states_of("subspace, polar")
    assert found["copies"].values.tolist() == [np.inf, np.inf, np.inf, 1.0]
    q = np.sqrt([(2 * omega - 0.3) / (omega * 2.3) for omega in (3.0, 1.5)])
    for number, learnt in enumerate([q, q[:1], q[1:], []]):
        size = np.linalg.svd(found["R"].values[number], compute_uv=False)
        np.testing.assert_allclose(size[: len(learnt)], learnt, rtol=0.0, atol=CLOSED)
        np.testing.assert_allclose(size[len(learnt) :], 0.0, rtol=0.0, atol=CLOSED)
    assert "one of a continuum" in describe(found)


@pytest.mark.slow
def test_ordered_students_have_seven_kinds_of_states():
    found = states_of("subspace, QR")
    assert found.attrs["indices_add_up"] == "true"
    # each student has nothing or one of two features, with a sign: 1 + 2 (2 + 2) + 4 + 4
    assert sorted(found["copies"].values) == [1.0, 2.0, 2.0, 2.0, 2.0, 4.0, 4.0]
    assert int((found["stability"] == 1).sum()) == 1


@pytest.mark.slow
def test_starts_go_to_the_side_of_the_unstable_state_on_which_they_are():
    found = states_of("ICA, Rademacher", starts=40, seed=3)
    border = found["R"].values[found["stability"].values < 0].item()
    numbers = np.random.default_rng(3).standard_normal((40, 3))[:, :2]  # the third would be a length
    learnt = np.mean(np.abs(numbers[:, 0]) / np.linalg.norm(numbers, axis=1) > border)
    shares = dict(zip(found["R"].values.ravel().round(2), found["region_share"].values, strict=True))
    assert shares == {0.99: pytest.approx(learnt), 0.0: pytest.approx(1.0 - learnt), 0.47: 0.0}
    assert found["region_share"].attrs["starts"] == 40


@pytest.mark.slow
def test_plateau_of_a_committee_is_unstable():
    """Symmetric state of Saad and Solla, by the closed form within symmetric students."""
    given = problem("committee", 0.9, features=[feature([0.3, 0.05]), feature([0.1, 0.2])],
                    students=[{"initial_norm": 0.5}, {"initial_norm": 0.4, "initial_overlap": [0.1]}])  # fmt: skip
    found = meanfield.find_fixed_points(given)

    def alike(x):
        R, Q, C = x
        return committee(np.array([R, R, R, R, Q, C, Q]), 0.9, 2)[[0, 4, 5]]

    R, Q, C = root(alike, [0.4, 0.5, 0.3], tol=1e-13).x
    plateau = found.isel(state=int(np.abs(found["R"].values - R).max(axis=(1, 2)).argmin()))
    error = 1e-6  # the tolerance
    np.testing.assert_allclose(plateau["R"], np.full((2, 2), R), rtol=0.0, atol=error)
    np.testing.assert_allclose(plateau["Q"], [[Q, C], [C, Q]], rtol=0.0, atol=error)
    y = np.array([R, R, R, R, Q, C, Q])
    J = np.stack([committee(y + 1e-30j * unit, 0.9, 2).imag / 1e-30 for unit in np.eye(7)], axis=1)
    assert float(plateau["growth_rate"]) == pytest.approx(np.linalg.eigvals(J).real.max(), abs=1e-6)
    assert int(plateau["unstable_directions"]) == 1
    learnt = found.isel(state=0)
    np.testing.assert_allclose(np.abs(learnt["R"]), np.eye(2), rtol=0.0, atol=error)
    assert float(learnt["copies"]) == 2.0
    assert int(learnt["stability"]) == 1


@pytest.mark.slow
def test_long_runs_of_sgd_end_at_the_stable_state():
    given = problem("perceptron_with_flips", 0.7, features=[feature(0.2)], data={"coins": {"flip": 0.1}},
                    prior={"name": "l2", "strength": 0.2}, time={"stop": 60.0, "outputs": 2},
                    particles={"dimension": 10**5, "replicas": 32, "seed": 5})  # fmt: skip
    rest, runs = meanfield.find_fixed_points(given), meanfield.simulate_sgd(given, workers=1).isel(time=-1)
    for name in ("R", "Q"):
        z = (runs[name].mean() - rest[name].item()) / (runs[name].std(ddof=1) / np.sqrt(32))
        assert abs(z) < 4.2  # of Student's law with 31 degrees of freedom: 1 in 2500 by chance for each


def test_what_has_no_state_at_rest_is_said():
    hebb = meanfield.find_fixed_points(CASES["Hebb"][0]())
    assert hebb.sizes["state"] == 0
    assert "no state at rest was found" in hebb.attrs["warning"]


def in_time(y, s, t, rate):
    return rate * (y - s) / (1 + t)


def test_refusals():
    with pytest.raises(InputError, match="step reads the time t"):
        meanfield.find_fixed_points(problem("x", 0.5, model={"rule": f"{__name__}:in_time"}, features=[feature(0.2)]))
    with pytest.raises(InputError, match=r"starts = -1"):
        states_of("PCA on the sphere", starts=-1)
    spectrum = {"spectrum": {"law": "atoms", "eigenvalues": [0.5, 1.5]}}
    with pytest.raises(InputError, match=r"data\.spectrum"):
        meanfield.find_fixed_points(meanfield.with_value(CASES["perceptron"][0](), "data", spectrum))


@pytest.mark.slow
def test_branches_turn_where_the_closed_form_does():
    """Negative cube: learnt and unstable states meet at the largest of the rates at which an overlap stays."""
    found = meanfield.update_rule.continue_fixed_points(ica(-0.05), "model.rule_parameters.rate", -0.02, -0.2, 15)
    q = np.linspace(0.01, 0.99, 9801)
    forth, back = rate_of_ica(1.0)(q), rate_of_ica(-1.0)(q)  # tau a - tau^2 b
    largest = ((forth - back) / -(forth + back)).max()
    turning = found["parameter"].values[found["turning"].values == 1]
    np.testing.assert_allclose(turning, [-largest], rtol=1e-7, atol=0.0)  # of a grid of 1e-4 about a maximum
    for p, R in zip(-found["parameter"].values, found["R"].values.ravel(), strict=True):
        assert abs(rate_of_ica(p)(R)) < 1e-9  # of roots to 1e-11 of rates that are below 1
    assert sorted(np.unique(found["branch"])) == [0, 1]
    learnt = found["R"].values.ravel() > 0.93  # they meet at 0.914
    assert np.all(found["stability"].values[learnt] == 1)
    figure = plot_result(found)
    assert [axes.get_ylabel() for axes in figure.axes] == ["overlap with features $R_{km}$"]


@pytest.mark.slow
def test_groups_on_spheres_that_several_draws_train_rest_where_closed_forms_do():
    """A discriminator and a generator: where r is not 0, q = P r and S of w is rate (D - D')."""
    students = [{"group": "w"}, {"group": "V", "hidden": gaussian(2.5)}]
    features = [{"hidden": gaussian(3.0), "initial_overlap": [0.2, 0.3]}]
    groups = [{"name": name, "constraint": "sphere"} for name in ("w", "V")]
    draws = [
        {"along": "u", "gain": {"w": f"{DRAWS}up"}},
        {"along": "V", "gain": {"w": f"{DRAWS}down"}},
        {"along": "V", "move": {"V": {"w": f"{DRAWS}teach"}}},
    ]
    given = gan(groups=groups, students=students, features=features, draws=draws, order_parameters={"tolerance": 1e-6})
    found = meanfield.solve(given, "fixed_points", starts=4)
    states = np.abs(np.column_stack([found["R"].values[:, :, 0], found["Q"].values[:, 0, 1]]))
    known = [[0.5, 5.0 / 6.0, 0.6], [28.0 / 33.0, 0.0, 0.0]]  # squares of q, P and r: a focus, and a saddle
    for state in np.sqrt(known):
        assert np.abs(states - state).max(axis=1).min() < 1e-6  # the tolerance
