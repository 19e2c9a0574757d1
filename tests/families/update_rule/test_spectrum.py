"""Coordinates of different variance: reference numbers, independent solutions, and what holds for any spectrum.

Seeds are fixed. Had they been drawn at random, the test against SGD would raise a false alarm with the probability that
it names.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy import stats
from scipy.linalg import expm

import meanfield
from meanfield.families.update_rule.averages import averages_of
from meanfield.families.update_rule.order_parameters.equations import Equations
from meanfield.ingredients.spectra import Nodes, interpolated
from meanfield.problems.variable import DIFFERS
from tests.families.hidden_manifold.problems import solved as hidden_manifold
from tests.families.update_rule.problems import feature, problem
from tests.families.update_rule.test_draws import gan, two_views
from validation.update_rule.random_rules import problem_of

POWER = {"law": "power_law", "exponent": 1.0, "range": 50.0}
SPECTRA = {
    "power law": POWER,
    "preferred by teachers": {"law": "power_law", "exponent": 0.5, "range": 6.0, "teacher": 1.0},
    "Marchenko-Pastur": {"law": "marchenko_pastur", "aspect_ratio": 1.5},
    "atoms": {"law": "atoms", "eigenvalues": [0.0, 0.5, 2.5], "weights": [0.3, 0.375, 0.325], "teacher": [0, 1.8, 1.0]},
}

ONES = {"law": "atoms", "eigenvalues": [1.0, 1.0, 1.0], "weights": [0.5, 0.3, 0.2]}

LAST_DIGIT = 1.5e-10
"""Error of numbers with ten digits."""

CASES = {
    "phase retrieval": (
        lambda: problem(
            "phase_retrieval", 0.02, features=[feature(0.2)], students=[{"initial_norm": 0.7}],
            data={"spectrum": POWER},
        ),
        {
            1.0: (0.2041403470, 0.6782717721, 0.2126185627, 0.6362537602),
            4.0: (0.2218207680, 0.6413541265, 0.2632726631, 0.5537108248),
        },
    ),
    "logistic regression": (
        lambda: problem(
            "logistic", 1.0, features=[feature(0.1)], students=[{"initial_norm": 0.5}],
            data={"coins": {"coin": 0.5}, "spectrum": POWER}, prior={"name": "l2", "strength": 0.1},
        ),
        {
            1.0: (0.2263755409, 0.5055054471, 0.4138403042, 0.7003409392),
            4.0: (0.3965953267, 0.5450339930, 0.6310801899, 0.8895960816),
        },
    ),
    "PCA": (
        lambda: problem(
            "oja", 0.1, features=[feature(0.3, 12.0)], model={"constraint": "sphere"},
            data={"signal": "spiked", "spectrum": POWER},
        ),
        {1.0: (0.6977092063, 1.0, None, 1.7161803749), 4.0: (0.9222819278, 1.0, None, 2.5523551944)},
    ),
    "PCA at the edge": (
        lambda: problem(
            "oja", 0.2, features=[feature(0.3, 3.0)], model={"constraint": "sphere"},
            data={"signal": "spiked", "spectrum": POWER},
        ),
        {1.0: (0.3961391005, 1.0, None, 4.4811920399), 4.0: (0.0468945561, 1.0, None, 10.7711353163)},
    ),
}  # fmt: skip


def accurate(given, tolerance=1e-9):
    return meanfield.solve(meanfield.with_value(given, "order_parameters.tolerance", tolerance), "order_parameters")


SLOW = [*CASES][1:]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in CASES]
)
def test_reference_numbers(name):
    made, known = CASES[name]
    result = accurate(made())
    for time, numbers in known.items():
        here = result.sel(time=time)
        for name, number in zip(("R", "Q", "R_noise", "Q_noise"), numbers, strict=True):
            if number is not None:
                assert abs(here[name].item() - number) <= float(here[f"{name}_error"].max()) + LAST_DIGIT
    assert float(result["Q_error"].max()) <= 2e-8  # twenty times the tolerance, by steps of the coarser solution


@pytest.mark.slow
def test_logistic_regression_for_long():
    made = meanfield.with_value(CASES["logistic regression"][0](), "time", {"stop": 16.0, "outputs": 2})
    here = accurate(made).isel(time=-1)
    found = [here[name].item() for name in ("R", "Q", "R_noise", "Q_noise")]
    assert found == pytest.approx([0.5334561788, 0.6198180621, 0.7266914920, 0.9740481750], abs=LAST_DIGIT + 1e-9)


def test_regression_on_two_variances():
    """Errors at the eigenvalues obey equations that are linear, with a closed form."""
    two = {"law": "atoms", "eigenvalues": [0.5, 1.5]}
    result = accurate(
        problem(
            "regression", 0.6, numbers={"sigma": 0.4}, features=[feature(0.0)], students=[{"initial_norm": 0.5}],
            data={"normals": ["eps"], "spectrum": two}, time={"stop": 2.0, "outputs": 3},
        )
    )  # fmt: skip
    error = 1.0 - 2.0 * result["R_rho"] + result["Q_rho"].isel(student_=0)
    assert error.isel(time=-1).values.ravel() == pytest.approx([0.61332879, 0.22503498], abs=5e-9)  # digits printed


PLAIN = {
    "two hidden variables and a batch": lambda **data: problem(
        "oja", 0.3, features=[feature([0.3, 0.05], 3.0), feature([0.1, 0.2], 1.5)], students=[{}, {}],
        model={"constraint": "gram_schmidt", "batch_size": 3}, data={"signal": "spiked", "noise": 0.7} | data,
    ),
    "noise beside the features": lambda **data: problem(
        "ica", 0.02, features=[feature(0.4, 2.0)], data={"signal": "orthogonal", "observed": 0.6} | data,
        prior={"name": "l2", "strength": 0.3},
    ),
    "side variables and moves": lambda **data: problem(
        "petrels", features=[feature(0.3, 4.0)], students=[{"initial_norm": 0.8}],
        data={"signal": "spiked", "observed": 0.4} | data,
        side={"gain": {"start": 0.5, "step": "tests.families.update_rule.own_rules:petrels_gain"}},
    ),
    "draws, groups and moves": lambda **data: gan(data=data, time={"stop": 2.0, "outputs": 2}),
    "classes": lambda **data: problem(
        "smooth", 0.5, features=[feature(0.3)],
        data={"signal": "spiked", "classes": [{"probability": 0.4, "mean": [1.5], "noise": 0.5},
                                              {"probability": 0.6, "mean": [-0.5], "noise": 2.0}]} | data,
    ),
    "scales of samples": lambda **data: problem(
        "ica", 0.02, features=[feature(0.4, 2.0)],
        data={"signal": "orthogonal", "scale": {"law": "discrete", "values": [0.5, 1.2], "probabilities": [0.3, 0.7],
                                                "of": "sample"}} | data,
    ),
    "two views": lambda **data: two_views(data={"signal": "orthogonal"} | data, time={"stop": 2.0, "outputs": 2}),
    "equal students": lambda **data: problem(
        "oja", 0.3, features=[feature([0.3, 0.3], 3.0)], students=[{}, {"initial_overlap": [1.0]}],
        data={"signal": "spiked"} | data,
    ),
}  # fmt: skip


LONGER = ("draws, groups and moves", "equal students", "scales of samples", "two hidden variables and a batch")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONGER else []) for name in PLAIN]
)
def test_equal_variances_change_nothing(name):
    made = PLAIN[name]
    plain, same = (meanfield.solve(made(**more), "order_parameters") for more in ({}, {"spectrum": ONES}))
    for name in [name for name in ("R", "Q", "v", "observables") if name in plain]:
        # Both take the same quadrature, and steps far below their tolerance.
        assert np.abs(plain[name] - same[name]).max() <= 1e-2 * 1e-6
    assert np.abs(same["Q_noise"] - same["Q"]).max() <= 1e-12  # rounding


def volterra(spectrum, start, rate, noise, times):
    """Excess errors of regression from the equation of Volterra with the law of the eigenvalues, at times up to 4.

    L(t) = <rho e^(-2 rate rho t)> start + rate^2 int <rho^2 e^(-2 rate rho (t - s))> (L(s) + noise) ds, by collocation.
    """
    x, weight = leggauss(200)
    log_rho = 0.5 * (x + 1.0) * np.log(spectrum["range"])
    weight = weight * np.exp(-log_rho / spectrum["exponent"])
    weight /= weight.sum()
    rho = np.exp(log_rho) / (weight @ np.exp(log_rho))
    share = rho ** spectrum["teacher"] / (weight @ rho ** spectrum["teacher"])
    points = 2.0 * (1.0 - np.cos(np.pi * np.arange(41) / 40))
    y, step = leggauss(60)
    alone = np.exp(-2.0 * rate * np.outer(points, rho)) @ (weight * rho * share) * start
    kernel, forced = np.zeros((41, 41)), np.zeros(41)
    for i, t in enumerate(points):
        s = 0.5 * t * (y + 1.0)
        decay = 0.5 * t * step * rate**2 * (np.exp(-2.0 * rate * np.outer(t - s, rho)) @ (weight * rho**2))
        kernel[i], forced[i] = decay @ interpolated(points, np.eye(41), s), decay.sum() * noise
    return interpolated(points, np.linalg.solve(np.eye(41) - kernel, alone + forced), times)


@pytest.mark.slow
@pytest.mark.parametrize("teacher", [0.0, 0.7])
def test_regression_solves_the_equation_of_volterra(teacher):
    """The resolvent of a power law, as for one-pass least squares in Collins-Woodfin and Paquette (2024)."""
    spectrum = {"law": "power_law", "exponent": 1.5, "range": 200.0, "teacher": teacher}
    given = problem(
        "regression", 0.1, numbers={"sigma": 0.4}, features=[feature(0.6)], students=[{"initial_norm": 0.36}],
        data={"normals": ["eps"], "spectrum": spectrum}, order_parameters={"tolerance": 1e-9},
    )  # fmt: skip
    result = meanfield.solve(given, "order_parameters")
    R, Q = (result[name].values.ravel() for name in ("R_noise", "Q_noise"))
    nodes = given.data.spectrum.nodes(64)
    found = nodes.weight @ (nodes.rho * nodes.teacher) - 2.0 * R + Q
    known = volterra(spectrum, 0.4**2, 0.1, 0.4**2, result["time"].values)
    errors = 2.0 * float(result["R_noise_error"].max()) + float(result["Q_noise_error"].max())
    assert np.abs(found - known).max() <= errors + 1e-10  # of the collocation


@pytest.mark.slow
def test_a_linear_hidden_manifold_is_one():
    """Latents along eigenvectors are coordinates over their standard deviations, and so are those of the teacher."""
    rho = np.array([0.4, 1.6])
    overlap = 1.0 / np.mean(1.0 / rho)
    there = hidden_manifold(
        inputs={
            "nonlinearity": "linear", "aspect_ratio": 1.0, "spectrum": {"law": "atoms", "eigenvalues": rho.tolist()},
        },
        teacher={"overlap": [[overlap]], "output_weights": [1.0]},
        student={"output_weights": [1.0], "on_teacher": [[0.0]], "elsewhere": [[0.6]]},
        training={"learning_rate": 1.2, "output_learning_rate": 0.0, "label_noise": 0.3**2},
        time={"stop": 4.0, "outputs": 5}, order_parameters={"tolerance": 1e-10},
    )  # fmt: skip
    spectrum = {"law": "atoms", "eigenvalues": rho.tolist(), "teacher": (overlap / rho).tolist()}
    here = accurate(
        problem(
            "committee_of_one", 1.2, numbers={"sigma": 0.3}, features=[feature(0.0)], students=[{"initial_norm": 0.6}],
            data={"normals": ["eps"], "spectrum": spectrum},
        ),
        1e-7,
    )  # fmt: skip
    for name in ("R", "Q"):
        off = float(np.abs(there[name].values - here[f"{name}_noise"].values).max())
        assert off <= float(here[f"{name}_noise_error"].max()) + 1e-9
    assert float(here["R_noise_error"].max()) <= 5e-7
    assert np.abs(there["sigma"].values / rho[:, None, None] - here["Q_rho"].values).max() <= 1e-6


def test_masked_noise_beside_the_features_is_that_of_matrices():
    """Means of weights under a linear rule, from the covariance of the inputs as a matrix."""
    p, rate, second = 0.6, 0.3, 2.0
    given = problem(
        "oja", rate, features=[feature(0.4, second)], time={"stop": 2.0, "outputs": 3},
        data={"signal": "orthogonal", "observed": p, "spectrum": SPECTRA["atoms"]},
    )  # fmt: skip
    result = meanfield.solve(given, "order_parameters")
    block = np.repeat([0, 1, 2], [12, 15, 13])  # in proportion to the weights, and any number does
    rho, _, teacher = (each[block] for each in given.data.spectrum.nodes(3))
    u, beside = np.sqrt(teacher), np.eye(40) - np.outer(np.sqrt(teacher), np.sqrt(teacher)) / 40
    covariance = p**2 * (second * np.outer(u, u) / 40 + beside @ np.diag(rho) @ beside) + p * (1 - p) * np.diag(rho)
    w = expm(2.0 * rate * covariance) @ (0.4 * u)
    found = result["R_rho"].isel(time=-1).values.ravel()
    assert found == pytest.approx([np.mean((u * w)[block == b]) for b in range(3)], abs=1e-8)  # a hundredth of its own


def test_two_views_have_the_gains_of_steins_lemma():
    """Gains by derivatives of the rule, with noise of each view, and noise of both beside the features."""
    equations = Equations(two_views(features=[feature(0.4, 1.5)], data={"signal": "orthogonal", "spectrum": ONES}))
    choices = equations.choose([(0.0, equations.start)], 1e-10, {})
    rule = equations.rules(choices, lambda each: each.rule).draws[0][0]
    R, m, tau, own = 0.3, 1.5, 0.05, np.array([[0.2, -0.5 * np.sqrt(0.06)], [-0.5 * np.sqrt(0.06), 0.3]])
    G, weighted = np.array([[1.0, R], [R, 0.8]]), np.array([[1.2, 0.2], [0.2, 0.9]])
    system = equations.stretches[0].system
    constants = system.constants(equations.problem, 0.0, np.array([[R]]), np.array([[0.8]]), np.zeros(0))
    nodes = Nodes(np.array([0.5, 1.5]), np.full(2, 0.5), np.array([0.6, 1.4]))
    at = np.array([3.0 * G - 2.0 * weighted, 2.0 * weighted - G])  # with these totals
    E = averages_of(system.draws[0], 0, at, constants, rule, nodes).E[:, :, 0]
    fields = R**2 * m + 0.9 - 2.0 * R * 0.2 + R**2 * 1.2 + 0.9 * own
    slopes = tau * np.array([[2.0 * fields[1, 1], 4.0 * fields[0, 1]], [4.0 * fields[0, 1], 2.0 * fields[0, 0]]])
    beside, white = slopes.sum(), (own * slopes).sum()
    signal = 2.0 * tau * R * m * (np.trace(fields) + 4.0 * fields[0, 1])
    by_noise, by_signal = [-R * beside, white + beside], [signal - (0.2 - R * 1.2) * beside, 0.0]
    known = nodes.rho[:, None] * (at @ by_noise) + at @ by_signal
    np.testing.assert_allclose(E, known, rtol=1e-10)  # of averages


def test_sgd_starts_and_ends_with_the_overlaps_of_its_eigenvalues():
    """Weights given eigenvalue and feature are Gaussian, with mean and variance from `R_rho` and `Q_rho`."""
    spectrum = SPECTRA["preferred by teachers"]
    given = problem(
        "phase_retrieval", 0.1, features=[feature(0.5)], students=[{"initial_norm": 0.7}], data={"spectrum": spectrum},
        time={"stop": 2.0, "outputs": 2}, particles={"dimension": 2000, "replicas": 1, "snapshots": [0.0, 2.0]},
    )  # fmt: skip
    limit, sgd = (meanfield.solve(given, method) for method in ("order_parameters", "particles"))
    rho, u = (sgd[name].isel(replica=0).values.ravel() for name in ("rho_of_coordinate", "U"))
    t = rho / rho.mean()
    for time in (0, 1):
        nodes = np.stack([limit[f"{name}_rho"][time].values.ravel() for name in "RQ"], axis=1)
        R, Q = interpolated(np.log(limit["rho"].values), nodes, np.log(rho)).T
        w = sgd["weights"].isel(replica=0, snapshot_time=time).values.ravel()
        residual = (w - R / t * u) / np.sqrt(Q - R**2 / t)
        assert stats.kstest(residual, "norm").pvalue > 1e-3  # the false-alarm rate
        assert stats.spearmanr(residual**2, rho).pvalue > 1e-3


def test_schedules_are_followed_and_phases_keep_the_spectrum():
    def made(**more):
        return problem("phase_retrieval", features=[feature(0.2)], data={"spectrum": POWER}, time=time, **more)

    time = {"stop": 2.0, "outputs": 3}
    steps = {"times": [0.0, 1.0], "values": [0.02, 0.005], "interpolation": "step"}
    phases = [{"stop": 1.0, "set": {}}, {"stop": 2.0, "set": {"model.rule_parameters.rate": 0.005}}]
    one, other = (
        meanfield.solve(made(**more), "order_parameters")
        for more in ({"numbers": {"rate": steps}}, {"numbers": {"rate": 0.02}, "phases": phases})
    )
    assert np.abs(one["Q_rho"] - other["Q_rho"]).max() <= 1e-8  # steps far below the tolerance
    phases[1]["set"] = {"data.spectrum.range": 20.0}
    with pytest.raises(ValueError, match="changes the spectrum, and students know overlaps at the eigenvalues of the"):
        made(numbers={"rate": 0.02}, phases=phases)


def test_the_chain_is_refused_in_words():
    chain = CASES["phase retrieval"][0]()
    with pytest.raises(ValueError, match="overlaps at single eigenvalues, of which there may be as many"):
        meanfield.solve(meanfield.with_value(chain, "particles.method", "chain"), "particles")


PAIRS = [*product(["smooth", "kinked", "noisy", "signal"], SPECTRA), ("several", "atoms")]


@pytest.mark.slow
def test_random_rules_agree_with_sgd_on_all_spectra():
    """5 % of true pairs differ: five of 17 with the probability 1e-3. Without the spectrum predictions are wrong."""
    keys = {"particles.replicas": 16, "order_parameters.tolerance": 1e-3, "model.rule_parameters.rate": 0.1}
    true, wrong = [], []
    for seed, (rule, spectrum) in enumerate(PAIRS):
        plain = meanfield.with_values(problem_of(rule, seed, dimension=500), keys)
        given = meanfield.with_value(plain, "data.spectrum", SPECTRA[spectrum])
        sgd = meanfield.solve(given, "particles")
        limit, other = (meanfield.solve(each, "order_parameters") for each in (given, plain))
        true.append(meanfield.compare(limit, sgd)["verdict"].item() == DIFFERS)
        mixed = limit.assign({name: other[name] for name in ("R", "Q")})
        wrong.append(meanfield.compare(mixed, sgd)["verdict"].item() == DIFFERS)
    assert sum(true) <= 4
    assert sum(wrong) >= 12
