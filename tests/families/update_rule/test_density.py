"""Densities of one student against reference numbers, exact laws, order parameters and another scheme."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ndtr

import meanfield
from meanfield.errors import InputError
from meanfield.mckean_vlasov.cells import edges_of
from tests.families.update_rule.problems import feature, problem
from tests.references_in_time import table

THREE_POINT = {"coordinate": {"law": "three_point", "fourth_moment": 5.0}}
LASSO = {
    "numbers": {"sigma": 0.5}, "features": [feature(0.1, **THREE_POINT)], "students": [{"initial_norm": 0.5}],
    "data": {"normals": ["eps"]}, "prior": {"name": "l1", "strength": 0.3}, "time": {"stop": 4.0, "outputs": 9},
}  # fmt: skip
lasso = partial(problem, "regression", 0.8, **LASSO)
SPARSE_PCA = {
    "features": [feature(0.3, 2.0, **THREE_POINT)], "model": {"constraint": "sphere"}, "data": {"signal": "spiked"},
    "prior": {"name": "l1", "strength": 0.3},
}  # fmt: skip


def test_online_lasso_has_the_reference_numbers():
    """By spectral elements with two meshes (update_rules.md, section 10.3)."""
    found = meanfield.solve_density(lasso(density={"tolerance": 1e-7})).sel(time=[0.0, 0.5, 1.0, 2.0, 4.0])
    expected = [
        [0.1, 0.5, 0.1692511187],
        [0.3637516593, 0.5261714028, 0.1678364945],
        [0.5231917674, 0.5678195058, 0.1676402465],
        [0.6941349597, 0.6498339427, 0.1629073450],
        [0.8044129823, 0.7435487991, 0.1594266695],
    ]
    assert found.status == "complete"
    numbers = np.column_stack([found[name].values.reshape(5) for name in ("R", "Q", "r")])
    np.testing.assert_allclose(numbers, expected, rtol=0, atol=1e-8)  # a tenth of the tolerance
    np.testing.assert_allclose(found["mass"], 1.0, rtol=0, atol=1e-12)  # rounding of 200 cells


def test_sparse_pca_has_the_reference_numbers():
    """On the sphere, whose multiplier follows from E[w^2] = 1 (update_rules.md, section 10.1)."""
    found = meanfield.solve_density(problem("oja", 0.5, density={"tolerance": 1e-7}, **SPARSE_PCA))
    times = [0.0, 1.0, 2.0, 4.0]
    R, r = found["R"].sel(time=times).values[:, 0, 0], found["r"].sel(time=times).values
    np.testing.assert_allclose(R, [0.3, 0.56941476, 0.77722357, 0.85716993], rtol=0, atol=1.5e-8)  # digits given
    np.testing.assert_allclose(r, [0.23918827, 0.22314731, 0.21250437, 0.20544753], rtol=0, atol=1.5e-8)
    np.testing.assert_array_equal(found["Q"].values, np.ones((5, 1, 1)))


@pytest.mark.parametrize("scheme", ["lagrangian", pytest.param("eulerian", marks=pytest.mark.slow)])
def test_linear_priors_have_gaussian_laws(scheme):
    settings = {"scheme": scheme, "tolerance": 1e-6}
    task = problem("perceptron", 0.7, features=[feature(0.2)], prior={"name": "l2", "strength": 0.2}, density=settings)
    found, exact = meanfield.solve_density(task), meanfield.solve_order_parameters(task)
    for name in ("R", "Q", "observables"):
        assert np.all(np.abs(found[name] - exact[name]) <= found[f"{name}_error"] + exact[f"{name}_error"]), name
    last = found.isel(time=-1)
    R, Q = exact["R"].values[-1, 0, 0], exact["Q"].values[-1, 0, 0]
    edges = edges_of(found)
    law = np.diff(ndtr((edges - R * found["u"].values[:, None]) / np.sqrt(Q - R * R)))
    distance = np.abs(last["P"].values * np.diff(edges) - law).sum(axis=1) @ found["u_weight"].values
    assert distance <= last["P_error"]


@pytest.mark.slow  # linear priors are in the test above, and masks, batches and other laws in the test below
@pytest.mark.parametrize("seed", range(20))
def test_random_rules_have_the_order_parameters_of_their_equations(seed):
    rng = np.random.default_rng(seed)
    norm, share = rng.uniform(0.4, 2.0), rng.uniform(-0.6, 0.6)
    names, limits = ("first", "second", "third", "spread"), [(-0.2, 0.8), (-0.2, 0.8), (-0.2, 0.8), (0.0, 0.5)]
    law, constraint = rng.choice([("gaussian", "none"), ("rademacher", "none"), ("laplace", "sphere")]).tolist()
    task = problem(
        "any_rule", numbers={name: rng.uniform(*limit) for name, limit in zip(names, limits, strict=True)},
        features=[feature(share * float(np.sqrt(norm)), coordinate={"law": law})],
        students=[{"initial_norm": norm}], prior={"name": "l2", "strength": rng.uniform(0.0, 0.5)},
        data={"normals": ["eps"], "observed": rng.choice([1.0, 0.6]).item(), "noise": rng.uniform(0.5, 1.5)},
        model={"batch_size": int(rng.integers(1, 4)), "constraint": constraint},
        time={"stop": rng.uniform(1.0, 4.0), "outputs": 4},
    )  # fmt: skip
    found, exact = meanfield.solve_density(task), meanfield.solve_order_parameters(task)
    assert found.status == "complete"
    for name in ("R", "Q"):
        assert np.all(np.abs(found[name] - exact[name]) <= found[f"{name}_error"] + exact[f"{name}_error"]), name


def test_both_schemes_agree_under_a_prior_with_a_double_well():
    """Of a rule that is not homogeneous, with a mask, flips and batches."""
    task = partial(
        problem, "perceptron_with_flips", 0.9,
        features=[feature(0.2, **THREE_POINT)], students=[{"initial_norm": 1.3}], model={"batch_size": 2},
        data={"coins": {"flip": 0.1}, "observed": 0.7}, prior={"name": "double_well", "strength": 0.2},
        time={"stop": 2.0, "outputs": 3},
    )  # fmt: skip
    first, second = (meanfield.solve_density(task(density={"scheme": each, "tolerance": 1e-6})) for each in SCHEMES)
    for name in ("R", "Q", "r"):
        assert np.all(np.abs(first[name] - second[name]) <= first[f"{name}_error"] + second[f"{name}_error"]), name


SCHEMES = ("lagrangian", "eulerian")

HERE = "tests.families.update_rule.test_density:"


def towards(w, rate):
    """Factor of the feature in a step without a gain."""
    return rate * np.exp(-0.1 * w * w)


def shrink(w, rate):
    """Factor of the student itself."""
    return -0.5 * rate * w * w


generator = partial(
    meanfield.Problem, family="update_rule", model={"rule_parameters": {"rate": 0.8}}, groups=[{"name": "w"}],
    draws=[{"move": {"w": {"u": HERE + "towards", "w": HERE + "shrink"}}}], time={"stop": 3.0, "outputs": 4},
    features=[feature(0.3, coordinate={"law": "rademacher"})], students=[{"group": "w", "initial_norm": 0.7}],
)  # fmt: skip
"""A student that moves along vectors alone, as the generator of a GAN does: nothing diffuses."""


def test_weights_without_noise_are_carried_along_the_characteristics():
    """w' = a u - b w - lambda w^3, with averages of the functions above for fields of variance Q in closed form."""
    found = meanfield.solve_density(generator(prior={"name": "quartic", "strength": 0.1}))
    node, weight = np.polynomial.hermite_e.hermegauss(60)
    weight = weight / weight.sum()
    xi = np.linspace(-8.0, 8.0, 4001)  # carried along: the mass between two of them stays

    def moved(t, w):
        Q = weight @ w[: len(node)] ** 2
        return 0.8 / np.sqrt(1.0 + 0.2 * Q) - 0.4 * Q * w - 0.1 * w**3

    start = 0.3 + np.sqrt(0.7 - 0.3**2) * np.append(node, xi)  # of u = 1, which u = -1 mirrors
    tight = {"rtol": 1e-11, "atol": 1e-11}  # a tenth of what is allowed below besides stated errors
    path = solve_ivp(moved, (0.0, 3.0), start, "DOP853", found["time"].values, **tight).y.T
    w = path[:, : len(node)]
    assert found.status == "complete"
    assert np.all(found["Lambda"] == 0.0)
    for name, exact in (("R", w @ weight), ("Q", w**2 @ weight), ("r", 0.1 * w**4 @ weight)):
        assert np.all(np.abs(found[name].values.ravel() - exact) <= found[f"{name}_error"].values.ravel() + 1e-10), name
    law = np.diff(np.interp(edges_of(found), path[-1, len(node) :], ndtr(xi), 0.0, 1.0))
    P = found["P"].sel(time=3.0).values[found["u"].values.ravel() == 1.0]
    assert np.abs(P * np.diff(edges_of(found)) - law).sum() <= found["P_error"][-1] + 1e-5  # between the xi


