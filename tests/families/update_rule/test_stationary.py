"""Stationary states of one student against closed forms, quadrature, order parameters and late times of densities."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import fsolve

import meanfield
from meanfield.cli import DONE
from meanfield.commands.dispatch import run_named
from meanfield.errors import InputError
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.problems.file import format_problem
from tests.families.update_rule.problems import feature, problem
from tests.families.update_rule.test_density import SPARSE_PCA, THREE_POINT, lasso
from tests.families.update_rule.test_density_spectrum import MEAN, THREE

L1 = {"name": "l1", "strength": 0.3}


def numbers(states, name="R"):
    return states[name].values.reshape(states.sizes["state"], -1)[:, 0]


def test_sparse_pca_has_the_reference_states():
    """None at R = 0, where l1 of this strength lets the norm escape (update_rules.md, section 5)."""
    found = meanfield.find_stationary_states(problem("oja", 0.5, **SPARSE_PCA))
    np.testing.assert_allclose(numbers(found), [-0.85999609, 0.85999609], rtol=0, atol=5e-9)  # digits given
    np.testing.assert_allclose(found["growth_rate"], -0.846, rtol=0, atol=5e-4)  # digits given
    np.testing.assert_array_equal(found["Q"].values.ravel(), [1.0, 1.0])
    assert found["stability"].values.tolist() == [1, 1]
    assert found.attrs["indices_add_up"] == "false"
    assert "no density has the norm 1 at q = 0, where at R = 0 the prior outweighs the noise" in found.attrs["warning"]


def test_sparse_perceptron_has_the_reference_state():
    found = meanfield.find_stationary_states(
        problem("perceptron", 0.7, features=[feature(0.2, **THREE_POINT)], model={"constraint": "sphere"}, prior=L1)
    )
    np.testing.assert_allclose(numbers(found), [0.99288997], rtol=0, atol=5e-9)  # digits given
    np.testing.assert_allclose(found["growth_rate"], [-0.145], rtol=0, atol=5e-4)  # digits given
    assert found.attrs["indices_add_up"] == "true"


def test_online_lasso_rests_where_quadrature_solves_the_two_equations():
    """E[u w] = R and E[w^2] = Q with G = -tau, g = -tau, Lambda = tau^2 (1 - 2 R + Q + sigma^2), and at t = 60."""
    found = meanfield.find_stationary_states(lasso())

    def unmet(unknowns):
        R, Q = unknowns
        scale = 2 / (0.8**2 * (1.0 - 2.0 * R + Q + 0.25))
        uw, square = 0.0, 0.0
        for u, weight in ((0.0, 0.8), (np.sqrt(5.0), 0.2)):  # -u mirrors u

            def average(power):
                pieces = ((-6, 0), (0, 1), (1, 2.5), (2.5, 8))
                exponent = lambda w: scale * (-0.4 * w * w + 0.8 * u * w - 0.3 * abs(w))  # noqa: B023, E731
                return sum(quad(lambda w: w**power * np.exp(exponent(w)), *ends, epsabs=1e-13)[0] for ends in pieces)

            total = average(0)
            uw, square = uw + weight * u * average(1) / total, square + weight * average(2) / total
        return uw - R, square - Q

    R, Q = fsolve(unmet, (0.9, 0.8), xtol=1e-12)
    assert found.sizes["state"] == 1
    assert numbers(found)[0] == pytest.approx(R, abs=1e-9)  # fsolve: the root of its tolerance, times the condition
    assert numbers(found, "Q")[0] == pytest.approx(Q, abs=1e-9)  # likewise
    run = meanfield.solve_density(lasso(time={"stop": 60.0, "outputs": 3})).isel(time=-1)
    for name in ("R", "Q"):
        assert abs(run[name].item() - numbers(found, name)[0]) <= run[f"{name}_error"].item() + 1e-9, name
    assert run["r"].item() == pytest.approx(found["r"].item(), abs=run["r_error"].item() + 1e-9)
    masses = [each["P"].values * np.diff(edges_of(each)) for each in (run, found.isel(state=0))]
    np.testing.assert_allclose([each.sum(axis=1) for each in masses], 1.0, rtol=0, atol=1e-7)  # tails that are cut


LINEAR = {
    "perceptron": partial(problem, "perceptron", 0.7, features=[feature(0.2)], prior={"name": "l2", "strength": 0.2}),
    "oja": partial(
        problem, "own_oja", 0.5, features=[feature(0.2, 2.0)], data={"signal": "spiked"}, prior={"name": "none"}
    ),
    "sphere of another length": partial(
        problem, "oja", 0.5, features=[feature(0.2, 2.0)], data={"signal": "spiked"},
        students=[{"initial_norm": 2.5}], model={"constraint": "sphere"},
    ),
    "two features": partial(
        problem, "oja", 0.3, features=[feature(0.2, 2.0), feature(0.1, 1.4)], data={"signal": "spiked"},
        model={"constraint": "sphere"},
    ),
    "flips and a mask": partial(
        problem, "perceptron_with_flips", 0.9, features=[feature(0.2)], data={"coins": {"flip": 0.1}, "observed": 0.7},
        prior={"name": "l2", "strength": 0.3}, model={"batch_size": 2},
    ),
}  # fmt: skip


QUICK = "sphere of another length"


@pytest.mark.parametrize(
    "name", [QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in LINEAR if name != QUICK)]
)
def test_linear_priors_have_the_fixed_points_of_the_order_parameters(name):
    task = LINEAR[name](order_parameters={"tolerance": 1e-8}, density={"tolerance": 1e-8})
    found, exact = meanfield.find_stationary_states(task), meanfield.find_fixed_points(task)
    exact = exact.isel(state=exact["Q"].values[:, 0, 0] > 1e-9)  # weights that have vanished are a point mass
    assert found.sizes["state"] == exact["copies"].sum()
    for state in (exact.isel(state=i) for i in range(exact.sizes["state"])):
        away = np.abs(np.abs(found["R"].values[:, 0]) - np.abs(state["R"].values[0])).sum(axis=1)
        nearest = found.isel(state=int(np.argmin(away)))
        np.testing.assert_allclose(np.abs(nearest["R"]), np.abs(state["R"]), rtol=0, atol=1e-8)  # the tolerance
        np.testing.assert_allclose(nearest["Q"], state["Q"], rtol=0, atol=1e-8)  # likewise
        assert nearest["stability"] == state["stability"]
        for rate in state["eigenvalue_real"].values:
            gap = np.nanmin(np.abs(nearest["eigenvalue_real"].values - rate))
            assert gap < 1e-5  # differences of averages with 1e-10, by steps of 1e-3


def test_a_rule_that_does_not_pull_its_student_rests_if_the_prior_holds_it():
    """Hebb's rule has G = 0: given u = 1 the density is exp(-a w) on the right and exp(b w) on the left."""
    push, strength = 0.7 * np.sqrt(2 / np.pi), 0.9
    task = problem(
        "hebb",
        0.7,
        features=[feature(0.2, coordinate={"law": "rademacher"})],
        prior={"name": "l1", "strength": strength},
    )
    found = meanfield.find_stationary_states(task)
    a, b = 2 * (strength - push) / 0.49, 2 * (strength + push) / 0.49
    assert numbers(found) == pytest.approx([1 / a - 1 / b], rel=1e-9)  # slopes of the closure by differences
    assert numbers(found, "Q") == pytest.approx([2 * (a**-3 + b**-3) / (1 / a + 1 / b)], rel=1e-9)  # likewise


