"""One layer on data with augmented views: points that are views of samples, mixtures whose views share a component."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.critical_points.solver import check_critical_points, field_of
from meanfield.families.alpha_contrastive.initial import Weights
from meanfield.families.alpha_contrastive.limit.circle import on_circle
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.kernel_mixture import KernelMixtureField
from meanfield.families.alpha_contrastive.limit.pairs import make_pairs, of_views
from meanfield.families.alpha_contrastive.particles.samples import sampler_of
from meanfield.families.alpha_contrastive.population.solver import check_population, drift_of
from tests.families.alpha_contrastive import networks
from tests.families.alpha_contrastive.problems import LAW_F, assert_gradient, kernel, problem

VIEWS = {
    "law": "points",
    "points": [[1.5, 0.0], [1.2, 0.7], [0.3, 1.2], [-0.8, 0.6], [-0.2, -1.0], [0.7, -0.9], [0.1, -1.3]],
    "probabilities": [0.2, 0.1, 0.15, 0.2, 0.1, 0.2, 0.05],
    "sample": [0, 0, 1, 1, 2, 2, 2],
}
MIXTURE = {
    "law": "gaussian_mixture",
    "probabilities": [0.5, 0.3, 0.2],
    "means": [[1.0, 0.2], [-0.3, 1.1], [-0.8, -0.5]],
    "covariance": [[[0.3, 0.1], [0.1, 0.2]], [[0.5, -0.2], [-0.2, 0.4]], [[0.1, 0.0], [0.0, 0.6]]],
    "augmentation": True,
}
INFONCE = kernel("infonce", 0.3, argument="views")
FILTERS = on_circle(np.array([0.3, 1.9, -1.2]))


def turned(delta):
    """Views of the five points of law F: each turned by an angle in either direction."""
    turns = [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in (-delta, delta)]
    points = [(turn @ x).tolist() for x in np.array(LAW_F["points"]) for turn in turns]
    return {
        "law": "points",
        "points": points,
        "probabilities": [p / 2 for p in LAW_F["probabilities"] for _ in turns],
        "sample": np.repeat(np.arange(5), 2).tolist(),
    }


def by_pairs(given, filters, frozen):
    """E_alpha of a network by its definition, over a view, another of its sample, and one of another sample."""
    x, p, sample = np.array(VIEWS["points"]), np.array(VIEWS["probabilities"]), np.array(VIEWS["sample"])
    f, fixed = (networks.ACTIVATIONS[given.model.activation](x @ w.T) / np.sqrt(len(w)) for w in (filters, frozen))
    alpha = np.ones((len(p), len(p)))
    if given.importance.kind == "infonce":
        alpha = np.exp(-0.5 * ((fixed[:, None] - fixed[None]) ** 2).sum(axis=-1) / given.importance.temperature)
        alpha = alpha / (alpha @ p)[:, None]
    total = 0.0
    for i, a in enumerate(p):
        own = sample == sample[i]
        within = (p[own] / p[own].sum()) @ ((f[i] - f[own]) ** 2).sum(axis=1)
        total += a * np.sum(p * alpha[i] * (((f[i] - f) ** 2).sum(axis=1) - within))
    return total / 4.0


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("importance", [{"kind": "quadratic"}, INFONCE])
def test_energies_and_slopes_are_those_of_all_views(activation, importance):
    given = problem(activation, VIEWS, importance, filters={"count": 3})
    found = drift_of(given)(Weights(FILTERS[None], np.zeros((0, 3))))
    assert found.energy == pytest.approx(by_pairs(given, FILTERS, FILTERS), rel=1e-12)  # rounding
    direction = np.cos(1.0 + np.arange(6)).reshape(3, 2)
    wanted = 3.0 * by_pairs(given, FILTERS + 1e-30j * direction, FILTERS).imag / 1e-30
    assert np.sum(found.slope.filters[0] * direction) == pytest.approx(wanted, rel=1e-12)  # the same


@pytest.mark.parametrize("law", [VIEWS, MIXTURE], ids=["points", "mixture"])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("importance", [{"kind": "quadratic"}, INFONCE])
def test_fields_are_gradients_and_jacobians_their_derivatives(law, activation, importance):
    assert_gradient(field_of(problem(activation, law, importance)))


@pytest.mark.parametrize("importance", [{"kind": "quadratic"}, INFONCE])
def test_mixtures_are_many_points_whose_samples_are_components(importance):
    """Nodes of Gauss and Hermite in both coordinates of each component, as views of one sample."""
    x, weight = np.polynomial.hermite_e.hermegauss(26)
    plane = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    share = np.outer(weight, weight).ravel() / weight.sum() ** 2
    p = np.kron(MIXTURE["probabilities"], share)
    roots = np.linalg.cholesky(np.array(MIXTURE["covariance"]))
    atoms = np.concatenate([mu + plane @ root.T for mu, root in zip(MIXTURE["means"], roots, strict=True)])
    given = problem("tanh", MIXTURE, importance | {"diagonal": "include"})
    found, pairs = field_of(given), make_pairs(given.importance, p)
    views = of_views(np.repeat(np.arange(3), len(share)), p)
    other = DiscreteField(atoms, type(pairs)(p, pairs.kernel, pairs.normalised, True, views), found.filter)
    np.testing.assert_allclose(found.field(FILTERS), other.field(FILTERS), rtol=0.0, atol=2e-6)  # of 26 nodes
    np.testing.assert_allclose(found.objective(FILTERS), other.objective(FILTERS), rtol=0.0, atol=1e-6)  # the same


def test_closed_averages_of_views_are_those_of_panels():
    given = problem("leaky_relu", MIXTURE)
    exact = field_of(given)
    found = KernelMixtureField(
        exact.weight,
        exact.mean,
        exact.covariance,
        make_pairs(given.importance, exact.weight),
        type(field_of(problem("tanh", MIXTURE)).filter)(given.model.activation_functions),
        0.3,
        True,
    )
    w, basis = FILTERS[0], np.array([[-FILTERS[0, 1]], [FILTERS[0, 0]]])
    for a, b in (
        (found.field(FILTERS), exact.field(FILTERS)),
        (found.energy(FILTERS), exact.energy(FILTERS)),
        (found.matrix(w), exact.matrix(w)),
        (found.jacobians(w, basis)[0], exact.jacobians(w, basis)[0]),
    ):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-13)  # rounding: panels resolve a normal density


def train(law, activation, theta, draw, rng, runs, N, eta, steps):
    """Angles of runs of plain SGD on filters of one layer under the uniform importance, pair by pair of views."""
    h, slope = {
        "relu": (lambda z: np.maximum(z, 0.0), lambda z: 1.0 * (z > 0.0)),
        "tanh": (np.tanh, lambda z: 1.0 - np.tanh(z) ** 2),
    }[activation]
    theta = np.tile(theta, (runs, 1))
    for _ in range(steps):
        w, across = on_circle(theta), np.stack([-np.sin(theta), np.cos(theta)], axis=-1)
        views = draw(law, rng, (runs, N))
        z = [np.einsum("rka,rna->rnk", w, x) for x in views]
        g = [slope(z_) * np.einsum("rka,rna->rnk", across, x) for z_, x in zip(z, views, strict=True)]
        f = [h(part) for part in z]
        # sum over i and j != i of (f_i - f_j)(g_i - g_j)/(2 N^2), less (N - 1) times that of the views
        between = (f[0] * g[0]).sum(axis=1) / N - f[0].mean(axis=1) * g[0].mean(axis=1)
        within = ((f[0] - f[1]) * (g[0] - g[1])).sum(axis=1) * (N - 1) / (2 * N**2)
        theta = theta + eta * (between - within)
    return theta


def views_of_points(law, rng, size):
    p, sample = np.array(law["probabilities"]), np.array(law["sample"])
    first = rng.choice(len(p), size=size, p=p)
    other = np.empty_like(first)
    for s in range(sample.max() + 1):
        own, at = np.flatnonzero(sample == s), sample[first] == s
        other[at] = rng.choice(own, size=int(at.sum()), p=p[own] / p[own].sum())
    return [np.array(law["points"])[chosen] for chosen in (first, other)]


def views_of_mixture(law, rng, size):
    c = rng.choice(len(law["means"]), size=size, p=law["probabilities"])
    roots = np.linalg.cholesky(np.array(law["covariance"]))[c]
    noise = [rng.standard_normal((*size, 2)) for _ in range(2)]
    return [np.array(law["means"])[c] + np.einsum("...ab,...b->...a", roots, each) for each in noise]


@pytest.mark.parametrize(
    ("law", "draw", "activation"),
    [(VIEWS, views_of_points, "tanh"), (MIXTURE, views_of_mixture, "relu"), (MIXTURE, views_of_mixture, "tanh")],
    ids=["points", "mixture, closed", "mixture, by quadrature"],
)
def test_means_of_plain_sgd_follow_the_flow_of_finite_batches(law, draw, activation):
    """Within 3.5 standard errors of the flow at N = 6, and not of that of large batches, nor of equal views.

    Of 6 numbers one is beyond that in 0.3 % of seeds, by the bound of Bonferroni; the seed is fixed.
    """
    theta = np.array([0.3, 1.9, -1.2])
    start = {"count": 3, "start": {"law": "points", "values": on_circle(theta).tolist()}}

    def end(law, finite):
        more = {"training": {"batch_size": 6}, "population": {"finite_batch": finite}}
        given = problem(activation, law, filters=start, time={"stop": 3.0, "outputs": 2}, **more)
        return meanfield.solve_population(given)["weights"].values[-1, 0]

    same = {key: value for key, value in law.items() if key not in ("sample", "augmentation")}
    runs = on_circle(train(law, activation, theta, draw, np.random.default_rng(5), 400, 6, 0.015, 200))
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    ends = [end(*other) for other in ((law, True), (law, False), (same, True))]
    far = [(np.abs(runs.mean(axis=0) - other) / error).max() for other in ends]
    assert far[0] < 3.5
    assert min(far[1:]) > 5.0


@pytest.mark.parametrize("law", [VIEWS, MIXTURE], ids=["points", "mixture"])
def test_views_of_batches_share_a_sample_alone(law):
    """Of 8 numbers one is beyond 4 standard errors in 0.05 % of seeds."""
    found = sampler_of(problem("tanh", law).data).draw(np.random.default_rng(3), 40_000, True)
    x = [*found.views[:, :, 0], found.source[0, :, 0]]
    p = np.array(law["probabilities"])
    if law is VIEWS:
        own = np.array([[p[k] if s == law["sample"][k] else 0.0 for k in range(len(p))] for s in range(3)])
        of, given = own.sum(axis=1), own / own.sum(axis=1, keepdims=True) @ np.array(law["points"])
    else:
        of, given = p, np.array(law["means"])
    for first, second in ((0, 1), (1, 2)):
        product = x[first] * x[second]
        error = product.std(axis=0) / np.sqrt(len(product))
        assert (np.abs(product.mean(axis=0) - of @ given**2) / error).max() < 4.0
        assert (np.abs(x[second].mean(axis=0) - of @ given) / x[second].std(axis=0) * np.sqrt(len(product))).max() < 4.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "importance", "activation"),
    [(VIEWS, INFONCE, "tanh"), (MIXTURE, {"kind": "quadratic"}, "relu")],
    ids=["points", "mixture"],
)
def test_densities_agree_with_sgd(law, importance, activation):
    """Verdict of runs of SGD that share nothing with the density; the seed is fixed."""
    given = problem(
        activation,
        law,
        importance,
        filters={"count": 60, "start": {"law": "fourier", "cosine": [0.4], "sine": [0.2]}},
        training={"learning_rate": 0.04, "batch_size": 200},
        density={"tolerance": 1e-2},
        particles={"replicas": 8, "test_batches": 1},
        time={"stop": 2.0, "outputs": 3},
    )
    assert meanfield.compare(meanfield.solve_density(given), meanfield.simulate_sgd(given)).attrs["verdict"] == "AGREES"


def test_groups_of_turns_leave_no_isolated_optimum():
    """Appendix B.5: thirds of a turn are as good as all turns for h = x^2, whose harmonics end at the second."""
    turns = [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in 2.0 * np.pi / 3.0 * np.arange(3)]
    points = [(turn @ x).tolist() for x in ([1.5, 0.0], [0.3, 0.9]) for turn in turns]
    law = {"law": "points", "points": points, "sample": [0, 0, 0, 1, 1, 1]}
    found = meanfield.solve(problem("quadratic", law), "critical_points")
    assert found.sizes["point"] == 0
    assert "no critical point is isolated" in str(found.attrs)


def test_views_that_are_no_group_add_optima():
    """Appendix B.5 has augmentation remove optima; two turned views of each point give ReLU more, most on their walls.

    A grid of 200,000 angles has as many maxima of the energy, which is the variance of the mean output of a sample.
    """
    angle = np.linspace(-np.pi, np.pi, 200_001)[:-1]
    counts = []
    for delta in (0.0, 0.3, 1.0):
        law = turned(delta) if delta else LAW_F
        stable = meanfield.solve(problem("relu", law), "critical_points")["stable"].values
        outputs = np.maximum(on_circle(angle) @ np.array(law["points"]).T, 0.0)
        m = outputs if delta == 0.0 else outputs.reshape(len(angle), 5, 2).mean(axis=2)
        p = np.array(LAW_F["probabilities"])
        energy = (m * m) @ p - (m @ p) ** 2
        assert stable.sum() == np.sum((energy > np.roll(energy, 1)) & (energy > np.roll(energy, -1)))
        counts.append(int(stable.sum()))
    assert counts == [3, 4, 8]


def test_the_best_network_of_views_is_certified():
    """An objective below 0, where views differ more than samples, has its optimum, too."""
    given = problem("tanh", turned(1.0), INFONCE)
    found = meanfield.solve(given, "optimal_filters")
    assert float(found["G"]) < 0.0
    assert float(found["certificate_gap"]) < 1e-9  # where the search ends, relative to distances of order 1


def test_two_layers_on_views_are_those_given_the_sample():
    places = {
        "law": "conditional",
        "probabilities": [0.3, 0.35, 0.35],
        "points": [VIEWS["points"]],
        "chances": [[[2 / 3, 1 / 3, 0, 0, 0, 0, 0], [0, 0, 3 / 7, 4 / 7, 0, 0, 0], [0, 0, 0, 0, 2 / 7, 4 / 7, 1 / 7]]],
    }
    start = {"law": "points", "values": FILTERS[:2].tolist(), "top": [[0.8, -0.6]]}
    ends = []
    for law in (VIEWS, places):
        given = problem(
            "tanh",
            law,
            filters={"count": 2, "start": start},
            time={"stop": 1.0, "outputs": 2},
            model={"activation": "tanh", "layers": 2, "outputs": 1},
        )
        ends.append(meanfield.solve_population(given)["weights"].values)
    np.testing.assert_allclose(*ends, atol=1e-12)  # rounding
    assert np.abs(ends[0][-1] - ends[0][0]).max() > 1e-3


@pytest.mark.parametrize(
    ("law", "words"),
    [
        ({"sample": [0, 1]}, "sample: has 2 number.s., but there are 7 points; give one each"),
        ({"sample": [0, 0, 1, 1, 3, 3, 3]}, "numbers no two samples from 0 on"),
        ({"sample": [0] * 7}, "numbers no two samples from 0 on"),
    ],
)
def test_samples_that_do_not_fit_are_refused(law, words):
    with pytest.raises(InputError, match=words):
        problem("tanh", VIEWS | law)


@pytest.mark.parametrize("law", [VIEWS, MIXTURE], ids=["points", "mixture"])
@pytest.mark.parametrize(
    ("importance", "words"),
    [
        (kernel("gaussian", 0.3), "kind = 'gaussian' is"),
        (kernel("infonce", 0.3), "argument = 'source' with"),
    ],
)
def test_importances_without_an_objective_of_views_are_refused_with_a_remedy(law, importance, words):
    with pytest.raises(InputError, match=words):
        check_critical_points(problem("tanh", law, importance))
    check_critical_points(problem("tanh", law, INFONCE))


def test_finite_batches_of_pairs_with_itself_have_no_flow_of_views():
    more = {"population": {"finite_batch": True}}
    with pytest.raises(InputError, match="'include' where views differ; take 'exclude'"):
        check_population(problem("tanh", VIEWS, {"kind": "quadratic", "diagonal": "include"}, **more))
    check_population(problem("tanh", VIEWS, {"kind": "quadratic", "diagonal": "exclude"}, **more))
