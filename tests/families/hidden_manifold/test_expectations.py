"""Expectations over Gaussian fields against unit values, quadrature, printed formulas, and units that are one."""

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.special import erf, ndtr

from meanfield.families.hidden_manifold.expectations.choice import linear_expectations
from meanfield.families.hidden_manifold.expectations.erf import erf_expectations
from meanfield.families.hidden_manifold.expectations.orthants import orthant, standardise
from meanfield.families.hidden_manifold.expectations.quadrature import (
    TABLE_POINTS,
    fill_table,
    make_rule,
    multiply_by_table,
    quadrature_expectations,
)
from meanfield.families.hidden_manifold.expectations.relu import relu_expectations
from meanfield.ingredients.activations import make_activation

C = np.array([[0.9, 0.2, 0.4, 0.1], [0.2, 0.7, -0.1, 0.3], [0.4, -0.1, 1.1, 0.2], [0.1, 0.3, 0.2, 1.3]])
U = np.array([0.8, 0.5, -1.0, -0.6])
MEAN = np.array([0.5, -0.3, 0.8, 0.2])


def expectations(name, C, u, mean=None, K=2, order=0, label_noise=0.0):
    """A, H, G, D and the generalisation error, by the closed form, or by quadrature of an order."""
    mean = np.zeros(len(u)) if mean is None else mean
    A, H, G, D = np.zeros((K, len(u))), np.zeros((K, K)), np.zeros(K), np.zeros(K)
    if order:
        g = make_activation(name)
        error = quadrature_expectations(K, C, mean, u, label_noise, make_rule(g, g, order), A, H, G, D)
    else:
        closed = {"scaled_erf": erf_expectations, "linear": linear_expectations, "relu": relu_expectations}[name]
        error = closed(K, C, mean, u, label_noise, A, H, G, D)
    return A, H, G, D, error


def largest_difference(first, second, without=()):
    return max(np.abs(x - y).max() for i, (x, y) in enumerate(zip(first, second, strict=True)) if i not in without)


def covariance(seed, fields=4, rank=4):
    """Random covariance of some rank."""
    V = np.random.default_rng(seed).standard_normal((fields, rank))
    return V @ V.T / rank


PRINTED = 1e-11  # 11 digits were printed


def test_unit_values():
    """Values that were computed from other formulas in another program; all digits that it printed."""
    A, H, _, _, error = expectations("scaled_erf", C, U)
    assert np.allclose(A[0, :3], [0.17563399556, 0.14257545715, -0.26023800621], rtol=0, atol=PRINTED)
    assert np.allclose(H.ravel()[[0, 1, 3]], [0.15007825420, 0.08490891022, 0.05957209294], rtol=0, atol=PRINTED)
    assert error == pytest.approx(0.31229292853, abs=PRINTED)
    A, H, G, _, error = expectations("scaled_erf", C, U, MEAN)
    assert [A[0, 0], H[0, 1], error] == pytest.approx([0.20199368093, 0.08535793500, 0.33212715836], abs=PRINTED)
    assert G[0] == pytest.approx(-0.17348375, abs=1e-8)  # printed with 8 digits
    A, H, _, _, error = expectations("relu", C, U)
    assert np.allclose(A[0, :3], [0.15402532456, 0.11621610135, -0.25267603184], rtol=0, atol=PRINTED)
    assert np.allclose(H.ravel()[[0, 1, 3]], [0.27695463728, 0.10018465228, 0.08758181840], rtol=0, atol=PRINTED)
    assert error == pytest.approx(0.35753056813, abs=PRINTED)


