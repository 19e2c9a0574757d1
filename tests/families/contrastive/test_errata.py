"""Formulas that are printed wrong in Meng and Wang (2024): the right one holds and the printed one does not.

One test per formula, by computer algebra, for sigma = x^2 unless a test says otherwise. "Right" always means:
follows from the SGD update through the closures of theory.md, section 2. docs/errata.md is the list; the way to
Theorem 1 is in test_errata_derivation.py, noise of known covariance and ReLU in test_errata_noise.py.
"""

import re
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from meanfield.families.contrastive.channels.in_time import ChannelsInTime
from meanfield.families.contrastive.channels.trajectory import trajectory_of_channels
from tests import ROOT
from tests.families.contrastive.channels.problems import standard
from tests.oracles.plain_steps import (
    C1,
    Q1,
    Q2,
    TAU,
    E,
    M,
    equal,
    mean,
    moment_symbol,
    normal_moment,
    symbolic,
)

HERE = Path(__file__).parent
KAPPA1, KAPPA2 = moment_symbol(1, 4) - 3, moment_symbol(2, 4) - 3
NU1, NU2 = moment_symbol(1, 2) - 1, moment_symbol(2, 2) - 1
BETA1, BETA2 = moment_symbol(1, 6) - 15, moment_symbol(2, 6) - 15
SQUARE1, SQUARE2 = Q1**2, Q2**2  # the paper's Q
Q = sp.Symbol("Q")


def sixth_moment(kappa=KAPPA1, nu=NU1, beta=BETA1, q=Q1):
    return beta * q**6 + 15 * kappa * q**4 * (1 - q**2) + 45 * nu * q**2 * (1 - q**2) ** 2 + 15


def laws(first, second=(1, 3, 15)):
    """Numbers for the second, fourth and sixth moments of c1 and c2."""
    return {moment_symbol(k, 2 * n): v for k, law in [(1, first), (2, second)] for n, v in enumerate(law, start=1)}


def gaussian(second_moment):
    return [normal_moment(2 * n) * sp.Rational(second_moment) ** n for n in (1, 2, 3)]


def three_point(second_moment, probability="1/5"):
    """Moments of c = 0 or c = +-sqrt(alpha), the two together with the given probability."""
    p, m2 = sp.Rational(probability), sp.Rational(second_moment)
    return [p * (m2 / p) ** n for n in (1, 2, 3)]


def rate(law, step):
    """d log Q/dt over tau, a polynomial in Q, for one feature; `step` is tau/m."""
    velocity = symbolic().squared_velocity[0].subs(laws(law)).subs(M, TAU / sp.Rational(step))
    return sp.Poly(sp.cancel(velocity.subs(Q1, sp.sqrt(Q)) / (TAU * Q)), Q)


def test_list_of_errata():
    """Every row of docs/errata.md names one test, the test exists, and no test is left out."""
    rows = [
        line
        for line in (ROOT / "docs" / "errata.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("|") and not re.match(r"\|( where |-)", line)
    ]
    named = [re.findall(r"`(test_\w+)`", row) for row in rows]
    assert [row for row, names in zip(rows, named, strict=True) if len(names) != 1] == []
    sources = [path.read_text(encoding="utf-8") for path in HERE.glob("test_errata*.py")]
    existing = {name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.MULTILINE)}
    assert {name for names in named for name in names} == existing - {"test_list_of_errata"}


def update_of_overlap(noise="none"):
    """What one SGD step adds to q at first order in tau, from the update itself: no h, no derivative.

    alpha x1 + beta x2 adds (alpha + beta) c + q (alpha zeta1 + beta zeta2) to q, restoring the norm takes
    q (alpha Theta1 + beta Theta2) away.
    """
    model = symbolic(1, noise)
    alpha, beta = model.z2**2 * 2 * model.z1, model.z1**2 * 2 * model.z2
    added = model.mean(alpha + beta, times=C1)
    along_noise = sum(model.mean(f, times=zeta) for f, zeta in zip((alpha, beta), model.zeta, strict=True))
    removed = model.mean(alpha * model.z1 + beta * model.z2)
    return TAU * (added + Q1 * along_noise - Q1 * removed)


