"""Averages over samples that rules read: known numbers, laws in compiled code, and what is refused."""

import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield
from meanfield.families.update_rule.order_parameters.trajectory import check_order_parameters
from meanfield.families.update_rule.particles.means import means_of, write_means
from meanfield.families.update_rule.particles.observables import Observables
from meanfield.families.update_rule.system import system_of
from tests.families.update_rule.particles.problems import FULL, MEANS, made
from tests.families.update_rule.problems import feature
from tests.families.update_rule.test_draws import two_views

HERE = "tests.families.update_rule.rules_of_draws:"
CENTRED = {"gain": {"s": [HERE + "first_centred", HERE + "second_centred"]}, "means": [HERE + "output"]}


def centred(**tables):
    """Contrastive learning whose outputs are centred over the population (update_rules.md, section 10.10)."""
    draw = two_views().model_dump(exclude_none=True)["draws"][0] | CENTRED
    return two_views(draws=[draw], **tables)


def test_centred_views_are_those_of_the_first_family():
    q = meanfield.solve(centred(), "order_parameters")["R"].values.ravel()
    assert np.abs(q - [0.4, 0.4063002594, 0.4126422495]).max() < 1e-9  # tolerance, and digits printed


def test_batch_normalisation_follows_its_closed_form():
    """F = rate (y - s/sqrt(<s^2>)) with <s^2> = Q: dR/dt = rate (1 - R/sqrt Q), dQ/dt by its square."""
    rate, given = 0.8, {"features": [feature(0.2)], "students": [{"initial_norm": 0.6}]}
    problem = meanfield.Problem(
        family="update_rule",
        **given,
        model={"rule_parameters": {"rate": rate}},
        draws=[{"gain": {"s": HERE + "normalised"}, "means": [HERE + "square"]}],
        time={"stop": 2.0, "outputs": 3},
        order_parameters={"tolerance": 1e-9},
    )
    result = meanfield.solve(problem, "order_parameters")

    def velocity(t, x):
        R, root = x[0], np.sqrt(x[1])
        return [rate * (1.0 - R / root), 2.0 * rate * (R - root) + rate**2 * (2.0 - 2.0 * R / root)]

    known = solve_ivp(velocity, (0.0, 2.0), [0.2, 0.6], t_eval=[0.0, 1.0, 2.0], rtol=1e-11, atol=1e-12).y
    found = np.array([result[name].values.ravel() for name in ("R", "Q")])
    assert np.abs(found - known).max() < 1e-9  # the tolerance

    y, e = np.random.default_rng(0).standard_normal((2, 200_000))

    def scattered(C, R, Q):  # J of (R, Q), and the covariance of a sample's X, by hand
        root = np.sqrt(Q)
        J = np.array([[-rate / root, 0.5 * rate * R / root**3], [2.0 * rate - 2.0 * rate**2 / root, 0.0]])
        J[1, 1] = -rate / root + rate**2 * R / root**3
        s = R * y + np.sqrt(Q - R * R) * e
        F = rate * (y - s / root)
        S = np.cov([y * F, 2.0 * s * F + F * F])
        return J @ C + C @ J.T + S

    C, R, Q = np.zeros((2, 2)), known[0, 0], known[1, 0]
    path = solve_ivp(velocity, (0.0, 1.0), [R, Q], rtol=1e-9, dense_output=True).sol
    for t in np.arange(50) / 50:  # Heun's steps, off by some (1/50)^2
        one = scattered(C, *path(t))
        C = C + 0.5 / 50 * (one + scattered(C + one / 50, *path(t + 1 / 50)))
    expected = result["overlap_covariance"].values[1]
    assert np.abs(expected / C - 1.0).max() < 0.02  # four times the standard error of S over 200,000 samples


CASES = {
    "views, projected, kinks": made(MEANS),
    "masks of views": made(MEANS, draws=[MEANS["draws"][0] | {"observed": [0.6, 1.0]}, MEANS["draws"][1]]),
    "classes, scales, coins": made(
        {key: value for key, value in FULL.items() if key != "features"},
        model={"rule": None, "rule_parameters": {"rate": 0.3}},
        features=[{"initial_overlap": each["initial_overlap"]} for each in FULL["features"]],
        data={
            "classes": [
                {"probability": 0.6, "mean": [1.0, 0.5], "noise": 0.5},
                {"probability": 0.4, "mean": [-1.2, 0.3], "noise": 2.5},
            ],
            "scale": {"law": "discrete", "values": [0.5, 1.5], "probabilities": [0.5, 0.5], "of": "sample"},
        },
        side={},
        draws=[{"gain": {"s": HERE + "of_classes"}, "means": [HERE + "weighed", HERE + "sum_of_outputs"]}],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_averages_of_sgd_are_those_of_the_limit(case):
    """At random overlaps, and at those of equal students, which the start does not have."""
    problem = CASES[case]
    system = system_of(problem)
    rules = Observables(problem, system).means
    compiled, rng, (K, M) = means_of(system, rules), np.random.default_rng(0), problem.initial_R.shape
    for equal in (False, True):
        X = 0.4 * rng.standard_normal((K, M + K))
        X[-1] = X[-2] if equal else X[-1]
        R, Q, v = X[:, :M], X @ X.T, np.full(len(problem.side), 0.7)
        known = system.constants(problem, 0.3, R, Q, v, rules)
        constants = known.copy()
        constants[-sum(each.program.outputs for each in system.means) :] = np.nan
        write_means(compiled, np.hstack([R, Q]), constants)
        np.testing.assert_allclose(constants, known, rtol=0, atol=1e-6)  # averages are chosen to 1e-7 at the start


MISTAKES = {
    "no function": ([HERE + "nothing_there"], r"draws\[0\]: means\[0\]: .*has no 'nothing_there'"),
    "reads an average": (
        [HERE + "first_centred"],
        r"draws\[0\].means\[0\] reads 'mean1'; averages follow from samples",
    ),
    "nobody reads it": (
        [HERE + "output", HERE + "product"],
        r"draws\[0\].means\[1\]: no function of draws\[0\] reads 'mean3'; remove it",
    ),
    "unknown name": ([HERE + "up"], r"draws\[0\].means\[0\] reads 'w'"),
    "fails": ([HERE + "fails"], r"draws\[0\].means\[0\]: raises ZeroDivisionError .* correct it"),
    "empty": ([], r"draws\[0\].means = .*at least 1"),
    "moves": (["tests.families.update_rule.own_rules:own_oja"], r"means\[0\] = .* has moves along vectors besides"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_in_words(name):
    means, said = MISTAKES[name]
    draw = centred().model_dump(exclude_none=True)["draws"][0] | {"means": means}
    with pytest.raises((meanfield.InputError, ValueError)) as caught:
        check_order_parameters(two_views(draws=[draw]))
    assert re.search(said, str(caught.value).replace("\n", " ")), str(caught.value)


def test_names_of_averages_are_taken():
    with pytest.raises(ValueError, match=r"data.coins: 'mean1' is also an average of draws\[0\].means; rename"):
        centred(data={"signal": "orthogonal", "coins": {"mean1": 0.5}})


def test_sgd_with_a_spectrum_takes_no_averages():
    spectrum = {"law": "atoms", "eigenvalues": [0.5, 1.5]}
    with pytest.raises(meanfield.InputError, match=r"draws.means: SGD .* data.spectrum"):
        meanfield.solve(centred(data={"signal": "orthogonal", "spectrum": spectrum}), "particles")
