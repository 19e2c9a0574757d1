"""Critical points against references of the theory page and brute force (alpha_contrastive.md, section 3)."""

from dataclasses import dataclass
from math import comb

import numpy as np
import pytest
from scipy.special import ndtr

import meanfield
from meanfield.families.alpha_contrastive.critical_points.arrangement import cells, unit
from meanfield.families.alpha_contrastive.critical_points.sphere import sphere_points
from meanfield.families.alpha_contrastive.density.carried import NO_WALL, CarriedFilters, advance
from meanfield.families.alpha_contrastive.limit.circle import on_circle, tangential
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.fields import discrete_field
from meanfield.families.alpha_contrastive.limit.walls import make_walls
from meanfield.numerics.analytic_roots import roots_between
from tests.families.alpha_contrastive.problems import LAW_F, NINE_POINTS, kernel, problem, solved

MIXTURE_ANGLES = np.array([0.0, 2.0 * np.pi / 3.0, 0.3 - 2.0 * np.pi / 3.0])
MIXTURE = {
    "law": "gaussian_mixture",
    "probabilities": [0.5, 0.3, 0.2],
    "means": on_circle(MIXTURE_ANGLES).tolist(),
    "covariance": 0.1,
}
DIGITS = 2e-12
"""Error of numbers with 12 digits on the theory page."""


def angles(points):
    return np.arctan2(points["w"].values[:, 1], points["w"].values[:, 0])


def chosen(points, *names, **values):
    """Points with values of some variables."""
    mask = np.ones(points.sizes["point"], dtype=bool)
    for name, value in values.items():
        mask &= points[name].values == value
    return points.isel(point=mask)


def summation(off_diagonal):
    o = off_diagonal
    return {
        "law": "latent_summation",
        "directions": [[1.0, o, o], [0.0, 1.0, o], [0.0, 0.0, 1.0]],
        "probabilities": [0.2, 0.25, 0.3],
    }


def test_nine_points_have_nine_maxima_on_walls():
    points = solved("critical_points", "relu", NINE_POINTS)
    stable = chosen(points, stable=1)
    order = np.argsort(angles(stable))
    expected = np.array([-0.9, -0.5, -0.3, -0.1, 0.1, 0.3, 1.0 / 3.0, 0.7, 0.9])
    np.testing.assert_allclose(angles(stable)[order] / np.pi, expected, atol=1e-14)  # rounding: walls are exact
    assert stable["wall"].values.all()
    assert not stable["lme"].values.any()
    energy = stable["energy"].values[order][[2, 4, 7, 6]]
    page = [0.08651176983408, 0.08296749910052, 0.08142582102238, 0.07704040682560]
    np.testing.assert_allclose(energy, page, atol=1e-14)  # digits of the page
    minima = angles(chosen(points, stable=0))
    for angle in (-1.333937954831, 0.711191601509, 2.813685125797):
        assert np.abs(minima - angle).min() < DIGITS
    np.testing.assert_allclose(points["basin_share"].sum(), 1.0, atol=1e-14)  # rounding


def test_linear_filters_have_the_principal_axes():
    points = solved("critical_points", "linear", NINE_POINTS)
    np.testing.assert_allclose(points["eigenvalue"], [0.56137505] * 2 + [0.41556897] * 2, atol=5e-9)  # digits
    np.testing.assert_array_equal(points["lme"], [1, 1, 0, 0])
    np.testing.assert_allclose(points["basin_share"], [0.5, 0.5, 0.0, 0.0], atol=1e-11)  # of the roots between