def test_fixed_cells_converge_at_fourth_order():
    def errors(cells: int, steps: int) -> float:
        fixed = {"cells": cells, "steps": steps, "half_width": 9.0}
        last = meanfield.solve_density(lasso(density=fixed)).isel(time=-1)
        numbers = last["R"].item(), last["Q"].item(), last["r"].item()
        return float(np.abs(np.subtract(numbers, [0.8044129823, 0.7435487991, 0.1594266695])).max())

    assert errors(150, 80) > 10.0 * errors(300, 160)  # 16 but for higher orders


def test_rates_and_strengths_that_change_are_followed():
    """A ramp of the rate, a phase with another prior, against order parameters."""
    task = problem(
        "perceptron", features=[feature(0.2)],
        prior={"name": "l2", "strength": table([0.0, 1.0], [0.1, 0.4], 2.0)},
        numbers={"rate": {"times": [0.0, 0.5, 2.0], "values": [0.7, 0.3, 0.5]}},
        phases=[{"stop": 1.25}, {"stop": 2.0, "set": {"prior": {"name": "none"}}}],
        time={"stop": 2.0, "outputs": 5},
    )  # fmt: skip
    found, exact = meanfield.solve_density(task), meanfield.solve_order_parameters(task)
    for name in ("R", "Q"):
        assert np.all(np.abs(found[name] - exact[name]) <= found[f"{name}_error"] + exact[f"{name}_error"]), name


