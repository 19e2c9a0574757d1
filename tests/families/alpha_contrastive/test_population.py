"""Exact flow: covariances and slopes against enumeration of all strings, reference numbers, and means of SGD."""

from itertools import product

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.initial import Weights
from meanfield.families.alpha_contrastive.population.solver import _fault, check_population, drift_of
from tests.families.alpha_contrastive import networks
from tests.families.alpha_contrastive.problems import LAW_F, data, kernel, problem_from

PATTERNS = [[0, 1, -1, -1], [0, -1, 2, -1], [-1, 1, -1, 3], [2, -1, 2, -1]]
LAW = {"law": "tokens", "places": 4, "vocabulary": 4, "patterns": PATTERNS}

K, M, D, OUTPUTS = 4, 2, 4, 3
FILTERS = np.array(
    [[[1.0 + 0.5 * np.cos(1 + k + 2 * m + 3 * a) for a in range(D)] for m in range(M)] for k in range(K)]
)
TOP = np.array([[np.sin(1 + line + 2 * j) for j in range(K * M)] for line in range(OUTPUTS)])
START = {"law": "points", "values": FILTERS.reshape(-1, D).tolist(), "top": TOP.tolist()}


def two_layers(activation="quadratic", importance=None, model=None, law=None, **tables):
    usual = {"filters": {"count": M, "start": START}, "time": {"stop": 20.0, "outputs": 2}}
    found = data(law=LAW | (law or {}), importance=importance or {"kind": "quadratic"}) | usual | tables
    return problem_from(found | {"model": {"activation": activation, "layers": 2, "outputs": OUTPUTS} | (model or {})})


def strings(problem):
    """All strings with their generator and probability given it."""
    rows = problem.data.rows
    for g, row in enumerate(rows):
        free = int((row < 0).sum())
        for filling in product(range(D), repeat=free):
            filled = row.copy()
            filled[row < 0] = filling
            yield g, filled, 1.0 / D**free / len(rows)


def by_enumeration(problem, filters, top, frozen=(FILTERS, TOP)):
    """Energy of the population by its definition, pair of strings by pair; importances and statistics are fixed."""
    found = list(strings(problem))
    g = np.array([one[0] for one in found])
    tokens, p = np.array([one[1] for one in found]), np.array([one[2] for one in found])
    x = problem.data.lengths[tokens][..., None] * np.eye(D)[tokens]

    def read(filters, fixed):
        f, own = networks.hidden(problem, filters, x), networks.hidden(problem, fixed, x)
        norm = problem.model.batch_norm
        if not norm.active:
            return f
        mean = p @ (f if norm.differentiate_mean else own)
        of = f if norm.differentiate_variance else own
        return (f - mean) / np.sqrt(p @ (of - p @ of) ** 2 + norm.epsilon)

    f1 = read(filters, frozen[0])
    mean = f1
    if problem.data.augmentation:  # of the views of a sample, which share its generator
        mean = np.array([(p[g == one] @ f1[g == one]) / p[g == one].sum() for one in range(g.max() + 1)])[g]
    alpha = np.ones((len(p), len(p)))
    if problem.importance.kind == "gaussian":
        y = read(frozen[0], frozen[0]) @ frozen[1].T
        alpha = np.exp(-((y[:, None] - y[None]) ** 2).sum(axis=-1) / (2.0 * problem.importance.temperature))
    weight = alpha * np.outer(p, p)
    C = mean.T @ (np.diag(weight.sum(axis=1)) - weight) @ mean
    N = problem.training.batch_size
    if problem.population.finite_batch:
        C = (1.0 - 1.0 / N) * C
        if problem.importance.diagonal == "include":
            C = C - ((f1 - mean).T * p) @ (f1 - mean) / N
    return 0.5 * np.trace(top @ C @ top.T), np.trace(C)


