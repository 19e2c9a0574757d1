"""Formulas that are printed wrong in Meng and Wang (2024): the right one holds and the printed one does not.

One test per formula, by computer algebra, for sigma = x^2 unless a test says otherwise. "Right" always means:
follows from the SGD update through the closures of theory.md, section 2.
"""

import pytest
import sympy as sp

from tests.oracles import (
    C1,
    ETA,
    MOMENTS,
    N1,
    N2,
    NOISE_A,
    NOISE_B,
    NOISE_D,
    Q1,
    Q2,
    TAU,
    E,
    M,
    S,
    equal,
    mean,
    moment_symbol,
    normal_moment,
    symbolic,
)

KAPPA1, KAPPA2 = moment_symbol(1, 4) - 3, moment_symbol(2, 4) - 3
NU1, NU2 = moment_symbol(1, 2) - 1, moment_symbol(2, 2) - 1
BETA1, BETA2 = moment_symbol(1, 6) - 15, moment_symbol(2, 6) - 15
SQUARE1, SQUARE2 = Q1**2, Q2**2  # the paper's Q
UNIT_VARIANCE = {moment_symbol(1, 2): 1}  # the paper's section C fixes m2 = 1 where there is noise


def sixth_moment(kappa=KAPPA1, nu=NU1, beta=BETA1, q=Q1):
    return beta * q**6 + 15 * kappa * q**4 * (1 - q**2) + 45 * nu * q**2 * (1 - q**2) ** 2 + 15


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


def with_noise(expression):
    return sp.expand(expression.subs(UNIT_VARIANCE))


T6 = sixth_moment(nu=0)
T4 = KAPPA1 * Q1**4 + 3
WITHOUT_CONSTANT = T6 - 15  # what the paper makes of <Theta^6> in Claims 3 and 4
INDEPENDENT_REST = 3 * ETA**4 + 12 * ETA**3 + 18 * ETA**2
INDEPENDENT_PRINTED = (2 + ETA) * WITHOUT_CONSTANT + (7 * ETA**2 + 14 * ETA) * T4 + INDEPENDENT_REST
INDEPENDENT_RIGHT = (2 + ETA) * T6 + (7 * ETA**2 + 13 * ETA) * T4 + INDEPENDENT_REST
OPPOSITE_REST = 30 * ETA**4 - 12 * ETA**3 + 6 * ETA**2
OPPOSITE_RIGHT = 2 * T6 + (2 * ETA**2 - 4 * ETA) * T4 + OPPOSITE_REST


@pytest.mark.parametrize("noise", ["independent", "opposite", "general"])
def test_noise_does_not_change_the_drift(noise):
    """(S-59) is g = -4 q^3 (m4 - 3), without tau."""
    g = with_noise(symbolic(1, noise).g[0])
    assert equal(g, -4 * TAU * Q1**3 * KAPPA1)
    assert not equal(g, -4 * Q1**3 * KAPPA1)


def test_diffusion_with_independent_noise():
    """(S-60): 14 eta, and the constant 15 of <Theta^6> is lost."""
    Lambda = with_noise(symbolic(1, "independent").Lambda)
    assert equal(Lambda, 8 * TAU**2 / M * INDEPENDENT_RIGHT)
    assert not equal(Lambda, 8 * TAU**2 / M * INDEPENDENT_PRINTED)
    # The lost constant alone does not explain it.
    assert not equal(Lambda, 8 * TAU**2 / M * (INDEPENDENT_PRINTED + 15 * (2 + ETA)))


def test_ode_of_the_overlap_with_independent_noise():
    """(S-61) has the right prefactors around the wrong bracket of (S-60)."""

    def velocity(bracket):
        return 4 * TAU * (1 - Q1**2) * Q1**3 * KAPPA1 - 4 * TAU**2 / M * Q1 * bracket

    assert equal(with_noise(symbolic(1, "independent").velocity[0]), velocity(INDEPENDENT_RIGHT))
    assert not equal(with_noise(symbolic(1, "independent").velocity[0]), velocity(INDEPENDENT_PRINTED))


@pytest.mark.parametrize(("noise", "bracket"), [("independent", INDEPENDENT_RIGHT), ("opposite", OPPOSITE_RIGHT)])
def test_prefactors_of_the_odes_with_noise(noise, bracket):
    """(S-62), (S-65): the prefactors of dQ/dt are those of dq/dt, half of what they should be."""

    def ode(drift, diffusion):
        Q = SQUARE1
        return drift * TAU * (1 - Q) * Q**2 * KAPPA1 - diffusion * TAU**2 / M * Q * bracket

    velocity = with_noise(symbolic(1, noise).squared_velocity[0])
    assert equal(velocity, ode(8, 8))
    assert not equal(velocity, ode(4, 4))
    assert not equal(velocity, ode(4, 8))
    assert not equal(velocity, ode(8, 4))


