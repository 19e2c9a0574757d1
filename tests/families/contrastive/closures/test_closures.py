"""g(q) and Lambda(q) against independent evaluations; tests of the oracle itself come last."""

from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr

from meanfield.errors import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.ingredients.activations import ACTIVATIONS
from tests.oracles import activations as oracle_activations
from tests.oracles import adaptive as oracle_adaptive
from tests.oracles.plain_steps import (
    HIDDEN,
    NOISES,
    Expectation,
    Reference,
    make_closure,
    make_problem,
    noise_covariance,
)

CENTERINGS = ("none", "population", "batch")
OVERLAPS = (0.0, 0.05, 0.5, 0.95, 0.9999)
FEW = (0.0, 0.5, 0.9999)  # of them, for the fast run
SPHERE = (1.0, -1.0, 1 - 1e-15)
NAMES = oracle_activations.ACTIVATIONS
AGREEMENT = 1e-9  # what is asked for; oracle and package agree to 1e-12
ON_THE_SPHERE = 1e-8  # a few times 1e-16/s: the package evaluates |q| = 1 at s = 1e-7

OFF_THE_KINKS = ("gaussian", "shifted", "uniform", "mixture")  # no value of c on a kink: g stays finite at |q| = 1

FAST = {  # each activation once, and the four noises with these four laws
    (activation, noise, law)
    for law, activations in {
        "three_point": ("sigmoid", "tanh", "gelu", "leaky_relu"),
        "gaussian": ("relu", "erf", "quadratic", "sin"),
        "shifted": ("cubic", "hard_tanh", "linear", "tanh"),
        "uniform": ("softplus", "abs", "silu", "erf"),
    }.items()
    for activation, noise in zip(activations, ("none", "independent", "correlated", "opposite"), strict=True)
}
FAST |= {  # the other noises and laws; some activations take up to 6 s with Student's law
    ("leaky_relu", "one view", "mixture"),
    ("abs", "unequal", "student_t"),
    ("softplus", "independent", "laplace"),
    ("sigmoid", "unequal", "asymmetric"),
}
GRID = [
    pytest.param(a, noise, law, marks=() if (a, noise, law) in FAST else pytest.mark.slow)
    for a in NAMES
    for noise in NOISES
    for law in HIDDEN
]


def errors(closure, q, reference):
    """Of g and Lambda, relative to the largest of the terms that they are sums of."""
    g, Lambda = closure(q)
    return (
        np.abs(g - reference.g).max() / reference.g_scale,
        abs(Lambda - reference.Lambda) / reference.Lambda_scale,
    )


def assert_agreement(problems, closures, points, tolerance=AGREEMENT):
    """Problems differ in nothing but their centring."""
    for q in points:
        expectation = Expectation(problems[0], q)
        for problem, closure in zip(problems, closures, strict=True):
            reference = Reference(problem, q, expectation)
            worst = errors(closure, q, reference)
            assert max(worst) <= tolerance, (
                problem.model.centering,
                q,
                worst,
                closure(q),
                reference.g,
                reference.Lambda,
            )


def label(value):
    """Name of a parameter in the list of tests."""
    if isinstance(value, dict):
        return "joint"
    return "+".join(map(str, value)) if isinstance(value, tuple) and isinstance(value[0], str) else None


def with_all_centrings(*args, **kwargs):
    return [make_problem(*args, centering=centering, **kwargs) for centering in CENTERINGS]


def test_every_activation_has_an_oracle():
    assert set(ACTIVATIONS) - {"scaled_erf"} == set(NAMES)  # erf with another unit of length


def test_the_fast_run_covers_everything():
    for position, everything in enumerate((NAMES, NOISES, HIDDEN)):
        assert {case[position] for case in FAST} == set(everything)


@pytest.mark.parametrize(("activation", "noise", "hidden"), GRID)
def test_one_feature(activation, noise, hidden):
    problems = with_all_centrings(activation, [hidden], noise)
    closures = [Closure(problem) for problem in problems]
    overlaps = FEW if (activation, noise, hidden) in FAST else OVERLAPS
    assert_agreement(problems, closures, [[q] for q in overlaps])
    for q, closure in product(SPHERE, closures):
        g, Lambda = closure([q])
        assert np.isfinite(g).all(), q
        assert 0 <= Lambda < np.inf, q
    if hidden in OFF_THE_KINKS:
        assert_agreement(problems, closures, [[q] for q in SPHERE], ON_THE_SPHERE)