FINITE = {"population": {"finite_batch": True}, "training": {"batch_size": 8}}
CASES = [
    {"activation": "relu"},
    {"activation": "linear", "law": {"augmentation": False, "magnitudes": [0.5, 1.0, 2.0, 1.5]}},
    {"law": {"augmentation": False}},
    {"importance": kernel("gaussian", 0.3), "law": {"non_uniformity": 1.2}},
    {"importance": {"kind": "quadratic", "diagonal": "include"}, **FINITE},
    {"importance": {"kind": "quadratic", "diagonal": "include"}, "law": {"augmentation": False}, **FINITE},
    {"importance": kernel("gaussian", 0.3, diagonal="include"), **FINITE},
    *(
        {"model": {"batch_norm": {"active": True, "differentiate_mean": mean, "differentiate_variance": variance}}}
        for mean in (True, False)
        for variance in (True, False)
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[str(i) for i in range(len(CASES))])
def test_covariances_and_slopes_are_those_of_all_strings(case):
    accuracy = {"tolerance": 1e-13} | case.get("population", {})
    problem = two_layers(**(case | {"population": accuracy}))
    rng = np.random.default_rng(1)
    found = drift_of(problem)(Weights(FILTERS, 0.3 * TOP))
    frozen = (FILTERS, 0.3 * TOP)
    energy, trace = by_enumeration(problem, *frozen, frozen)
    close = {"rel": 1e-12, "abs": 1e-13}  # rounding; the kernel's error is 1e-13 at most
    assert (found.energy, found.covariance_trace) == pytest.approx((energy, trace), **close)
    for moved in (0, 1):
        direction = rng.standard_normal(frozen[moved].shape)
        at = [part + 1e-30j * direction if k == moved else part + 0j for k, part in enumerate(frozen)]
        wanted = by_enumeration(problem, *at, frozen)[0].imag / 1e-30
        size = np.abs(found.slope[moved]).max()
        assert size > 1e-3  # else nothing is tested
        assert np.sum(found.slope[moved] * direction) == pytest.approx(wanted, abs=3e-12 * size)  # rounding


REFERENCES = [
    ("quadratic", True, 20.0, {}, {"trace": 0.04045401603005, "energy": 0.0020900423313, "w": 0.553430921245}),
    ("quadratic", False, 20.0, {}, {"trace": 0.13760030087297, "energy": 0.1166939546462, "w": 0.564699342829}),
    ("relu", True, 5.0, {}, {"energy": 0.0002028951737, "w": 0.613233869503}),
    ("relu", True, 5.0, FINITE | {"importance": {"kind": "quadratic", "diagonal": "include"}}, {"w": 0.612538120662}),
]
"""Trace of C at the start, energy and first weight at the end on the theory page (R9)."""


@pytest.mark.parametrize(("activation", "augmentation", "stop", "more", "wanted"), REFERENCES)
def test_reference_numbers(activation, augmentation, stop, more, wanted):
    accuracy = {"population": {"tolerance": 1e-13} | more.get("population", {})}
    time = {"stop": stop, "outputs": 2}
    problem = two_layers(activation, law={"augmentation": augmentation}, time=time, **(more | accuracy))
    found = meanfield.solve(problem, "population")
    numbers = {"trace": found["covariance_trace"][0], "energy": found["energy"][-1], "w": found["weights"][-1, 0, 0, 0]}
    for name, value in wanted.items():
        # digits of the page; those of its integrator, of which Runge-Kutta with 3200 steps leaves 7e-12
        assert float(numbers[name]) == pytest.approx(value, rel=0.0, abs=1e-11 if name == "w" else 1e-12)
    assert np.linalg.norm(found["top"][-1]) == pytest.approx(1.0, abs=1e-11)  # of 13 digits for each step
    np.testing.assert_allclose((found["weights"] ** 2).sum("coordinate"), 1.0, atol=1e-11)  # the same


def test_the_error_of_the_flow_falls_with_the_tolerance():
    ends = [
        meanfield.solve(two_layers(population={"tolerance": tolerance}), "population")["weights"][-1].values
        for tolerance in (1e-6, 1e-9, 1e-13)
    ]
    rough, fine = (np.abs(end - ends[-1]).max() for end in ends[:-1])
    assert 1e-13 < fine < 1e-8  # the tolerance of each of ten steps, and not exact by chance
    assert fine < 0.1 * rough


def test_weight_decay_and_momentum_are_in_the_flow():
    """Free weights under the decay alone (a top layer of 0 moves nothing): w = w0 exp(-d t/(1 - m))."""
    start = START | {"top": np.zeros_like(TOP).tolist()}
    training = {"weight_decay": 0.3, "momentum": 0.5}
    free = {"unit_filters": False, "unit_top": False}
    time = {"stop": 2.0, "outputs": 3}
    problem = two_layers(model=free, filters={"count": M, "start": start}, training=training, time=time)
    found = meanfield.solve(problem, "population")
    wanted = FILTERS * np.exp(-0.3 * 2.0 / 0.5)
    np.testing.assert_allclose(found["weights"][-1], wanted, rtol=1e-8)  # tolerance 1e-9 of each step


@pytest.mark.parametrize(
    ("decay", "remedy"),
    [
        (1e4, "training.weight_decay = 10000 takes weights to 0 in times of 0.0001; lower it"),
        (0.1, "raise population.tolerance = 1e-09, or lower time.stop"),
    ],
)
def test_weights_that_cannot_be_followed_name_what_helps(decay, remedy):
    problem = two_layers(training={"weight_decay": decay})
    assert str(_fault(problem, 1.0, np.array([0.0, np.nan]))).endswith(remedy)
    assert _fault(problem, 1.0, np.zeros(2)) is None


def means_of_sgd(sgd, flow):
    """Largest distances of means of SGD from the flow, in standard errors, by variable."""
    found = {}
    for name in ("weights", "top", "energy"):
        if name in sgd:
            error = sgd[name].std("replica", ddof=1) / np.sqrt(sgd.sizes["replica"])
            gap = np.abs(sgd[name].mean("replica") - flow[name]).isel(time=-1)
            found[name] = (gap / error.isel(time=-1)).values
    return found


@pytest.mark.parametrize(
    ("activation", "stop", "replicas"),
    [("relu", 4.0, 150), *(pytest.param(name, 10.0, 400, marks=pytest.mark.slow) for name in ("quadratic", "relu"))],
)
def test_means_of_sgd_follow_the_flow_of_finite_batches(activation, stop, replicas):
    """Within 3.5 standard errors of the flow at N = 8, and not of that of large batches.

    The seed is fixed. Of 35 numbers one is beyond 3.5 standard errors in 1.6 % of seeds, by the bound of Bonferroni.
    """
    importance = {"kind": "quadratic", "diagonal": "include"}
    tables = {
        "training": {"learning_rate": 0.05, "batch_size": 8},
        "time": {"stop": stop, "outputs": 2},
        "particles": {"replicas": replicas, "test_batches": 1, "seed": 1},
    }
    finite = two_layers(activation, importance, population={"finite_batch": True}, **tables)
    sgd = meanfield.solve(finite, "particles")
    far = means_of_sgd(sgd, meanfield.solve(finite, "population"))
    assert max(np.max(distance) for distance in far.values()) < 3.5
    large = means_of_sgd(sgd, meanfield.solve(two_layers(activation, importance, **tables), "population"))
    assert max(np.max(distance) for distance in large.values()) > 5.0


def test_means_of_sgd_of_one_layer_follow_the_flow():
    """Filters that share a kernel importance; of 20 numbers one is beyond 3.5 in 0.9 % of seeds."""
    tables = {
        "filters": {"count": 10, "start": {"law": "random", "seed": 2}},
        "time": {"stop": 1.0, "outputs": 2},
        "training": {"learning_rate": 0.02, "batch_size": 8},
        "particles": {"replicas": 100, "test_batches": 1},
        "population": {"finite_batch": True},
    }
    problem = problem_from(data("quadratic", LAW_F, kernel("gaussian", 0.3), **tables))
    sgd, flow = meanfield.solve(problem, "particles"), meanfield.solve(problem, "population")
    far = means_of_sgd(sgd, flow)
    assert max(np.max(distance) for distance in far.values()) < 3.5
    at_start = flow.isel(time=[0, 0]).assign_coords(time=flow["time"])
    assert np.max(means_of_sgd(sgd, at_start)["weights"]) > 20.0  # filters have moved


def test_one_filter_comes_to_rest_at_a_critical_point():
    tables = {"filters": {"count": 1, "start": {"law": "points", "values": [[1.0, 0.2]]}}}
    problem = problem_from(data("quadratic", LAW_F, kernel("gaussian", 0.3), time={"stop": 200.0}, **tables))
    end = meanfield.solve(problem, "population")["weights"][-1, 0, 0].values
    points = meanfield.solve(problem, "critical_points")
    w = points["w"].values[points["stable"].values > 0]
    assert np.abs(w @ end).max() == pytest.approx(1.0, abs=1e-12)  # it has relaxed by exp(-0.26 * 200)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ({"model": {"batch_norm": {"active": True}}, **FINITE}, "population.finite_batch = true has no exact drift"),
        (
            {"importance": kernel("infonce", 1.0), "law": {"patterns": [[-1] * 4] * 8}},
            "importance.kind = 'infonce' looks at all pairs of strings, of which there are 2.05e.03",
        ),
        (
            {"importance": kernel("infonce", 1.0), **FINITE},
            "finite_batch = true has no exact drift with importance.kind",
        ),
        (
            {"importance": kernel("modified_triplet", 1.0, argument="views")},
            "importance.kind = 'modified_triplet' looks at three views at a time",
        ),
        ({"importance": {"kind": "triplet"}}, "importance.kind = 'triplet' jumps"),
        (
            {"importance": kernel("gaussian", 1e-4)},
            "importance.temperature = 0.0001 is .* of the largest squared difference",
        ),
    ],
)
def test_what_has_no_exact_averages_is_refused(case, words):
    with pytest.raises(InputError, match=words):
        check_population(two_layers(**case))


