"""Jacobian of the order parameters against closed forms, and against scores, which know no differences."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from meanfield.families.update_rule.order_parameters.equations import Equations
from meanfield.families.update_rule.order_parameters.fluctuations import finer_rule
from meanfield.families.update_rule.order_parameters.jacobian import EXPANDED, INWARD, jacobian_at
from meanfield.families.update_rule.order_parameters.steps import expansion_of
from tests.families.update_rule.problems import feature, problem
from tests.families.update_rule.test_draws import gan, two_views
from tests.families.update_rule.test_reference_numbers import CASES, SLOW
from validation.update_rule.random_rules import problem_of

CUT = 1e-7
"""Error of a Jacobian by expanded averages, which leave out nodes of 1e-9 of the largest weight."""

DIFFERENCES = 2e-8
"""Error of a Jacobian at rules for 1e-10: of differences 1e-10 of its derivatives, which are up to 100."""


def jacobian(given, y=None, expanded=False):
    """Jacobian at the start, or at other order parameters, with averages to 1e-10, taken anew or expanded."""
    equations = Equations(given)
    y = equations.start if y is None else np.array(y)
    choices = equations.choose([(0.0, y)], 1e-10, {})
    system, rules = equations.stretches[0].system, equations.rules(choices, lambda each: each.rule)

    def near(place):
        _, G, _, constants = equations.place(0, 0.0, place)
        averages = tuple(
            expansion_of(draw, draw.update, G, constants, finer_rule(rule, len(draw.update.reads), None))
            for draw, rule in zip(system.draws, rules.draws[0], strict=True)
        )
        return partial(equations.velocity(0, replace(rules, draws=(averages,)) if expanded else rules), 0.0)

    return jacobian_at(near, y, system, EXPANDED if expanded else 1.0)


def by_complex_steps(rates, y):
    """Jacobian of closed forms, exact to rounding."""
    return np.stack([np.imag(rates(y + 1e-30j * unit)) / 1e-30 for unit in np.eye(len(y))], axis=1)


def test_perceptron_has_the_derivatives_of_the_theory():
    # update_rules.md, section 6: of <yF>, <sF> and <F^2> by R and by Q
    known = np.array([[-0.31222172, 0.05854157], [0.27925960, -0.15611086], [-0.18510452, 0.03470710]])
    many = 10**6
    one, batch = (
        jacobian(problem("perceptron", 0.7, features=[feature(0.3)], students=[{"initial_norm": 0.8}],
                         model={"batch_size": m}))
        for m in (1, many)
    )  # fmt: skip
    squares = (one - batch)[1] / (1.0 - 1.0 / many)
    found = np.array([one[0], 0.5 * (one[1] - squares), squares])
    np.testing.assert_allclose(found, known, rtol=0.0, atol=6e-9)  # half a last digit, and 1e-9 of differences


def petrels(y):
    R, Q, v = y
    p, omega, mu = 0.4, 4.0, 1.0
    kappa = (Q + p * omega * R**2) / Q**2
    return np.array([v * R * ((1.0 + p * omega) / Q - kappa), v**2 * kappa, v * (mu - v * kappa)])


def phase_retrieval(y):
    R, Q = y
    tau = 0.05
    square = tau**2 * (3 * Q + 12 * R**2 - 6 * Q**2 - 24 * Q * R**2 + 15 * Q**3)
    return np.array([3 * tau * R * (1 - Q), 2 * tau * (Q + 2 * R**2 - 3 * Q**2) + square])


def committee(y, tau, M, noise=0.0):
    """Rates of a committee of erf units with as many teachers, of which T = I (Saad and Solla)."""
    K = M
    R, lower = y[: K * M].reshape(K, M), y[K * M :]
    Q = np.zeros((K, K), dtype=y.dtype)
    i, j = np.tril_indices(K)
    Q[i, j] = Q[j, i] = lower
    C = np.block([[np.eye(M), R.T], [R, Q]])
    sign = np.repeat([1.0, -1.0], [M, K])

    def third(i, n, j):
        a = (1 + C[i, i]) * (1 + C[j, j]) - C[i, j] ** 2
        return 2 / (np.pi * np.sqrt(a)) * (C[n, j] * (1 + C[i, i]) - C[i, n] * C[i, j]) / (1 + C[i, i])

    def fourth(a, b, c, d):
        L4 = (1 + C[a, a]) * (1 + C[b, b]) - C[a, b] ** 2
        L0 = L4 * C[c, d] - C[b, c] * C[b, d] * (1 + C[a, a]) - C[a, c] * C[a, d] * (1 + C[b, b])
        L0 = L0 + C[a, b] * (C[a, c] * C[b, d] + C[a, d] * C[b, c])

        def last(c):
            squares = C[b, c] ** 2 * (1 + C[a, a]) + C[a, c] ** 2 * (1 + C[b, b])
            return L4 * (1 + C[c, c]) - squares + 2 * C[a, b] * C[a, c] * C[b, c]

        return 4 / (np.pi**2 * np.sqrt(L4)) * np.arcsin(L0 / np.sqrt(last(c) * last(d)))

    units = range(M + K)
    E = np.array([[tau * sum(sign[j] * third(M + k, n, j) for j in units) for k in range(K)] for n in units])
    Lambda = np.zeros((K, K), dtype=y.dtype)
    for a, b in M + np.array(list(np.ndindex(K, K))):
        L4 = (1 + C[a, a]) * (1 + C[b, b]) - C[a, b] ** 2
        Lambda[a - M, b - M] = sum(sign[c] * sign[d] * fourth(a, b, c, d) for c in units for d in units)
        Lambda[a - M, b - M] += noise * 2 / np.pi / np.sqrt(L4)
    drift = E[M:] + E[M:].T + tau**2 * Lambda
    return np.concatenate([E[:M].T.ravel(), drift[i, j]])


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        ("PETRELS", petrels),  # reads Q and a side variable, with a mask
        ("phase retrieval", phase_retrieval),
        ("committee of one", lambda y: committee(y, 1.2, 1, 0.09)),
        pytest.param("committee of two", lambda y: committee(y, 0.9, 2), marks=pytest.mark.slow),
    ],
)
def test_jacobian_is_that_of_closed_forms(name, rates):
    given = (CASES | SLOW)[name][0]()
    y = Equations(given).start
    known = by_complex_steps(rates, y)
    np.testing.assert_allclose(jacobian(given), known, rtol=0.0, atol=DIFFERENCES * np.abs(known).max())


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda: CASES["perceptron"][0](), id="jumps"),
        pytest.param(lambda: CASES["PETRELS"][0](), id="a side variable and Q"),
        pytest.param(lambda: gan(), id="draws"),
        pytest.param(lambda: two_views(), id="views"),
        pytest.param(lambda: problem_of("noisy", 1), id="components"),
    ],
)
def test_expanded_averages_have_the_same_jacobian(given):
    made = given()
    known = jacobian(made)
    np.testing.assert_allclose(jacobian(made, expanded=True), known, rtol=0.0, atol=CUT * np.abs(known).max())


def test_sphere_moves_q_alone():
    tau, omega, q = 0.5, 2.0, 0.3
    J = jacobian(CASES["PCA on the sphere"][0]())
    known = tau * omega * (1 - 3 * q**2) - tau**2 / 2 * (1 + 3 * omega * q**2)
    np.testing.assert_allclose([J[0, 0], *J[1]], [known, 0.0, 0.0], rtol=0.0, atol=DIFFERENCES)


CONTINUED = 1e-6
"""Error of a Jacobian that is continued: 3e-9 of third derivatives, which are up to 100."""


def test_jacobian_is_continued_to_the_teacher_itself():
    given = problem("committee_of_one", 1.2, numbers={"sigma": 0.3}, features=[feature(1.0)], data={"normals": ["eps"]})
    known = by_complex_steps(lambda y: committee(y, 1.2, 1, 0.09), np.array([1.0, 1.0]))
    for expanded, off in ((False, CONTINUED), (True, CUT / INWARD)):  # scores grow towards dependent vectors
        np.testing.assert_allclose(jacobian(given, expanded=expanded), known, rtol=0.0, atol=off)


@pytest.mark.slow
def test_jacobian_is_continued_to_equal_students():
    features = [feature([0.3, 0.3]), feature([0.1, 0.1])]
    students = [{"initial_norm": 0.5}, {"initial_norm": 0.5, "initial_overlap": [0.5]}]
    given = problem("committee", 0.9, features=features, students=students)
    known = by_complex_steps(lambda y: committee(y, 0.9, 2), Equations(given).start)
    np.testing.assert_allclose(jacobian(given), known, rtol=0.0, atol=CONTINUED)


def test_jacobian_of_jumps_has_square_roots_at_the_teacher():
    assert np.isnan(jacobian(problem("perceptron", 0.7, features=[feature(1.0)]))).all()
    near = jacobian(problem("perceptron", 0.7, features=[feature(1.0 - 1e-4)]))
    R, tau = 1.0 - 1e-4, 0.7
    # <yF> = tau (1 - R/sqrt(Q))/sqrt(2 pi), <sF> = -sqrt(Q) times that, <F^2> = tau^2 arccos(R/sqrt(Q))/pi at Q = 1
    slope = np.array([-1.0, 0.5 * R]) * tau / np.sqrt(2 * np.pi)
    arc = np.array([-1.0, 0.5 * R]) * tau**2 / np.pi / np.sqrt(1 - R**2)
    second = -2 * slope + arc - np.array([0.0, (1.0 - R) * tau / np.sqrt(2 * np.pi)])
    np.testing.assert_allclose(near, [slope, second], rtol=1e-5, atol=0.0)  # truncation at 3e-3 of the way


@pytest.mark.parametrize("seed", range(3))
def test_jacobian_of_random_rules_is_that_of_scores(seed):
    given = problem_of("smooth", seed)
    J, (R, Q) = jacobian(given), Equations(given).start
    x = np.linspace(-10.0, 10.0, 201)
    z = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    w = np.exp(-0.5 * (z**2).sum(axis=1)) * 0.01 / (2 * np.pi)
    G = np.array([[1.0, R], [R, Q]])
    y, s = z.T[0], R * z.T[0] + np.sqrt(Q - R**2) * z.T[1]
    F = given.model.functions.step(y, s, *(given.model.rule_parameters[k] for k in ("rate", "k1", "k2", "k3")))
    X = np.array([y * F, 2 * s * F + F**2 / given.model.batch_size])
    inverse = np.linalg.inv(G)
    turned = inverse @ np.array([y, s])
    for column, change in enumerate(np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])):
        score = 0.5 * (np.einsum("in,ij,jn->n", turned, change, turned) - np.trace(inverse @ change))
        np.testing.assert_allclose(J[:, column], X @ (w * score), rtol=0.0, atol=DIFFERENCES)


def test_gram_schmidt_holds_students_orthonormal():
    J = jacobian(CASES["subspace, QR"][0]())
    np.testing.assert_allclose(J[4:, :4], 0.0, atol=DIFFERENCES)
