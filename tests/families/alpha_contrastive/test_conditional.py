"""Two layers on places that are independent given z: against all strings, quadrature and plain SGD."""

from functools import partial
from itertools import product

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.initial import Weights
from meanfield.families.alpha_contrastive.particles.samples import sampler_of
from meanfield.families.alpha_contrastive.population.solver import check_population, drift_of
from tests.families.alpha_contrastive import networks
from tests.families.alpha_contrastive.problems import data, kernel, problem_from
from validation.alpha_contrastive.figures.exact_flows import draw_gaussians

POINTS = {
    "law": "conditional",
    "probabilities": [0.5, 0.3, 0.2],
    "points": [[[1.0, 0.2], [-0.3, 1.1], [-0.8, -0.5]], [[0.7, -0.9], [0.4, 1.2]]],
    "chances": [
        [[0.6, 0.3, 0.1], [0.0, 0.5, 0.5], [0.2, 0.2, 0.6]],
        [[0.9, 0.1], [0.4, 0.6], [0.0, 1.0]],
    ],
}
GAUSSIANS = {
    "law": "conditional",
    "probabilities": [0.5, 0.3, 0.2],
    "means": [[[1.0, 0.2], [-0.3, 1.1], [-0.8, -0.5]], [[0.7, -0.9], [0.4, 1.2], [-1.0, 0.3]]],
    "covariance": [[0.3, 0.1], [0.1, 0.2]],
}
FILTERS = np.array([[[0.8, 0.6], [-0.6, 0.8]], [[0.28, -0.96], [0.96, 0.28]]])
TOP = np.array([[0.5, -0.2, 0.4, 0.3], [0.1, 0.6, -0.3, 0.2]])
START = {"law": "points", "values": FILTERS.reshape(-1, 2).tolist(), "top": TOP.tolist()}


def two_layers(activation="relu", law=None, importance=None, model=None, **tables):
    usual = {"filters": {"count": 2, "start": START}, "time": {"stop": 2.0, "outputs": 2}}
    found = data(law=POINTS | (law or {}), importance=importance or {"kind": "quadratic"}) | usual | tables
    return problem_from(found | {"model": {"activation": activation, "layers": 2, "outputs": 2} | (model or {})})


def by_strings(problem, filters, top, frozen):
    """Energy by its definition, pair of strings by pair; importances are those of the frozen weights."""
    law = problem.data
    x, z, p = [], [], []
    for c, chance in enumerate(law.weights):
        for row in product(*(range(len(place)) for place in law.points)):
            x.append([law.points[k][a] for k, a in enumerate(row)])
            z.append(c)
            p.append(chance * np.prod([law.chances[k][c][a] for k, a in enumerate(row)]))
    x, z, p = np.array(x), np.array(z), np.array(p)
    f = networks.hidden(problem, filters, x)
    if problem.model.batch_norm.active:
        f = (f - p @ f) / np.sqrt(p @ (f - p @ f) ** 2 + problem.model.batch_norm.epsilon)
    y, fixed = f @ top.T, networks.hidden(problem, frozen[0], x) @ frozen[1].T
    alpha = np.ones((len(p), len(p)))
    if problem.importance.kind == "infonce":
        alpha = np.exp(-0.5 * ((fixed[:, None] - fixed[None]) ** 2).sum(axis=-1) / problem.importance.temperature)
        alpha = alpha / (alpha @ p)[:, None]
    squares = ((y[:, None] - y[None]) ** 2).sum(axis=-1)
    between = np.einsum("i,j,ij,ij->", p, p, alpha, squares)
    given = (z[:, None] == z[None]) * p / law.weights[z][:, None]
    within = np.einsum("i,ij,ij->", p * (alpha @ p), given, squares) if law.augmentation else 0.0
    return (between - within) / 4.0


CASES = [
    {},
    {"law": {"augmentation": False}, "activation": "tanh"},
    {"law": {"augmentation": False}, "model": {"batch_norm": {"active": True}}, "activation": "tanh"},
    {"importance": kernel("infonce", 0.3, argument="views")},
    {"importance": kernel("infonce", 0.3), "law": {"augmentation": False}},
]


