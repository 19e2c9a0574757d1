"""g(q) and Lambda(q) against independent evaluations, closed forms and exact properties."""

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.activations import ACTIVATIONS
from meanfield.closures import Closure
from meanfield.errors import InputError
from meanfield.quadrature import gaussian_trapezoid
from tests import oracles
from tests.oracles import HIDDEN, NOISES, Expectation, Reference, make_closure, make_problem, noise_covariance, symbolic

CENTERINGS = ("none", "population", "batch")
OVERLAPS = (0.0, 0.05, 0.5, 0.95, 0.9999, 1.0)
AGREEMENT = 1e-9  # the oracle's grids resolve tanh to 1e-10, the package stops refining at 1e-11


def assert_closure_is(closure, q, reference, context=""):
    """Both numbers agree relative to the largest of the terms that they are sums of."""
    g, Lambda = closure(q)
    error_of_g = np.abs(g - reference.g).max() / reference.g_scale
    error_of_Lambda = abs(Lambda - reference.Lambda) / reference.Lambda_scale
    assert max(error_of_g, error_of_Lambda) <= AGREEMENT, (context, q, g, reference.g, Lambda, reference.Lambda)


def label(value):
    """Name of a parameter in the list of tests."""
    return "+".join(value) if isinstance(value, tuple) else None


