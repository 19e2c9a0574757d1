"""Covariances of the order parameters over runs, against closed forms, single steps, and runs of the chain."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

import meanfield
from meanfield.families.update_rule.order_parameters import fluctuations
from meanfield.families.update_rule.order_parameters.equations import Equations
from meanfield.families.update_rule.order_parameters.steps import covariance_of_step, expansion_of
from meanfield.numerics.gaussian_moments.rules import Kinks, Rule
from tests.families.update_rule.particles.problems import FULL, ORTHONORMAL, made, rows_after
from tests.families.update_rule.problems import feature, problem
from tests.families.update_rule.test_draws import gan, two_views
from tests.families.update_rule.test_reference_numbers import CASES
from tests.references_in_time import table
from validation.update_rule.random_rules import TABLES, problem_of


def with_batches(case, m):
    return meanfield.with_value(CASES[case][0](), "model.batch_size", m)


@pytest.mark.parametrize(
    ("given", "known", "digit"),
    [
        (CASES["PCA on the sphere"][0], [0.7686, 0.0, 0.0], 1e-4),
        (CASES["perceptron"][0], [0.0812, -0.0081, 0.1807], 1e-4),
        (CASES["regression, l2"][0], [0.4040, 0.4705, 0.7739], 1e-4),
        (lambda: with_batches("perceptron", 4), [0.01902, -0.00687, 0.05264], 1e-5),
    ],
)
def test_covariances_are_those_of_the_theory(given, known, digit):
    result = meanfield.solve_order_parameters(given())
    C = result["overlap_covariance"].sel(time=1.0).values
    np.testing.assert_allclose(C[np.tril_indices(2)], known, rtol=0.0, atol=0.51 * digit)  # half a last digit
    assert float(result["overlap_covariance_error"].max()) < 0.1 * digit


def covariance_of_hebb(rate, R, Q, t):
    """C of Hebb's rule, whose step reads y alone, from X = (tau |y|, 2 tau s sign y + tau^2), by powers of t."""
    k, v = rate * np.sqrt(2.0 / np.pi), 1.0 - 2.0 / np.pi
    of_R = np.polynomial.Polynomial([R, k])
    of_Q = np.polynomial.Polynomial([Q, 2 * k * R + rate**2, k**2])
    RR = np.polynomial.Polynomial([0.0, rate**2 * v])
    RQ = (2 * k * RR + 2 * rate**2 * v * of_R).integ()
    QQ = (4 * k * RQ + 4 * rate**2 * (of_Q - 2 / np.pi * of_R**2)).integ()
    return np.array([[RR(t), RQ(t)], [RQ(t), QQ(t)]])


def test_stated_errors_hold_where_a_field_is_not_read():
    result = meanfield.solve_order_parameters(problem("hebb", 0.7, features=[feature(0.2)]))
    for t in (1.0, 4.0):
        here = result.sel(time=t)
        apart = np.abs(here["overlap_covariance"] - covariance_of_hebb(0.7, 0.2, 1.0, t))
        assert (apart <= here["overlap_covariance_error"]).all()
    parts = {name: result[f"{name}_covariance"].values[-1].item() for name in ("R", "Q")}
    assert list(parts.values()) == np.diag(result["overlap_covariance"].values[-1]).tolist()
    # the error is arccos(R/sqrt(Q))/pi
    R, Q = (result[name].values[-1].item() for name in ("R", "Q"))
    slopes = np.array([-1.0, 0.5 * R / Q]) / np.sqrt(Q - R**2) / np.pi
    known = slopes @ result["overlap_covariance"].values[-1] @ slopes
    apart = abs(result["observables_covariance"].values[-1].item() - known)
    assert apart <= float(result["observables_covariance_error"].max()) <= 2e-4 * known  # series in time, kinks


def test_rates_that_change_in_time():
    """Var R = (1 - 2/pi) times the integral of the squared rate of Hebb's rule, over a schedule and two phases."""
    given = problem(
        "hebb",
        numbers={"rate": table([0.0, 2.0], [0.2, 0.8], 4.0)},
        features=[feature(0.2)],
        phases=[{"stop": 3.0}, {"stop": 4.0, "set": {"model.rule_parameters.rate": 1.5, "model.batch_size": 2}}],
    )
    result = meanfield.solve_order_parameters(given)
    rate = np.poly1d([0.3, 0.2])
    until = np.polyint(rate**2)
    squares = [0.0, until(1.0), until(2.0), until(2.0) + 0.64, until(2.0) + 0.64 + 1.5**2 / 2]
    found = result["R_covariance"].values.ravel()
    np.testing.assert_allclose(found, (1.0 - 2.0 / np.pi) * np.array(squares), rtol=0.0, atol=1e-5)