@pytest.mark.parametrize("noise", ["none", "general"])
def test_sign_of_f(noise):
    """(8)-(10), (S-26), (S-37): f = -2 (sigma - ybar) sigma' with the drift -u g."""
    g = symbolic(1, noise).g[0]
    printed_g = -g  # g is linear in f
    assert equal(Q1**2 * g - g, update_of_overlap(noise))
    assert not equal(Q1**2 * printed_g - printed_g, update_of_overlap(noise))
    # The paper's own explicit (S-47) has the right sign.
    if noise == "none":
        assert equal(g, -4 * TAU * (KAPPA1 * Q1**3 + 3 * NU1 * Q1 * (1 - 2 * Q1**2)))


def test_view_of_the_derivative_in_f():
    """(10): f takes sigma' of the same view as sigma; the gradient of a product takes the other one."""
    model = symbolic(1, "general")
    h12, h21 = 4 * model.z1**3, 4 * model.z2**3  # 2 sigma(z1) sigma'(z1), as printed
    printed_h = h12 + h21
    printed_g = TAU / 2 * (Q1 * model.mean(model.both_derivatives(printed_h)) - model.mean(printed_h, times=C1))
    assert equal(Q1**2 * model.g[0] - model.g[0], update_of_overlap("general"))
    assert not equal(Q1**2 * printed_g - printed_g, update_of_overlap("general"))


def test_ode_of_one_feature():
    """(12) lacks the factor 1 - 2Q that (S-46) has."""
    Q = SQUARE1
    diffusion = 16 * TAU**2 / M * Q * sixth_moment()
    right = 8 * TAU * (1 - Q) * (KAPPA1 * Q**2 + 3 * Q * (1 - 2 * Q) * NU1) - diffusion
    printed = 8 * TAU * (1 - Q) * (KAPPA1 * Q**2 + 3 * Q * NU1) - diffusion
    assert equal(symbolic().squared_velocity[0], right)
    assert not equal(symbolic().squared_velocity[0], printed)


def test_ode_of_the_overlap():
    """(S-48): 1 - q^2 appears twice."""

    def velocity(inner):
        drift = 4 * TAU * (1 - Q1**2) * (KAPPA1 * Q1**3 + 3 * NU1 * Q1 * inner)
        return drift - 8 * TAU**2 / M * Q1 * sixth_moment()

    assert equal(symbolic().velocity[0], velocity(1 - 2 * Q1**2))
    assert not equal(symbolic().velocity[0], velocity((1 - Q1**2) * (1 - 2 * Q1**2)))


def test_derivative_in_the_proof_of_claim_1():
    """Proof of Claim 1: f' = -12 Theta^3 for f = -4 Theta^3."""
    theta = sp.Symbol("Theta")
    f = -2 * theta**2 * sp.diff(theta**2, theta)
    assert equal(f, -4 * theta**3)
    assert equal(sp.diff(f, theta), -12 * theta**2)
    assert not equal(sp.diff(f, theta), -12 * theta**3)


def test_drift_of_two_features():
    """(S-52): 1 - 2 q1^2 - 2 q2^2 in g_1, where (S-53) rightly goes on with 1 - 2 q1^2."""

    def g1(inner):
        return -4 * TAU * (KAPPA1 * Q1**3 + 3 * NU1 * Q1 * inner + 3 * NU1 * NU2 * Q1 * Q2**2)

    assert equal(symbolic(2).g[0], g1(1 - 2 * Q1**2))
    assert not equal(symbolic(2).g[0], g1(1 - 2 * Q1**2 - 2 * Q2**2))


def sixth_moment_of_two(first=SQUARE1**3):
    """<Theta^6> as (S-52) prints it; (S-50) has another power of Q1 in its first term."""
    Qa, Qb = SQUARE1, SQUARE2
    return (
        BETA1 * first
        + BETA2 * Qb**3
        + 15 * KAPPA1 * Qa**2 * (1 - Qa)
        + 15 * KAPPA2 * Qb**2 * (1 - Qb)
        + 45 * NU1 * Qa * (Qa**2 - 2 * Qa + 1)
        + 45 * NU2 * Qb * (Qb**2 - 2 * Qb + 1)
        + 15 * KAPPA1 * NU2 * Qa**2 * Qb
        + 15 * KAPPA2 * NU1 * Qa * Qb**2
        + 90 * NU1 * NU2 * Qa * Qb * (1 - Qa - Qb)
        + 15
    )