def full_batch(problem, w, stop, steps):
    """Gradient ascent of its own on all samples of ReLU filters, with the Gaussian importance of the whole network."""
    x, p = np.array(LAW_F["points"]), np.array(LAW_F["probabilities"])
    for _ in range(steps):
        z = w @ x.T
        f = np.maximum(z, 0.0)
        d = 0.5 * ((f[:, :, None] - f[:, None]) ** 2).mean(axis=0)
        M = np.outer(p, p) * np.exp(-d / problem.importance.temperature)
        pull = f * M.sum(axis=1) - f @ M
        slope = (pull * (z > 0.0)) @ x
        w = w + stop / steps * (slope - np.sum(slope * w, axis=1, keepdims=True) * w)
        w /= np.linalg.norm(w, axis=1, keepdims=True)
    return w


def test_filters_gather_on_walls_as_full_batches_take_them():
    """Steps of size eta are off by the order of eta, on walls too, where they jump from side to side."""
    tables = {"filters": {"count": 12, "start": {"law": "random", "seed": 2}}, "time": {"stop": 3.0, "outputs": 2}}
    problem = problem_from(data("relu", LAW_F, kernel("gaussian", 0.3), **tables))
    w = meanfield.solve(problem, "population")["weights"].values[:, 0]
    off = [np.abs(full_batch(problem, w[0], 3.0, steps) - w[-1]).max() for steps in (50, 800)]
    assert off[1] < 2e-4  # steps of 0.004, and less than that along a wall
    assert off[1] < 0.25 * off[0]  # a sixteenth, but for where in its jump a filter is
    wall = np.abs(w @ np.array(LAW_F["points"]).T).min(axis=2)
    assert (wall[0] > 1e-3).all()
    assert 2 <= (wall[-1] < 1e-9).sum() < 12