def loss_by_noise(noise):
    """DQ/dt with noise minus dQ/dt without."""
    return with_noise(symbolic(1, noise).squared_velocity[0] - symbolic().squared_velocity[0])


def test_claim_3():
    """(S-55): prefactor 4, and eta <Theta^6> without its constant, and 14 eta."""
    right = INDEPENDENT_RIGHT - 2 * T6
    printed = INDEPENDENT_PRINTED - 2 * WITHOUT_CONSTANT
    assert equal(loss_by_noise("independent"), -8 * TAU**2 / M * SQUARE1 * right)
    assert not equal(loss_by_noise("independent"), -4 * TAU**2 / M * SQUARE1 * printed)
    assert not equal(loss_by_noise("independent"), -8 * TAU**2 / M * SQUARE1 * printed)


@pytest.mark.parametrize(
    "printed",
    [
        pytest.param((2 + ETA) * WITHOUT_CONSTANT + (8 * ETA**2 - 16 * ETA) * T4 + OPPOSITE_REST, id="S-63"),
        pytest.param(2 * WITHOUT_CONSTANT + (8 * ETA**2 - 16 * ETA) * T4 + OPPOSITE_REST, id="S-64"),
        pytest.param((2 + ETA) * T6 + (2 * ETA**2 - 4 * ETA) * T4 + OPPOSITE_REST, id="only 2 + eta"),
        pytest.param(2 * T6 + (2 * ETA**2 - 16 * ETA) * T4 + OPPOSITE_REST, id="only -16 eta"),
        pytest.param(2 * T6 + (8 * ETA**2 - 4 * ETA) * T4 + OPPOSITE_REST, id="only 8 eta^2"),
    ],
)
def test_diffusion_with_opposite_noise(printed):
    """(S-63): 2 + eta for 2, 8 eta^2 - 16 eta for 2 eta^2 - 4 eta; (S-64) repairs the first only."""
    Lambda = with_noise(symbolic(1, "opposite").Lambda)
    assert equal(Lambda, 8 * TAU**2 / M * OPPOSITE_RIGHT)
    assert not equal(Lambda, 8 * TAU**2 / M * printed)


def test_claim_4():
    """(S-56): the gain at first order in eta is half of what is printed."""
    first_order = sp.diff(loss_by_noise("opposite"), ETA).subs(ETA, 0)
    gain = TAU**2 / M * SQUARE1 * (KAPPA1 * SQUARE1**2 + 3)
    assert equal(first_order, 32 * gain)
    assert not equal(first_order, 64 * gain)


def test_proof_of_claim_4():
    """(S-66) also loses the factor Q, which (S-56) has."""
    right = (2 * ETA**2 - 4 * ETA) * T4 + OPPOSITE_REST
    printed = (8 * ETA**2 - 16 * ETA) * T4 + OPPOSITE_REST
    assert equal(loss_by_noise("opposite"), -8 * TAU**2 / M * SQUARE1 * right)
    for factor in (4, 8):
        assert not equal(loss_by_noise("opposite"), -factor * TAU**2 / M * printed)
        assert not equal(loss_by_noise("opposite"), -factor * TAU**2 / M * SQUARE1 * printed)
        assert not equal(loss_by_noise("opposite"), -factor * TAU**2 / M * right)


def test_sixth_moment_of_a_gaussian():
    """Captions of Figs. 7 and 9: a Gaussian with m2 = 1.2 has m6 = 25.92, not 25.95."""
    m2 = sp.Rational(12, 10)
    assert normal_moment(4) * m2**2 == sp.Rational(432, 100)  # printed right
    assert normal_moment(6) * m2**3 == sp.Rational(2592, 100)
    assert normal_moment(6) * m2**3 != sp.Rational(2595, 100)


def test_covariance_of_the_noises():
    """(S-24): the second and fourth diagonal entries are <(gamma2)^2>."""
    gamma = [NOISE_A * N1, NOISE_B * N1 + NOISE_D * N2]
    v11, v12, v22 = (mean(gamma[i] * gamma[j]) for i, j in [(0, 0), (0, 1), (1, 1)])
    covariance = sp.Matrix(2, 2, lambda i, j: mean(gamma[i] * gamma[j]))
    assert covariance == sp.Matrix([[v11, v12], [v12, v22]])
    assert covariance != sp.Matrix([[v11, v12], [v12, v11]])
    # The diffusion does depend on which of the two it is.
    model = symbolic(1, "general")
    assert not equal(model.mean(model.h12**2), model.mean(model.h21**2))


