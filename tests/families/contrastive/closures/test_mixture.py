"""Averages over mixtures of Gaussians and a box: against adaptive quadrature, whatever the width of the components."""

from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from meanfield.families.contrastive.closures import averages as module
from meanfield.families.contrastive.closures.mixture import Mixture, components_of_b
from meanfield.families.contrastive.closures.one_feature import averages_at_many, averages_with_hidden_variable
from meanfield.families.contrastive.closures.sensitivities import averages_with_hidden
from meanfield.numerics.piecewise import tabulate, with_derivatives


def kinked(x):
    return np.maximum(x - 0.2, 0.0) * np.cos(x)


def rows(x):
    return np.array([kinked(x), np.tanh(x), np.where(x > 0.2, 1.0, 0.0)])


TABLE = with_derivatives(tabulate(rows, (0.2,), 40.0, "rows"), 1)
EXACT = {"epsabs": 1e-15, "epsrel": 1e-13}  # a reference: rounding
FUNCTIONS = {0: kinked, 2: np.tanh, 3: lambda x: np.where(x > 0.2, 1.0, 0.0)}  # row 1 is the derivative of row 0


def averages(table, mixture, q):
    return module.averages(table, mixture, q, np.empty((len(table.values), 1 + 2 * q.size)))


def in_numpy(table, mixture, q):
    return averages_at_many(table, mixture, q)[:, :, 0]


of_one = pytest.mark.parametrize("averages", [averages, in_numpy], ids=["compiled", "numpy"])


def gaussians(probability, mean, variance):
    nothing = np.zeros((mean.shape[1], 0))
    return Mixture(probability, mean, variance, np.zeros(mean.shape[1]), nothing, nothing, 1.0)


def uniform(half_width):
    return gaussians(np.ones(1), np.zeros((1, 1)), np.zeros((1, 1)))._replace(half_width=np.array([half_width]))


def integral(f, centre, width):
    """The average of f over a Gaussian law."""
    cuts = sorted({0.2, *(centre + width * np.linspace(-12, 12, 13))})
    return sum(quad(lambda x: f(x) * bell((x - centre) / width) / width, a, b, **EXACT)[0] for a, b in pairwise(cuts))


def bell(z):
    return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


@of_one
@pytest.mark.parametrize(
    ("q", "count"),
    [
        # many components by default where the overlap is zero, and where they are narrow
        pytest.param(q, count, marks=pytest.mark.slow if count > 1 and q in (0.05, 0.5, 0.95) else ())
        for q in (0.0, 0.05, 0.5, 0.95, 0.9999, -0.999999)
        for count in (1, 400)
    ],
)
def test_gaussian_components(q, count, averages):
    """One component, and so many that they share refined panels."""
    rng = np.random.default_rng(3)
    probability = rng.dirichlet(np.ones(count))
    mean = rng.normal(0, 1.5, (count, 1))
    variance = np.where(rng.random((count, 1)) < 0.5, 0.0, rng.exponential(0.5, (count, 1)))
    found = averages(TABLE, gaussians(probability, mean, variance), np.array([q]))
    if count == 1:
        deviation = np.sqrt(1 - q * q + variance[0, 0] * q * q)
        for row, f in FUNCTIONS.items():
            right = integral(f, mean[0, 0] * q, deviation)
            assert found[row, 0] == pytest.approx(right, abs=1e-11)  # RESOLVED, times values of a few
            assert found[row, 1] == pytest.approx(mean[0, 0] * right, abs=1e-11)  # the same
            assert found[row, 2] == pytest.approx(variance[0, 0] * right, abs=1e-11)  # the same
    else:
        alone = sum(
            averages(TABLE, gaussians(probability[[a]], mean[[a]], variance[[a]]), np.array([q])) for a in range(count)
        )
        np.testing.assert_allclose(found, alone, rtol=0, atol=1e-11)  # other cuts of the same series: RESOLVED


@cache
def over_the_box(row, q, reach):
    """The average of a function over a Gaussian of variance 1 - q^2 beside a uniform variable on [-reach, reach]."""
    f, deviation = FUNCTIONS[row], np.sqrt(1 - q * q)

    def density(x):
        return (ndtr((x + reach) / deviation) - ndtr((x - reach) / deviation)) / (2 * reach)

    cuts = sorted({0.2, *(e + deviation * k for e in (-reach, reach) for k in range(-10, 11)), -8.0, 8.0})
    return sum(quad(lambda x: f(x) * density(x), a, b, **EXACT)[0] for a, b in pairwise(cuts))