MAXIMA = [
    ("relu", LAW_F, None, (0, 3)),
    *(("relu", LAW_F, kernel("gaussian", tau), n) for tau, n in ((1.0, (0, 3)), (0.3, (2, 4)), (0.1, (8, 1)))),
    *(("quadratic", LAW_F, kernel("gaussian", tau), (n, 0)) for tau, n in ((1.0, 4), (0.3, 6), (0.1, 8), (0.01, 22))),
    *(("relu", NINE_POINTS, kernel("gaussian", tau), n) for tau, n in ((10.0, (0, 9)), (0.01, (19, 0)))),
    *(("relu", NINE_POINTS, kernel("infonce", tau), n) for tau, n in ((10.0, (0, 9)), (0.01, (18, 0)))),
    # at tau = 0.1 the theory page has 3 + 7; the maximum at pi/2, at rest on one side of a wall, is one of the walls
    ("relu", NINE_POINTS, kernel("gaussian", 0.1), (3, 8)),
]


@pytest.mark.parametrize(("activation", "law", "importance", "expected"), MAXIMA)
def test_numbers_of_maxima(activation, law, importance, expected):
    """Maxima between walls and on walls, of the theory page (section 12)."""
    stable = chosen(solved("critical_points", activation, law, importance), stable=1)
    on_walls = int(stable["wall"].sum())
    assert (stable.sizes["point"] - on_walls, on_walls) == expected


def test_stability_with_moving_and_with_fixed_importance():
    """Law F with h = x^2 (R6): stable points that none of infinitely many filters would stay at."""
    points = solved("critical_points", "quadratic", LAW_F, kernel("gaussian", 0.3))
    stable = chosen(points, stable=1)
    for angle, moving, frozen in (
        (-0.287194708675, -0.3030688840, -0.0817064679),
        (0.529743394655, -0.6705142628, 0.4164110643),
        (1.479380173956, -0.2617142526, -0.0430893648),
    ):
        k = np.abs(angles(stable) - angle).argmin()
        assert abs(angles(stable)[k] - angle) < DIGITS
        rates = stable["rate"].values[k], stable["rate_frozen"].values[k]
        np.testing.assert_allclose(rates, (moving, frozen), rtol=0.0, atol=5.1e-11)  # digits of the page
    assert int(chosen(stable, lme=1).sizes["point"]) == 2  # the first, and the opposite filter


def test_mixture_of_gaussians():
    points = solved("critical_points", "relu", MIXTURE)
    stable = chosen(points, stable=1)
    for found, right in (
        (angles(stable), [0.029254415615, 2.111130476840, -1.819173000026]),
        (stable["eigenvalue"], [0.292181429280, 0.238565800468, 0.177564697869]),
        (stable["rate"], [-0.333996600765, -0.232152423988, -0.164068778902]),
    ):
        np.testing.assert_allclose(found, right, atol=DIGITS)  # two units of the last digit of the page
    assert stable["lme"].values.all()
    bottom = solved("critical_points", "relu", MIXTURE | {"covariance": 0.2})
    assert (int(bottom["stable"].sum()), int(chosen(bottom, stable=1)["lme"].sum())) == (3, 2)


def test_mixture_of_gaussians_in_the_plane_and_in_a_plane_of_space():
    """A third coordinate with a variance of its own adds no maximum, and moves none."""
    means = [[*mean, 0.0] for mean in MIXTURE["means"]]
    points = solved("critical_points", "relu", MIXTURE | {"means": means}, critical_points={"starts": 30})
    stable, plane = chosen(points, stable=1), chosen(solved("critical_points", "relu", MIXTURE), stable=1)
    np.testing.assert_allclose(stable["w"].values[:, :2], plane["w"].values, atol=1e-10)  # Newton's method
    np.testing.assert_allclose(stable["energy"], plane["energy"], atol=1e-12)  # Newton's method


def narrow_mixture(d, count):
    means = np.random.default_rng(1).standard_normal((count, d))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    each = [1.0 / count] * count
    return {"law": "gaussian_mixture", "probabilities": each, "means": means.tolist(), "covariance": 0.02}