def test_rounded_kinks_take_filters_where_walls_do():
    """Law F in a plane of four coordinates, where kinks are rounded, from filters that stay in that plane."""
    w = [[0.9, 0.4], [-0.5, 0.8], [-0.7, -0.7], [0.6, -0.9], [0.1, 1.0]]
    ends = []
    for more in ([], [0.0, 0.0]):
        law = LAW_F | {"points": [[*x, *more] for x in LAW_F["points"]]}
        start = {"law": "points", "values": [[*x, *more] for x in w]}
        tables = {"filters": {"count": 5, "start": start}, "time": {"stop": 6.0, "outputs": 2}}
        problem = problem_from(data("relu", law, kernel("gaussian", 0.3), **tables))
        ends.append(meanfield.solve(problem, "population")["weights"].values[-1, 0, :, :2])
    assert np.abs(ends[0] @ np.array(LAW_F["points"]).T).min() < 1e-9  # some are on walls
    np.testing.assert_allclose(ends[0], ends[1], atol=3e-6)  # changes of 1e-6 by halved steps, kinks of width 1e-7


def test_other_kinks_in_more_than_three_coordinates_are_refused():
    law = {"law": "points", "points": np.eye(4).tolist()}
    with pytest.raises(InputError, match="followed in at most 3 coordinates, but data have 4"):
        check_population(problem_from(data("hard_tanh", law)))
