"""Numbers that change in time: exact flows against an integrator of their own, densities, and SGD.

Random schedules have fixed seeds. Averages over points are written out here by their definition; those over tokens are
the constant ones of the page, whose tests are elsewhere, of the problem at each time.
"""

from functools import partial

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.density.noise import batch_moments
from meanfield.families.alpha_contrastive.initial import Weights, common_weights, tangential
from meanfield.families.alpha_contrastive.limit.fields import discrete_field
from meanfield.families.alpha_contrastive.particles.simulation import Replicas
from meanfield.families.alpha_contrastive.population.solver import drift_of
from meanfield.problems.base import corners_of
from meanfield.problems.clock import Clock
from meanfield.problems.problem_keys import at_time, with_value, with_values
from meanfield.sweep.definition import Sweep
from meanfield.sweep.points import points_of
from tests.families.alpha_contrastive.problems import LAW_F, kernel, problem
from tests.families.alpha_contrastive.test_population import two_layers
from tests.references_in_time import inside, integrated, stopped, table

SPACE = {"law": "points", "points": [[1.1, 0.2, -0.4, 0.3], [-0.5, 0.9, 0.3, -0.2], [0.2, -0.8, 0.9, 0.6]]}
STOP = 2.0


def random_schedule(rng, low, high, whole=False):
    """Table or shape whose values are between two numbers."""
    kind = 1 if whole else rng.integers(4)
    if kind < 2:
        times = np.concatenate([[0.0], np.sort(rng.uniform(0.1, 0.9 * STOP, rng.integers(1, 4)))])
        values = rng.integers(low, high, len(times)) if whole else rng.uniform(low, high, len(times))
        return table(times, values, STOP, ["linear", "step"][kind])
    if kind == 2:
        return {"schedule": "warmup_cosine", "start": low, "peak": high, "warmup": 0.5, "end": low, "duration": 1.5}
    return {"schedule": "exponential", "start": high, "rate": float(np.log(high / low)) / STOP}


def scheduled(seed, given):
    """Problem whose numbers all change in time."""
    rng = np.random.default_rng(seed)
    noise = {"data.covariance": random_schedule(rng, 0.1, 0.6)} if hasattr(given.data, "means") else {}
    return with_values(
        given,
        noise
        | {
            "importance.temperature": random_schedule(rng, 0.2, 1.0),
            "training.learning_rate": random_schedule(rng, 0.02, 0.1),
            "training.batch_size": random_schedule(rng, 4, 20, whole=True),
            "training.momentum": random_schedule(rng, 0.1, 0.5),
            "training.weight_decay": random_schedule(rng, 0.05, 0.4),
        },
    )


def reference(problem, velocity):
    """Weights at the output times by an integrator that begins anew at corners."""
    first, times = common_weights(problem), problem.time.outputs_at
    shape = first.filters.shape
    split = first.filters.size

    def rate(t, y, low, high):
        now = at_time(problem, inside(t, low, high))
        weights = Weights(y[:split].reshape(shape), y[split:].reshape(first.top.shape))
        change = [
            slope - now.training.weight_decay * part
            for slope, part in zip(velocity(now, weights), weights, strict=True)
        ]
        model = problem.model
        held = [
            tangential(each, part, dims) if unit else each
            for each, part, unit, dims in zip(
                change, weights, (model.unit_filters, model.unit_top), (1, 2), strict=True
            )
        ]
        return np.concatenate([part.ravel() for part in held]) / (1.0 - now.training.momentum)

    found = integrated(rate, np.concatenate([part.ravel() for part in first]), times, corners_of(problem))
    return found[:, :split].reshape(-1, *shape)


