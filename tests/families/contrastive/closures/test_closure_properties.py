"""Closed forms of the closures, batch centring sample by sample, and exact properties."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.order_parameters import solve_order_parameters
from tests.oracles import plain_steps as oracles
from tests.oracles.laws import components
from tests.oracles.plain_steps import HIDDEN, NOISES, Reference, make_closure, make_problem, noise_covariance, symbolic
from tests.oracles.strategies import ANY, COMMON, DENSITIES, JOINT, PAIRS, SKEW, SYMMETRIC, points

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


def moment(table, n):
    """E[c^n] for even n: a Gaussian law, or values."""
    probability, mean, variance = components(table)
    return float(probability @ (mean**n + variance ** (n // 2) * np.prod(np.arange(1, n, 2))))


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
        numbers |= {oracles.moment_symbol(k, n): moment(feature.hidden.model_dump(), n) for n in (2, 4, 6)}
    return numbers


@pytest.mark.parametrize(
    ("hidden", "noise"),
    [((law,), noise) for law in ("three_point", "gaussian") for noise in NOISES]
    + [(("gaussian", "three_point"), "none"), (("gaussian", "gaussian"), "none")],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else None,
)
def test_general_code_against_closed_forms(hidden, noise):
    problem = make_problem("quadratic", hidden, noise)
    closure = Closure(problem)
    model = symbolic(len(hidden), "general" if len(hidden) == 1 else "none")
    numbers = values_of_symbols(problem)
    closed_form = sp.lambdify(model.q, [f.subs(numbers) for f in [*model.g, model.Lambda]])
    g_scale = 12 * 0.3  # tau <h12' + h21'>/2 at the origin
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
    probability, values, _ = components(HIDDEN["three_point"])
    rules = [(values, probability), (x, w / w.sum())]
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


# One law written in two ways.

SHIFTED, ASYMMETRIC, THREE_POINT, MIXTURE = (HIDDEN[law] for law in ("shifted", "asymmetric", "three_point", "mixture"))
PRODUCT = {
    "law": "discrete",
    "values": [[a, b] for a in SHIFTED["values"] for b in ASYMMETRIC["values"]],
    "probabilities": [p * r for p in SHIFTED["probabilities"] for r in ASYMMETRIC["probabilities"]],
}
POINTS_OF_THREE = {"law": "discrete", "values": [0.0, -(5.5**0.5), 5.5**0.5], "probabilities": [0.8, 0.1, 0.1]}
SAME_LAWS = {
    "product": ([SHIFTED, ASYMMETRIC], PRODUCT),
    "three_point": ([THREE_POINT], [POINTS_OF_THREE]),
    "joint of one": ([SHIFTED], {**SHIFTED, "values": [[c] for c in SHIFTED["values"]]}),
    "two_point": ([SHIFTED], [{"law": "two_point", "values": SHIFTED["values"], "probability": 0.25}]),
    "rademacher": ([{"law": "rademacher", "second_moment": 1.44}], [{"law": "two_point", "values": [-1.2, 1.2]}]),
    "gaussian": (
        [{"law": "gaussian", "second_moment": 1.2}],
        [{"law": "gaussian_mixture", "means": [0.0], "variances": [1.2], "probabilities": [1.0]}],
    ),
    "split": (
        [MIXTURE],
        [{k: v if k == "law" else [v[0] * (0.5 if k[0] == "p" else 1), *v[1:], v[0] * (0.5 if k[0] == "p" else 1)]
          for k, v in MIXTURE.items()}],
    ),
    "no width": (
        [SHIFTED],
        [{"law": "gaussian_mixture", "means": SHIFTED["values"], "variances": [0.0, 0.0],
          "probabilities": SHIFTED["probabilities"]}],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("activation", "noise"),
    [
        ("relu", "none"),
        ("sigmoid", "unequal"),
        pytest.param("relu", "unequal", marks=pytest.mark.slow),
        pytest.param("sigmoid", "none", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", SAME_LAWS)
def test_the_same_law_written_in_two_ways(name, activation, noise):
    left, right = (make_closure(activation, hidden, noise, "population") for hidden in SAME_LAWS[name])
    for q in (0.0, 0.3, -0.7, 0.9999):
        point = [q, 0.6 * np.sqrt(1 - q * q)] if name == "product" else [q]
        (g, Lambda), (same_g, same_Lambda) = left(point), right(point)
        np.testing.assert_allclose(g, same_g, rtol=1e-11, atol=1e-13)  # tables of different range, 1e-13 per panel
        assert Lambda == pytest.approx(same_Lambda, rel=1e-11)  # the same


# Properties.

few_examples = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # to shrink an example takes minutes
)


def scale_of_g(problem, q):
    """Size of the drift brackets, which g is a difference of."""
    return Reference(problem, q).g_scale


@few_examples
@given(hidden=PAIRS | JOINT, q=points(0.999), m=st.integers(2, 20), **COMMON)
def test_random_problems_against_the_oracle(hidden, q, m, activation, noise, centering):
    """And the diffusion is not negative."""
    problem = make_problem(activation, hidden, noise, centering, m=m)
    reference = Reference(problem, q)
    g, Lambda = Closure(problem)(q)
    np.testing.assert_allclose(g, reference.g, rtol=0, atol=1e-9 * reference.g_scale)  # what is asked for
    assert Lambda == pytest.approx(reference.Lambda, abs=1e-9 * reference.Lambda_scale)  # what is asked for
    assert Lambda >= 0


@few_examples
@given(hidden=st.tuples(SYMMETRIC | SKEW | DENSITIES, SYMMETRIC | SKEW), **COMMON)
def test_no_drift_at_the_origin_without_means(hidden, activation, noise, centering):
    problem = make_problem(activation, hidden, noise, centering)
    g, _ = Closure(problem)([0.0, 0.0])
    scale = scale_of_g(problem, [0.0, 0.0])
    np.testing.assert_allclose(g, 0, atol=1e-13 * max(scale, 0.3))  # rounding of probabilities times values


def test_drift_at_the_origin_for_a_shifted_law():
    """g(0) = -2 tau <c> <sigma sigma'>: without zero mean the origin is no fixed point, unless this vanishes."""
    closure = make_closure("tanh", ["shifted"], "one view", "none")
    assert closure([0.0])[0][0] == pytest.approx(0, abs=1e-14)  # tanh tanh' is odd; rounding
    g, _ = make_closure("softplus", ["shifted"], "one view", "none")([0.0])
    assert g[0] < -0.1
    skewed = make_closure("quadratic", ["shifted"])
    assert abs(skewed([1e-3])[0][0]) > 1e-5


