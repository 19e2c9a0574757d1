"""Formulas on the noise of the two views, and on ReLU, that are printed wrong in Meng and Wang (2024).

Section IV-C, S-III-C and S-IV, in the sense of test_errata.py. Noise comes with m2 = 1 unless a test says otherwise.
"""

from math import erfc, exp, pi, sqrt

import pytest
import sympy as sp

from tests.oracles.plain_steps import C1, ETA, Q1, TAU, M, equal, mean, moment_symbol, normal_moment, symbolic

KAPPA1, NU1, BETA1 = (moment_symbol(1, n) - gaussian for n, gaussian in [(4, 3), (2, 1), (6, 15)])
SQUARE1 = Q1**2  # the paper's Q
UNIT_VARIANCE = {moment_symbol(1, 2): 1}  # the paper's section C fixes m2 = 1 where there is noise


def with_noise(expression):
    return sp.expand(expression.subs(UNIT_VARIANCE))


T6 = BETA1 * Q1**6 + 15 * KAPPA1 * Q1**4 * (1 - Q1**2) + 15
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


def test_noise_changes_the_drift_unless_m2_is_1():
    """S-III-C fixes m2 = 1 and so hides that noise acts on the drift: for m2 > 1 opposite noise weakens it."""
    model = symbolic(1, "general")
    change = -4 * TAU * Q1 * NU1 * ((model.v11 + model.v22) / 2 + 2 * model.v12)
    assert equal(model.g[0] - symbolic().g[0], change)
    assert equal(symbolic(1, "opposite").g[0] - symbolic().g[0], 4 * TAU * Q1 * NU1 * ETA)
    assert not equal(change, 0)


def test_independent_noise_costs_for_every_law():
    """After Claim 3: m4 >= 3 and m6 >= 15 are asked for; only the lost constants make that necessary."""
    model = symbolic()
    assert equal(with_noise(model.mean(model.z1**4)), T4)
    assert equal(with_noise(model.mean(model.z1**6)), T6)
    fourth, sixth = sp.symbols("T4 T6", positive=True)  # moments of Theta
    right = (2 + ETA) * sixth + (7 * ETA**2 + 13 * ETA) * fourth + INDEPENDENT_REST
    assert equal(INDEPENDENT_RIGHT, right.subs({fourth: T4, sixth: T6}))
    assert sp.expand(sp.diff(right, ETA)).is_positive
    coin = {moment_symbol(1, 4): 1, moment_symbol(1, 6): 1, Q1: 1}
    assert WITHOUT_CONSTANT.subs(coin) < 0


def test_opposite_noise_helps_and_then_hurts():
    """Text on Fig. 10b: with eta the velocity first rises and then falls; so it does, for every law."""
    fourth, eta = sp.symbols("T4 eta", positive=True)
    bracket = OPPOSITE_RIGHT.subs(ETA, eta) - 2 * T6 - (2 * eta**2 - 4 * eta) * (T4 - fourth)
    slope = sp.Poly(sp.expand(sp.diff(bracket, eta)), eta)
    assert slope.eval(0) == -4 * fourth
    assert slope.eval(1) == 96
    curvature = slope.diff() - 4 * fourth
    assert curvature.eval(0) > 0  # and everywhere, which leaves one minimum
    assert sp.Poly(curvature.as_expr(), eta).count_roots() == 0


@pytest.mark.parametrize(("step", "gone"), [("1/500", False), ("1/200", False), ("1/125", False), ("1/100", True)])
def test_noise_that_destroys_recovery(step, gone):
    """Text on Fig. 10a: recovery is said to vanish for eta > 0.2, without tau/m and without the law of c.

    Here for the three-point law of Fig. 9 with m2 = 1, for eta = 0.2.
    """
    Q = sp.Symbol("Q")
    values = {moment_symbol(1, 4): 5, moment_symbol(1, 6): 25, ETA: sp.Rational(1, 5), M: TAU / sp.Rational(step)}
    velocity = with_noise(symbolic(1, "independent").squared_velocity[0]).subs(values)
    growth = sp.Poly(sp.cancel(velocity.subs(Q1, sp.sqrt(Q)) / (TAU * Q)), Q)
    assert growth.eval(0) < 0
    assert growth.count_roots(0, 1) == (0 if gone else 2)


# The appendix on ReLU. A = c q + s e, and the noise is zeta and -zeta, so that both views are active iff A > |zeta|.