def over_points(now, weights):
    """E over pairs of points of alpha (h - h')(h' x - h'' x')/2, the share of pairs of a batch included."""
    w, x = weights.filters[0], np.array(now.data.points)
    p = np.full(len(x), 1.0 / len(x)) if now.data.probabilities is None else np.array(now.data.probabilities)
    h, slope = np.tanh(w @ x.T), 1.0 / np.cosh(w @ x.T) ** 2
    D = 0.5 * np.mean((h[:, :, None] - h[:, None]) ** 2, axis=0)
    alpha = np.exp(-D / now.importance.temperature)
    if now.importance.kind == "infonce":
        alpha = alpha / (alpha @ p)[:, None]
    pair = 0.5 * alpha * np.outer(p, p) * (h[:, :, None] - h[:, None])
    g = slope[:, :, None] * x
    share = 1.0 - 1.0 / now.training.batch_size if now.population.finite_batch else 1.0
    return share * np.einsum("kij,kijd->kd", pair, g[:, :, None] - g[:, None])[None], np.zeros_like(weights.top)


def at_one_time(now, weights):
    """By the page's averages of the problem of that time."""
    found = drift_of(now)(weights).slope
    return found.filters, found.top


FINE = {"time": {"stop": STOP, "outputs": 4}, "population": {"tolerance": 1e-12}}
BATCHES = FINE | {"population": {"tolerance": 1e-12, "finite_batch": True}}
POINTS = {
    "gaussian": problem("tanh", LAW_F, kernel("gaussian", 1.0), filters={"count": 4}, **BATCHES),
    "infonce": problem("tanh", SPACE, kernel("infonce", 1.0), filters={"count": 3}, **FINE),
}
FREE = {"unit_filters": False, "unit_top": False}
MIXTURE = {"law": "gaussian_mixture", "means": [[1.0, 0.2], [-0.5, 0.8]], "probabilities": [0.6, 0.4]}
PLACES = {"law": "conditional", "means": [MIXTURE["means"], [[0.3, 1.0], [0.9, -0.4]]], "probabilities": [0.6, 0.4]}
START = {"law": "points", "values": [[1.0, 0.3], [0.2, -0.8]] * 2, "top": np.sin(np.arange(8.0)).reshape(2, 4).tolist()}
AVERAGES = {
    "noise of views": problem(
        "relu", MIXTURE | {"covariance": 1.0, "augmentation": True}, filters={"count": 3}, **BATCHES
    ),
    "noise of places": problem(
        "relu",
        PLACES | {"covariance": 1.0},
        model={"layers": 2, "activation": "relu", "outputs": 2},
        filters={"count": 2, "start": START},
        **BATCHES,
    ),
    "gaussian": two_layers("tanh", kernel("gaussian", 1.0), **BATCHES),
    "infonce": two_layers("tanh", kernel("infonce", 1.0), model=FREE, **FINE),
    "normalised": two_layers("tanh", model=FREE | {"batch_norm": {"active": True, "epsilon": 0.1}}, **FINE),
}


def exact_flow(seed, given, velocity):
    exact(scheduled(seed, given), velocity)


def exact(problem, velocity):
    """Check the flow and its last energy."""
    found = meanfield.solve(problem, "population")
    assert found.attrs["status"] == "complete"
    assert found["weights"].values == pytest.approx(reference(problem, velocity), abs=1e-8)  # population.tolerance
    last = at_time(problem, STOP)
    weights = Weights(found["weights"].values[-1], np.zeros((0, 4)))
    if problem.model.layers == 1:
        assert float(found["energy"][-1]) == pytest.approx(drift_of(last)(weights).energy, abs=1e-12)  # rounding


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("kind", POINTS)
def test_exact_flows_of_one_layer_follow_any_schedules(kind, seed):
    exact_flow(seed, POINTS[kind], over_points)


@pytest.mark.parametrize("kind", AVERAGES)
def test_exact_flows_with_other_averages_follow_any_schedules(kind):
    exact_flow(10, AVERAGES[kind], at_one_time)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 26))
@pytest.mark.parametrize("kind", [*POINTS, *AVERAGES])
def test_exact_flows_follow_more_schedules(kind, seed):
    exact_flow(seed, *((AVERAGES[kind], at_one_time) if kind in AVERAGES else (POINTS[kind], over_points)))