def test_a_value_on_a_kink():
    """Then <sigma''> has a point mass and grows like 1/s: g = tau q <h'>/2 with <h'> -> -4 ybar p(0)/(sqrt(2 pi) s)."""
    problem = make_problem("relu", ["three_point"], "none", "population")
    m2, m4 = HIDDEN["three_point"]["second_moment"], HIDDEN["three_point"]["fourth_moment"]
    mean_output = m2**2 / (2 * m4) * np.sqrt(m4 / m2)
    for q in (1 - 1e-6, 1 - 1e-9):
        g, _ = Closure(problem)([q])
        s = np.sqrt((1 - q) * (1 + q))
        leading = -2 * 0.3 * mean_output * (1 - m2**2 / m4) / (np.sqrt(2 * np.pi) * s)
        assert g[0] == pytest.approx(leading, rel=3 * s)  # terms of order 1 against 1/s
        assert errors(Closure(problem), [q], Reference(problem, [q]))[0] <= AGREEMENT


JOINT = {"law": "discrete", "values": [[1.0, 0.5], [-1.0, -1.2], [0.3, 2.0]], "probabilities": [0.3, 0.3, 0.4]}
SEVERAL = [
    (("gaussian", "three_point"), "none", (0.4, 0.5)),
    (("three_point", "gaussian"), "one view", (0.0, -0.6)),
    (("gaussian", "gaussian"), "none", (0.6, -0.7)),
    (("shifted", "asymmetric"), "correlated", (0.6, -0.7)),
    (("three_point", "three_point"), "unequal", (0.0, -0.6)),
    (("three_point", "uniform"), "opposite", (-0.3, 0.8)),
    (("laplace", "mixture"), "none", (0.4, 0.5)),
    (("student_t", "shifted"), "none", (0.2, 0.9)),
    (("uniform", "uniform"), "none", (0.6, -0.7)),
    (("laplace", "uniform"), "one view", (0.4, 0.5)),
    (("gaussian", "shifted", "three_point"), "unequal", (0.5, -0.3, 0.4)),
    (("mixture", "uniform", "asymmetric"), "none", (0.5, -0.3, 0.4)),
    (JOINT, "none", (0.5, -0.6)),
    (JOINT, "independent", (0.7, 0.7)),
    (JOINT, "opposite", (-0.2, 0.05)),
]


@pytest.mark.parametrize(
    ("hidden", "noise", "q", "activation"),
    [
        pytest.param(*case, activation, marks=() if j == i % 3 else pytest.mark.slow)
        for i, case in enumerate(SEVERAL)
        for j, activation in enumerate(["softplus", ("leaky_relu", {"slope": 0.3}), "relu"])
    ],
    ids=label,
)
def test_several_features(hidden, noise, q, activation):
    problems = with_all_centrings(activation, hidden, noise)
    assert_agreement(problems, [Closure(problem) for problem in problems], [q])


@pytest.mark.parametrize(
    ("activation", "noise"),
    [
        pytest.param(activation, noise, marks=() if i == j else pytest.mark.slow)
        for i, activation in enumerate(["tanh", "abs", "silu"])
        for j, noise in enumerate(["none", "unequal", "opposite"])
    ],
)
def test_drift_is_what_a_step_adds_to_the_overlaps(activation, noise):
    """To first order in tau, the norm restored: q (q.g) - g, without any derivative of h."""
    for hidden, q in [(["shifted"], [0.5]), (["three_point"], [-0.8]), (["asymmetric", "three_point"], [0.3, 0.6])]:
        problem = make_problem(activation, hidden, noise, "population")
        reference = Reference(problem, q)
        g, _ = Closure(problem)(q)
        tangential = np.array(q) * np.dot(q, g) - g
        atol = AGREEMENT * reference.g_scale
        np.testing.assert_allclose(tangential, reference.pull, rtol=0, atol=atol)  # what is asked for


