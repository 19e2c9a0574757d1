"""Errata of the paper (docs/errata/tian_2022.md): the right formula holds, and the printed one does not."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

import meanfield
from meanfield.families.alpha_contrastive.limit.circle import on_circle
from meanfield.families.alpha_contrastive.limit.fields import discrete_field, mixture_field
from meanfield.families.alpha_contrastive.modulated_basins import chance_of_pattern
from tests.families.alpha_contrastive.problems import LAW_F, problem
from tests.families.alpha_contrastive.test_critical_points import MIXTURE


def test_coefficient_of_global_modulation():
    """(143) against the definition (142), and the form of it in the text below, with and without its factor."""
    p, d, b = 0.3 * 0.7, np.array([0.2, 0.35, 0.1]), np.array([0.8, -0.5, 0.9])
    lam = brentq(lambda x: p * np.sum(b**2 / (x - d)) - 1.0, d.max() + 1e-9, 10.0, xtol=1e-15)
    np.testing.assert_allclose(lam, np.linalg.eigvalsh(np.diag(d) + p * np.outer(b, b))[-1], rtol=1e-13)  # xtol
    s = b / (d - lam)
    Z = np.linalg.norm(s)
    s /= Z
    defined = p * s * (s @ b - s * b) / b
    printed = p / (Z**2 * (lam - d)) * (np.sum(b**2 / (lam - d)) - b**2 / (lam - d))
    text = 1.0 - p * b**2 / (lam - d)
    np.testing.assert_allclose(printed, defined, rtol=1e-12)  # rounding, and lam by xtol
    np.testing.assert_allclose(text / (Z**2 * (lam - d)), defined, rtol=1e-12)  # the same
    assert np.all(np.abs(text / defined - 1.0) > 0.5)


def roughness(field, w, step=1e-6):
    """|(A(v) - A(w)) w|/|v - w| for v close to w, the larger one of both sides."""
    angle = np.arctan2(w[1], w[0])
    sides = [on_circle(np.array([angle + s]))[0] for s in (-step, step)]
    return max(float(np.linalg.norm((field.matrix(v) - field.matrix(w)) @ w)) / step for v in sides)


def test_smooth_optima_are_stable_however_rough():
    """A stable LME of ReLU whose gap is smaller than its roughness (theorem 1 demands that it is larger)."""
    points = meanfield.solve(problem("relu", MIXTURE), "critical_points")
    stable = points.isel(point=points["stable"].values > 0)
    assert stable["lme"].values.all()
    given = problem("relu", MIXTURE)
    field = mixture_field(given, given.data)
    rough = np.array([roughness(field, w) for w in stable["w"].values])
    smooth = stable["gap"].values > rough
    assert not smooth.all()
    k = int(np.argmin(stable["gap"].values))
    np.testing.assert_allclose((stable["gap"].values[k], rough[k]), (0.0536, 0.1105), atol=5.1e-5)  # digits of the page


def test_bound_of_the_roughness():
    """Points evenly in a ball of radius C0 in the plane: rho = E[h] |M0|, against C0^3 vol r/pi and C0^2 vol r/pi."""
    for C0 in (0.1, 1.0):
        volume = np.pi * C0**2
        h = quad(lambda x, C0=C0: x * 2.0 * np.sqrt(C0**2 - x**2), 0.0, C0)[0] / volume
        rho = h * 2.0 * quad(lambda y: y * y, 0.0, C0)[0] / volume
        r = 1.0 / volume
        assert rho <= C0**2 * volume / np.pi * r
        assert (rho > C0**3 * volume / np.pi * r) == (C0 < 1.0)


def test_any_symmetric_importance_gives_a_covariance():
    """Lemma 2 with an importance >= 0 of the samples that is no kernel; a normalised one need not give one."""
    rng = np.random.default_rng(2)
    p, g = rng.dirichlet(np.ones(5)), rng.standard_normal((5, 3))
    K = rng.uniform(0.0, 1.0, (5, 5))
    K = K + K.T
    assert np.linalg.eigvalsh(K)[0] < -0.1  # no kernel
    apart = g[:, None] - g[None]
    C = 0.5 * np.einsum("i,j,ij,ija,ijb->ab", p, p, K, apart, apart)
    assert np.linalg.eigvalsh(C)[0] > 0.0
    # two samples whose second has views +1 and -1; alpha is divided by its mean over y
    alpha = np.array([[1.0, 0.1], [0.1, 0.05]])
    p = np.array([0.5, 0.5])
    alpha = alpha / (alpha @ p)[:, None]
    views = [[0.0, 0.0], [-1.0, 1.0]]
    total = 0.0
    for x, y in itertools.product(range(2), repeat=2):
        between = np.mean([(a - b) ** 2 for a, b in itertools.product(views[x], views[y])])
        within = np.mean([(a - b) ** 2 for a, b in itertools.product(views[x], views[x])])
        total += 0.5 * p[x] * p[y] * alpha[x, y] * (between - within)
    assert total < -0.1


def test_sum_over_all_pairs_and_over_different_ones():
    """(3) sums over all pairs, (23) and (24) over different ones: their means differ by E V/N at every N."""
    p, means, scatter = np.array([0.3, 0.7]), np.array([0.4, -1.1]), np.array([0.8, 0.5])
    among, within = np.sum(p * means**2) - np.sum(p * means) ** 2, np.sum(p * scatter**2)
    for N in (2, 3):
        found = {"exclude": 0.0, "include": 0.0}
        for samples in itertools.product(range(2), repeat=N):
            for signs in itertools.product((-1.0, 1.0), repeat=2 * N):
                chance, index = np.prod(p[list(samples)]) / 4.0**N, list(samples)
                f, view = (means[index] + scatter[index] * np.array(part) for part in (signs[:N], signs[N:]))
                for diagonal in found:
                    C = meanfield.alpha_contrastive.contrastive_covariance(f[:, None], view[:, None], diagonal=diagonal)
                    found[diagonal] += chance * float(C.matrix[0, 0])
        np.testing.assert_allclose(found["exclude"], (1.0 - 1.0 / N) * among, rtol=1e-12)  # rounding
        np.testing.assert_allclose(found["include"], (1.0 - 1.0 / N) * among - within / N, rtol=1e-12)  # rounding


def test_powers_are_homogeneous_up_to_a_factor():
    """For h = x^2 the field is A(w) w/2, and w.(dA) w is not 0 as in (50)."""
    given = problem("quadratic", LAW_F)
    field = discrete_field(given, given.data)
    w, step = on_circle(np.array([0.7]))[0], 1e-6
    np.testing.assert_allclose(field.matrix(w) @ w, 2.0 * field.field(w[None])[0], rtol=1e-12)  # rounding
    v = on_circle(np.array([0.7 + step]))[0]
    assert abs(w @ (field.matrix(v) - field.matrix(w)) @ w) / step > 0.1


def test_linear_filters_of_a_place_become_one_direction():
    """Theorem 4 with unit filters: the flow (12) with the top at rest ends with rank-one places, and b_k is not 0."""
    rng = np.random.default_rng(1)
    K, M, d = 3, 3, 4
    root = rng.standard_normal((K * d, K * d))
    C = (root @ root.T / (K * d)).reshape(K, d, K, d)
    w = rng.standard_normal((K, M, d))
    w /= np.linalg.norm(w, axis=2, keepdims=True)
    for _ in range(4000):
        outputs = np.einsum("kma,kalb,lnb->kmln", w, C, w).reshape(K * M, K * M)
        values, vectors = np.linalg.eigh(outputs)
        s = vectors[:, -1].reshape(K, M)
        b = np.einsum("kalb,ln,lnb->ka", C, s, w)
        along = np.einsum("kma,ka->km", w, b)  # lambda s, so that b = 0 needs lambda = 0
        np.testing.assert_allclose(along, values[-1] * s, atol=1e-12)  # rounding of eigenvectors, lambda of size 1
        push = s[:, :, None] * b[:, None]
        w = w + 0.2 * (push - np.sum(push * w, axis=2, keepdims=True) * w)
        w /= np.linalg.norm(w, axis=2, keepdims=True)
    cosine = np.abs(np.einsum("kma,ka->km", w, b)) / np.linalg.norm(b, axis=1, keepdims=True)
    np.testing.assert_allclose(cosine, 1.0, atol=1e-6)  # slowest rate of approach times t = 800
    assert values[-1] > 0.1


def test_blow_up_times_are_not_the_edge_of_a_basin():
    """Theorem 6: the edge is pi/4 + arcsin(c/(a sqrt 2)) (`test_basins_in_the_plane_are_arcs`), not as (150) has it."""
    a, b, c = 1.0, 1.5, 0.4
    edge = np.pi / 4.0 + np.arcsin(c / (a * np.sqrt(2.0)))
    times = lambda theta: [np.log1p(x / y) / x for x, y in ((b + c, np.cos(theta)), (b, np.sin(theta)))]  # noqa: E731
    printed = brentq(lambda theta: np.subtract(*times(theta)), 0.3, 1.4)
    assert printed == pytest.approx(0.87176, abs=5.1e-6)  # digits of the page
    assert edge - printed > 0.2


@pytest.mark.parametrize(("advantage", "page"), [(0.4, 0.389975), (-0.5, 0.078125), (-1.3, 0.0037515625)])
def test_chance_of_a_pattern(advantage, page):
    """(155), and the case below -1 that it lacks, (1 + eps/2)^d/d: by quadrature of (154)."""
    d = 4
    distribution = lambda x: np.clip(0.5 * (x + 1.0), 0.0, 1.0)  # noqa: E731
    kinks = [x for x in (-1.0 - advantage, 1.0 - advantage) if 0.0 < x < 1.0]
    chance = quad(lambda y: 0.5 * distribution(y + advantage) ** (d - 1), 0.0, 1.0, points=kinks or None)[0]
    assert chance == pytest.approx(page, rel=1e-12)  # rounding: piecewise polynomials
    assert float(chance_of_pattern(np.array(advantage), d)) == pytest.approx(chance, rel=1e-12)  # rounding
    last = ((1.0 + advantage / 2.0) ** d - ((1.0 + advantage) / 2.0) ** d) / d
    assert (last == pytest.approx(chance, rel=1e-12)) == (-1.0 < advantage < 0.0)  # rounding