# Not in the list of theory.md, section 9.


def test_sign_of_the_mean_increment():
    """(S-27): -U (<c f> - q <f'>) in the mean increment of a weight; this sign makes up for that of f.

    Expanded to first order in epsilon = 1/sqrt(N) as in (S-22) and (S-25), with a_i, gamma_i independent of
    e and zeta.
    """
    a, n3, n4, w, u, epsilon = sp.symbols("a_i n3 n4 w_i U_i epsilon")
    moments = MOMENTS | {a: normal_moment, n3: normal_moment, n4: normal_moment}
    gamma1, gamma2 = NOISE_A * n3, NOISE_B * n3 + NOISE_D * n4
    model = symbolic(1, "general")
    z1, z2 = model.z1, model.z2
    f = -model.h12  # with the sign of (S-16)
    shift = -u * Q1 * a + a * w
    expansion = f + epsilon * (sp.diff(f, z1) * (shift + w * gamma1) + sp.diff(f, z2) * (shift + w * gamma2))
    increment = sp.expand(expansion * (epsilon * u * C1 + a + gamma2)).coeff(epsilon, 1).subs(model.theta)
    exact = mean(increment, moments).subs(S, sp.sqrt(1 - Q1**2))

    c_f, df = model.mean(f, times=C1), model.mean(model.both_derivatives(f))
    own = w * ((1 + model.v12) * model.mean(sp.diff(f, z1)) + (1 + model.v22) * model.mean(sp.diff(f, z2)))
    assert equal(exact, u * (c_f - Q1 * df) + own)
    assert not equal(exact, -u * (c_f - Q1 * df) + own)


def test_square_of_f_with_noise():
    """Proof of Claims 3 and 4: <f12^2> = 16 <Theta1^4 Theta2^4>; the power of Theta2 is 2."""
    model = symbolic(1, "independent")
    f12_squared = with_noise(model.mean(model.h12**2))
    assert equal(f12_squared, with_noise(16 * model.mean(model.z1**4 * model.z2**2)))
    assert not equal(f12_squared, with_noise(16 * model.mean(model.z1**4 * model.z2**4)))


def test_cross_moment_of_f_with_noise():
    """Proof of Claims 3 and 4: the second line of <f12 f21> drops 9 <gamma1 gamma2> from the factor of <Theta^4>."""
    model = symbolic(1, "general")
    g1, g2 = model.zeta
    mixed = mean(3 * g1**3 * g2 + 9 * g1**2 * g2**2 + 3 * g1 * g2**3 + g1**3 * g2**3)

    def cross(factor):
        return 16 * (T6 + factor * T4 + mixed)

    exact = with_noise(model.mean(model.h12 * model.h21))
    assert equal(exact, cross(3 * model.v11 + 9 * model.v12 + 3 * model.v22))
    assert not equal(exact, cross(3 * model.v11 + 3 * model.v22))


def test_fourth_order_moment_of_opposite_noises():
    """Proof of Claim 4: <(gamma1)^2 (gamma2)^2> = eta^2 for gamma2 = -gamma1; it is <gamma1^4> = 3 eta^2."""
    gamma1, gamma2 = symbolic(1, "opposite").zeta
    assert equal(mean(gamma1**2 * gamma2**2), 3 * ETA**2)
    assert not equal(mean(gamma1**2 * gamma2**2), ETA**2)


def test_drift_terms_of_the_second_view():
    """Before (S-59): <c f21> and <f21'> are written with Theta1^2 Theta2 and Theta1^2; the right sides are right."""
    model = symbolic(1, "general")
    z1, z2 = model.z1, model.z2
    v12, v22 = model.v12, model.v22
    c_f21 = -4 * (Q1**3 * KAPPA1 + 3 * Q1 + v22 * Q1 + 2 * v12 * Q1)
    df21 = -4 * (3 + 2 * v12 + v22)
    assert equal(with_noise(model.mean(-4 * z2**2 * z1, times=C1)), c_f21)
    assert not equal(with_noise(model.mean(-4 * z1**2 * z2, times=C1)), c_f21)
    assert equal(with_noise(model.mean(-4 * (2 * z1 * z2 + z2**2))), df21)
    assert not equal(with_noise(model.mean(-4 * (2 * z1 * z2 + z1**2))), df21)


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