def step_at(equations, rules):
    """Covariance of a step at the start."""
    system, G, _, constants = equations.place(0, 0.0, equations.start)
    draws = zip(system.draws, rules, strict=True)
    return covariance_of_step(system, G, [expansion_of(draw, draw.update, G, constants, rule) for draw, rule in draws])


LOGNORMAL = {"law": "lognormal", "deviation": 0.3, "of": "sample"}

DEVIATIONS = 4.9
"""Standard errors of 36 entries that chance exceeds in 4 of 100,000 tests."""


@pytest.mark.parametrize(
    "changes",
    [
        {},
        pytest.param({"model": {"constraint": "sphere", "batch_size": 3}}, marks=pytest.mark.slow),
        pytest.param({"data": FULL["data"] | {"scale": LOGNORMAL}}, marks=pytest.mark.slow),
        pytest.param(ORTHONORMAL | {"model": {"constraint": "gram_schmidt"}}, marks=pytest.mark.slow),
        pytest.param(ORTHONORMAL | {"model": {"constraint": "polar"}}, marks=pytest.mark.slow),
        pytest.param({"data": {"observed": 0.6}}, marks=pytest.mark.slow),  # which the chain does not take
    ],
)
def test_covariance_of_a_step_is_that_of_sgd(changes):
    """Steps of SGD from one start, with moves along vectors, coins, normal numbers, and a side variable."""
    N, runs, method = (1000, 4000, "plain") if "data" in changes else (3000, 8000, "chain")
    given = made(FULL, **changes | {"particles": FULL["particles"] | {"method": method, "dimension": N}})
    equations = Equations(given)
    y = equations.start
    choice = Rule("random", 2**13, Kinks(np.empty((0, equations.stretches[0].system.draws[0].width)), np.empty(0)))
    S = step_at(equations, [choice])
    X = N * (rows_after(given, runs, steps=1) - y)
    away = X - X.mean(axis=0)
    i, j = np.tril_indices(len(y))
    products = away[:, i] * away[:, j]
    error = products.std(axis=0) / np.sqrt(runs)
    off = np.abs(products.mean(axis=0) - S[i, j])
    assert (
        off <= DEVIATIONS * error + 1e-2 * np.sqrt(np.diag(S)[i] * np.diag(S)[j]) + 1e-9
    ).all()  # 1/N and random points


def test_two_views_scatter_as_those_of_the_first_family():
    """Noise orthogonal to features, noise of each view, ten samples, a hidden variable of three points, the sphere."""
    given = two_views(order_parameters={"tolerance": 1e-6})
    contrastive = meanfield.Problem(
        model={"activation": "quadratic", "centering": "none", "learning_rate": 0.05, "batch_size": 10},
        features=given.model_dump(exclude_none=True)["features"],
        augmentation={"variance": [0.2, 0.3], "correlation": -0.5},
        time={"stop": 4.0, "outputs": 3},
    )
    found = meanfield.solve_order_parameters(given)
    known = meanfield.solve_order_parameters(contrastive)["q_covariance"].values.ravel()
    np.testing.assert_allclose(found["R_covariance"].values.ravel(), known, rtol=1e-5)  # series in time of both