def test_diffusion_of_two_features_is_printed_right():
    """(S-52), Lambda."""
    assert equal(symbolic(2).Lambda, 16 * TAU**2 / M * sixth_moment_of_two())


def ode_of_two(drift, diffusion, inner, sixth):
    """DQ1/dt in the form of (S-50) and (S-54)."""
    Qa, Qb = SQUARE1, SQUARE2
    own = KAPPA1 * Qa**2 + 3 * NU1 * Qa * (1 - 2 * Qa) + 3 * NU1 * NU2 * Qa * Qb
    other = KAPPA2 * Qb + 3 * NU2 * inner + 3 * NU1 * NU2 * Qa
    return drift * TAU * (own * (1 - Qa) - other * Qa * Qb) - diffusion * TAU**2 / M * Qa * sixth


RIGHT_ODE_OF_TWO = ode_of_two(8, 16, 1 - 2 * SQUARE2, sixth_moment_of_two())


def test_ode_of_two_features_in_the_proof():
    """(S-54): the prefactors are half of what they should be."""
    assert equal(symbolic(2).squared_velocity[0], RIGHT_ODE_OF_TWO)
    assert not equal(symbolic(2).squared_velocity[0], ode_of_two(4, 8, 1 - 2 * SQUARE2, sixth_moment_of_two()))


@pytest.mark.parametrize(
    ("inner", "first"),
    [(1 - 2 * SQUARE2**2, SQUARE1**2), (1 - 2 * SQUARE2**2, SQUARE1**3), (1 - 2 * SQUARE2, SQUARE1**2)],
)
def test_ode_of_two_features_in_claim_2(inner, first):
    """(S-50): besides the prefactors, 1 - 2 Q2^2 and beta1 Q1^2; each slip alone makes it wrong."""
    assert equal(symbolic(2).squared_velocity[0], RIGHT_ODE_OF_TWO)
    assert not equal(symbolic(2).squared_velocity[0], ode_of_two(4, 8, inner, sixth_moment_of_two(first)))
    assert not equal(symbolic(2).squared_velocity[0], ode_of_two(8, 16, inner, sixth_moment_of_two(first)))


def test_sixth_moment_of_a_gaussian():
    """Captions of Figs. 7 and 9: a Gaussian with m2 = 1.2 has m6 = 25.92, not 25.95."""
    m2 = sp.Rational(12, 10)
    assert normal_moment(4) * m2**2 == sp.Rational(432, 100)  # printed right
    assert normal_moment(6) * m2**3 == sp.Rational(2592, 100)
    assert normal_moment(6) * m2**3 != sp.Rational(2595, 100)


def test_brackets_at_the_origin():
    """Proof of Proposition 3: sigma'' is lost on one left side, and <sigma1' sigma2'> printed as <sigma1^2 sigma2'>."""
    model = symbolic(1, "general")
    z1, z2 = model.z1, model.z2
    sigma1, slope1, slope2, curvature = z1**2, 2 * z1, 2 * z2, 2

    def at_origin(f):
        return model.mean(f).subs(Q1, 0)

    sigma_curvature = 2 * (1 + model.v11)  # <sigma1 sigma2''> = <2 Theta1^2>
    assert equal(at_origin(sigma1 * curvature), sigma_curvature)
    assert not equal(at_origin(sigma1 * slope2), sigma_curvature)
    slopes = 4 * (1 + model.v12)  # <sigma1' sigma2'> = <4 Theta1 Theta2>
    assert equal(at_origin(slope1 * slope2), slopes)
    assert not equal(at_origin(sigma1**2 * slope2), slopes)


def test_drift_in_the_proof_of_proposition_3():
    """(S-41): g with the sign of the SGD update, unlike (10); written out for noise of any covariance."""
    model = symbolic(1, "general")
    sigma1, slope1, sigma2, slope2 = model.z1**2, 2 * model.z1, model.z2**2, 2 * model.z2
    with_c = model.mean(sigma1 * slope2 + sigma2 * slope1, times=C1)
    without = model.mean(2 * sigma1 + 2 * sigma2 + 2 * slope1 * slope2)
    assert equal(model.g[0], -TAU * with_c + TAU * Q1 * without)