@few_examples
@given(hidden=PAIRS | JOINT, q=points(0.999), **COMMON)
def test_permuting_features_permutes_the_drift(hidden, q, activation, noise, centering):
    swapped = {**hidden, "values": [v[::-1] for v in hidden["values"]]} if isinstance(hidden, dict) else hidden[::-1]
    problem = make_problem(activation, hidden, noise, centering)
    (g, Lambda), (g_swapped, Lambda_swapped) = (
        Closure(problem)(q),
        make_closure(activation, swapped, noise, centering)(q[::-1]),
    )
    atol = 1e-12 * scale_of_g(problem, q)  # rounding, in tables whose range may differ by rounding
    np.testing.assert_allclose(g, g_swapped[::-1], rtol=0, atol=atol)  # see the line above
    assert Lambda == pytest.approx(Lambda_swapped, rel=1e-12)  # the same


@few_examples
@given(first=ANY | DENSITIES, second=SYMMETRIC, q=points(0.999), **COMMON)
def test_flipping_an_overlap_flips_its_drift(first, second, q, activation, noise, centering):
    """For a symmetric law the sign of the feature is a convention."""
    problem = make_problem(activation, [first, second], noise, centering)
    closure = Closure(problem)
    flip = np.array([1, -1])
    (g, Lambda), (g_flipped, Lambda_flipped) = closure(q), closure(flip * q)
    np.testing.assert_allclose(g_flipped, flip * g, rtol=0, atol=1e-12 * scale_of_g(problem, q))  # rounding over s
    assert Lambda == pytest.approx(Lambda_flipped, rel=1e-12)  # rounding over s


@few_examples
@given(hidden=PAIRS | JOINT, q=points(1.0), factor=st.integers(2, 9), **COMMON)
def test_learning_rate_and_batch_size_scale_together(hidden, q, factor, activation, noise, centering):
    """They depend on tau and tau^2/m only, except that batch centring knows m."""
    assume(centering != "batch")
    closure = make_closure(activation, hidden, noise, centering, tau=0.1, m=3)
    scaled = make_closure(activation, hidden, noise, centering, tau=0.1 * factor, m=3 * factor)
    (g, Lambda), (g_scaled, Lambda_scaled) = closure(q), scaled(q)
    np.testing.assert_allclose(g_scaled, factor * g, rtol=1e-14)  # rounding of products
    assert Lambda_scaled == pytest.approx(factor * Lambda, rel=1e-14)  # rounding of products


@settings(few_examples, max_examples=8)
@given(hidden=PAIRS | JOINT, q=points(0.8), **COMMON)
def test_drift_is_a_gradient(hidden, q, activation, noise, centering):
    """g = -tau grad <s1 s2>, by central differences of the oracle's covariance.

    The mean outputs may move with q: what that adds is <s1> d<sigma2> + <s2> d<sigma1> = 0.
    """
    problem = make_problem(activation, hidden, noise, centering)

    def covariance(k, step):
        return Reference(problem, q + step * np.eye(2)[k]).covariance

    def slope(k, h=1e-3):
        """Central differences of order 4."""
        return (8 * (covariance(k, h) - covariance(k, -h)) - (covariance(k, 2 * h) - covariance(k, -2 * h))) / (12 * h)

    g, _ = Closure(problem)(q)
    # Truncation h^4/30 = 3e-14 times a fifth derivative of up to 1000 or so; rounding 1e-15/h.
    atol = 1e-9 * scale_of_g(problem, q)  # see the line above
    np.testing.assert_allclose(g, -0.3 * np.array([slope(0), slope(1)]), rtol=0, atol=atol)  # see two lines above


@settings(few_examples, max_examples=8)
@given(hidden=PAIRS | JOINT, q=points(0.98), tau=st.floats(0.01, 1.0), **COMMON)
def test_overlaps_stay_in_the_unit_ball(hidden, q, tau, activation, noise, centering):
    problem = make_problem(
        activation, hidden, noise, centering, tau, overlaps=q.tolist(), time={"stop": 3.0, "outputs": 13}
    )
    dataset = solve_order_parameters(problem)
    assert dataset.attrs["status"] == "complete"
    squared = (dataset.q.values**2).sum(axis=1)
    assert squared.max() <= 1 + 1e-9  # the solver's 1e-11 per step
    np.testing.assert_allclose(dataset.q.values[0], q, rtol=1e-15)  # starts there


@pytest.mark.parametrize("q", [[0.1], [0.1, 0.2, 0.3], [[0.1, 0.2]], []])
def test_overlaps_that_do_not_fit_the_features_are_refused(q):
    """Compiled code would read beyond the end of its arrays."""
    closure = make_closure(hidden=["gaussian", "three_point"])
    with pytest.raises(ValueError, match="2 feature"):
        closure(q)