def test_every_activation_has_an_oracle():
    assert set(ACTIVATIONS) == set(oracles.ACTIVATIONS)


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("noise", ["none", "independent", "correlated", "opposite", "unequal"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_one_feature(activation, noise, hidden):
    problems = [make_problem(activation, [hidden], noise, centering) for centering in CENTERINGS]
    closures = [Closure(problem) for problem in problems]
    for q in OVERLAPS:
        expectation = Expectation(problems[0], [q])
        for problem, closure in zip(problems, closures, strict=True):
            reference = Reference(problem, [q], expectation)
            assert_closure_is(closure, [q], reference, problem.model.centering)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(
    ("hidden", "noise"),
    [
        (("gaussian", "three_point"), "none"),
        (("gaussian", "three_point"), "opposite"),
        (("three_point", "gaussian"), "one view"),
        (("gaussian", "gaussian"), "none"),
        (("shifted", "asymmetric"), "correlated"),
        (("three_point", "three_point"), "unequal"),
    ],
    ids=label,
)
def test_two_features(activation, hidden, noise):
    problems = [make_problem(activation, hidden, noise, centering) for centering in CENTERINGS]
    closures = [Closure(problem) for problem in problems]
    for q in [(0.4, 0.5), (0.0, -0.6), (0.6, -0.7), (0.6, 0.8)]:
        expectation = Expectation(problems[0], q)
        for problem, closure in zip(problems, closures, strict=True):
            reference = Reference(problem, q, expectation)
            assert_closure_is(closure, q, reference, problem.model.centering)


def test_three_features():
    hidden, q = ("gaussian", "shifted", "three_point"), (0.5, -0.3, 0.4)
    problem = make_problem("tanh", hidden, "none", "population")
    assert_closure_is(Closure(problem), q, Reference(problem, q))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("activation", ["erf", "tanh"])
def test_drift_without_second_derivatives(activation, noise):
    """<h'> by Stein's lemma, and the drift from the SGD update itself: neither knows sigma''."""
    for hidden, q in [(["shifted"], [0.5]), (["three_point"], [-0.8]), (["asymmetric", "three_point"], [0.3, 0.6])]:
        problem = make_problem(activation, hidden, noise, "population")
        reference = Reference(problem, q)
        g, _ = Closure(problem)(q)
        atol = AGREEMENT * reference.g_scale
        np.testing.assert_allclose(g, reference.g_by_stein, rtol=0, atol=atol)  # atol is set in the line above
        tangential = np.array(q) * np.dot(q, g) - g
        np.testing.assert_allclose(tangential, reference.pull, rtol=0, atol=atol)  # atol is set two lines above


@pytest.mark.parametrize(
    ("activation", "hidden", "noise", "q"),
    [
        ("tanh", "three_point", "none", 0.5),
        ("tanh", "shifted", "none", 0.05),
        ("erf", "asymmetric", "none", 0.95),
        ("quadratic", "three_point", "none", 0.9999),
    ],
)
def test_the_oracle_against_adaptive_quadrature(activation, hidden, noise, q):
    """One integral over e per atom to 20 digits, with mpmath's own functions."""
    sigma = {"tanh": mp.tanh, "erf": mp.erf, "quadratic": lambda x: x**2}[activation]
    slope = {"tanh": lambda x: mp.sech(x) ** 2, "erf": lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-(x**2))}
    slope = slope.get(activation, lambda x: 2 * x)
    problem = make_problem(activation, [hidden], noise, "population", tau=1.0, m=1)
    values, probabilities = problem.features[0].hidden.atoms
    with mp.workdps(25):
        s = mp.sqrt(1 - mp.mpf(q) ** 2)

        def mean(f):
            def over_e(c):
                return mp.quad(lambda e: f(c * q + s * e, c, e) * mp.npdf(e), [-14, -7, -3, 0, 3, 7, 14])

            return mp.fsum(p * over_e(mp.mpf(c)) for c, p in zip(values, probabilities, strict=True))

        y = mean(lambda x, c, e: sigma(x))
        g = 2 * mean(lambda x, c, e: (q * e / s - c) * (sigma(x) - y) * slope(x))  # <h'> = <e h>/s
        Lambda = 4 * mean(lambda x, c, e: ((sigma(x) - y) * slope(x)) ** 2)
    reference = Reference(problem, [q])
    assert reference.g[0] == pytest.approx(float(g), abs=1e-11 * reference.g_scale)  # sigma'' against 1/s at q = .9999
    assert reference.Lambda == pytest.approx(float(Lambda), rel=1e-11)  # the oracle's nodes for tanh; rounding else


def test_the_oracle_against_adaptive_quadrature_in_two_variables():
    """A Gaussian c and e, both integrated by mpmath."""
    problem = make_problem("erf", ["gaussian"], "none", "none", tau=1.0, m=1)
    q, deviation = 0.6, mp.sqrt(problem.features[0].hidden.second_moment)

    def integrand(x, e):
        """(q e/s - c) h, times the density of (x, e), for c = deviation x."""
        theta = q * deviation * x + 0.8 * e
        h = 4 * mp.erf(theta) * 2 / mp.sqrt(mp.pi) * mp.exp(-(theta**2))
        return mp.npdf(x) * mp.npdf(e) * (q * e / 0.8 - deviation * x) * h / 2

    g = mp.quad(integrand, [-9, 0, 9], [-9, 0, 9], method="gauss-legendre", maxdegree=4)
    reference = Reference(problem, [q])
    assert reference.g[0] == pytest.approx(float(g), abs=1e-11 * reference.g_scale)  # cutoff of the oracle, times c


# Closed forms for sigma = x^2.

KAPPA, NU, BETA = sp.symbols("kappa nu beta")
SHIFTED_MOMENTS = {"m2_1": NU + 1, "m4_1": KAPPA + 3, "m6_1": BETA + 15}


def shifted(expression):
    """In terms of kappa = m4 - 3, nu = m2 - 1 and beta = m6 - 15."""
    replacements = {symbol: SHIFTED_MOMENTS[symbol.name] for symbol in expression.free_symbols & MOMENT_SYMBOLS}
    return sp.expand(expression.subs(replacements))


MOMENT_SYMBOLS = {oracles.moment_symbol(1, n) for n in (2, 4, 6)}
Q, ETA, TAU, M = oracles.Q1, oracles.ETA, oracles.TAU, oracles.M
T6 = BETA * Q**6 + 15 * KAPPA * Q**4 * (1 - Q**2) + 45 * NU * Q**2 * (1 - Q**2) ** 2 + 15
T4 = KAPPA * Q**4 + 3


@pytest.mark.parametrize(
    ("noise", "bracket"),
    [
        ("none", 2 * T6),
        ("independent", (2 + ETA) * T6 + 13 * ETA * T4 + 7 * ETA**2 * T4 + 18 * ETA**2 + 12 * ETA**3 + 3 * ETA**4),
        ("opposite", 2 * T6 - 4 * ETA * T4 + 2 * ETA**2 * T4 + 6 * ETA**2 - 12 * ETA**3 + 30 * ETA**4),
    ],
)
def test_closed_forms_follow_from_the_definition(noise, bracket):
    """theory.md, section 8: with noise for unit second moment only."""
    model = symbolic(1, noise)
    g, Lambda = shifted(model.g[0]), shifted(model.Lambda)
    right_g, right_Lambda = -4 * TAU * Q * (KAPPA * Q**2 + 3 * NU * (1 - 2 * Q**2)), 8 * TAU**2 / M * bracket
    if noise != "none":
        g, Lambda, right_g, right_Lambda = (f.subs(NU, 0) for f in (g, Lambda, right_g, right_Lambda))
    assert oracles.equal(g, right_g)
    assert oracles.equal(Lambda, right_Lambda)
    squared_velocity = 8 * TAU * (1 - Q**2) * (KAPPA * Q**4 + 3 * NU * Q**2 * (1 - 2 * Q**2)) - Q**2 * right_Lambda
    if noise == "none":
        assert oracles.equal(shifted(model.squared_velocity[0]), squared_velocity)


def values_of_symbols(problem):
    """Numbers for the symbols of the closed forms, except q."""
    v = noise_covariance(problem)
    a = np.sqrt(v[0, 0])
    b = v[0, 1] / a if a else 0.0
    numbers = {
        TAU: problem.model.learning_rate,
        M: problem.model.batch_size,
        oracles.NOISE_A: a,
        oracles.NOISE_B: b,
        oracles.NOISE_D: np.sqrt(max(v[1, 1] - b**2, 0.0)),
    }
    for k, feature in enumerate(problem.features, start=1):
        numbers |= {oracles.moment_symbol(k, n): feature.hidden.moment(n) for n in (2, 4, 6)}
    return numbers


@pytest.mark.parametrize(
    ("hidden", "noise"),
    [((law,), noise) for law in ("three_point", "gaussian") for noise in NOISES]
    + [(("gaussian", "three_point"), "none"), (("gaussian", "gaussian"), "none")],
    ids=label,
)
def test_general_code_against_closed_forms(hidden, noise):
    problem = make_problem("quadratic", hidden, noise)
    closure = Closure(problem)
    model = symbolic(len(hidden), "general" if len(hidden) == 1 else "none")
    numbers = values_of_symbols(problem)
    closed_form = sp.lambdify(model.q, [f.subs(numbers) for f in [*model.g, model.Lambda]])
    g_scale = 12 * closure.learning_rate  # tau <h12' + h21'>/2 at the origin
    for q in np.random.default_rng(0).uniform(-0.7, 0.7, (10, len(hidden))):
        *right_g, right_Lambda = closed_form(*q)
        g, Lambda = closure(q)
        np.testing.assert_allclose(g, right_g, rtol=0, atol=1e-11 * g_scale)  # rounding in sums of some 100 terms
        assert Lambda == pytest.approx(right_Lambda, rel=1e-11)  # rounding in sums of some 100 terms


@pytest.mark.parametrize("noise", NOISES)
def test_linear_activation(noise):
    """g_k = -2 tau (m2_k - 1) q_k whatever the noise, since <y1 y2> is a quadratic form in q."""
    closure = make_closure("linear", ["three_point", "gaussian"], noise)
    g, _ = closure([0.3, -0.4])
    np.testing.assert_allclose(g, -2 * 0.3 * np.array([0.1 * 0.3, 0.2 * -0.4]), rtol=1e-13)  # rounding


# Batch centring, from its definition.


@pytest.mark.parametrize(("m", "noise"), [(2, "none"), (2, "independent"), (2, "unequal"), (3, "opposite")])
def test_batch_centring_sample_by_sample(m, noise):
    """The mean of the m samples of a step, taken over all their joint outcomes under an exact rule."""
    problem = make_problem("quadratic", ["three_point"], noise, "batch", m=m)
    tau, v, q, s = 0.3, noise_covariance(problem), 0.6, 0.8
    a = np.sqrt(v[0, 0])
    b = v[0, 1] / a if a else 0.0
    d = np.sqrt(max(v[1, 1] - b**2, 0.0))
    x, w = np.polynomial.hermite_e.hermegauss(4)  # exact to degree 7, and degree 6 is needed
    one = np.zeros(1), np.ones(1)
    rules = [problem.features[0].hidden.atoms, (x, w / w.sum())]
    rules += [(x, w / w.sum()) if scale > 1e-7 else one for scale in (a, d)]
    c, e, n1, n2 = (grid.ravel() for grid in np.meshgrid(*(nodes for nodes, _ in rules), indexing="ij"))
    weight = np.prod([grid.ravel() for grid in np.meshgrid(*(p for _, p in rules), indexing="ij")], axis=0)
    along_w = q * c + s * e
    z1, z2 = along_w + a * n1, along_w + b * n1 + d * n2

    def axis(values, sample):
        return values.reshape([-1 if k == sample else 1 for k in range(m)])

    joint_weight = np.prod(np.broadcast_arrays(*(axis(weight, k) for k in range(m))), axis=0)
    ybar1, ybar2 = (sum(axis(z**2, k) for k in range(m)) / m for z in (z1, z2))
    alpha = (axis(z2**2, 0) - ybar2) * 2 * axis(z1, 0)  # all samples are alike, so sample 0 stands for all
    beta = (axis(z1**2, 0) - ybar1) * 2 * axis(z2, 0)
    pull = tau * np.sum(joint_weight * (alpha + beta) * axis(c - q * along_w, 0))
    squares = alpha**2 * (1 + v[0, 0]) + beta**2 * (1 + v[1, 1]) + 2 * alpha * beta * (1 + v[0, 1])

    g, Lambda = Closure(problem)([q])
    assert (q**2 - 1) * g[0] == pytest.approx(pull, rel=1e-11)  # rounding in sums of up to 10^5 terms
    assert Lambda == pytest.approx(tau**2 / m * np.sum(joint_weight * squares), rel=1e-11)  # the same


@pytest.mark.parametrize("noise", ["none", "correlated"])
def test_batch_centring_tends_to_population_centring(noise):
    """The difference in g and in m Lambda falls like 1/m."""
    q = [0.6]

    def difference(m):
        g, Lambda = make_closure("tanh", noise=noise, centering="batch", m=m)(q)
        g_limit, Lambda_limit = make_closure("tanh", noise=noise, centering="population", m=m)(q)
        return np.array([g[0] / g_limit[0] - 1, Lambda / Lambda_limit - 1])

    ratio = difference(10_000) / difference(20_000)
    np.testing.assert_allclose(ratio, 2, rtol=2e-3)  # the term in 1/m^2, up to ten times that in 1/m
    assert difference(1000)[0] == pytest.approx(-1 / 1000, rel=1e-9)  # g_batch = (1 - 1/m) g; rounding over 1/m


# Properties.


def laws(symmetric=False):
    """Strategy for tables of hidden laws."""
    moment = st.floats(0.3, 3.0)
    gaussian = st.builds(lambda m2: {"law": "gaussian", "second_moment": m2}, moment)
    three_point = st.builds(
        lambda m2, ratio: {"law": "three_point", "second_moment": m2, "fourth_moment": ratio * m2**2},
        moment,
        st.floats(1.0, 6.0),
    )
    skew = st.builds(
        lambda low, high, p: {"law": "discrete", "values": [-low, high], "probabilities": [p, 1 - p]},
        st.floats(0.2, 2.0),
        st.floats(0.2, 2.0),
        st.floats(0.1, 0.9),
    )
    return gaussian | three_point if symmetric else gaussian | three_point | skew


NOISE_TABLES = st.none() | st.builds(
    lambda v11, v22, correlation: {"variance": [v11, v22], "correlation": correlation},
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
    st.floats(-1.0, 1.0),
)
# Points in the unit ball: a direction and a radius.
POINTS = st.builds(
    lambda angle, radius: np.array([radius * np.cos(angle), radius * np.sin(angle)]),
    st.floats(0.0, 2 * np.pi),
    st.floats(0.0, 1.0),
)
COMMON = {
    "activation": st.sampled_from(sorted(ACTIVATIONS)),
    "noise": NOISE_TABLES,
    "centering": st.sampled_from(CENTERINGS),
}
few_examples = settings(max_examples=30, deadline=None, derandomize=True, database=None)


def scale_of_g(closure):
    """Size of the drift brackets, which g is a difference of."""
    b = closure._brackets(np.zeros(closure.atoms.shape[1]), closure.x, closure.weight)
    return closure.learning_rate * abs(b[0])


@few_examples
@given(first=laws(), second=laws(), q=POINTS, m=st.integers(2, 20), **COMMON)
def test_diffusion_is_not_negative(first, second, q, m, activation, noise, centering):
    _, Lambda = make_closure(activation, [first, second], noise, centering, m=m)(q)
    assert Lambda >= 0


@few_examples
@given(first=laws(symmetric=True), second=laws(symmetric=True), **COMMON)
def test_no_drift_at_the_origin_for_symmetric_laws(first, second, activation, noise, centering):
    closure = make_closure(activation, [first, second], noise, centering)
    g, _ = closure([0.0, 0.0])
    np.testing.assert_allclose(g, 0, atol=1e-14 * scale_of_g(closure))  # rounding of atoms that cancel in pairs


def test_drift_at_the_origin_for_a_shifted_law():
    """g(0) = -2 tau <c> <sigma sigma'>: without zero mean the origin is no fixed point, unless this vanishes."""
    closure = make_closure("tanh", ["shifted"], "one view", "none")
    assert closure([0.0])[0][0] == pytest.approx(0, abs=1e-14)  # tanh tanh' is odd; rounding
    skewed = make_closure("quadratic", ["shifted"])
    assert abs(skewed([1e-3])[0][0]) > 1e-5


@few_examples
@given(first=laws(), second=laws(), q=POINTS, **COMMON)
def test_permuting_features_permutes_the_drift(first, second, q, activation, noise, centering):
    closure = make_closure(activation, [first, second], noise, centering)
    swapped = make_closure(activation, [second, first], noise, centering)
    (g, Lambda), (g_swapped, Lambda_swapped) = closure(q), swapped(q[::-1])
    # Both stop refining at 1e-11, maybe one step apart; 30 examples with brackets of different size.
    np.testing.assert_allclose(g, g_swapped[::-1], rtol=0, atol=1e-9 * scale_of_g(closure))  # see the line above
    assert Lambda == pytest.approx(Lambda_swapped, rel=1e-9)  # see two lines above


@few_examples
@given(first=laws(), second=laws(symmetric=True), q=POINTS, **COMMON)
def test_flipping_an_overlap_flips_its_drift(first, second, q, activation, noise, centering):
    """For a symmetric law the sign of the feature is a convention."""
    closure = make_closure(activation, [first, second], noise, centering)
    flip = np.array([1, -1])
    (g, Lambda), (g_flipped, Lambda_flipped) = closure(q), closure(flip * q)
    np.testing.assert_allclose(g_flipped, flip * g, rtol=0, atol=1e-13 * scale_of_g(closure))  # rounding
    assert Lambda == pytest.approx(Lambda_flipped, rel=1e-12)  # rounding


@few_examples
@given(hidden=laws(), q=POINTS, factor=st.integers(2, 9), **COMMON)
def test_learning_rate_and_batch_size_scale_together(hidden, q, factor, activation, noise, centering):
    """They depend on tau and tau^2/m only, except that batch centring knows m."""
    centering = "population" if centering == "batch" else centering
    closure = make_closure(activation, [hidden] * 2, noise, centering, tau=0.1, m=3)
    scaled = make_closure(activation, [hidden] * 2, noise, centering, tau=0.1 * factor, m=3 * factor)
    (g, Lambda), (g_scaled, Lambda_scaled) = closure(q), scaled(q)
    np.testing.assert_allclose(g_scaled, factor * g, rtol=0, atol=1e-14 * scale_of_g(scaled))  # rounding of products
    assert Lambda_scaled == pytest.approx(factor * Lambda, rel=1e-14)  # rounding of products


@settings(few_examples, max_examples=8)
@given(first=laws(), second=laws(), q=POINTS, **COMMON)
def test_drift_is_a_gradient(first, second, q, activation, noise, centering):
    """g = -tau grad <s1 s2>, by central differences of the oracle's covariance.

    The mean outputs may move with q: what that adds is <s1> d<sigma2> + <s2> d<sigma1> = 0. An atomic law is taken
    for the first feature only, to keep the oracle's grid small.
    """
    q = 0.9 * q  # room for the differences
    if noise is not None:
        second = {"law": "three_point", "second_moment": 0.8, "fourth_moment": 2.0}
        if first["law"] == "gaussian":
            noise = {"variance": noise["variance"], "correlation": -1.0}
    problem = make_problem(activation, [first, second], noise, centering)
    closure = Closure(problem)

    def covariance(k, step):
        return Reference(problem, q + step * np.eye(2)[k]).covariance

    def slope(k, h=2e-3):
        """Central differences of order 4."""
        return (8 * (covariance(k, h) - covariance(k, -h)) - (covariance(k, 2 * h) - covariance(k, -2 * h))) / (12 * h)

    gradient = np.array([slope(0), slope(1)])
    g, _ = closure(q)
    # Truncation h^4/30 = 5e-13 times a fifth derivative of up to 100 or so; rounding 1e-15/h.
    np.testing.assert_allclose(g, -0.3 * gradient, rtol=0, atol=1e-9 * scale_of_g(closure))  # see the line above


# Choice of the quadrature.


def test_polynomials_take_an_exact_small_rule():
    assert make_closure("linear").x.size == 2
    assert make_closure("quadratic").x.size == 4


@pytest.mark.parametrize("activation", ["erf", "tanh"])
def test_the_chosen_rule_is_converged(activation):
    """A rule of 551 nodes changes nothing, also away from the probing points and for wide laws."""
    hidden = [
        {"law": "gaussian", "second_moment": 6.0},
        {"law": "three_point", "second_moment": 3.0, "fourth_moment": 12.0},
    ]
    closure = make_closure(activation, hidden, None, "population")
    for q in ([0.3, 0.3], [0.7, -0.7], [-0.99, 0.0], [0.0, 1.0]):
        g, Lambda = closure(q)
        fine = Closure(make_problem(activation, hidden, None, "population"))
        fine.x, fine.weight = gaussian_trapezoid(551)
        g_fine, Lambda_fine = fine(q)
        np.testing.assert_allclose(g, g_fine, rtol=0, atol=1e-10 * scale_of_g(closure))  # ten times NODE_TOLERANCE
        assert Lambda == pytest.approx(Lambda_fine, rel=1e-10)  # ten times NODE_TOLERANCE


def test_an_unresolvable_activation_is_an_input_error(monkeypatch):
    monkeypatch.setattr("meanfield.closures.NODE_COUNTS", (5, 7))
    with pytest.raises(InputError, match=r"model\.activation: .* 7 quadrature nodes; lower augmentation\.variance"):
        make_closure("tanh")


@pytest.mark.parametrize("q", [[0.1], [0.1, 0.2, 0.3], [[0.1, 0.2]], []])
def test_overlaps_that_do_not_fit_the_features_are_refused(q):
    """Compiled code would read beyond the end of its arrays."""
    closure = make_closure(hidden=["gaussian", "three_point"])
    with pytest.raises(ValueError, match="2 feature"):
        closure(q)