def integrated(C, u, mean, K=2, points=41):
    """Expectations for erf(x/sqrt 2) on a grid in all four normal variables at once, in NumPy.

    At spacing 0.4 the trapezoidal rule is right to 1e-13 for densities whose widths are 1 and more.
    """
    z = np.linspace(-8.0, 8.0, points)
    w = np.exp(-0.5 * z * z)
    w /= w.sum()
    L = np.linalg.cholesky(C)
    Z = np.meshgrid(*[z] * 4, indexing="ij", sparse=True)
    h = [mean[a] + sum(L[a, i] * Z[i] for i in range(a + 1)) for a in range(4)]
    g = [erf(x / math.sqrt(2)) for x in h]
    slope = [math.sqrt(2 / math.pi) * np.exp(-x * x / 2) for x in h[:K]]
    delta = sum(u[a] * g[a] for a in range(4))

    def average(f):
        return np.einsum("abcd,a,b,c,d->", np.broadcast_to(f, (points,) * 4), w, w, w, w, optimize=True)

    H = np.array([[u[k] * u[j] * average(delta**2 * slope[k] * slope[j]) for j in range(K)] for k in range(K)])
    G = np.array([u[k] * average(delta * slope[k]) for k in range(K)])
    D = np.array([average(delta * g[k]) for k in range(K)])
    # Stein's lemma backwards: u_k E[Delta g'_k (h - mean)] = A C
    moments = np.array([[u[k] * average(delta * slope[k] * (h[a] - mean[a])) for a in range(4)] for k in range(K)])
    return moments @ np.linalg.inv(C), H, G, D, 0.5 * average(delta**2)


def test_erf_against_a_grid():
    exact = integrated(C, U, MEAN, points=33)
    assert largest_difference(expectations("scaled_erf", C, U, MEAN), exact) < 1e-9  # of the rule at this spacing


@pytest.mark.parametrize("seed", range(3))
def test_closed_forms_against_nested_quadrature(seed):
    """Two algorithms that share no formula; the order leaves 1e-10 of erf (of which H converges last), less of ReLU."""
    random, u = covariance(seed), np.random.default_rng(seed).standard_normal(4)
    for name, mean, order, bound in (
        ("scaled_erf", None, 40, 1e-8),
        ("relu", None, 20, 1e-10),
        ("linear", MEAN, 24, 1e-10),
    ):
        closed, nested = (expectations(name, random, u, mean, order=n, label_noise=0.7) for n in (0, order))
        assert largest_difference(closed, nested) < bound, name


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_rectified_fields_with_means_against_nested_quadrature(size):
    """Small means, usual ones, and far ones, where a part of the fields never changes its sign."""
    found = expectations("relu", C, U, size * MEAN)
    by_quadrature = expectations("relu", C, U, size * MEAN, order=32)
    assert largest_difference(found, by_quadrature) < 1e-10 * max(1.0, size**2)  # what the order leaves


def test_rectified_fields_that_are_positive_are_linear():
    """Twelve standard deviations from 0 on one side all fields are themselves, on the other side nothing is left."""
    far = np.full(4, 15.0)
    found = expectations("relu", C, U, far), expectations("linear", C, U, far)
    assert largest_difference(*found) < 1e-12  # rounding of numbers up to 200
    assert max(np.abs(x).max() for x in expectations("relu", C, U, -far)) < 1e-12


def test_small_means_of_rectified_fields_make_small_differences():
    """Expectations are Lipschitz in means, with constants of order 1."""
    centred = expectations("relu", C, U)
    for size in (1e-6, 1e-12):
        assert largest_difference(expectations("relu", C, U, size * MEAN), centred) < size


def test_quadrature_converges_exponentially():
    """Each time half as many points again gain more digits than before, also where tables take part."""
    exact = expectations("scaled_erf", C, U, MEAN)
    errors = [largest_difference(expectations("scaled_erf", C, U, MEAN, order=n), exact) for n in (12, 18, 27, 40)]
    assert errors[1] < errors[0] / 5
    assert errors[2] < errors[1] / 30
    assert errors[3] < errors[2] / 100