def variance_of_relu(law, w):
    """Var[max(w.x, 0)]/2 of a mixture with equal weights and round components, of filters of any length."""
    s = np.sqrt(law["covariance"]) * np.linalg.norm(w, axis=-1, keepdims=True)
    m = w @ np.array(law["means"]).T
    Phi, phi = ndtr(m / s), np.exp(-0.5 * (m / s) ** 2) / np.sqrt(2.0 * np.pi)
    first, second = m * Phi + s * phi, (m * m + s * s) * Phi + m * s * phi
    return 0.5 * (second.mean(axis=-1) - first.mean(axis=-1) ** 2)


@pytest.mark.parametrize("law", [narrow_mixture(5, 3), pytest.param(narrow_mixture(5, 6), marks=pytest.mark.slow)])
def test_indices_of_mixtures_in_five_coordinates_add_up(law):
    """Growing directions by second differences of the objective: (-1)^k add up to 2, the Euler number of the sphere."""
    points = solved("critical_points", "relu", law)
    assert "add up to the Euler number of the sphere, so that no single one is missing" in points.attrs["warning"]
    total, step = 0, 1e-3
    for w in points["w"].values:
        basis = np.linalg.svd(w[None])[2][1:]

        def height(*shifts, w=w, basis=basis):
            moved = w + sum(sign * step * basis[k] for k, sign in shifts)
            return variance_of_relu(law, moved / np.linalg.norm(moved))

        pairs = [(i, j) for i in range(4) for j in range(4)]
        corners = [(a, b) for a in (1, -1) for b in (1, -1)]
        H = [sum(a * b * height((i, a), (j, b)) for a, b in corners) for i, j in pairs]
        slopes = [height((i, 1)) - height((i, -1)) for i in range(4)]
        assert np.abs(slopes).max() / (2.0 * step) < 1e-4  # of second order in the step
        total += (-1) ** int((np.linalg.eigvalsh(np.reshape(H, (4, 4))) > 0.0).sum())
    assert total == 2
    assert float(points["basin_share"].sum()) == pytest.approx(1.0)


def test_mixtures_say_that_points_are_missing():
    """A search from ten filters leaves points of this mixture out, of which there are 26."""
    points = solved("critical_points", "relu", narrow_mixture(5, 6), critical_points={"starts": 10})
    assert points.sizes["point"] < 26
    assert "add up to -2, not to the Euler number 2 of the sphere" in points.attrs["warning"]


def test_sums_of_patterns():
    """Latent summation (R5): one maximum per pattern, and one where all patterns are off."""
    stable = chosen(solved("critical_points", "relu", summation(0.05)), stable=1, lme=1)
    w = [
        (0.999435185582, 0.024322586166, 0.023188825368),
        (0.092699562478, 0.994766487527, 0.0429700641),
        (0.134698861109, 0.134221681631, 0.981753918758),
    ]
    np.testing.assert_allclose(stable["w"].values[:3], w, atol=5.1e-11)  # digits of the page
    eigenvalues = [0.641487550784, 0.566344085346, 0.496711002799]
    np.testing.assert_allclose(stable["eigenvalue"].values[:3], eigenvalues, atol=DIGITS)  # two units of its last digit
    straight = chosen(solved("critical_points", "relu", summation(0.0)), stable=1)
    np.testing.assert_allclose(straight["eigenvalue"], [0.64, 0.5625, 0.49, 0.2465], atol=1e-13)  # (9), exact
    w = [-0.497050121748, -0.573944043184, -0.650791373456]
    np.testing.assert_allclose(straight["w"].values[3], w, atol=DIGITS)  # the same
    # 300 random starts: four standard errors of a share, a false alarm in 16,000
    assert abs(float(straight["basin_share"][3]) - 0.13) < 4.0 * np.sqrt(0.13 * 0.87 / 300)