def test_steps_end_where_schedules_do():
    """A ramp of the rate that ends with the run, against a run that goes on."""
    found = []
    for stop in (2.0, 2.5):
        ramp = table([0.0, 2.0], [0.8, 0.1], stop) if stop > 2.0 else {"times": [0.0, 2.0], "values": [0.8, 0.1]}
        time = {"stop": stop, "outputs": round(2 * stop) + 1}
        task = problem("regression", ramp, **LASSO | {"time": time}, density={"tolerance": 1e-5})
        last = meanfield.solve_density(task).sel(time=2.0)
        found.append([last[name].item() for name in ("R", "Q", "r")])
    # 2e-8 are there, and steps past the end are off by 4e-7.
    np.testing.assert_allclose(*found, rtol=0.0, atol=1e-7)


def test_a_blow_up_says_when_and_why():
    """Phase retrieval from there is infinite at t = 0.932 (update_rules.md, section 13)."""
    task = problem("phase_retrieval", 0.5, features=[feature(0.2)], students=[{"initial_norm": 0.7}])
    found = meanfield.solve_density(task)
    assert found.status.startswith("failed: at t = 0.932")
    assert "infinite in finite time; lower the rates among model.rule_parameters" in found.status


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"features": [], "rule": "oja"}, "features: 0 of them.*add some"),
        ({"features": [feature(1.0)], "rule": "hebb"}, "lower initial_overlap"),
        ({"density": {"scheme": "particles"}, "rule": "hebb"}, "density.scheme = 'particles'"),
    ],
)
def test_what_has_no_density_is_refused_with_a_remedy(tables, words):
    given = {"features": [feature(0.2)]} | tables
    with pytest.raises(InputError, match=words):
        meanfield.solve_density(problem(given.pop("rule"), 0.1, **given))


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"density": {"scheme": "eulerian"}, "prior": {"name": "quartic"}}, "cells that stay where they are smear"),
        ({"prior": {"name": "l1"}}, "its pull jumps at w = 0, where weights come to rest .*'smooth_l1', or particles"),
    ],
)
def test_what_cannot_be_carried_without_noise_is_refused_with_a_remedy(tables, words):
    with pytest.raises(InputError, match=words):
        meanfield.solve_density(generator(**tables))


def test_order_parameters_send_other_priors_to_the_density():
    with pytest.raises(InputError, match="use the density, or particles"):
        meanfield.solve_order_parameters(lasso())