@of_one
@pytest.mark.parametrize("q", [1e-6, 1e-3, 0.1, 0.17, 0.5, 0.9, -0.95, 0.9999, 0.9999999])
def test_a_uniform_variable(q, averages):
    """c uniform on [-L, L]: against the integral over c of Gaussian averages, kink and narrow Gaussians included."""
    L, deviation = np.sqrt(3.0), np.sqrt(1 - q * q)
    found = averages(TABLE, uniform(L), np.array([q]))
    if q > 1e-2:  # the difference of distribution functions is accurate only for wide boxes
        for row in FUNCTIONS:
            right = over_the_box(row, q, L * q)
            assert found[row, 0] == pytest.approx(right, abs=2e-11)  # cdf differences over 2 reach, and RESOLVED
    x, weight = np.polynomial.legendre.leggauss(200)
    if deviation > 0.1:  # the Gauss rule over c resolves that
        shifted = [
            averages(TABLE, gaussians(np.ones(1), np.array([[L * c]]), np.zeros((1, 1))), np.array([q])) for c in x
        ]
        right = np.tensordot(weight / 2, shifted, axes=1)
        np.testing.assert_allclose(found[:, 0], right[:, 0], rtol=0, atol=1e-11)  # RESOLVED
        np.testing.assert_allclose(found[:, 1], right[:, 1], rtol=0, atol=1e-11)  # <c f>, the same


def test_two_features_enter_by_their_own_moments():
    q = np.array([0.6, -0.5])
    mixture = gaussians(np.array([0.3, 0.7]), np.array([[1.0, 0.0], [-0.4, 2.0]]), np.array([[0.2, 0.0], [0.0, 1.5]]))
    found = averages(TABLE, mixture, q)
    rest = 1 - q @ q
    for row, f in FUNCTIONS.items():
        parts = []
        for p, mean, variance in zip(mixture.probability, mixture.mean, mixture.variance, strict=True):
            centre, deviation = mean @ q, np.sqrt(rest + variance @ q**2)
            average = integral(f, centre, deviation)
            parts.append(p * average * np.array([1.0, *mean, *variance]))
        np.testing.assert_allclose(found[row], sum(parts), rtol=0, atol=1e-11)  # RESOLVED


@of_one
def test_at_full_overlap_everything_is_finite(averages):
    found = averages(TABLE, gaussians(np.ones(1), np.array([[0.2]]), np.zeros((1, 1))), np.array([1.0]))
    assert np.all(np.isfinite(found))
    assert found[2, 0] == pytest.approx(np.tanh(0.2), abs=1e-12)  # the variance is 1e-14 instead of 0
    assert found[3, 0] == pytest.approx(0.5, abs=1e-6)  # an atom on the jump: half of it


def by_all_combinations(parts, q):
    """Averages with every combination of (probability, mean, variance) of independent variables as a component."""
    probability = np.array([np.prod(p) for p in product(*(part[0] for part in parts))])
    mean, variance = (np.array(list(product(*(part[i] for part in parts)))) for i in (1, 2))
    return sum(
        p * averages(TABLE, gaussians(np.ones(1), m[None], v[None]), q)
        for p, m, v in zip(probability, mean, variance, strict=True)
    )


@pytest.mark.parametrize("radius", [0.0, 0.05, 0.5, 0.95, 0.9999])
def test_random_variances_of_several_features(radius):
    """More combinations than components are left, over ten orders of magnitude."""
    rng = np.random.default_rng(4)
    q = radius * np.array([0.6, -0.48, 0.64])
    chances, widths = rng.dirichlet(np.ones(20), 3), 10 ** rng.uniform(-8, 2, (3, 20))
    chances[2, 5:] = 0.0  # fewer values than the others have
    chances[2] /= chances[2].sum()
    law = gaussians(np.ones(1), np.zeros((1, 3)), np.zeros((1, 3)))
    law = law._replace(scale_probability=chances, scale_variance=widths)
    right = by_all_combinations(
        [(p[p > 0], np.zeros((p > 0).sum()), v[p > 0]) for p, v in zip(chances, widths, strict=True)], q
    )
    found = averages(TABLE, law, q)
    size = np.abs(right).max(axis=0)
    assert np.all(np.abs(found - right) <= 1e-11 * size)  # panels: 1e-13, and RESOLVED
    assert components_of_b(law, q, 1).centre.size < 400


@pytest.mark.parametrize("radius", [0.05, 0.3, 0.6])
def test_several_uniform_variables(radius):
    """Against Gauss rules, where the Gaussian is wide enough for them."""
    q = radius * np.array([0.8, -0.6])
    x, weight = np.polynomial.legendre.leggauss(24)
    half_width = np.array([1.2, 1.7])
    right = by_all_combinations([(weight / 2, h * x, np.zeros(24)) for h in half_width], q)
    law = gaussians(np.ones(1), np.zeros((1, 2)), np.zeros((1, 2)))._replace(half_width=half_width)
    np.testing.assert_allclose(averages(TABLE, law, q), right, rtol=0, atol=1e-11)  # RESOLVED


def test_boxes_beside_random_variances():
    """Wide for some components and narrow for others, which are many orders of magnitude wider."""
    q = np.array([0.3, 0.95])
    law = gaussians(np.ones(1), np.zeros((1, 2)), np.zeros((1, 2)))
    chances, widths = np.array([0.3, 0.3, 0.4]), np.array([1e-4, 1.0, 300.0])
    scale = np.zeros((2, 3)), np.zeros((2, 3))
    scale[0][1], scale[1][1] = chances, widths
    law = law._replace(half_width=np.array([0.9, 0.0]), scale_probability=scale[0], scale_variance=scale[1])
    x, weight = np.polynomial.legendre.leggauss(40)
    right = by_all_combinations([(weight / 2, 0.9 * x, np.zeros(40)), (chances, np.zeros(3), widths)], q)
    size = np.abs(right).max(axis=0)
    assert np.all(np.abs(averages(TABLE, law, q) - right) <= 1e-11 * size)  # RESOLVED