def test_sums_of_patterns_on_walls():
    """With less orthogonal patterns two of three maxima are held by walls, whose multipliers are on the page."""
    given = problem("relu", summation(0.1))
    found, _ = sphere_points(discrete_field(given, given.data), 60, 0)
    gates = sorted(float(point.slope[point.held][0]) for point in found if point.held.sum() == 1 and point.rate < 0)
    np.testing.assert_allclose(gates, [0.2557, 0.6043], atol=5.1e-5)  # digits of the page
    # besides them the walls of two atoms hold a maximum; every stable point is one, by brute force nearby
    assert [int(point.held.sum()) for point in found if point.rate < 0 and point.held.any()].count(2) == 1
    field, rng = discrete_field(given, given.data), np.random.default_rng(0)
    for point in found:
        step = 1e-4 * rng.standard_normal((500, 3))
        normal = np.linalg.pinv(field.atoms[point.held])
        step[250:] -= step[250:] @ field.atoms[point.held].T @ normal.T  # along the walls, where a saddle may rise
        near = point.w + step
        near /= np.linalg.norm(near, axis=1, keepdims=True)
        highest = field.energy(point.w[None]) + 1e-15  # rounding, for steps that the walls leave no room
        assert (point.rate < 0) == bool(np.all(field.energy(near) <= highest))


def test_categories_rest_on_the_walls_of_all_others():
    law = {"law": "latent_categorical", "directions": np.eye(3).tolist(), "probabilities": [0.5, 0.3, 0.2]}
    points = solved("critical_points", "relu", law)
    stable = chosen(points, stable=1)
    np.testing.assert_allclose(stable["w"], np.eye(3), atol=1e-12)  # (8), exact
    np.testing.assert_allclose(stable["eigenvalue"], [0.25, 0.21, 0.16], atol=1e-13)  # p (1 - p)
    assert stable["lme"].values.all()
    assert stable["wall"].values.all()
    assert float(points["basin_share"].sum()) < 1.0  # filters at which no category is active rest where they are
    plane = {"law": "latent_categorical", "directions": np.eye(2).tolist(), "probabilities": [0.6, 0.4]}
    points = solved("critical_points", "relu", plane)
    np.testing.assert_allclose(chosen(points, stable=1)["w"], np.eye(2), atol=1e-14)  # walls are exact
    np.testing.assert_allclose(points["basin_share"].sum(), 0.75, atol=1e-14)  # rounding  # a quadrant rests
    assert "filters rest on arcs" in points.attrs["warning"]


def random_problem(rng):
    """A random small data set in the plane, with a random importance and activation."""
    n = int(rng.integers(3, 8))
    chance = rng.dirichlet(np.full(n, 3.0))
    chance /= chance.sum()
    law = {"law": "points", "points": rng.normal(0.0, 1.0, (n, 2)).tolist(), "probabilities": chance.tolist()}
    kind = str(rng.choice(["quadratic", "gaussian", "infonce", "modified_triplet"]))
    importance = kernel(kind, float(10.0 ** rng.uniform(-1.5, 0.5)), diagonal=str(rng.choice(["include", "exclude"])))
    return problem(str(rng.choice(["relu", "quadratic", "tanh", "leaky_relu", "hard_tanh"])), law, importance)


def missed(given, cells):
    """Attractors and repellers of a dense scan of the field that have no critical point in their cell."""
    points = meanfield.solve(given, "critical_points")
    field = tangential(discrete_field(given, given.data))
    theta = np.linspace(-np.pi, np.pi, cells + 1) + 0.1234 / cells
    value, size = field(theta)
    clear = np.abs(value) > 1e-12 * size  # the rest is rounding
    change = np.flatnonzero((value[:-1] * value[1:] < 0) & clear[:-1] & clear[1:])
    apart = np.abs((angles(points)[None] - theta[change, None] + np.pi) % (2.0 * np.pi) - np.pi)
    near = apart.min(axis=1, initial=np.inf) <= 2.0 * np.pi / cells * 1.01
    attracting = int(np.count_nonzero(value[change] > 0))
    return int(np.count_nonzero(~near)), attracting, int(points["stable"].sum())


