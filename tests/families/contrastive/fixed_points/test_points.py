"""Fixed points against polynomials, a dense search of another kind, and trajectories that start close to them."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import root

from meanfield.errors import InputError
from meanfield.families.contrastive.fixed_points.points import find_fixed_points
from meanfield.families.contrastive.fixed_points.search import _inside
from meanfield.families.contrastive.fixed_points.symmetries import invariant_planes, symmetries_of
from meanfield.families.contrastive.order_parameters.field import VectorField
from tests.example_problems import feature, features, gaussian, make_problem
from tests.families.contrastive.order_parameters.random_problems import random_problem


def three_point(m2, m4):
    return f'{{ law = "three_point", second_moment = {m2}, fourth_moment = {m4} }}'


def found(*hidden, lines=()):
    problem = make_problem(features(*(feature(0.1, law) for law in hidden)), *lines)
    return find_fixed_points(VectorField(problem))


def polynomial(tau, m, m2, m4):
    """(dQ/dt)/Q of theory.md, section 8, for a three-point law, as a polynomial in Q."""
    Q, kappa, nu, beta = np.poly1d([1, 0]), m4 - 3, m2 - 1, m4**2 / m2 - 15
    sixth = beta * Q**3 + 15 * kappa * Q**2 * (1 - Q) + 45 * nu * Q * (1 - Q) ** 2 + 15
    return 8 * tau * (1 - Q) * (kappa * Q + 3 * nu * (1 - 2 * Q)) - 16 * tau**2 / m * sixth


def roots_inside(p):
    roots = p.roots
    return np.sort(roots[(abs(roots.imag) < 1e-9) & (roots.real > 0) & (roots.real < 1)].real)


@pytest.mark.parametrize("m2", [0.9, 1.0, 1.1, 1.6])
@pytest.mark.parametrize("tau", [0.005, 0.05, 0.09, 0.25])
def test_one_feature_agrees_with_the_roots_of_the_polynomial(m2, tau):
    points = found(three_point(m2, 5 * m2**2), lines=[f"model.learning_rate = {tau}"])
    p = polynomial(tau, 10, m2, 5 * m2**2)
    Q = roots_inside(p)
    positive = [point for point in points.points if point.q[0] > 0]
    assert np.array([point.q[0] ** 2 for point in positive]) == pytest.approx(Q, abs=1e-12)  # rounding
    # dq/dt = Q-polynomial times q/2, so that its slope at a root is Q p'(Q)
    slopes = Q * p.deriv()(Q)
    rates = np.array([point.eigenvalues[0].real for point in positive])
    assert rates == pytest.approx(slopes, rel=1e-10, abs=1e-11)  # differences of fourth order
    assert len(points.points) == 2 * len(Q) + 1
    assert points.complete


def fold():
    """The learning rate at which both positive fixed points of m2 = 1, m4 = 5 meet, by bisection of the polynomial."""
    low, high = 0.05, 0.3
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if len(roots_inside(polynomial(middle, 10, 1.0, 5.0))) == 2 else (low, middle)
    return low


@pytest.mark.parametrize(("away", "count"), [(-1e-5, 2), (-1e-9, 2), (1e-9, 0)])
def test_close_pairs_are_told_apart_at_a_turning_point(away, count):
    points = found(three_point(1.0, 5.0), lines=[f"model.learning_rate = {fold() * (1 + away)}"])
    assert sum(point.q[0] > 0 for point in points.points) == count


def test_a_double_root_is_marginal():
    points = found(three_point(1.0, 5.0), lines=[f"model.learning_rate = {fold()!r}"])
    double = [point for point in points.points if point.q[0] > 0]
    assert double
    assert all(point.kind == "marginal" for point in double)


def test_a_feature_whose_recovery_has_no_noise_has_fixed_points_on_the_sphere():
    """c = +-1 and centred outputs: s1 = 0 at q = 1. The slope there: Lambda vanishes to second order, b = -g."""
    law = '{ law = "rademacher", second_moment = 1.0 }'
    points = found(law, law, lines=['model.centering = "population"'])
    on_sphere = [point for point in points.points if np.linalg.norm(point.q) > 1 - 1e-9]
    assert sorted(np.round(point.q).tolist() for point in on_sphere) == [[-1, 0], [0, -1], [0, 1], [1, 0]]
    assert {point.kind for point in on_sphere} == {"unstable node"}


def test_equal_gaussian_features_have_a_circle_of_fixed_points():
    points = found(gaussian(1.2), gaussian(1.2))
    circle = [point for point in points.points if np.linalg.norm(point.q) > 0.1]
    radius = np.sqrt(roots_inside(_gaussian_polynomial(1.2)))[-1]
    radii = np.linalg.norm([point.q for point in circle], axis=1)
    assert radii == pytest.approx(radius, abs=1e-9)  # Newton's method where the field is flat along the circle
    assert {point.kind for point in circle} == {"marginal"}
    assert len(circle) < 10


def _gaussian_polynomial(m2, tau=0.02, m=10):
    Q, kappa, nu, beta = np.poly1d([1, 0]), 3 * m2**2 - 3, m2 - 1, 15 * m2**3 - 15
    sixth = beta * Q**3 + 15 * kappa * Q**2 * (1 - Q) + 45 * nu * Q * (1 - Q) ** 2 + 15
    return 8 * tau * (1 - Q) * (kappa * Q + 3 * nu * (1 - 2 * Q)) - 16 * tau**2 / m * sixth


def test_three_equal_features_have_all_copies():
    law = three_point(1.1, 6.05)
    points = found(law, law, law)
    sizes = [np.count_nonzero(np.abs(point.q) > 1e-9) for point in points.points]
    assert [sizes.count(k) for k in range(4)] == [1, 6, 12, 8]
    saddles = {
        k: {p.unstable_directions for p, n in zip(points.points, sizes, strict=True) if n == k} for k in range(4)
    }
    assert saddles == {0: {3}, 1: {0}, 2: {1}, 3: {2}}
    assert points.complete
    assert len({point.orbit for point in points.points}) == 1 + 3 + 3 + 1


def test_order_does_not_matter_and_copies_share_their_rates():
    points = found(gaussian(1.2), three_point(1.1, 6.05))
    swapped = found(three_point(1.1, 6.05), gaussian(1.2))
    assert np.sort(points.q[:, ::-1], axis=0) == pytest.approx(np.sort(swapped.q, axis=0), abs=1e-9)  # Newton at 1e-11
    for orbit in {point.orbit for point in points.points}:
        copies = [point for point in points.points if point.orbit == orbit]
        assert len({tuple(np.abs(np.round(point.q, 9))) for point in copies}) == 1
        assert len({point.kind for point in copies}) == 1


def lattice(d1, side):
    axis = np.linspace(-0.9999, 0.9999, side)
    points = np.stack(np.meshgrid(*[axis] * d1, indexing="ij"), axis=-1).reshape(-1, d1)
    return points[np.linalg.norm(points, axis=1) < 1]


def missed(points, side):
    """Zeros that MINPACK finds from a lattice of starts, and the search has not."""
    field, size = points.field, points.size
    others = []
    for start in lattice(field.features, side):
        zero = root(lambda q: np.nan_to_num(field(q) / size, nan=1e3), start, tol=1e-13)
        converged = np.abs(zero.fun).max() < 1e-10 and np.linalg.norm(zero.x) <= 1
        if converged and np.linalg.norm(points.q - zero.x, axis=1).min() > 1e-4:  # roots are flat where almost double
            others.append(zero.x)
    return others


def check_types(points):
    """Integrate from beside each fixed point, along its eigenvectors."""
    field = points.field
    for point in points.points:
        if point.kind == "marginal" or np.linalg.norm(point.q) > 0.999 or point.orbit > 3:
            continue
        nearest = np.sort(np.linalg.norm(points.q - point.q, axis=1))[1:2]
        distance = min([1e-3, *(0.02 * nearest), 0.1 * (1 - np.linalg.norm(point.q))])
        slope = field.jacobian(point.q)
        values, vectors = np.linalg.eig(slope)
        for value, vector in zip(values, vectors.T, strict=True):
            if value.real < values.real.max() and abs(value.real) < 0.2 * np.abs(values.real).max():
                continue  # what grows faster takes over before this direction has decayed
            real = vector.real / np.linalg.norm(vector.real)
            time = 2.0 / abs(value.real)
            start = point.q + distance * real
            path = solve_ivp(lambda _, q: field(q), (0, time), start, rtol=1e-8, atol=1e-12)  # far below the distance
            away = np.linalg.norm(path.y[:, -1] - point.q)
            # by the linearised field a factor of e^2 or e^-2, and for a focus at least some growth or decay
            assert (away > distance) == (value.real > 0)
        assert point.unstable_directions == np.count_nonzero(values.real > 0)


def check_problem(seed, d1, side):
    points = find_fixed_points(VectorField(random_problem(seed, d1)))
    assert points.complete
    assert np.abs(points.field(points.q)).max() <= 2e-11 * points.size  # Newton's tolerance
    assert not missed(points, side)
    check_types(points)


@pytest.mark.parametrize("seed", [0, 1, 4])  # further seeds are in the slow test below
def test_nothing_is_missed_with_one_feature(seed):
    check_problem(seed, 1, 41)


@pytest.mark.parametrize("seed", [1, 4])  # the same
def test_nothing_is_missed_with_two_features(seed):
    check_problem(seed, 2, 7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize(("d1", "side"), [(1, 161), (2, 17)])
def test_nothing_is_missed_on_many_random_problems(seed, d1, side):
    check_problem(seed, d1, side)


LAWS = {  # of unit mean square or not, symmetric and skew: lines of a problem, values and probabilities
    "three_point": (three_point(1.1, 6.05), [-(5.5**0.5), 0.0, 5.5**0.5], [0.1, 0.8, 0.1]),
    "two_point": ('{ law = "two_point", values = [-0.5, 2.0], probability = 0.8 }', [-0.5, 2.0], [0.8, 0.2]),
    "wide": (three_point(1.3, 4.0), [-((4 / 1.3) ** 0.5), 0.0, (4 / 1.3) ** 0.5], [0.21125, 0.5775, 0.21125]),
}
DERIVATIVES = {  # of sigma: sigma itself, the first and the second one
    "quadratic": lambda x: (x**2, 2 * x, 2.0),
    "tanh": lambda x: (np.tanh(x), 1 - np.tanh(x) ** 2, -2 * np.tanh(x) * (1 - np.tanh(x) ** 2)),
    "softplus": lambda x: (np.logaddexp(0, x), 0.5 + 0.5 * np.tanh(x / 2), 0.25 - 0.25 * np.tanh(x / 2) ** 2),
}


def enumerated_drift(activation, names, tau=0.02, m=10):
    """dq/dt of theory.md, section 2, without noise and centring, by the sum over all values of c: plain NumPy."""
    c = np.array(list(product(*(LAWS[name][1] for name in names))))
    chance = np.prod(list(product(*(LAWS[name][2] for name in names))), axis=1)
    e, weight = np.polynomial.hermite_e.hermegauss(60)
    weight = np.outer(chance, weight / weight.sum())

    def drift(q):
        if q @ q >= 1:
            return np.full(len(q), 1e3)
        s, p, curvature = DERIVATIVES[activation]((c @ q)[:, None] + np.sqrt(1 - q @ q) * e)
        slope = (weight * 2 * s * p).sum(axis=1) @ c
        g = tau * (q * (weight * 2 * (p**2 + s * curvature)).sum() - slope)
        diffusion = tau**2 / m * 4 * (weight * (s * p) ** 2).sum()
        return q * (q @ g - diffusion / 2) - g

    return drift


def check_completeness(activation, names, starts):
    """Hold all fixed points against roots that MINPACK finds from random starts on a drift that shares no code.

    None is missing that the result does not say may be.
    """
    hidden = [LAWS[name][0] for name in names]
    points = found(*hidden, lines=[f'model.activation = "{activation}"'])
    drift = enumerated_drift(activation, names)
    # Tanh and softplus have poles close to the line: 60 nodes of Gauss and Hermite leave a millionth.
    assert max(np.abs(drift(q)).max() for q in points.q) < 1e-5 * points.size
    rng = np.random.default_rng(0)
    arrived = 0
    for _ in range(starts):
        start = rng.normal(size=len(names)) * (rng.random(len(names)) < 0.6)  # some in faces, which are invariant
        start *= rng.random() / max(np.linalg.norm(start), 1e-9)
        zero = root(lambda q: drift(q) / points.size, start, tol=1e-12)
        if np.abs(zero.fun).max() < 1e-10:
            arrived += 1
            # That error over the smallest rates, a hundredth of the size of the field, is 1e-4.
            assert not points.complete or np.linalg.norm(points.q - zero.x, axis=1).min() < 1e-3
    assert arrived > starts / 2
    return points


@pytest.mark.parametrize(
    ("activation", "names"),
    [
        ("quadratic", ["three_point"] * 5),
        ("tanh", ["two_point", "wide", "three_point"]),
        pytest.param("tanh", ["two_point"] * 2 + ["wide"] * 2, marks=pytest.mark.slow),  # eight at |q| = 0.978, 0.9993
    ],
)
def test_several_features_are_found_at_rest_as_from_random_starts(activation, names):
    assert check_completeness(activation, names, 20).complete


@pytest.mark.slow
@pytest.mark.parametrize("names", [["three_point"] * 4, ["two_point"] * 4, ["three_point", "wide", "two_point"]])
@pytest.mark.parametrize("activation", DERIVATIVES)
@pytest.mark.parametrize("more", [[], ["wide"]])
def test_random_starts_find_nothing_new_with_three_to_five_features(activation, names, more):
    check_completeness(activation, names + more, 1000)


@pytest.mark.slow
def test_states_that_few_starts_lead_to_are_found():
    """One with four equal overlaps, which random starts found first, one of a pair next to the sphere, and another
    there to which starts beside one with three equal overlaps lead."""
    points = found(*(LAWS[name][0] for name in ["two_point"] * 4 + ["wide"]), lines=['model.activation = "tanh"'])
    assert points.complete
    beside = [0.38822, 0.38822, 0.32276, 0.0, 0.76971]
    for q in ([0.13568432] * 4 + [-0.80730447], [0.56518, 0.56518, 0.37878, 0.0, 0.46437], beside):
        assert np.linalg.norm(points.q - q, axis=1).min() < 2e-5  # digits of q


@pytest.mark.slow
def test_states_that_have_just_branched_off_a_more_symmetric_one_are_found():
    """It has another index than its partner, so that indices do not tell that both are missing."""
    law = '{ law = "two_point", values = [-1.95, 0.5], probability = 0.2041 }'
    points = found(
        *[law] * 3, three_point(1.35, 3.98), lines=['model.activation = "tanh"', "model.learning_rate = 0.0784"]
    )
    for q in permutations((0.24918178, 0.24918178, 0.1633807)):  # eight digits, of MINPACK's starts
        assert np.abs(points.q - [*q, -0.84853644]).max(axis=1).min() < 1e-7


def test_planes_of_symmetry_are_those_of_partitions_and_of_pairs_of_opposite_overlaps():
    """Of four features that are exchanged and flipped together: 5 partitions, and (a, b, -a, -b) and its kind."""
    orders = [list(order) for order in permutations(range(4))]
    group = symmetries_of(list(range(4)), orders, np.array([[1.0] * 4, [-1.0] * 4]))
    assert len(group) == 48
    bases = invariant_planes(group)
    assert [basis.shape[1] for basis in bases] == [1, 1, 1, 2, 2, 2, 3, 4]
    for basis in bases:
        assert basis.T @ basis == pytest.approx(np.eye(basis.shape[1]), abs=1e-15)  # rounding
        x = basis @ np.random.default_rng(0).normal(size=basis.shape[1])
        fixed = group[np.abs(group @ x - x).max(axis=1) < 1e-12]  # rounding of x
        assert np.linalg.matrix_rank(fixed.mean(axis=0)) == basis.shape[1]  # the mean projects on what all leave
    assert len(symmetries_of([0, 1, 3], orders, np.ones((1, 4)), np.array([1.0, -1.0, 1.0]))) == 2


def test_features_with_a_mean_are_found_as_from_random_starts():
    """They are searched all at once, also where features are equal."""
    law = '{ law = "two_point", values = [-1.59, 1.24], probability = 0.5 }'
    points = found(*[law] * 4, lines=['model.activation = "tanh"', "model.learning_rate = 0.0033"])
    assert points.complete
    rng = np.random.default_rng(1)
    for _ in range(10):
        start = rng.normal(size=4)
        zero = root(lambda q: np.nan_to_num(points.field(q), nan=1.0), 0.97 * start / np.linalg.norm(start), tol=1e-13)
        if np.abs(zero.fun).max() < 1e-10 * points.size and np.linalg.norm(zero.x) < 1.0:
            assert np.linalg.norm(points.q - zero.x, axis=1).min() < 1e-6  # both converge to rounding


@pytest.mark.slow
def test_states_of_five_equal_features_with_five_overlaps_are_found():
    """Starts with deflation did not lead to them, and took minutes."""
    law = f'{{ law = "two_point", values = [-1.59, 1.24], probability = {1.24 / 2.83} }}'
    points = found(*[law] * 5, lines=['model.activation = "tanh"', "model.learning_rate = 0.0033"])
    rare = [0.3304, 0.4124, 0.5507, -0.5687, -0.3064]  # four digits, of MINPACK's starts
    assert np.abs(points.q - rare).max(axis=1).min() < 2e-4
    assert len(points.points) >= 2263  # as many are known


def test_priors_that_do_not_close_are_refused():
    with pytest.raises(InputError, match=r"prior\.name = 'l1'"):
        VectorField(make_problem('prior = { name = "l1", strength = 1.0 }'))


def test_points_of_the_sphere_are_rounded_inwards():
    """Outside the field is NaN, which ended searches of five features."""
    q = np.array([_inside(x) for x in np.random.default_rng(0).normal(size=(20_000, 5))])
    assert np.einsum("nf,nf->n", q, q).max() <= 1.0  # two are outside if the factor is 1 - 2e-16