def test_tables_are_of_the_order_that_they_say():
    """Tanh between -3 and 3 at two spacings: the error falls by 2^12, less what higher derivatives add."""
    errors = []
    for h in (0.2, 0.1):
        cells = round(6 / h)
        table = np.empty((cells, TABLE_POINTS))
        fill_table(np.tanh(h * (np.arange(cells + TABLE_POINTS - 1) - TABLE_POINTS // 2 + 1) - 3), table)
        z = np.linspace(0.0, 6.0, 500)
        found = np.ones(500)
        multiply_by_table(0.0, 1.0 / h, z, table, found)
        errors.append(np.abs(found - np.tanh(z - 3)).max())
    assert errors[1] < 1.5e-10  # 26,000 h^12 f^(12)/12!, with 2 (2/pi)^13 for the derivative
    assert errors[0] > 2**10 * errors[1]


def printed_I3(C, k, j, a):
    """E[g'_k h_j g_a] as papers print it."""
    root = math.sqrt((1 + C[k, k]) * (1 + C[a, a]) - C[k, a] ** 2)
    return 2 / math.pi * (C[j, a] * (1 + C[k, k]) - C[k, j] * C[k, a]) / ((1 + C[k, k]) * root)


def test_the_printed_form_is_that_of_stein():
    A = expectations("scaled_erf", C, U)[0]
    printed = [[U[k] * sum(U[a] * printed_I3(C, k, j, a) for a in range(4)) for j in range(4)] for k in range(2)]
    assert np.abs(A @ C - printed).max() < 1e-14  # rounding


@pytest.mark.parametrize("mean", [0.0, 1.0])
@pytest.mark.parametrize("name", ["scaled_erf", "relu", "linear"])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_teacher_that_is_a_student_adds_to_its_weight(name, scale, mean):
    """Fields that are multiples of each other make the covariance singular, and nothing else."""
    three = covariance(5, 3, 3)
    chosen = [0, 1, 2, 0]
    factor = np.array([1.0, 1.0, 1.0, scale if name != "scaled_erf" else 1.0])
    four = three[np.ix_(chosen, chosen)] * np.outer(factor, factor)
    u, means = np.array([0.7, -0.4, 0.9, 0.6]), mean * MEAN[:3]
    merged = expectations(name, three, np.array([0.7 + 0.6 * factor[3], -0.4, 0.9]), means)
    found = expectations(name, four, u, means[chosen] * factor)
    # The merged unit is a teacher to itself: what is learnt has the weight of the student alone.
    ratio = np.array([0.7 / (0.7 + 0.6 * factor[3]), 1.0])
    assert found[4] == pytest.approx(merged[4], abs=1e-12)  # rounding of singular matrices
    assert np.abs(found[3] - merged[3]).max() < 1e-12
    assert np.abs(found[2] - merged[2] * ratio).max() < 1e-12
    assert np.abs(found[1] - merged[1] * np.outer(ratio, ratio)).max() < 1e-12


@pytest.mark.parametrize("mean", [0.0, 1.0])
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("name", ["scaled_erf", "relu"])
def test_nothing_jumps_where_the_covariance_becomes_singular(name, rank, mean):
    """Expectations where rank is lost are the limit of those beside it: ReLU has a square root there, of 1e-12."""
    singular = covariance(7, 4, rank)
    near = singular + 1e-12 * np.eye(4)
    assert (
        largest_difference(expectations(name, singular, U, mean * MEAN), expectations(name, near, U, mean * MEAN))
        < 1e-5
    )


def test_opposite_rectified_fields_are_never_positive_together():
    """A teacher that is minus a student, with means between whose signs the pair has an interval."""
    signs, chosen = np.array([1.0, 1.0, 1.0, -1.0]), [0, 1, 2, 0]
    C = covariance(5, 3, 3)[np.ix_(chosen, chosen)] * np.outer(signs, signs)
    m = np.array([0.3, -0.4, 0.5, 0.2])  # h_3 = 0.5 - h_0
    H = expectations("relu", C, U, m)[1]
    rng = np.random.default_rng(0)
    h = m + rng.multivariate_normal(np.zeros(3), C[:3, :3], 1_000_000)[:, [0, 1, 2, 0]] * signs
    value = (np.maximum(h, 0.0) @ U) ** 2 * (h[:, 0] > 0) * (h[:, 1] > 0) * U[0] * U[1]
    assert abs(H[0, 1] - value.mean()) < 4 * value.std() / 1000  # four standard errors


@pytest.mark.parametrize("name", ["scaled_erf", "relu"])
def test_students_without_weights_have_expectations(name):
    zero = np.zeros((4, 4))
    zero[2:, 2:] = C[2:, 2:]  # students without weights
    assert all(np.isfinite(x).all() for x in expectations(name, zero, U))


def share_of_sphere(V):
    """Share of the sphere in R^3 on which all rows have positive products: its excess over 4 pi, from its corners."""
    corners = []
    for i, j in combinations(range(len(V)), 2):
        axis = np.cross(V[i], V[j])
        for corner in (axis, -axis):
            if all(V[k] @ corner > 0 for k in range(len(V)) if k not in (i, j)):
                corners.append(math.pi - math.atan2(np.linalg.norm(axis), V[i] @ V[j]))
    return (sum(corners) - (len(corners) - 2) * math.pi) / (4 * math.pi) if corners else 0.0


def probability(C, mean=None):
    n = len(C)
    size, p, q, given = np.empty(n), np.empty(n), np.empty((n, n)), np.empty((n, n, n))
    standardise(n, C, np.zeros(n) if mean is None else mean, 0.0, size, p, q, given)
    return orthant(n, p, q, given)


def test_orthants():
    assert probability(C) == pytest.approx(0.11224935987, abs=1e-11)  # digits printed
    assert probability(0.5 + 0.5 * np.eye(4)) == pytest.approx(0.2, abs=1e-14)  # rounding
    rng = np.random.default_rng(0)
    for _ in range(100):
        V = rng.standard_normal((4, 3))
        assert probability(V @ V.T) == pytest.approx(share_of_sphere(V), abs=1e-13)  # rounding where rank is lost
        V[1] = 0.7 * V[0] + 1e-4 * rng.standard_normal(3)  # what is left of the pair has eight digits
        found = probability((V @ V.T)[::-1, ::-1])
        assert found == pytest.approx(share_of_sphere(V), abs=1e-9)


def over_the_first(C, mean, inner, points=200):
    """P(all > 0) by an integral over the first variable of what `inner` says about the others given it."""
    x, w = leggauss(points)
    low, sd = max(-mean[0], -9.0 * math.sqrt(C[0, 0])), math.sqrt(C[0, 0])
    x = 0.5 * (9.0 * sd - low) * (x + 1.0) + low  # of the first variable without its mean
    w = 0.5 * (9.0 * sd - low) * w * np.exp(-0.5 * (x / sd) ** 2) / (sd * math.sqrt(2.0 * math.pi))
    slope = C[1:, 0] / C[0, 0]
    rest = C[1:, 1:] - np.outer(slope, C[0, 1:])
    return sum(weight * inner(rest, mean[1:] + slope * z) for z, weight in zip(x, w, strict=True))


def test_orthants_with_means_are_integrals_of_those_of_one_variable_less():
    """From the error function of one variable up to four variables."""
    rng = np.random.default_rng(1)
    for fields in (2, 3, 4):
        for _ in range(5):
            random, mean = covariance(int(rng.integers(1000)), fields, 6), rng.standard_normal(fields)
            one = (lambda C, m: float(ndtr(m[0] / math.sqrt(C[0, 0])))) if fields == 2 else probability
            assert probability(random, mean) == pytest.approx(over_the_first(random, mean, one), abs=1e-12)  # rounding


def test_orthants_with_means_have_marginals():
    """With either sign of a variable they add up to that of the others, also where two nearly decide each other."""
    rng = np.random.default_rng(2)
    for trial in range(50):
        V, mean = rng.standard_normal((4, 4)), rng.standard_normal(4) * 10.0 ** rng.uniform(-3.0, 1.0)
        if trial % 2:
            V[1] = 0.7 * V[0] + 10.0 ** rng.uniform(-4.0, -1.0) * V[1]
            mean[1] = 0.7 * mean[0] + 10.0 ** rng.uniform(-4.0, -1.0) * mean[1]
        for i in range(4):
            signs, others = np.where(np.arange(4) == i, -1.0, 1.0), np.arange(4) != i
            both = probability(V @ V.T, mean) + probability(V @ V.T * np.outer(signs, signs), mean * signs)
            rest = probability((V @ V.T)[np.ix_(others, others)], mean[others])
            assert both == pytest.approx(rest, abs=1e-11)  # what panels leave