def check_random(seeds, cells):
    for seed in seeds:
        lost, scanned, found = missed(random_problem(np.random.default_rng(seed)), cells)
        assert lost == 0, f"seed {seed}"
        assert found >= scanned, f"seed {seed}"


def test_no_critical_point_of_random_data_is_missed():
    check_random(range(10), 20_000)


@pytest.mark.slow
def test_no_critical_point_of_many_random_data_is_missed():
    check_random(range(200), 200_000)


@dataclass(frozen=True)
class Alone:
    """Flow of filters each of which moves its importance by itself, for `advance`."""

    field: DiscreteField

    def __post_init__(self):
        object.__setattr__(self, "walls", make_walls(self.field.atoms, self.field.filter))
        object.__setattr__(self, "normal", self.walls.normal)
        object.__setattr__(self, "offset", self.walls.offset)

    def forces(self, w, side, L, share):
        h, slope = self.walls.outputs(w @ self.field.atoms.T, side)
        pull = self.field.pull(h)
        return (pull * slope) @ self.field.atoms, self.walls.jumps(pull)


def ends_of_flows(field, points, starts, rng, steps=600):
    """Filters that come to rest, by the flow itself from random starts: sliding along walls, without any search."""
    flow, w = Alone(field), rng.standard_normal((starts, 3))
    filters = CarriedFilters(w / np.linalg.norm(w, axis=1, keepdims=True), None, np.full((starts, 2), NO_WALL))
    filters.side = flow.walls.side(filters.w)
    slopes = [np.linalg.norm(field.jacobians(p.w, np.linalg.svd(p.w[None])[2][1:].T, p.slope)[0], 2) for p in points]
    dt = 0.5 / max(slopes)
    for _ in range(steps):
        before = filters
        filters = advance(before, flow, (None, None), dt)
    return filters.w[np.linalg.norm(filters.w - before.w, axis=1) < 1e-10]


def random_in_space(rng):
    n = int(rng.integers(3, 8))
    chance = rng.dirichlet(np.full(n, 3.0))
    law = {"law": "points", "points": rng.normal(0.0, 1.0, (n, 3)).tolist()}
    law["probabilities"] = (chance / chance.sum()).tolist()
    importance = kernel(str(rng.choice(["quadratic", "gaussian", "infonce"])), float(10.0 ** rng.uniform(-1.0, 0.5)))
    return problem(str(rng.choice(["relu", "quadratic", "tanh", "leaky_relu"])), law, importance)


def check_in_space(seeds, starts, steps=600):
    """No flow ends at a point that is not among the stable ones; numbers of points of smooth energies add up."""
    rested = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        given = random_in_space(rng)
        field = discrete_field(given, given.data)
        points, completeness = sphere_points(field, 10, 0)
        assert completeness == ("complete" if field.pairs.uniform and field.filter.straight else "mesh")
        stable = np.array([point.w for point in points if point.rate < 0.0])
        ends = ends_of_flows(field, points, starts, rng, steps)
        size = np.abs(field.field(np.concatenate([[p.w for p in points], ends]))).max(axis=1, initial=0.0)
        active = size[len(points) :] > 1e-6 * size.max()  # filters that no atom moves, or hardly, rest anywhere
        apart = np.linalg.norm(ends[active, None] - stable, axis=2).min(axis=1, initial=np.inf)
        assert apart.max(initial=0.0) < 1e-5, f"seed {seed}"  # steps of 1e-10 at rates of 1e-5 of the largest
        rested += len(ends)
        energy = field.energy(np.concatenate([[p.w for p in points], unit(rng.standard_normal((500, 3)))]))
        resolved = energy.min() > 1e-6 * energy.max()  # where the importance underflows, a mesh of 0.05 sees little
        if not field.filter.kinks and resolved:
            bases = [np.linalg.svd(point.w[None])[2][1:].T for point in points]
            signs = [np.sign(np.linalg.det(field.jacobians(p.w, V)[0])) for p, V in zip(points, bases, strict=True)]
            assert sum(signs) == 2, f"seed {seed}"  # Euler's characteristic of the sphere: maxima - saddles + minima
    return rested