def test_learnability():
    """(S-44), (S-45), Proposition 3: right for sigma = x^2 with noise of any covariance."""
    model = symbolic(1, "general")
    z1, z2 = (E + zeta for zeta in model.zeta)

    gain = mean(2 * z1**2 + 8 * z1 * z2 + 2 * z2**2)
    squares = (1 + model.v22) * mean(4 * z1**4 * z2**2) + (1 + model.v11) * mean(4 * z2**4 * z1**2)
    squares += 2 * (1 + model.v12) * mean(4 * z1**3 * z2**3)
    growth = -sp.diff(model.g[0], Q1).subs(Q1, 0) - model.Lambda.subs(Q1, 0) / 2  # d(dq/dt)/dq
    assert equal(growth, TAU * NU1 * gain - TAU**2 / (2 * M) * squares)


def test_learnability_needs_a_positive_gain():
    """Proposition 3 divides by <sigma1 sigma2'' + 2 sigma1' sigma2' + sigma2 sigma1''>, which may be negative.

    For sigma = exp(-x^2) and c = +-a it is, and then the origin is unstable iff a^2 lies *below* the bound.
    """
    x, a = sp.symbols("x a", real=True)

    def average(f):
        return sp.integrate(sp.simplify(f * sp.exp(-(x**2) / 2)), (x, -sp.oo, sp.oo)) / sp.sqrt(2 * sp.pi)

    sigma = sp.exp(-(x**2))
    gain = average(sp.expand(sp.diff(sigma**2, x, 2)))
    Lambda0 = TAU**2 / M * 4 * average(sigma**2 * sp.diff(sigma, x) ** 2)
    printed_bound = 1 + Lambda0 / (2 * TAU * gain)
    assert gain < 0

    # <sigma^2> at overlap q, and -g'(0) - Lambda(0)/2 with g = -tau d<sigma^2>/dq.
    squared = sp.exp(-2 * a**2 * Q1**2 / (5 - 4 * Q1**2)) / sp.sqrt(5 - 4 * Q1**2)
    assert sp.simplify(squared.subs(Q1, 0) - average(sigma**2)) == 0
    growth = TAU * sp.diff(squared, Q1, 2).subs(Q1, 0) - Lambda0 / 2

    values = {TAU: sp.Rational(1, 10), M: 1}
    for side in (-1, 1):
        second_moment = printed_bound + side * sp.Rational(1, 100)
        assert sp.sign(growth.subs(a, sp.sqrt(second_moment)).subs(values).evalf()) == -side


def test_origin_is_a_fixed_point_only_for_zero_mean():
    """Proof of Proposition 3: h(0) = 0 is claimed for any law of c and any sigma; it needs <c> = 0."""
    mu = sp.Symbol("mu")
    x = sp.Symbol("x")
    sigma = x + x**2
    drift = mean((C1 * 2 * sigma * sp.diff(sigma, x)).subs(x, E), {C1: lambda n: mu**n, E: normal_moment})
    assert equal(TAU * drift, 6 * TAU * mu)


