"""Formulas on the way to Theorem 1 that are printed wrong in Meng and Wang (2024), and some that are right.

The step of SGD, its mean and variance, the normalisation and the PDE: Sections II and III, (S-13) to (S-40). For
sigma = x^2 unless a test says otherwise, and in the sense of test_errata.py.
"""

from functools import cache
from itertools import product

import sympy as sp

from tests.oracles.plain_steps import (
    C1,
    C2,
    MOMENTS,
    N1,
    N2,
    NOISE_A,
    NOISE_B,
    NOISE_D,
    Q1,
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

NU1 = moment_symbol(1, 2) - 1


# The derivation of Theorem 1.


def test_gradient_of_the_loss():
    """(S-15), (S-17): the gradient, for two samples, two coordinates and any sigma."""
    sigma, t, m, n = sp.Function("sigma"), sp.Symbol("t"), 2, 2
    w, means, x = sp.symbols("w:2"), sp.symbols("ybar1:3"), sp.symbols("x:8")
    views = [[x[4 * view + n * b : 4 * view + n * (b + 1)] for b in range(m)] for view in range(2)]
    z = [[sum(a * b for a, b in zip(w, sample, strict=True)) / sp.sqrt(n) for sample in view] for view in views]
    loss = -sum((sigma(z[0][b]) - means[0]) * (sigma(z[1][b]) - means[1]) for b in range(m)) / sp.Integer(m)

    def slope(argument):
        return sp.diff(sigma(t), t).subs(t, argument).doit()

    def mu(b, view):
        return -2 * (sigma(z[view][b]) - means[view]) * slope(z[1 - view][b])

    printed = sum(views[1][b][0] * mu(b, 0) + views[0][b][0] * mu(b, 1) for b in range(m)) / (2 * m * sp.sqrt(n))
    assert equal(sp.diff(loss, w[0]).doit(), printed)


def test_batch_mean_has_no_gradient_path():
    """Text under (2), S-I-B: the mean over the batch is said to open an extra gradient path; its gradient is zero."""
    m = 3
    t, mean1, moving1 = sp.symbols("t ybar1 dybar1")
    y1, y2, slope1, slope2 = (sp.symbols(f"{name}0:{m}") for name in ("y1_", "y2_", "d1_", "d2_"))

    def gradient(means):
        """Of the cross-covariance, along one direction of w, with these means as functions of t."""
        samples = zip(y1, slope1, y2, slope2, strict=True)
        covariance = sum((a + t * da - means[0]) * (b + t * db - means[1]) for a, da, b, db in samples)
        return sp.diff(covariance, t).subs(t, 0)

    fixed = [sum(y1) / sp.Integer(m), sum(y2) / sp.Integer(m)]
    moving = [fixed[0] + t * sum(slope1) / m, fixed[1] + t * sum(slope2) / m]
    assert equal(gradient(moving), gradient(fixed))
    # It is the mean of the population that would have one.
    assert not equal(gradient([mean1 + t * moving1, fixed[1] + 1]), gradient([mean1, fixed[1] + 1]))


def test_batch_centering_changes_what_is_learnable():
    """III-A.2: the two means are said to differ in no quality; for 3 tau < m2 - 1 < 5 tau only one learns (m = 2)."""
    second = {C2: lambda n: moment_symbol(1, n), N1: normal_moment}  # c and e of the other sample
    moments = {C1: MOMENTS[C1], E: normal_moment} | second
    theta, other = C1 * Q1 + S * E, C2 * Q1 + S * N1

    def growth(ybar):
        """D(dq/dt)/dq at q = 0 from the update of one sample out of two."""
        factor = 4 * (theta**2 - ybar) * theta  # alpha + beta

        def at(f):
            return sp.expand(mean(f, moments).subs(S, sp.sqrt(1 - Q1**2)))

        pull = TAU * at(factor * (C1 - Q1 * theta))
        return sp.diff(pull, Q1).subs(Q1, 0) - TAU**2 / 4 * at(factor**2).subs(Q1, 0)

    population = growth(1 + NU1 * Q1**2)
    batch = growth((theta**2 + other**2) / 2)
    assert equal(population, 8 * TAU * (NU1 - 5 * TAU))
    assert equal(batch, 4 * TAU * (NU1 - 3 * TAU))
    between = {moment_symbol(1, 2): 1 + 4 * TAU}
    assert sp.expand(population.subs(between)).is_negative
    assert sp.expand(batch.subs(between)).is_positive


def test_covariance_of_the_background():
    """(S-23) for one feature: -u_i q/sqrt(N), up to a term of order N^(-3/2)."""
    n = 4
    w, u = sp.Matrix(sp.symbols(f"w0:{n}")), sp.Matrix(sp.symbols(f"u0:{n}"))
    covariance = sp.eye(n) - u * u.T / n  # of a
    others = sp.Matrix([0, *w[1:]]) / sp.sqrt(n)  # the weights of a in e~
    q = (u.T * w)[0] / n
    rest = w[0] * u[0] ** 2 / sp.sqrt(n) ** 3
    assert equal((covariance * others)[0], -u[0] * q / sp.sqrt(n) + rest)


def test_covariance_of_two_increments():
    """Before (S-29): <D_i D_j> = <D_i><D_j> for i != j; it is another number of the same order 1/N^2.

    Here for q = 0, u_i = u_j = 0 and m = 1, so that D_i = tau/2 epsilon h(z) a_i with h = h12 + h21 = 8 z^3,
    z = e + epsilon (w_i a_i + w_j a_j) and epsilon = 1/sqrt(N).
    """
    w_i, w_j, epsilon = sp.symbols("w_i w_j epsilon")
    z = E + epsilon * (w_i * N1 + w_j * N2)

    def lowest(f, order):
        return mean(sp.expand(f).coeff(epsilon, order))

    both = TAU**2 / 4 * lowest((8 * z**3) ** 2 * N1 * N2, 2)
    each = [TAU / 2 * lowest(8 * z**3 * a, 1) for a in (N1, N2)]
    assert equal(both, TAU**2 / 4 * w_i * w_j * mean(sp.diff((8 * E**3) ** 2, E, 2)))
    assert equal(each[0] * each[1], TAU**2 / 4 * w_i * w_j * mean(sp.diff(8 * E**3, E)) ** 2)
    assert not equal(both, each[0] * each[1])


def test_length_in_the_normalisation():
    """Before (S-30): the norm of w~/N is expanded; without a step it has to be the norm of w~/sqrt(N)."""
    n = sp.Symbol("N", positive=True)
    length = sp.sqrt(n)  # of w
    assert 1 / (length / sp.sqrt(n)) == 1
    assert 1 / (length / n) != 1


def test_normalisation_step():
    """(S-30): the step on the sphere, up to terms that are smaller by 1/sqrt(N) or more.

    Orders: D has entries of size epsilon = 1/sqrt(N), while w.D and D.D are of order one.
    """
    w, d, along, square, epsilon = sp.symbols("w_i D_i w.D D.D epsilon")
    stretch = 1 / sp.sqrt(1 + epsilon**2 * (2 * along + square))
    exact = sp.series((w + epsilon * d) * stretch, epsilon, 0, 4).removeO()
    printed = w + epsilon * d - epsilon**3 * d * along - epsilon**2 * w * (along + square / 2)
    rest = sp.expand(exact - printed)
    assert equal(rest, -(epsilon**3) * d * square / 2)  # odd in D: its mean is of order epsilon^4


def test_step_along_the_weights_fluctuates():
    """After (S-30): w.D/N is replaced by its mean up to o(1/N); its spread is of order 1/N as well.

    Here for q = 0 and m = 1, where w.D = tau (alpha z + beta z) = 4 tau z^4.
    """
    along = 4 * TAU * E**4
    assert equal(mean(along), TAU / 2 * mean(sp.diff(8 * E**3, E)))  # its mean is right
    assert equal(mean(along**2) - mean(along) ** 2, 1536 * TAU**2)
    assert not equal(mean(along**2) - mean(along) ** 2, 0)


def test_prior_in_the_mean_increment():
    """(S-31): tau w.phi(w) for tau r = tau w.phi(w)/N; with phi(w) = w the prior must drop out."""
    n, w = sp.symbols("N w_i", positive=True)
    step = (w - TAU / n * w) / (1 - TAU / n) - w  # the prior alone, normalised
    right = (w * TAU * (n / n) - TAU * w) / n
    printed = (w * TAU * n - TAU * w) / n
    assert sp.simplify(step) == 0
    assert equal(right, 0)
    assert not equal(printed, 0)


def test_norm_is_conserved():
    """(S-35): with the true q and r the drift and the diffusion keep <w^2> = 1, for any prior."""
    g, r, Lambda = sp.symbols("g r Lambda")
    square, overlap, prior = 1, Q1, r  # <w^2>, <w u>, <w phi(w)>
    drift = square * (Q1 * g + TAU * r - Lambda / 2) - overlap * g - TAU * prior
    assert equal(2 * drift + Lambda, 0)


def test_boundary_term():
    """(S-39): the integral of dP/dw is the difference of P, not of dP/dw; both vanish at infinity."""
    w = sp.Symbol("w")
    density = sp.exp(-((w - 1) ** 2) / 2)
    integral = sp.integrate(sp.diff(density, w), (w, 0, 3))
    assert sp.simplify(integral - (density.subs(w, 3) - density.subs(w, 0))) == 0
    slope = sp.diff(density, w)
    assert sp.simplify(integral - (slope.subs(w, 3) - slope.subs(w, 0))) != 0


def test_features_need_unit_variance():
    """III-A.3 asks of U only independence and bounded moments; (S-39) takes <u^2> = 1."""
    g, Lambda, variance, u = sp.symbols("g Lambda v u")
    w = Q1 / variance * u + E  # any w with <u w> = q
    moments = {u: {0: 1, 1: 0, 2: variance}.get, E: normal_moment}
    overlap = mean(u * (w * (Q1 * g - Lambda / 2) - u * g), moments)
    assert equal(overlap, Q1 * (Q1 * g - Lambda / 2) - variance * g)
    assert not equal(overlap, Q1 * (Q1 * g - Lambda / 2) - g)


# The mean increment of one weight, with noise of any covariance. a_i and gamma_i are independent of e and zeta.

A, N3, N4, W, U, EPSILON = sp.symbols("a_i n3 n4 w_i U_i epsilon")
OWN_MOMENTS = {A: normal_moment, N3: normal_moment, N4: normal_moment}
GAMMA = NOISE_A * N3, NOISE_B * N3 + NOISE_D * N4  # gamma_i of both views
SHIFT = -U * Q1 * A  # sqrt(N) times what (S-25) adds to e~


@cache
def increment(h, view, shift=SHIFT):
    """The coefficient of 1/sqrt(N) in <h(z1, z2) x_i> with x_i of that view, expanded as in (S-22) and (S-25)."""
    model = symbolic(1, "general")
    moved = [shift + W * (A + gamma) for gamma in GAMMA]
    expansion = h + EPSILON * (sp.diff(h, model.z1) * moved[0] + sp.diff(h, model.z2) * moved[1])
    x = EPSILON * U * C1 + A + GAMMA[view - 1]
    exact = sp.expand(expansion * x).coeff(EPSILON, 1).subs(model.theta)
    return sp.expand(mean(exact, MOMENTS | OWN_MOMENTS).subs(S, sp.sqrt(1 - Q1**2)))


def along_feature(h):
    """U_i (<c h> - q <h'>)."""
    model = symbolic(1, "general")
    return U * (model.mean(h, times=C1) - Q1 * model.mean(model.both_derivatives(h)))


def own(h, first, second):
    """The term with w_i, given what multiplies <dh/dz1> and <dh/dz2>."""
    model = symbolic(1, "general")
    return W * (first * model.mean(sp.diff(h, model.z1)) + second * model.mean(sp.diff(h, model.z2)))


def test_sign_of_the_mean_increment():
    """(S-27): -U (<c f> - q <f'>) in the mean increment of a weight; this sign makes up for that of f."""
    model = symbolic(1, "general")
    f = -model.h12  # with the sign of (S-16)
    weight = own(f, 1 + model.v12, 1 + model.v22)
    assert equal(increment(f, 2), along_feature(f) + weight)
    assert not equal(increment(f, 2), -along_feature(f) + weight)


def test_sign_of_the_own_term():
    """(S-28): + tau/2 in front of the term with w_i; by (S-21) and (S-27) it is -tau/2, like all that holds mu."""
    model = symbolic(1, "general")
    mu12, mu21 = -model.h12, -model.h21
    step = -TAU / 2 * (increment(mu12, 2) + increment(mu21, 1))
    weight = own(mu12, 1 + model.v12, 1 + model.v22) + own(mu21, 1 + model.v11, 1 + model.v12)
    assert equal(step, -U * model.g[0] - TAU / 2 * weight)
    assert not equal(step, -U * model.g[0] + TAU / 2 * weight)


def test_noise_of_the_input_in_the_second_gradient():
    """(S-21), (S-28): gamma^(2) also in the input that goes with mu(z2, z1); it is gamma^(1)."""
    model = symbolic(1, "general")
    weight = own(model.h21, 1 + model.v11, 1 + model.v12)  # as (S-28) goes on, rightly
    assert equal(increment(model.h21, 1), along_feature(model.h21) + weight)
    assert not equal(increment(model.h21, 2), along_feature(model.h21) + weight)


def test_noise_in_the_taylor_expansion():
    """(S-22): in the second term the input has gamma^(1); it is the input of view 2, and (S-27) has 1 + v12 for it."""
    model = symbolic(1, "general")
    second = 1 + model.v22

    def first(view):
        return mean((A + GAMMA[view - 1]) * (A + GAMMA[0]), OWN_MOMENTS)

    assert equal(increment(model.h12, 2), along_feature(model.h12) + own(model.h12, first(2), second))
    assert not equal(increment(model.h12, 2), along_feature(model.h12) + own(model.h12, first(1), second))


def test_shift_of_the_background():
    """After (S-25): a middle line has lost the shift of e~ by a_i, and with it the -q <f'> of the next line."""
    model = symbolic(1, "general")
    weight = own(model.h12, 1 + model.v12, 1 + model.v22)
    assert equal(increment(model.h12, 2), along_feature(model.h12) + weight)
    assert not equal(increment(model.h12, 2, shift=sp.Integer(0)), along_feature(model.h12) + weight)


def test_diffusion_from_the_update():
    """(8), (S-29): Lambda, and which view's variance goes with f12 and f21."""
    model = symbolic(1, "general")
    alpha, beta = model.h21 / 2, model.h12 / 2
    x1, x2 = (A + gamma for gamma in GAMMA)
    squares = [(alpha**2, x1**2), (beta**2, x2**2), (2 * alpha * beta, x1 * x2)]
    exact = TAU**2 / M * sum(model.mean(h) * mean(x, OWN_MOMENTS) for h, x in squares)
    assert equal(model.Lambda, exact)


def test_mean_output_of_each_view():
    """(S-16): one ybar for both views; where their noises differ so do the means, as (10) and (S-26) have it."""
    model = symbolic(1, "general")
    ybar1, ybar2 = model.mean(model.z1**2), model.mean(model.z2**2)
    assert equal(model.mean(model.z2**2 - ybar2), 0)
    assert not equal(model.mean(model.z2**2 - ybar1), 0)


def test_covariance_of_the_noises():
    """(S-24): the second and fourth diagonal entries are <(gamma2)^2>."""
    model = symbolic(1, "general")
    covariance = sp.Matrix(2, 2, lambda i, j: mean(GAMMA[i] * GAMMA[j], OWN_MOMENTS))
    assert covariance == sp.Matrix([[model.v11, model.v12], [model.v12, model.v22]])
    assert covariance != sp.Matrix([[model.v11, model.v12], [model.v12, model.v11]])
    # The closures depend on which of the two it is.
    assert not equal(model.mean(model.z1**2), model.mean(model.z2**2))


def test_noise_enters_through_its_projection():
    """(10), after (S-25): <.> over the law of gamma itself; zeta = gamma.w/sqrt(N) has its variance, but is Gaussian.

    Here for gamma = +-1 and w = (1, ..., 1): the moments of zeta, and <f12^2> with gamma2 = -gamma1.
    """
    n = sp.Symbol("N")
    moments = {0: 1, 2: 1, 4: 3 - 2 / n, 6: 15 - 30 / n + 16 / n**2}
    for size, order in product(range(1, 6), (2, 4, 6)):
        signs = product((-1, 1), repeat=size)
        exact = sp.Rational(sum(sum(s) ** order for s in signs), 2**size * size ** (order // 2))
        assert exact == sp.sympify(moments[order]).subs(n, size)

    model = symbolic(1, "opposite")
    square = sp.expand(model.h12**2).subs(model.theta, simultaneous=True)
    finite = mean(square, MOMENTS | {N1: lambda order: moments.get(order, 0)})
    right = mean(square)
    assert equal(sp.limit(finite, n, sp.oo), right)
    assert not equal(finite.subs(n, 1), right)  # <.> over gamma's own law