def test_no_critical_point_of_random_data_in_space_is_missed():
    assert check_in_space(range(4), 10, 200) > 10  # a quarter of the flows come to rest in that time


@pytest.mark.slow
def test_no_critical_point_of_many_random_data_in_space_is_missed():
    assert check_in_space(range(200), 60) > 6000  # half of the flows come to rest in that time


def test_cells_of_an_arrangement():
    """Numbers of cells of planes through 0: 2 sum of C(n-1, i) in general position, the signs of many points always."""
    rng = np.random.default_rng(0)
    for n, d in ((5, 2), (6, 3), (6, 4)):
        assert len(cells(rng.standard_normal((n, d)))) == 2 * sum(comb(n - 1, i) for i in range(d))
    special = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1], [2, 0, 0]], dtype=float)
    seen = np.unique(np.sign(rng.standard_normal((20_000, 3)) @ special.T), axis=0)
    np.testing.assert_array_equal(np.unique(cells(special), axis=0), seen)


def test_jacobians_are_derivatives_of_the_field():
    """With the importance moving and held fixed, in space, for kernels, normalised ones and the uniform one."""
    rng = np.random.default_rng(3)
    law = {"law": "points", "points": rng.normal(0.0, 1.0, (6, 3)).tolist()}
    for activation, importance in (
        ("quadratic", kernel("gaussian", 0.4)),
        ("tanh", kernel("infonce", 0.3)),
        ("relu", kernel("infonce", 0.3, diagonal="include")),
        ("silu", kernel("modified_triplet", 0.5)),
        ("leaky_relu", None),
    ):
        given = problem(activation, law, importance)
        field = discrete_field(given, given.data)
        w = rng.standard_normal(3)
        w /= np.linalg.norm(w)
        basis = np.linalg.svd(w[None])[2][1:].T
        moving, held = field.jacobians(w, basis)
        fixed = type(field)(field.atoms, field.pairs, field.filter, field.laplacian(w))
        for J, source in ((moving, field), (held, fixed)):
            step, change = 1e-5, []
            for v in basis.T:
                sides = [np.array([w * np.cos(s) + v * np.sin(s)]) for s in (step, -step)]
                projected = [source.field(x)[0] - (source.field(x)[0] @ x[0]) * x[0] for x in sides]
                change.append(basis.T @ (projected[0] - projected[1]) / (2.0 * step))
            size = max(1.0, np.abs(J).max())
            allowed = 3e-9 * size  # differences of step 1e-5: 1e-10 of third derivatives of size 10, and rounding/1e-5
            np.testing.assert_allclose(J, np.array(change), atol=allowed, err_msg=activation)  # of differences


def test_roots_between_finds_near_tangencies():
    """Two roots 2e-5 apart, where the function is of size 1e-10, and a jump of the slope at an end."""

    def function(x):
        value = np.where(x < 1.0, (x - 0.3) ** 2 - 1e-10, np.sin(40.0 * x))
        return value, np.ones_like(x)

    found = roots_between(function, [0.0, 1.0, 2.0])
    expected = [0.3 - 1e-5, 0.3 + 1e-5, *np.pi * np.arange(13, 26) / 40.0]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-10)  # rounding over the slope 2e-5 at the tangency


def test_shares_that_are_rounding_are_refused():
    with pytest.raises(
        meanfield.InputError, match=r"importance\.temperature = 1e-06 is .* shares of pairs are rounding"
    ):
        solved("critical_points", "relu", LAW_F, kernel("infonce", 1e-6))


def test_a_problem_without_isolated_points_says_so():
    square = {"law": "points", "points": [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]}
    points = solved("critical_points", "linear", square)
    assert points.sizes["point"] == 0
    assert "no critical point is isolated" in points.attrs["warning"]