@pytest.mark.parametrize("case", CASES, ids=[str(i) for i in range(len(CASES))])
def test_energies_and_slopes_are_those_of_all_strings(case):
    problem, frozen = two_layers(**case), (FILTERS, TOP)
    found = drift_of(problem)(Weights(*frozen))
    assert found.energy == pytest.approx(by_strings(problem, *frozen, frozen), rel=1e-12)  # rounding
    for moved in (0, 1):
        direction = np.cos(1.0 + np.arange(frozen[moved].size)).reshape(frozen[moved].shape)
        at = [part + 1e-30j * direction if k == moved else part + 0j for k, part in enumerate(frozen)]
        wanted = by_strings(problem, *at, frozen).imag / 1e-30
        assert np.sum(found.slope[moved] * direction) == pytest.approx(wanted, rel=1e-10)  # rounding


def means_of_gaussians(problem, filters):
    """E[h(w.x)] for each place and z by nodes in both coordinates, shape (z, places * filters)."""
    x, weight = np.polynomial.hermite_e.hermegauss(150)
    grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    weight = np.outer(weight, weight).ravel() / weight.sum() ** 2
    noise = grid @ np.linalg.cholesky(np.array(GAUSSIANS["covariance"])).T
    means = np.array(GAUSSIANS["means"])
    return np.array([weight @ networks.hidden(problem, filters, means[:, c] + noise[:, None]) for c in range(3)])


# errors of the nodes above: rounding of sums of 150^2 terms, and what a spacing of 0.2 leaves around the kink
@pytest.mark.parametrize(("activation", "off"), [("tanh", 1e-10), ("relu", 2e-3)])
def test_gaussians_are_their_mean_activations(activation, off):
    """Covariances over z of means by quadrature, which resolves tanh, and has 150 nodes across the kink of ReLU."""
    problem = two_layers(activation, law=GAUSSIANS | {"points": None, "chances": None})
    p = np.array(GAUSSIANS["probabilities"])

    def energy(filters):
        F = means_of_gaussians(problem, filters)
        C = (F.T * p) @ F - np.outer(p @ F, p @ F)
        return 0.5 * np.trace(TOP @ C @ TOP.T)

    found = drift_of(problem)(Weights(FILTERS, TOP))
    assert found.energy == pytest.approx(energy(FILTERS), abs=off)  # of the nodes
    direction, step = np.cos(1.0 + np.arange(8)).reshape(FILTERS.shape), 1e-30j
    if activation == "relu":  # whose derivative by quadrature jumps; differences of the closed one instead
        ahead, behind = (drift_of(problem)(Weights(FILTERS + sign * 1e-5 * direction, TOP)).energy for sign in (1, -1))
        wanted, off = (ahead - behind) / 2e-5, 1e-9  # of second order in the step
    else:
        wanted = energy(FILTERS + step * direction).imag / 1e-30
    assert np.sum(found.slope.filters * direction) == pytest.approx(wanted, abs=off)  # of the nodes, or the step


def test_points_of_two_layers_are_a_place_whose_views_are_the_same():
    """A place of three points, each of them a value of z, as `points` with two layers has it."""
    points, p = POINTS["points"][0], POINTS["probabilities"]
    one = {"law": "points", "points": points, "probabilities": p}
    same = POINTS | {"points": [points], "chances": [np.eye(3).tolist()], "augmentation": False}
    start = {"filters": {"count": 2, "start": START | {"values": FILTERS[0].tolist(), "top": TOP[:, :2].tolist()}}}
    for importance in ({"kind": "quadratic"}, kernel("infonce", 0.3)):
        ends = []
        for law in (one, same):
            given = data(law=law, importance=importance) | start | {"time": {"stop": 1.0, "outputs": 2}}
            model = {"activation": "tanh", "layers": 2, "outputs": 2}
            ends.append(meanfield.solve(problem_from(given | {"model": model}), "population"))
        np.testing.assert_allclose(ends[0]["weights"], ends[1]["weights"], atol=1e-12)  # rounding
        assert "chi_plus" not in ends[0]
        assert np.abs(ends[0]["weights"][-1] - ends[0]["weights"][0]).max() > 1e-3


