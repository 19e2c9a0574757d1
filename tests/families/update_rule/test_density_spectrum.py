"""Densities of one student where variances of coordinates differ: reference numbers, exact laws, two schemes, SGD."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.problems.variable import AGREES, DIFFERS
from tests.families.update_rule.problems import feature, problem
from tests.families.update_rule.test_spectrum import ONES, POWER

THREE_POINT = {"coordinate": {"law": "three_point", "fourth_moment": 5.0}}
VARIANCES, SHARES = np.array([0.25, 1.0, 4.0]), np.array([0.5, 0.3, 0.2])
MEAN = float(VARIANCES @ SHARES)
THREE = {"law": "atoms", "eigenvalues": (VARIANCES / MEAN).tolist(), "weights": SHARES.tolist()}
LASSO = {
    "features": [feature(0.1, **THREE_POINT)], "students": [{"initial_norm": 0.5}],
    "prior": {"name": "l1", "strength": 0.3}, "time": {"stop": 2.0, "outputs": 3},
}  # fmt: skip
OVERLAPS = ("R", "Q", "R_noise", "Q_noise")


def lasso(spectrum=THREE, noise=MEAN, **tables):
    """Logistic regression under l1, with noise of three variances."""
    data = {"coins": {"coin": 0.5}, "spectrum": spectrum, "noise": noise}
    return problem("logistic", 1.0, data=data, **LASSO | tables)


def assert_same(first, second, names=OVERLAPS):
    for name in names:
        off, errors = np.abs(first[name].values - second[name].values), first[f"{name}_error"] + second[f"{name}_error"]
        assert np.all(off <= errors.values + 1e-14), name  # rounding


@pytest.mark.parametrize("scheme", ["lagrangian", pytest.param("eulerian", marks=pytest.mark.slow)])
def test_logistic_lasso_on_three_variances_has_the_reference_numbers(scheme):
    """By piecewise polynomials, and finite volumes with Richardson extrapolation (update_rules.md, section 11)."""
    found = meanfield.solve_density(lasso(density={"tolerance": 1e-6, "scheme": scheme}))
    expected = [
        [0.2142911, 0.3709597, 0.1297501, 0.4805423, 0.6811777],
        [0.2574223, 0.3281042, 0.1110425, 0.6223066, 0.7874245],
    ]
    assert found.status == "complete"
    for name, known, scale in zip(
        ("R", "Q", "r", "R_noise", "Q_noise"), np.transpose(expected), [1, 1, 1, MEAN, MEAN], strict=True
    ):
        off = np.abs(scale * found[name].values[1:].ravel() - known)
        assert np.all(off <= scale * found[f"{name}_error"].values[1:].ravel() + 1e-7), (
            name
        )  # of the two that made them
    totals = found["rho_weight"].values @ found["R_rho"].values[:, :, 0, 0].T
    np.testing.assert_allclose(totals, found["R"].values.ravel(), rtol=0, atol=1e-5)  # of cells


def test_a_power_law_has_the_reference_numbers():
    """With nine Gauss nodes of the law they are right to some 2e-5, as five and seven differ by 1e-4 and 2e-5."""
    found = meanfield.solve_density(lasso(POWER, 1.0, density={"tolerance": 1e-4})).isel(time=-1)
    expected = [0.22376, 0.27667, 0.10390, 0.45526, 0.58413]
    for name, known in zip(("R", "Q", "r", "R_noise", "Q_noise"), expected, strict=True):
        assert abs(found[name].item() - known) <= found[f"{name}_error"].item() + 2e-5, name


@pytest.mark.parametrize("constraint", ["none", "sphere"])
def test_equal_variances_change_nothing(constraint):
    made = partial(
        problem, "oja", 0.5, features=[feature(0.3, 2.0, **THREE_POINT)], model={"constraint": constraint},
        prior={"name": "l1", "strength": 0.3}, time={"stop": 1.0, "outputs": 2}, density={"tolerance": 1e-4},
    )  # fmt: skip
    plain, same = (meanfield.solve_density(made(data={"signal": "spiked"} | more)) for more in ({}, {"spectrum": ONES}))
    assert_same(plain, same, ("R", "Q", "r"))
    np.testing.assert_allclose(same["Q_noise"], same["Q"], rtol=0, atol=1e-4)  # errors of E[w^2] on the sphere
    np.testing.assert_array_equal(same["rho"], [1.0])


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_rules_have_the_laws_of_their_order_parameters(seed):
    """Under linear priors: overlaps of all, and those at each eigenvalue."""
    rng = np.random.default_rng(seed)
    norm, share = rng.uniform(0.4, 2.0), rng.uniform(-0.6, 0.6)
    names, limits = ("first", "second", "third", "spread"), [(-0.2, 0.8), (-0.2, 0.8), (-0.2, 0.8), (0.0, 0.5)]
    constraint, signal = rng.choice(["none", "sphere"]).item(), rng.choice(["none", "spiked", "orthogonal"]).item()
    rho = rng.uniform(0.2, 2.0, 3)
    task = problem(
        "any_rule", numbers={name: rng.uniform(*limit) for name, limit in zip(names, limits, strict=True)},
        features=[feature(share * float(np.sqrt(norm)), None if signal == "none" else 1.2, **THREE_POINT)],
        students=[{"initial_norm": norm}], prior={"name": "l2", "strength": rng.uniform(0.0, 0.5)},
        data={"normals": ["eps"], "observed": rng.choice([1.0, 0.6]).item(), "noise": rng.uniform(0.5, 1.5),
              "spectrum": {"law": "atoms", "eigenvalues": np.sort(rho / rho.mean()).tolist()}, "signal": signal},
        model={"constraint": constraint}, time={"stop": rng.uniform(0.5, 2.0), "outputs": 3},
        density={"tolerance": 1e-4},
    )  # fmt: skip
    found, exact = meanfield.solve_density(task), meanfield.solve_order_parameters(task)
    assert found.status == "complete"
    assert_same(found, exact)
    for name in ("R_rho", "Q_rho"):
        np.testing.assert_allclose(found[name], exact[name], rtol=0, atol=1e-4)  # of cells


@pytest.mark.slow
def test_both_schemes_agree_on_a_signal_under_a_double_well():
    made = partial(
        problem, "oja", 0.2, features=[feature(0.3, 3.0, **THREE_POINT)], model={"constraint": "sphere"},
        data={"signal": "spiked", "spectrum": THREE}, prior={"name": "double_well", "strength": 0.3},
        time={"stop": 2.0, "outputs": 3},
    )  # fmt: skip
    schemes = ("lagrangian", "eulerian")
    first, second = (meanfield.solve_density(made(density={"scheme": each, "tolerance": 1e-5})) for each in schemes)
    assert_same(first, second, (*OVERLAPS, "r"))


@pytest.mark.slow
def test_sgd_agrees_given_eigenvalues_and_a_wrong_spectrum_differs():
    """5 % of true comparisons differ; the seed is fixed."""
    runs = {"dimension": 2000, "replicas": 16, "snapshots": [1.0, 2.0]}
    density, sgd = (meanfield.solve(lasso(particles=runs), method) for method in ("density", "particles"))
    compared = meanfield.compare(density, sgd)
    assert compared["verdict"].item() == AGREES
    np.testing.assert_allclose(compared["group_rho"].values[0, :3], THREE["eigenvalues"])
    rho = density["rho"].values
    exchanged = density.assign_coords(rho_of_node=("node", rho[::-1][np.searchsorted(rho, density["rho_of_node"])]))
    assert meanfield.compare(exchanged, sgd)["verdict"].item() == DIFFERS


@pytest.mark.parametrize(
    ("spectrum", "words"),
    [
        ({"law": "power_law", "exponent": 1.0, "range": 5.0, "teacher": 1.0}, "spectrum.teacher: .* remove the key"),
        ({"law": "atoms", "eigenvalues": [0.5, 1.5], "teacher": [0.5, 1.5]}, "order_parameters under a linear prior"),
    ],
)
def test_features_that_know_the_variances_are_refused(spectrum, words):
    with pytest.raises(InputError, match=words):
        meanfield.solve_density(lasso(spectrum))