def is_refused(problem):
    try:
        Closure(problem)
    except InputError as error:
        return "raise augmentation.variance" in str(error)
    return False


def weak(variance, *shape):
    first, second, correlation = shape
    return {"variance": [first * variance, second * variance], "correlation": correlation}


WEAK_NOISES = [
    *(weak(variance, *shape) for variance in (1e-4, 1e-8) for shape in [(0, 1, 0.0), (1, 1, 0.0), (1, 1, -1.0)]),
    *({"variance": [0.3, 0.3], "correlation": c} for c in (1 - 1e-4, 1 - 1e-6, 1 - 1e-9, 1e-4 - 1, 1e-6 - 1)),
    weak(1e-300, 1, 1, 0.5),
]
WEAK_BY_DEFAULT = {
    "relu": range(len(WEAK_NOISES)),
    "tanh": (3, 4, 5, 8, 10, 11),  # the weakest of each sort: a smooth activation has nothing to resolve in the others
    "hard_tanh": (0, 6),  # kinks as those of relu
}


@pytest.mark.parametrize(
    ("activation", "noise"),
    [
        pytest.param(
            activation,
            noise,
            id=f"{activation}-{noise['variance']}, {noise['correlation']}",
            marks=() if i in kept else pytest.mark.slow,
        )
        for activation, kept in WEAK_BY_DEFAULT.items()
        for i, noise in enumerate(WEAK_NOISES)
    ],
)
def test_noise_that_is_weak_or_almost_the_same_in_both_views(activation, noise):
    """It rounds kinks over a narrow range: what the package cannot resolve it refuses, and nothing else."""
    problem = make_problem(activation, ["three_point"], noise, "population")
    moderate = min(max(noise["variance"]), 1 - abs(noise["correlation"]) or 1.0) > 0.9e-4
    if not moderate and activation != "tanh" and is_refused(problem):
        return
    assert_agreement([problem], [Closure(problem)], [[0.0], [0.95]])


# Closed forms for relu.


def arc_cosine(problem, q):
    """g and Lambda for relu under a Gaussian law without centring, from orthant moments of two Gaussian variables."""
    tau, m, v = problem.model.learning_rate, problem.model.batch_size, noise_covariance(problem)
    m2 = problem.features[0].hidden.second_moment
    var1, var2, cov = np.array([v[0, 0], v[1, 1], v[0, 1]]) + 1 + (m2 - 1) * q * q
    angle = np.arccos(min(cov / np.sqrt(var1 * var2), 1.0))
    both = (np.pi - angle) / (2 * np.pi)  # P(Theta1 > 0, Theta2 > 0)
    # <p1 p2> is `both`, <sigma1'' sigma2> = <delta(Theta1) relu(Theta2)>
    edges = np.sqrt(var2 / var1) + np.sqrt(var1 / var2)
    second = 2 * both + np.sin(angle) / (2 * np.pi) * edges
    squares = both + np.sin(angle) * np.cos(angle) / (2 * np.pi)  # <Theta1^2; both > 0>/var1
    product = np.sqrt(var1 * var2) * (np.sin(angle) / (2 * np.pi) + np.cos(angle) * both)
    g = tau * q * (1 - m2) * second  # <c D f> = m2 q <D^2 f>
    return g, tau**2 / m * (
        (1 + v[1, 1]) * var1 * squares + (1 + v[0, 0]) * var2 * squares + 2 * (1 + v[0, 1]) * product
    )


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("q", OVERLAPS)
def test_relu_under_a_gaussian_law(noise, q):
    problem = make_problem("relu", ["gaussian"], noise)
    reference = Reference(problem, [q])
    g, Lambda = arc_cosine(problem, q)
    assert reference.g[0] == pytest.approx(g, abs=1e-12 * reference.g_scale)  # 1/s^2 times rounding
    assert reference.Lambda == pytest.approx(Lambda, rel=1e-12)  # rounding
    computed_g, computed_Lambda = Closure(problem)([q])
    assert computed_g[0] == pytest.approx(g, abs=1e-11 * reference.g_scale)  # the package's tables: 1e-13 per panel
    assert computed_Lambda == pytest.approx(Lambda, rel=1e-11)  # the same