@pytest.mark.slow  # linear priors have the states of order parameters, and lasso that of its density, see above
@pytest.mark.parametrize("seed", range(20))
def test_random_rules_come_to_rest_where_their_densities_do(seed):
    rng = np.random.default_rng(seed)
    names, limits = ("first", "second", "third", "spread"), [(0.1, 0.8), (0.2, 0.8), (-0.2, 0.2), (0.1, 0.5)]
    prior = ["l1", "elastic_net", "double_well", "smooth_l1"][seed % 4]
    law, constraint = [("gaussian", "none"), ("three_point", "sphere"), ("rademacher", "none")][seed % 3]
    coordinate = {"law": law} | ({"fourth_moment": 5.0} if law == "three_point" else {})
    task = problem(
        "any_rule", numbers={name: rng.uniform(*limit) for name, limit in zip(names, limits, strict=True)},
        features=[feature(0.5, coordinate=coordinate)], data={"normals": ["eps"], "noise": rng.uniform(0.5, 1.5)},
        students=[{"initial_norm": rng.uniform(0.6, 2.0)}], prior={"name": prior, "strength": rng.uniform(0.02, 0.2)},
        model={"batch_size": int(rng.integers(1, 4)), "constraint": constraint},
        time={"stop": 150.0, "outputs": 4},
    )  # fmt: skip
    run = meanfield.solve_density(task).isel(time=-1)
    found = meanfield.find_stationary_states(task)
    assert run.attrs["status"] == "complete"
    nearest = found.isel(state=int(np.argmin(np.abs(numbers(found) - run["R"].item()))))
    assert nearest["stability"] == 1
    for name in ("R", "Q"):
        error = (nearest[f"{name}_error"] + run[f"{name}_error"]).item()
        assert abs(nearest[name] - run[name]).item() <= error + np.exp(-150.0 * abs(nearest["growth_rate"].item())), (
            name
        )