SWITCH = {"times": [0.0, 0.45, 0.8], "values": [1.0, 0.15, 0.5], "interpolation": "step"}
COOLING = {"times": [0.0, 0.4, 1.0], "values": [1.0, 0.2, 0.6]}
WARM_UP = {"schedule": "warmup_cosine", "start": 0.01, "peak": 0.06, "warmup": 0.3, "end": 0.02, "duration": 0.9}
ONCE = {"stop": 1.0, "outputs": 3}
SHORT = {"time": {"stop": 1.0, "outputs": 5}}


def on_an_even_grid(given, count):
    """Problem of the filters at the middles of even cells of the circle."""
    angle = 2.0 * np.pi * (np.arange(count) + 0.5) / count - np.pi
    values = np.stack([np.cos(angle), np.sin(angle)], axis=1).tolist()
    return with_values(given, {"filters.start": {"law": "points", "values": values}, "filters.count": count})


@pytest.mark.parametrize(
    ("activation", "temperature", "count", "allowed"),
    [
        ("quadratic", COOLING, 60, 1e-7),  # the midpoint rule is spectral; the flow is off by some 1e-8
        # the rule at walls: 3e-4 at 200 filters, 5e-5 at 400, 1e-5 at 800; phases have the same in test_phases.py
        pytest.param("relu", SWITCH, 200, 4e-4, marks=pytest.mark.slow),
    ],
)
def test_densities_on_the_circle_are_those_of_many_filters(activation, temperature, count, allowed):
    """Within the density's errors and those of the filters."""
    training = {"momentum": {"schedule": "linear", "start": 0.4, "end": 0.0, "duration": 0.7}}
    given = problem(activation, LAW_F, kernel("gaussian", temperature), training=training, time=ONCE)
    density = meanfield.solve(given, "density")
    flow = meanfield.solve(on_an_even_grid(with_value(given, "population.tolerance", 1e-6), count), "population")
    for name in ("moment_cos", "moment_sin", "G"):
        away = np.abs(density[name].values - flow[name].values)
        assert np.all(away <= density[f"{name}_error"].values + allowed), name


def test_densities_on_the_sphere_are_those_of_many_filters():
    space = {"law": "points", "points": [[1.1, 0.2, -0.4], [-0.5, 0.9, 0.3], [0.2, -0.8, 0.9]]}
    given = problem("quadratic", space, kernel("infonce", SWITCH, diagonal="include"), time={"stop": 0.6, "outputs": 3})
    density = meanfield.solve(with_value(given, "density.tolerance", 1e-2), "density")
    # Gauss's rule in height times an even one around it: exact up to the harmonics that a flow of t = 0.6 has
    z = np.polynomial.legendre.leggauss(20)
    around = np.linspace(0.0, 2.0 * np.pi, 40, endpoint=False)
    w = np.array([[np.sqrt(1 - h * h) * np.cos(a), np.sqrt(1 - h * h) * np.sin(a), h] for h in z[0] for a in around])
    weight = np.repeat(z[1] / 80.0, 40)
    x, p, times = np.array(space["points"]), np.full(3, 1.0 / 3.0), given.time.outputs_at

    def rate(t, y, low, high):
        w, tau = y.reshape(-1, 3), 1.0 if high <= 0.45 else 0.15
        h = (w @ x.T) ** 2
        D = 0.5 * np.einsum("f,fij->ij", weight, (h[:, :, None] - h[:, None]) ** 2)
        alpha = np.exp(-D / tau)
        M = np.outer(p, p) * alpha / (alpha @ p)[:, None]
        M = 0.5 * (M + M.T)
        pull = h * M.sum(axis=1) - h @ M
        return tangential((pull * 2.0 * (w @ x.T)) @ x, w, 1).ravel()

    tenth = {"rtol": 1e-7, "atol": 1e-8}  # of the error of the rule below
    found = integrated(rate, w.ravel(), times, [0.45], tenth).reshape(len(times), -1, 3)
    second = np.einsum("f,tfi,tfj->tij", weight, found, found)
    away = np.abs(density["second_moment"].values - second)
    assert np.all(away <= density["second_moment_error"].values + 1e-6)  # of the rule, from 20 nodes on