def test_values_of_the_three_point_law():
    """Text under Fig. 7: c2 in {+-sqrt(alpha), 1}; with 0 for 1 its moments are those of the caption."""
    p, alpha = sp.Rational(1, 5), sp.Rational(55, 10)

    def moments(third_value):
        return [p * alpha ** (n // 2) + (1 - p) * third_value**n for n in (2, 4, 6)]

    caption = [sp.Rational(11, 10), sp.Rational(605, 100), sp.Rational(33275, 1000)]
    assert moments(0) == caption
    assert moments(1) != caption


def test_formulas_that_are_printed_right():
    """(S-46), (S-47) and (S-53), so that the list above is not read as a list of everything."""
    model = symbolic()
    Q = SQUARE1
    assert equal(model.g[0], -4 * TAU * (KAPPA1 * Q1**3 + 3 * Q1 * (1 - 2 * Q) * NU1))
    assert equal(model.Lambda, 16 * TAU**2 / M * sixth_moment())
    own = KAPPA1 * Q1**3 + 3 * NU1 * Q1 * (1 - 2 * Q1**2) + 3 * NU1 * NU2 * Q1 * Q2**2
    other = KAPPA2 * Q2**3 + 3 * NU2 * Q2 * (1 - 2 * Q2**2) + 3 * NU1 * NU2 * Q1**2 * Q2
    printed = 4 * TAU * (own * (1 - Q1**2) - other * Q1 * Q2) - 8 * TAU**2 / M * Q1 * sixth_moment_of_two()
    assert equal(symbolic(2).velocity[0], printed)
    switched = {Q1: Q2, Q2: Q1} | {moment_symbol(k, n): moment_symbol(3 - k, n) for k in (1, 2) for n in (2, 4, 6)}
    assert equal(symbolic(2).velocity[1], printed.subs(switched, simultaneous=True))


def test_expectations_in_the_proofs():
    """Proofs of Claims 1 and 2: <c Theta^3>, <Theta^2> and q.g."""
    one, two = symbolic(), symbolic(2)
    z = one.z1
    assert equal(one.mean(z**3, times=C1), Q1**3 * KAPPA1 + 3 * Q1 * (1 - Q1**2) * NU1 + 3 * Q1)
    assert equal(one.mean(z**2), 1 + Q1**2 * NU1)
    own = KAPPA1 * Q1**3 + 3 * NU1 * Q1 * (1 - Q1**2 - Q2**2) + 3 * NU1 * NU2 * Q1 * Q2**2 + 3 * Q1
    assert equal(two.mean(z**3, times=C1), own + 3 * (NU1 + NU2) * Q1 * Q2**2)
    assert equal(two.mean(z**2), NU1 * Q1**2 + NU2 * Q2**2 + 1)
    radial = [k * q**4 + 3 * n * q**2 * (1 - 2 * q**2) for k, n, q in [(KAPPA1, NU1, Q1), (KAPPA2, NU2, Q2)]]
    along_q = Q1 * two.g[0] + Q2 * two.g[1]
    assert equal(along_q, -4 * TAU * (sum(radial) + 6 * NU1 * NU2 * Q1**2 * Q2**2))


def test_stable_states_are_separated():
    """Text on Fig. 6: two fixed points for m2 = 1, both stable; on Figs. 8 and 9: four. Some are left out.

    Between two stable fixed points of one axis there is an unstable one.
    """
    assert equal(symbolic(2).squared_velocity[0].subs(Q2, 0), symbolic().squared_velocity[0])  # an axis is invariant
    growth = rate(three_point(1), "1/200")
    assert growth.eval(0) < 0
    assert growth.count_roots(0, 1) == 2  # besides Q = 0
    # The figures have a state with both features besides the origin and what is on the axes.
    with_gain = rate(gaussian("1.1"), "1/200")
    assert with_gain.eval(0) > 0
    assert with_gain.count_roots(0, 1) == 1
    for first, second in [(growth, growth), (with_gain, growth)]:  # Fig. 8 with m2 = 1 and Fig. 9(a)
        assert 1 + first.count_roots(0, 1) + second.count_roots(0, 1) + 1 > 4


@pytest.mark.parametrize(
    ("step", "said"), [("1/200", False), ("7/1000", False), ("8/1000", True), ("95/10000", True), ("11/1000", False)]
)
def test_step_sizes_that_the_figures_need(step, said):
    """Figs. 2 and 6 leave tau and m out; what is said of m2 = 0.9, 1 and 1.1 needs 0.0076 < tau/m < 0.01 or so."""
    low, middle, high = (rate(three_point(m2), step) for m2 in ("0.9", "1", "1.1"))
    recovered = low.count_roots(0, 1) == 0 and middle.count_roots(0, 1) == 2 and high.count_roots(0, 1) == 1
    stable_origin = low.eval(0) < 0 and middle.eval(0) < 0 and high.eval(0) > 0
    assert (recovered and stable_origin) == said


def competition():
    """D log(Q1/Q2)/dt, from which the common factor of the two ODEs has gone."""
    first, second = symbolic(2).squared_velocity
    return sp.cancel(sp.expand(first * SQUARE2 - second * SQUARE1) / (SQUARE1 * SQUARE2))


def test_features_exclude_each_other_only_with_heavy_tails():
    """III-A.1, IV-B, S-III-B: "only one feature can be learned" needs m4 > 3 m2^2; below it a mixture is stable."""
    m2, m4 = moment_symbol(1, 2), moment_symbol(1, 4)
    law = m2, m4, moment_symbol(1, 6)
    assert equal(competition().subs(laws(law, law)), 8 * TAU * (m4 - 3 * m2**2) * (SQUARE1 - SQUARE2))

    # For c = +-sqrt(1.5), where m4 = m2^2, the line Q1 = Q2 attracts and holds a fixed point that attracts on it.
    mixed = symbolic(2).squared_velocity[0].subs(Q2, Q1).subs(laws(*2 * [three_point("1.5", 1)]))
    growth = sp.Poly(sp.cancel(mixed.subs({Q1: sp.sqrt(Q), M: 100 * TAU}) / (TAU * Q)), Q)
    assert growth.eval(0) > 0
    assert growth.count_roots(0, sp.Rational(1, 2)) == 1
    assert growth.eval(sp.Rational(1, 2)) < 0


@pytest.mark.parametrize(("strength", "mixed"), [(0.1, False), (0.4, True)])
def test_several_channels_learn_mixtures_under_a_strong_penalty(strength, mixed):
    """III-A.1, IV-B: "a single feature rather than a mixture", of features that exclude each other in one channel."""
    problem = standard(
        ("second_moment = 1.0, fourth_moment = 5.0", "second_moment = 1.1, fourth_moment = 6.05"),
        ('"none"', '"population"'),
        ("batch_size = 3", "batch_size = 10"),
        ("strength = 0.05", f"strength = {strength}"),
        ("stop = 4.0", "stop = 1000.0"),
    )
    q = np.abs(
        trajectory_of_channels(ChannelsInTime(problem)).arrays["q"][-1]
    )  # without fluctuations, which take most of the time
    assert set(q.argmax(axis=0)) == {0, 1}
    assert q.max(axis=0).min() > 0.9
    assert np.all(q.min(axis=0) > 0.2 if mixed else q.min(axis=0) < 0.01)


def test_nothing_to_learn_in_gaussian_features():
    """Captions of Figs. 7(a-c) and 8(a-b): Gaussian c1, c2 with m2 = 1 leave one fixed point, not four."""
    first, second = (v.subs(laws(gaussian(1), gaussian(1))) for v in symbolic(2).squared_velocity)
    assert equal(first, -240 * TAU**2 / M * SQUARE1)
    assert equal(second, -240 * TAU**2 / M * SQUARE2)


def test_equal_gaussian_features_are_interchangeable():
    """Caption of Fig. 8(c): Gaussian c1, c2 with m2 = 1.1 never change Q1/Q2: a line of fixed points, not four.

    The sum Q1 + Q2 obeys an equation of its own, so that its zeros are lines; a state with one feature is not stable.
    """
    numbers = laws(gaussian("1.1"), gaussian("1.1"))
    assert competition().subs(numbers) == 0
    radial = sum(symbolic(2).squared_velocity).subs(numbers)
    total = sp.Symbol("R", real=True)  # Q1 + Q2
    assert Q1 not in sp.expand(radial.subs(Q2, sp.sqrt(total - Q1**2))).free_symbols


def test_start_near_the_origin():
    """IV-B, S-III-B: from near the origin the areas of the two regions are said to decide; the second moments do.

    For Fig. 9(b), whose larger region is that of feature 2. The rates at the origin know m2 only, and the start at
    N = infinity is at the origin.
    """
    near = competition().subs({Q1: 0, Q2: 0})
    assert equal(near, 24 * TAU * (NU1 - NU2))

    numbers = laws(gaussian("1.2"), three_point("1.1")) | {M: 200 * TAU}
    root = {Q1: sp.sqrt(sp.Symbol("x")), Q2: sp.sqrt(sp.Symbol("y"))}
    velocity = [sp.expand(v.subs(numbers).subs(root) / TAU) for v in symbolic(2).squared_velocity]
    velocity = sp.lambdify(sp.symbols("x y"), velocity, "math")

    def winner(start, step=0.02, time=60.0):
        x = y = start
        for _ in range(round(time / step)):
            v, w = velocity(x, y)
            v, w = velocity(x + step / 2 * v, y + step / 2 * w)
            x, y = x + step * v, y + step * w
        return 1 if x > y else 2

    assert winner(0.1) == 2
    assert winner(1e-3) == 1


def test_condition_of_learnability_at_equality():
    """Proposition 3: "only if" fails where both sides are equal; there the next order decides, here for growth."""
    step = sp.Rational(1, 1000)
    critical = rate(three_point(1 + 10 * step), step)
    assert critical.eval(0) == 0
    assert critical.diff().eval(0) > 0