def test_rotated_views_leave_no_isolated_optimum():
    """Appendix B.5: views that are rotated by thirds of a turn make the energy of h = x^2 the same for all filters.

    That of the full group of rotations, because h has harmonics up to the second; only the length of a point counts.
    """
    turns = [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in 2.0 * np.pi / 3.0 * np.arange(3)]
    atoms = [(turn @ x).tolist() for x in ([1.5, 0.0], [0.3, 0.9]) for turn in turns]
    third = [1.0 / 3.0] * 3
    law = {
        "probabilities": [0.4, 0.6],
        "points": [atoms],
        "chances": [[[*third, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, *third]]],
    }
    start = {"filters": {"count": 1, "start": {"law": "points", "values": [[1.0, 0.0]], "top": [[1.0], [0.0]]}}}
    drift = drift_of(two_layers("quadratic", law, **start))
    top = np.array([[1.0], [0.0]])
    found = [drift(Weights(np.array([[[np.cos(a), np.sin(a)]]]), top)) for a in (0.3, 1.1, 2.9)]
    wanted = 0.5 * 0.24 * (1.5**2 - 0.9) ** 2 / 4.0
    np.testing.assert_allclose([one.energy for one in found], wanted, rtol=1e-12)  # rounding
    for one, a in zip(found, (0.3, 1.1, 2.9), strict=True):
        assert abs(one.slope.filters[0, 0] @ [-np.sin(a), np.cos(a)]) < 1e-14  # rounding


def test_means_of_sgd_on_gaussians_follow_the_flow_of_finite_batches():
    """Within 3.5 standard errors of the flow at N = 8, and not of that of large batches.

    Of 16 numbers one is beyond that in 0.7 % of seeds, by the bound of Bonferroni; the seed is fixed.
    """
    made = partial(two_layers, law=GAUSSIANS | {"points": None, "chances": None})
    finite, large = networks.distances_of_sgd(made, FILTERS, TOP, draw_gaussians(GAUSSIANS), 1000)
    assert finite < 3.5
    assert large > 5.0


@pytest.mark.parametrize("law", [POINTS, GAUSSIANS], ids=["points", "gaussians"])
def test_batches_share_z_alone(law):
    """Means of a view, and covariances of two: of 12 numbers one is beyond 4 standard errors in 0.08 % of seeds."""
    problem = two_layers(law=law if law is POINTS else law | {"points": None, "chances": None})
    views = sampler_of(problem.data).draw(np.random.default_rng(3), 20_000, False).views
    if law is POINTS:
        given = np.array([np.array(c) @ np.array(x) for c, x in zip(law["chances"], law["points"], strict=True)])
    else:
        given = np.array(law["means"])  # (places, z, coordinates)
    p = np.array(law["probabilities"])
    mean = np.einsum("z,kza->ka", p, given)
    for values, wanted in (
        (views[0], mean),
        ((views[0] - mean) * (views[1] - mean), np.einsum("z,kza->ka", p, (given - mean[:, None]) ** 2)),
        (
            (views[0] - mean) * (views[0] - mean)[:, ::-1],
            np.einsum("z,kza->ka", p, (given - mean[:, None]) * (given - mean[:, None])[::-1]),
        ),
    ):
        error = values.std(axis=0) / np.sqrt(len(values))
        assert (np.abs(values.mean(axis=0) - wanted) / error).max() < 4.0


@pytest.mark.parametrize(
    ("law", "words"),
    [
        ({"chances": None}, "chances: belongs to points; give both, or neither"),
        ({"means": [[[1.0, 0.0]]]}, "points: or means are to be given, one of the two"),
        ({"chances": POINTS["chances"][:1]}, "chances: has 1 place.s., but points has 2"),
        ({"chances": [POINTS["chances"][0], [[0.9, 0.2], [0.4, 0.6], [0.0, 1.0]]]}, "at place 1: give 2 numbers >= 0"),
        ({"chances": [POINTS["chances"][0][:2], POINTS["chances"][1]]}, "has 2 row.s. at place 0, not 3"),
    ],
)
def test_laws_that_do_not_fit_are_refused(law, words):
    with pytest.raises(InputError, match=words):
        two_layers(law=law)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ({"importance": kernel("infonce", 1.0)}, "importance.kind = 'infonce' has no exact averages over Gaussians"),
        ({"activation": "hard_tanh"}, "has kinks away from 0, at which filters of other data"),
    ],
)
def test_what_gaussians_have_no_averages_for_is_refused(case, words):
    law = GAUSSIANS | {"points": None, "chances": None} | case.pop("law", {})
    with pytest.raises(InputError, match=words):
        check_population(two_layers(law=law, **case))