def test_covariance_of_a_step_of_several_draws():
    """A step of the GAN, a real sample and two others, with vectors."""
    N, runs = 200, 10_000
    given = gan()
    equations = Equations(given)
    y = equations.start
    _, G, _, _ = equations.place(0, 0.0, y)
    rules = equations.rules(equations.choose([(0.0, y)], 1e-9, {}), lambda each: each.rule)
    S = step_at(equations, [replace(rule, order=4) for rule in rules.draws[0]])
    rng = np.random.default_rng(0)
    normals = np.linalg.qr(rng.standard_normal((N, 3)))[0] * np.sqrt(N)
    u, w, V = (normals @ np.linalg.cholesky(G).T).T
    c = np.sqrt([3.0, 2.5, 2.5])[:, None] * rng.standard_normal((3, runs))
    noise = rng.standard_normal((2, runs, N))
    real, fake = (c[i][:, None] * vector / np.sqrt(N) + noise[i] for i, vector in enumerate((u, V)))
    field = np.sqrt(G[1, 1]) * rng.standard_normal(runs) + c[2] * G[1, 2]  # of w, of the last sample
    rate, slow = 0.2, 0.1
    own, other = rate * real @ w / np.sqrt(N), -rate * fake @ w / np.sqrt(N)
    hold = np.array([rate * np.tanh(G[1, 1] - 1), slow * np.tanh(G[2, 2] - 1)])
    w_after = (1 - hold[0] / N) * w + (own[:, None] * real + other[:, None] * fake) / np.sqrt(N)
    V_after = (1 - hold[1] / N) * V + (slow * field * c[2])[:, None] * w / N
    overlaps = [w_after @ u, V_after @ u, (w_after**2).sum(1), (V_after * w_after).sum(1), (V_after**2).sum(1)]
    X = np.stack(overlaps, axis=1) - N * y
    away = X - X.mean(axis=0)
    i, j = np.tril_indices(len(y))
    products = away[:, i] * away[:, j]
    size = np.sqrt(np.diag(S)[i] * np.diag(S)[j])
    off = np.abs(products.mean(axis=0) - S[i, j])
    assert (off <= DEVIATIONS * products.std(axis=0) / np.sqrt(runs) + 2e-2 * size).all()  # of order 1/N


def test_reason_where_nothing_is_known():
    result = meanfield.solve_order_parameters(problem("perceptron", 0.7, features=[feature(1.0)]))
    assert "overlap_covariance" not in result
    assert "not finite, or not smooth" in json.loads(result.attrs["provenance"])["fluctuations"]


@pytest.mark.slow
def test_covariances_of_random_rules_are_those_of_runs():
    """Ten random rules against 1000 runs each of the chain; the false-alarm rate is 1 in 1000."""
    runs, total, freedom = 1000, 0.0, 0
    for seed, rule in enumerate([*TABLES, *TABLES]):
        given = meanfield.with_value(problem_of(rule, 40 + seed, dimension=2000), "order_parameters.tolerance", 1e-4)
        limit = meanfield.solve_order_parameters(given)
        C = limit["overlap_covariance"].values[-1]
        given = meanfield.with_value(given, "particles.method", "chain")
        rows = rows_after(given, runs, steps=6000)
        moves = np.diag(C) > 0.0
        C, rows = C[np.ix_(moves, moves)], rows[:, moves]
        found = 2000 * np.cov(rows.T).reshape(C.shape)
        ratio = np.linalg.solve(C, found)
        p = len(C)
        # likelihood ratio of a known covariance, with Bartlett's factor
        statistic = (runs - 1) * (np.trace(ratio) - np.linalg.slogdet(ratio)[1] - p)
        total += statistic * (1 - (2 * p + 1 - 2 / (p + 1)) / (6 * (runs - 1)))
        freedom += p * (p + 1) // 2
    assert chi2.sf(total, freedom) > 1e-3


def test_a_single_run_is_judged_by_the_predicted_scatter():
    given = meanfield.with_value(problem_of("smooth", 1), "particles.replicas", 1)
    limit, sgd = meanfield.solve_order_parameters(given), meanfield.simulate_sgd(given)
    report = meanfield.compare(limit, sgd)
    assert report.attrs["verdict"] == "AGREES"
    spread = np.sqrt(limit["R_covariance"].values.ravel() / 1000)
    moved = sgd.assign(R=sgd["R"] + 8.0 * spread[:, None, None])
    assert meanfield.compare(limit, moved).attrs["verdict"] == "DIFFERS"


@pytest.mark.slow
def test_stated_errors_hold_where_products_take_random_points(monkeypatch):
    """A committee of three reads six fields; its averages are sums of terms, and products of four values are not."""
    given = problem(
        "committee",
        0.5,
        features=[feature([0.3, 0.05, 0.1]), feature([0.1, 0.2, 0.0]), feature([0.1, 0.0, 0.3])],
        students=[{"initial_norm": 0.5}] * 3,
        time={"stop": 2.0, "outputs": 3},
        order_parameters={"tolerance": 1e-4},
    )
    found = meanfield.solve_order_parameters(given)
    monkeypatch.setattr(fluctuations, "POINTS", 2**14)
    finer = meanfield.solve_order_parameters(given)
    for name in ("overlap_covariance", "R_covariance"):
        assert (np.abs(found[name] - finer[name]) <= found[f"{name}_error"] + finer[f"{name}_error"]).all()
    assert float(found["overlap_covariance_error"].max()) < 0.05 * float(found["overlap_covariance"].max())