def test_filters_on_walls_go_on_from_a_jump_as_from_a_start():
    """A run to the jump, and one from there with the other temperature, are the run with the jump."""
    given = problem("relu", LAW_F, kernel("gaussian", 0.8), filters={"count": 4}, time={"stop": 3.0, "outputs": 2})
    given = with_value(given, "population.tolerance", 1e-5)
    jump = {"times": [0.0, 3.0], "values": [0.8, 0.1], "interpolation": "step"}
    values = {"importance.temperature": jump, "time.stop": 4.0, "time.outputs": 5}
    whole = meanfield.solve(with_values(given, values), "population")["weights"].values
    half = meanfield.solve(given, "population")["weights"].values[-1, 0]
    start = {"law": "points", "values": half.tolist()}
    late = {"importance.temperature": 0.1, "time.stop": 1.0, "filters.start": start}
    rest = meanfield.solve(with_values(given, late), "population")["weights"].values[-1]
    assert whole[3, 0] == pytest.approx(half, abs=2e-5)  # both change by up to 1e-5 as steps are halved
    assert whole[-1] == pytest.approx(rest, abs=5e-5)  # as above, and the flow expands what the start is off
    assert np.abs(whole[-1] - whole[3]).max() > 5e-3  # filters leave walls that held them


CONSTANT = {
    "importance.temperature": 0.3,
    "importance.epsilon": 0.0,
    "training.learning_rate": 0.05,
    "training.batch_size": 16,
    "training.momentum": 0.2,
    "training.weight_decay": 0.1,
}
EVERY_METHOD = {
    "circle": (
        problem("relu", LAW_F, kernel("gaussian", 0.3), density={"tolerance": 1e-2}, filters={"count": 3}, **SHORT)
    ),
    "tokens": two_layers("relu", kernel("infonce", 0.3), **SHORT),
    "fast": two_layers("relu", population={"fast_top": True}, **SHORT),
}


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *(("circle", method) for method in ("density", "population", "particles")),
        *((name, method) for name in ("tokens", "fast") for method in ("population", "particles")),
    ],
)
def test_constant_schedules_give_the_bits_of_numbers(name, method):
    given = with_values(EVERY_METHOD[name], CONSTANT | {"particles.replicas": 2})
    steady = {key: {"times": [0.0], "values": [float(value)]} for key, value in CONSTANT.items()}
    found, known = (meanfield.solve(each, method) for each in (with_values(given, steady), given))
    for variable in known.data_vars:
        assert np.array_equal(found[variable].values, known[variable].values, equal_nan=True), variable


EVEN = {"law": "fourier", "cosine": [0.4], "sine": [0.2]}


def steps_of_euler(given):
    """E cos k theta of filters that take the mean step of a batch, from a fine grid, at the end."""
    clock, angle = Clock(given), 2.0 * np.pi * (np.arange(2000) + 0.5) / 2000 - np.pi
    weight = given.filters.start.density(angle) / given.filters.start.density(angle).sum()
    for k in range(int(clock.steps_at(np.array([given.time.stop]))[0])):
        now = at_time(given, clock.time_of(k))
        field = batch_moments(discrete_field(now, now.data), angle, now.training.batch_size)[0]
        angle = angle + np.arctan(now.training.learning_rate * field)
    return np.cos(np.outer(np.arange(1, 4), angle)) @ weight


# Cells that follow a temperature that falls are those of many filters above.
@pytest.mark.parametrize("temperature", [pytest.param(COOLING, marks=pytest.mark.slow), SWITCH])
def test_the_law_of_a_filter_is_right_to_first_order_in_steps(temperature):
    """Huge batches have no noise: what is left is of second order, a quarter for half of the steps."""
    errors = []
    for rate in (0.1, 0.05):
        given = problem(
            "quadratic", LAW_F, kernel("gaussian", temperature), filters={"count": 1, "start": EVEN}, **SHORT
        )
        training = {"training.learning_rate": rate, "training.batch_size": 10**7}
        given = with_values(given, training | {"density.noise": True, "density.tolerance": 1e-5, "time.stop": 0.6})
        found = meanfield.solve(given, "density")["moment_cos"].values[-1, :3]
        errors.append(np.abs(found - steps_of_euler(given)).max())
    assert errors[0] <= 3e-4
    assert errors[0] / errors[1] > 3.0  # 4 at second order, 2 at first, less what the cells leave