@of_one
@pytest.mark.parametrize("q", [0.3, 0.9, 0.9999])
def test_many_values(q, averages):
    """Close means share nodes, and the average is that of all values one by one."""
    values = np.random.default_rng(5).normal(0, 1, 600)
    chances = np.full(600, 1 / 600)
    law = gaussians(chances, values[:, None], np.zeros((600, 1)))
    right = by_all_combinations([(chances, values, np.zeros(600))], np.array([q]))
    np.testing.assert_allclose(averages(TABLE, law, np.array([q])), right, rtol=0, atol=1e-11)  # RESOLVED
    assert (components_of_b(law, np.array([q]), 1).centre.size < 600) == (q < 0.9999)


@pytest.mark.parametrize("q", [0.0, 1e-9, -0.05, 0.4, 0.95, 0.9999])
def test_one_random_variance_in_numpy(q):
    """Many, over ten orders of magnitude: those that lie close share nodes."""
    rng = np.random.default_rng(6)
    chances, widths = rng.dirichlet(np.ones(150)), 10 ** rng.uniform(-8, 2, 150)
    law = gaussians(np.ones(1), np.zeros((1, 1)), np.zeros((1, 1)))
    law = law._replace(scale_probability=chances[None], scale_variance=widths[None])
    right = by_all_combinations([(chances, np.zeros(150), widths)], np.array([q]))
    size = np.abs(right).max(axis=0)
    assert np.all(np.abs(in_numpy(TABLE, law, np.array([q])) - right) <= 1e-11 * size)  # panels: 1e-13, and RESOLVED


def test_many_overlaps_at_once_give_what_each_gives_alone():
    """Of a law with everything at once, where groups of Gaussians and zones of boxes differ from point to point."""
    law = gaussians(np.array([0.4, 0.6]), np.array([[-0.3], [1.2]]), np.array([[0.0], [0.5]]))
    law = law._replace(
        half_width=np.array([0.8]), scale_probability=np.array([[0.2, 0.8]]), scale_variance=np.array([[0.0, 2.0]])
    )
    q = np.concatenate([np.sin(np.linspace(-1.57, 1.57, 40)), [0.0, np.nan]])
    together = averages_at_many(TABLE, law, q)
    alone = np.concatenate([averages_at_many(TABLE, law, q[i : i + 1]) for i in range(q.size)], axis=2)
    assert np.all(np.isnan(together[:, :, -1]))
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-11)  # RESOLVED
    compiled = np.stack([averages(TABLE, law, q[i : i + 1]) for i in range(q.size - 1)], axis=-1)
    np.testing.assert_allclose(together[:, :, :-1], compiled, rtol=0, atol=1e-11)  # RESOLVED


@pytest.mark.parametrize("q", [-0.9, 0.0, 0.2, 0.7, 0.98])
@pytest.mark.parametrize("name", ["atoms", "box", "gaussians", "variances"])
def test_moments_of_the_hidden_variable(name, q):
    """X = c - q B, by the joint law of c and the Gaussian beside it, and by compiled code."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    x, box_weights = np.polynomial.legendre.leggauss(40)
    c, chance = {
        "atoms": (np.array([-0.5, 1.5]), np.array([0.3, 0.7])),
        "box": (1.3 * x, 0.5 * box_weights),
        "gaussians": (0.4 + 0.6 * nodes, weights),
        "variances": (np.outer([0.3, 1.1], nodes).ravel(), np.outer([0.4, 0.6], weights).ravel()),
    }[name]
    one, nothing = np.ones(1), np.zeros((1, 1))
    law = {
        "atoms": gaussians(chance, c[:, None], np.zeros((2, 1))) if name == "atoms" else None,
        "box": uniform(1.3),
        "gaussians": gaussians(one, np.array([[0.4]]), np.array([[0.36]])),
        "variances": gaussians(one, nothing, nothing)._replace(
            scale_probability=np.array([[0.4, 0.6]]), scale_variance=np.array([[0.09, 1.21]])
        ),
    }[name]
    B = np.add.outer(q * c, np.sqrt(1 - q * q) * nodes)
    X = c[:, None] - q * B
    right = np.array([np.einsum("a,b,ab->", chance, weights, np.sin(B) * X**k) for k in range(3)])
    table = tabulate(lambda b: np.sin(b)[None], (), 40.0, "sine")
    found = averages_with_hidden_variable(table, law, np.array([q, 0.0, -q]))[:, :, 0]
    np.testing.assert_allclose(found[0], right, rtol=0, atol=1e-12)  # RESOLVED, and Gauss rules for an entire function
    np.testing.assert_allclose(found, averages_with_hidden(table, law, np.array([q])), rtol=0, atol=1e-12)  # the same