@pytest.mark.parametrize("q", OVERLAPS)
def test_relu_without_noise_from_truncated_moments(q):
    values, p = np.array(HIDDEN["shifted"]["values"]), np.array(HIDDEN["shifted"]["probabilities"])
    s = np.sqrt(1 - q * q)
    z = values * q / s
    density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    first = s * (z * ndtr(z) + density)
    second = s * s * ((1 + z * z) * ndtr(z) + z * density)
    g = 0.3 * (2 * q * p @ ndtr(z) - 2 * (p * values) @ first)
    Lambda = 4 * 0.3**2 / 4 * p @ second
    closure = make_closure("relu", ["shifted"])
    assert closure([q])[0][0] == pytest.approx(g, abs=1e-11)  # the package's tables: 1e-13 per panel
    assert closure([q])[1] == pytest.approx(Lambda, rel=1e-11)  # the same


# The oracle itself.


@pytest.mark.parametrize(
    ("hidden", "noise"),
    [
        pytest.param(hidden, noise, marks=() if i % 2 == j else pytest.mark.slow)
        for i, noise in enumerate(NOISES)
        for j, hidden in enumerate(["three_point", "uniform"])
    ],
)
def test_the_oracle_agrees_with_itself(hidden, noise):
    """<h'> by Stein's lemma, and with sigma'' and its point masses spelt out."""
    for activation in NAMES:
        problem = make_problem(activation, [hidden], noise)
        for q in (0.5, 0.999):
            expectation = Expectation(problem, [q])
            for centred in (False, True):
                by_stein, curved = expectation.brackets(centred)["h'"], expectation.by_curvature(centred)
                size = max(abs(by_stein), np.abs(expectation.brackets(centred)["c h"]).max())
                assert expectation.grid.by_stein
                assert curved == pytest.approx(by_stein, abs=1e-12 * size)  # rounding over s^2


@pytest.mark.parametrize(
    ("activation", "hidden", "q"),
    [
        ("hard_tanh", "three_point", 0.95),
        ("sigmoid", "shifted", 0.9999),
        *(pytest.param(name, "asymmetric", 0.5, marks=pytest.mark.slow) for name in oracle_adaptive.MPMATH),
    ],
)
def test_the_oracle_against_mpmath(activation, hidden, q):
    """Without noise, centred: one integral over e per value."""
    g, Lambda = oracle_adaptive.with_population_centring(HIDDEN[hidden], activation, q, 0.3, 4)
    reference = Reference(make_problem(activation, [hidden], "none", "population"), [q])
    assert reference.g[0] == pytest.approx(g, abs=1e-12 * reference.g_scale)  # rounding over s^2 at q = .9999
    assert reference.Lambda == pytest.approx(Lambda, rel=1e-12)  # rounding over s at q = .9999


@pytest.mark.parametrize(
    ("activation", "hidden", "noise", "q"),
    [
        # By default mpmath judges the oracle above, and for continuous laws the package does, which shares no code.
        pytest.param("relu", "uniform", "none", 0.5, marks=pytest.mark.slow),
        pytest.param("tanh", "laplace", "none", 0.95, marks=pytest.mark.slow),
        pytest.param("abs", "student_t", "none", 0.5, marks=pytest.mark.slow),
        pytest.param("relu", "shifted", "independent", 0.5, marks=pytest.mark.slow),
        pytest.param("softplus", "shifted", "correlated", 0.5, marks=pytest.mark.slow),
        pytest.param("relu", "shifted", "one view", 0.9999, marks=pytest.mark.slow),
        pytest.param("hard_tanh", "shifted", "opposite", 0.5, marks=pytest.mark.slow),
    ],
)
def test_the_oracle_against_adaptive_quadrature(activation, hidden, noise, q):
    """Two and three nested integrals, over c, e and the noise."""
    problem = make_problem(activation, [hidden], noise)
    g, Lambda = oracle_adaptive.without_centring(HIDDEN[hidden], activation, q, noise_covariance(problem), 0.3, 4)
    reference = Reference(problem, [q])
    assert reference.g[0] == pytest.approx(g, abs=1e-11 * reference.g_scale)  # ten times the adaptive tolerance
    assert reference.Lambda == pytest.approx(Lambda, rel=1e-11)  # ten times the adaptive tolerance