@pytest.mark.slow  # rates are those of a discretised operator in tests/mckean_vlasov/stationary/test_free_norm.py
def test_densities_leave_an_unstable_state_at_its_rate_and_come_to_a_stable_one():
    """Principal components by Oja's own rule, which keeps no norm, under l1."""
    tables = {
        "features": [feature(1e-4, 2.0, **THREE_POINT)], "data": {"signal": "spiked"},
        "prior": L1 | {"strength": 0.05}, "time": {"stop": 25.0, "outputs": 26},
    }  # fmt: skip
    states = meanfield.find_stationary_states(problem("own_oja", 0.5, **tables))
    assert states["stability"].values.tolist() == [1, -1, 1]
    lost, learnt = states.isel(state=1), states.isel(state=2)
    run = meanfield.solve_density(problem("own_oja", 0.5, students=[{"initial_norm": lost["Q"].item()}], **tables))
    R = run["R"].values.ravel()
    # Other perturbations have died out by then, and R is 0.01 yet: its square is what is left out.
    assert np.log(R[5] / R[4]) == pytest.approx(lost["growth_rate"].item(), rel=1e-3)
    left = np.exp(13.0 * learnt["growth_rate"].item())  # from t = 12 on, when R is within 1 of its last value
    for name in ("R", "Q"):
        error = run[f"{name}_error"].max() + learnt[f"{name}_error"]
        assert abs(run[name].values[-1] - learnt[name].values).item() <= error.item() + left, name


@pytest.mark.slow  # the last test of this file follows one, too
def test_branches_follow_the_strength_of_a_prior():
    """To the states of a search at both ends; R = 0 of sparse PCA is gone where l1 outweighs the noise."""
    task = problem("oja", 0.5, **SPARSE_PCA)
    found = meanfield.update_rule.continue_stationary_states(task, "prior.strength", 0.1, 0.5, points=5)
    for strength in (0.1, 0.5):
        there = found.isel(point=found["parameter"].values == strength)
        states = meanfield.find_stationary_states(meanfield.with_value(task, "prior.strength", strength))
        np.testing.assert_allclose(np.sort(there["R"].values.ravel()), np.sort(numbers(states)), rtol=0, atol=1e-8)
    said = "at prior.strength = 0.5 a border between states that attract is missing between q = -0.8"
    assert found.attrs["warning"].startswith(said)
    assert "condens" not in found.attrs["warning"]
    free = meanfield.update_rule.continue_stationary_states(lasso(), "prior.strength", 0.3, 0.6, points=3)
    assert (free["parameter"].values[[0, -1]] == [0.3, 0.6]).all()
    assert np.all(np.diff(free["R"].values.ravel()) < 0.0)
    assert free["Q_error"].max() < 1e-6


def test_perfect_students_are_point_masses_and_no_densities():
    noiseless = lasso(numbers={"sigma": 0.0}, prior={"name": "none"})
    found = meanfield.find_stationary_states(noiseless)
    assert found.sizes["state"] == 0
    assert "at R = 1, Q = 1 there is no noise, Lambda = 0, and all weights rest at w = R.u" in found.attrs["status"]


@pytest.mark.parametrize(
    ("rule", "tables", "words"),
    [
        ("hebb", {"prior": L1}, "no density can be normalised at any of 15 overlaps.*; take a prior that holds"),
        ("oja", {"prior": L1 | {"strength": 9.0}, **{k: SPARSE_PCA[k] for k in ("data", "model")},
                 "features": [feature(0.3, 2.0)]}, "the prior outweighs the noise: .*lower prior.strength below"),
        ("hebb", {"prior": L1 | {"strength": 9.0}, "data": {"spectrum": THREE}, "model": {"constraint": "sphere"}},
         "no density has the norm 1 at any .*outweighs the noise.*; lower prior.strength"),
    ],
)  # fmt: skip
def test_what_rests_nowhere_says_why(rule, tables, words):
    found = meanfield.find_stationary_states(problem(rule, 0.5, **{"features": [feature(0.2)]} | tables))
    assert found.sizes["state"] == 0
    assert found.attrs["status"].startswith("failed: no stationary density was found; ")
    assert re.search(words, found.attrs["status"])
    meanfield.plotting.plot_result(found).draw_without_rendering()


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"students": [{}, {}]}, "students: 2 of them"),
        (
            {"data": {"spectrum": {"law": "atoms", "eigenvalues": [0.0, 2.0]}}, "prior": {"name": "none"}},
            "spectrum: has the eigenvalue 0.*l2",
        ),
        ({"numbers": {"rate": {"times": [0.0, 4.0], "values": [0.7, 0.3]}}}, r"rule_parameters.rate.*at_time\(problem"),
        ({"phases": [{"stop": 2.0}, {"stop": 4.0, "set": {"prior.strength": 0.1}}]}, "phases: .*one phase only"),
    ],
)
def test_what_has_no_states_is_refused_with_a_remedy(tables, words):
    given = {"features": [feature(0.2)], "prior": L1, "numbers": {"rate": 0.7}} | tables
    with pytest.raises(InputError, match=words):
        meanfield.find_stationary_states(problem("perceptron", **given))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [106, 111, 129])