def test_the_importance_at_a_jump_is_the_new_one():
    jump = {"times": [0.0, 0.5], "values": [0.9, 0.2], "interpolation": "step"}
    given = problem("tanh", SPACE, kernel("gaussian", jump), filters={"count": 5}, **SHORT)
    found = meanfield.solve(given, "population")
    fixed = with_value(given, "importance.temperature", 0.2)
    weights = Weights(found["weights"].values[2], np.zeros((0, 5)))
    assert float(found["energy"][2]) == pytest.approx(drift_of(fixed)(weights).energy, abs=1e-14)  # rounding


def test_a_step_takes_the_time_of_its_rate():
    """Against the sum, step by step; the rate of a step is that of its time."""
    steps = {"times": [0.0, 0.31, 0.5], "values": [0.01, 0.04, 0.02], "interpolation": "step"}
    for rate in (WARM_UP, steps, {"schedule": "power", "start": 0.02, "exponent": 1.0}):
        given = problem("quadratic", LAW_F, training={"learning_rate": rate}, **SHORT)
        clock, t = Clock(given), [0.0]
        while t[-1] < 1.0:
            t.append(t[-1] + at_time(given, min(t[-1] + 1e-8, 1.0)).training.learning_rate)
        assert [clock.time_of(k) for k in range(len(t))] == pytest.approx(t, abs=1e-7)  # of the 1e-8 above
        nearest = np.abs(np.array(t)[:, None] - given.time.outputs_at).argmin(axis=0)
        assert np.abs(clock.steps_at(given.time.outputs_at) - nearest).max() == 0


def test_a_step_at_a_jump_sees_the_new_number_despite_rounding():
    """0.1 + ... + 0.1 of ten steps is less than 1."""
    jump = {"times": [0.0, 1.0], "values": [0.1, 0.05], "interpolation": "step"}
    given = problem("quadratic", LAW_F, training={"learning_rate": jump}, time={"stop": 2.0, "outputs": 3})
    assert Clock(given).steps_at(np.array([1.0, 2.0])).tolist() == [10, 30]
    assert [Clock(given).time_of(k) for k in (9, 10, 11)] == pytest.approx([0.9, 1.0, 1.05], abs=1e-12)  # rounding


@pytest.mark.parametrize(
    ("law", "key", "before", "after"),
    [(LAW_F, "training.batch_size", 16, 9), (MIXTURE | {"covariance": 0.4}, "data.covariance", 0.4, 0.1)],
)
def test_sgd_before_a_jump_is_that_of_the_number_and_differs_after_it(law, key, before, after):
    given = problem("relu", law, filters={"count": 3}, particles={"replicas": 2}, **SHORT)
    jump = {"times": [0.0, 0.5], "values": [before, after], "interpolation": "step"}
    found, known = (
        meanfield.solve(with_value(given, key, value), "particles")["weights"].values for value in (jump, before)
    )
    assert np.array_equal(found[:, :3], known[:, :3])  # the third output is at the jump
    assert not np.any(found[:, 3:] == known[:, 3:])


@pytest.mark.parametrize("name", ["tokens", "fast"])
def test_sgd_that_is_stopped_goes_on_with_the_same_numbers(name):
    """Stopped before, on and after a jump."""
    values = {"training.batch_size": {"times": [0.0, 0.31], "values": [8, 5], "interpolation": "step"}}
    values |= {"training.learning_rate": WARM_UP, "training.weight_decay": COOLING}
    if name == "tokens":
        values["importance.temperature"] = SWITCH
    given = with_values(EVERY_METHOD[name], values)
    make, steps = partial(Replicas, given, range(2)), int(Clock(given).steps_at(np.array([1.0]))[0])
    whole = make()
    whole.advance(0, steps)
    for count in (3, int(Clock(given).steps_at(np.array([0.31]))[0]), steps - 4):
        second = stopped(make, count, steps)
        assert np.array_equal(second.filters, whole.filters)
        assert np.array_equal(second.top, whole.top)