def relu_velocity(Q, law, step, eta=0.0, centred=False):
    """DQ/dt over tau for sigma = max(0, x), with step = tau/m; `law` lists (value, probability); no noise if centred.

    h12 + h21 = 4 (A - ybar) and Lambda = 4 tau^2/m <(A - ybar)^2 + eta zeta^2>, both for A > |zeta| only.
    """
    q, s, size = sqrt(Q), sqrt(1 - Q), 100
    nodes = [(7 * (i + 0.5) / size, 7 / size) for i in range(size)]  # |zeta|/sqrt(eta), midpoint rule
    rule = [(sqrt(eta) * z, 2 * h * exp(-z * z / 2) / sqrt(2 * pi)) for z, h in nodes] if eta else [(0.0, 1.0)]
    brackets = []
    for value, probability in law:
        for zeta, weight in rule:
            edge = (zeta - value * q) / s  # A > zeta iff e > edge
            active, density = erfc(edge / sqrt(2)) / 2, exp(-edge * edge / 2) / sqrt(2 * pi)
            e2 = active + edge * density  # <e^2>
            f = (active, value * q * active + s * density, (value * q) ** 2 * active + 2 * value * q * s * density)
            by_c = (value * f[0], value * f[1])
            by_e = (density, value * q * density + s * e2)
            row = (f[0], f[1], f[2] + s * s * e2, *by_c, *by_e, zeta * zeta * active)
            brackets.append([probability * weight * number for number in row])
    one, a, a2, c, ca, e, ea, zeta2 = (sum(column) for column in zip(*brackets, strict=True))
    ybar = a if centred else 0.0
    g = 2 * (q * (ea - ybar * e) / s - (ca - ybar * c))  # over tau
    Lambda = 4 * step * (a2 - 2 * ybar * a + ybar**2 * one + eta * zeta2)  # over tau
    return -2 * (1 - Q) * q * g - Q * Lambda


def three_point(second_moment, probability=0.2):
    value = sqrt(second_moment / probability)
    return [(-value, probability / 2), (0.0, 1 - probability), (value, probability / 2)]


GRID = [i / 50 for i in range(1, 50)]


@pytest.mark.parametrize("centred", [False, True])
def test_threshold_of_relu(centred):
    """Text on Fig. 11a: the threshold of learnability is said to be larger for ReLU than for x^2; it is smaller.

    (S-45) with <(sigma^2)''> = <(e^2 - 1) sigma^2>, which needs no second derivative of ReLU. Without centring the
    thresholds are 1 + tau/m and 1 + 10 tau/m.
    """
    x = sp.Symbol("x", real=True)

    def excess(sigma, lower):
        """2 m/tau times (threshold - 1); sigma vanishes below `lower`, or nowhere."""

        def half_moment(n):
            return normal_moment(n) / 2 if n % 2 == 0 else sp.factorial2(n - 1) / sp.sqrt(2 * sp.pi)

        def average(f):
            terms = sp.Poly(f, x).terms()
            return sum(k * (half_moment(n) if lower == 0 else normal_moment(n)) for (n,), k in terms)

        ybar = average(sigma) if centred else 0
        gain = average((x**2 - 1) * (sigma**2 - 2 * ybar * sigma))
        return 4 * average((sigma - ybar) ** 2 * sp.diff(sigma, x) ** 2) / gain

    relu, quadratic = excess(x, 0), excess(x**2, -sp.oo)
    assert quadratic == 20
    assert relu < 2 if centred else relu == 2
    assert not relu > quadratic


def test_relu_has_no_second_stable_state():
    """Text on Fig. 11a: the state near Q = 1 is said to appear before Q = 0 loses its stability, as for x^2.

    Without centring, which Section IV removes, and for symmetric c the velocity is 2 tau Q [nu (1 - Q) - tau/m
    (1 + nu Q)], whatever the higher moments: a state with Q > 0 exists iff Q = 0 is unstable. With centring the
    statement holds.
    """
    for second_moment, probability, step in [(1.1, 0.2, 0.05), (1.1, 0.9, 0.2), (1.5, 0.2, 0.2)]:
        nu = second_moment - 1
        for Q in GRID:
            velocity = relu_velocity(Q, three_point(second_moment, probability), step)
            right = 2 * Q * (nu * (1 - Q) - step * (1 + nu * Q))
            assert velocity == pytest.approx(right, rel=0, abs=1e-13)  # rounding of terms of order one

    both = three_point(1.05), 0.1
    assert relu_velocity(0.01, *both, centred=True) < 0
    assert max(relu_velocity(Q, *both, centred=True) for Q in GRID) > 0
    assert max(relu_velocity(Q, *both) for Q in GRID) < 0


def test_relu_gains_from_opposite_noise():
    """Text on Fig. 11b: opposite noise can create the recovery state; so it does, also without centring."""
    quiet, noisy = ([relu_velocity(Q, three_point(1.0), 0.05, eta) for Q in GRID] for eta in (0.0, 0.5))
    assert max(quiet) < 0
    assert noisy[0] < 0
    assert max(noisy) > 0


def test_opposite_noise_raises_the_threshold_of_relu():
    """IV-C, S-IV: opposite noise is only said to help; with ReLU it makes Q = 0 harder to leave, at every eta.

    The threshold is 1 + Lambda(0)/(2 tau gain) with Lambda(0) = 4 tau^2/m <A^2 + eta zeta^2> and gain = 2 d<A>/dq
    for c = 1, all for A > |zeta|. As d<A>/dq = <A^2>, it is above 1 + tau/m.
    """
    a, shift = sp.symbols("A shift", real=True)
    density = sp.exp(-((a - shift) ** 2) / 2)  # of A for c = 1
    assert equal(a * sp.diff(density, shift).subs(shift, 0), a**2 * density.subs(shift, 0))  # under the integral

    step = 0.05
    law = three_point(1 + 1.1 * step)
    assert relu_velocity(1e-3, law, step) > 0
    assert relu_velocity(1e-3, law, step, eta=1.0) < 0