def test_no_state_of_a_rule_with_several_is_missing(seed):
    """Two with a free norm, three on the sphere: those of the order parameters. Of 60 such seeds all agree."""
    rng = np.random.default_rng(seed)
    names, limits = ("first", "second", "third", "spread"), [(-0.2, 0.8), (-0.2, 0.8), (-0.2, 0.8), (0.05, 0.5)]
    task = problem(
        "any_rule", numbers={name: rng.uniform(*limit) for name, limit in zip(names, limits, strict=True)},
        features=[feature(0.3)], students=[{"initial_norm": rng.uniform(0.5, 2.0)}],
        prior={"name": "l2", "strength": rng.uniform(0.05, 0.5)},
        data={"normals": ["eps"], "observed": rng.choice([1.0, 0.6]).item(), "noise": rng.uniform(0.5, 1.5)},
        model={"batch_size": int(rng.integers(1, 4)), "constraint": ["none", "sphere"][seed % 2]},
    )  # fmt: skip
    found, exact = meanfield.find_stationary_states(task), meanfield.find_fixed_points(task)
    assert found.sizes["state"] == exact.sizes["state"] == 3 - (seed % 2 == 0)
    order = np.argsort(numbers(exact))
    for name in ("R", "Q"):
        errors = found[f"{name}_error"].max() + exact[f"{name}_error"].max()
        np.testing.assert_allclose(numbers(found, name), numbers(exact, name)[order], rtol=0, atol=errors.item())


def test_commands_follow_branches_of_rules(tmp_path, capsys):
    two_values = [feature(0.2, coordinate={"law": "rademacher"})]
    task = problem("perceptron", 0.7, features=two_values, model={"constraint": "sphere"}, prior=L1)
    path = tmp_path / "problem.toml"
    path.write_text(format_problem(task))
    asked = ["stationary", str(path), "-o", str(tmp_path / "branches.nc"), "--points", "2"]
    assert run_named([*asked, "--vary", "prior.strength", "0.3", "0.31"]) == DONE
    assert "from prior.strength = 0.3 (R = 0.738994, Q = 1.000000, stable)" in capsys.readouterr().out


@pytest.mark.slow  # tests/mckean_vlasov/stationary/test_spectra.py has the equations by quadrature
@pytest.mark.parametrize("constraint", ["none", "sphere"])
def test_coordinates_of_three_variances_come_to_rest_where_their_densities_do(constraint):
    data = {"spectrum": THREE} | (
        {"coins": {"coin": 0.5}, "noise": MEAN} if constraint == "none" else {"signal": "spiked"}
    )
    rule, rate, strength = ("logistic", 1.0, 0.3) if constraint == "none" else ("oja", 0.3, 0.1)
    task = problem(
        rule, rate, data=data, features=[feature(0.3, None if constraint == "none" else 3.0, **THREE_POINT)],
        prior=L1 | {"strength": strength}, model={"constraint": constraint}, time={"stop": 80.0, "outputs": 3},
    )  # fmt: skip
    run, found = meanfield.solve_density(task).isel(time=-1), meanfield.find_stationary_states(task).isel(state=-1)
    for name in ("R", "Q", "R_noise", "Q_noise"):
        error = (run[f"{name}_error"] + found[f"{name}_error"]).item()
        assert abs(run[name] - found[name]).item() <= error + np.exp(80.0 * found["growth_rate"].item()), name
    for name in ("R", "Q"):
        np.testing.assert_allclose(found[f"{name}_rho"], run[f"{name}_rho"], rtol=0, atol=1e-4)  # of cells
    masses = [each["P"].values @ np.diff(edges_of(each)) for each in (run, found)]
    np.testing.assert_allclose(masses, 1.0, rtol=0, atol=1e-7)  # tails that are cut