@pytest.mark.parametrize(
    ("key", "schedule", "message"),
    [
        (
            "training.batch_size",
            {"times": [0.0, 0.5], "values": [8, 16]},
            r"training\.batch_size: is 8\.0.* at t = .* and must be a whole number, as of interpolation = 'step'",
        ),
        (
            "training.momentum",
            {"times": [0.0, 0.5], "values": [0.5, 1.0], "interpolation": "step"},
            r"training\.momentum: is 1 at t = 0\.5.* of its schedule, and must be below 1",
        ),
    ],
)
def test_schedules_out_of_range_are_refused_with_the_time(key, schedule, message):
    given = problem("relu", LAW_F, kernel("infonce", 0.5), **SHORT)
    with pytest.raises(InputError, match=message):
        with_value(given, key, schedule)


def test_what_a_method_refuses_at_some_time_is_refused_before_it_begins():
    cold = {"times": [0.0, 0.5, 1.0], "values": [1.0, 1e-6, 1.0]}
    given = problem("quadratic", LAW_F, kernel("infonce", cold), **SHORT)
    with pytest.raises(InputError, match=r"importance\.temperature = 1e-06 is .*\(at t = 0\.5\)"):
        meanfield.solve(given, "population")


@pytest.mark.parametrize("method", ["critical_points", "optimal_filters"])
def test_methods_without_time_refuse_schedules_and_take_those_of_one_time(method):
    given = problem("quadratic", LAW_F, kernel("gaussian", COOLING), **SHORT)
    with pytest.raises(InputError, match=r"importance\.temperature: changes in time.*meanfield\.at_time\(problem, t\)"):
        meanfield.solve(given, method)
    assert meanfield.solve(at_time(given, 0.4), method).attrs["status"] == "complete"


def test_very_many_steps_are_refused():
    rate = {"schedule": "exponential", "start": 0.1, "rate": 30.0}
    given = problem("quadratic", LAW_F, training={"learning_rate": rate}, **SHORT)
    with pytest.raises(InputError, match=r"training\.learning_rate: .* steps of its schedule take"):
        Clock(given)


def test_sweeps_vary_the_numbers_of_a_schedule():
    given = problem(
        "tanh", LAW_F, kernel("gaussian", COOLING), filters={"count": 3, "start": {"law": "random"}}, **SHORT
    )
    axes = [{"key": "importance.temperature.values[1]", "values": [0.2, 0.7]}]
    points = points_of(Sweep(problem=given, axes=axes, methods={"population": ["all"]}))
    assert [point.problem.importance.temperature.values[1] for point in points] == [0.2, 0.7]
    energies = [float(meanfield.solve(point.problem, "population")["energy"][-1]) for point in points]
    assert energies[0] == float(meanfield.solve(given, "population")["energy"][-1])
    assert abs(energies[1] / energies[0] - 1.0) > 1e-4  # the flow is good to 1e-9


def test_explanations_say_what_changes_and_predict_costs():
    rate = {"training.learning_rate": WARM_UP, "training.batch_size": {"times": [0.0], "values": [16]}}
    given = problem("tanh", LAW_F, kernel("gaussian", COOLING), filters={"count": 3}, **SHORT)
    said = " ".join(str(meanfield.explain(with_values(given, rate))).split())
    assert "gaussian, tau = 1 at t = 0, 0.2 at t = 0.4, 0.6 at t = 1, linear in between" in said
    assert "SGD in batches of N pairs, N = 16 at t = 0" in said
    assert "eta = from 0.01 up to 0.06 at t = 0.3, then along a cosine to 0.02 at t = 0.9" in said
    assert "rho(theta) at 5 times" in said
    assert "of 8 replicas" in said
