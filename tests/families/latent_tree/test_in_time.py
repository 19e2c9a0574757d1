"""Losses, learning rates and batches that change in time: the flow against scipy, densities, and SGD.

Random schedules have fixed seeds. Gradients of the flow are those of the enumeration, which shares no code.
"""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.problems.base import corners_of
from meanfield.problems.problem_keys import at_time, with_value, with_values
from tests.families.latent_tree import enumeration
from tests.families.latent_tree.problems import case_b
from tests.families.latent_tree.test_driven import problem_of
from tests.references_in_time import inside, integrated, table

STOP = 0.5

FINE = {"tolerance": 1e-12}

CASES = {
    "beta": ({"kind": "beta", "beta": 0.3}, {"loss.beta": (-0.2, 0.4)}),
    "infonce": ({"kind": "infonce", "temperature": 0.5}, {"loss.temperature": (0.3, 1.0)}),
    "triplet": ({"kind": "triplet"}, {"loss.temperature": (0.3, 1.0), "loss.margin": (0.0, 0.5)}),
}


def random_table(rng, low, high, interpolation):
    """Random table, which bends or jumps three times."""
    times = [0.0, *np.sort(STOP * rng.uniform(0.1, 0.9, 3))]
    return table(times, rng.uniform(low, high, 4), STOP, interpolation)


def scheduled(name, interpolation="step", seed=0):
    loss, ranges = CASES[name]
    rng = np.random.default_rng(seed)
    given = case_b(normalised=name != "beta", stop=STOP, loss=loss, population=FINE)
    kinds = (interpolation, {"step": "linear", "linear": "step"}[interpolation])
    pairs = zip(ranges.items(), kinds, strict=False)
    return with_values(given, {key: random_table(rng, *ends, kind) for (key, ends), kind in pairs})


def reference(problem):
    """Weights at the output times, by scipy, begun anew at corners; nodes keep their sides in between, or cross."""
    shapes = [part.shape for part in problem.initial_weights.W]
    cut = np.cumsum([np.prod(shape) for shape in shapes])[:-1]

    def rate(t, y, low, high):
        now = at_time(problem, inside(t, low, high))
        W = [part.reshape(shape).astype(complex) for part, shape in zip(np.split(y, cut), shapes, strict=True)]
        return -enumeration.gradient(now, W, [])[1]

    start, hundredth = problem.initial_weights.vector, {"rtol": 1e-10, "atol": 1e-11}  # of what is asked of the flow
    return integrated(rate, start, problem.time.outputs_at, corners_of(problem), hundredth)


SLOW = [pytest.param(*case, marks=pytest.mark.slow) for case in (("infonce", "linear"), ("triplet", "linear"))]


@pytest.mark.parametrize(("name", "interpolation"), [("beta", "linear"), ("infonce", "step"), *SLOW])
def test_the_flow_is_that_of_scipy(name, interpolation):
    problem = scheduled(name, interpolation)
    found = meanfield.solve(problem, "population")
    assert found.attrs["status"] == "complete"
    assert found["weights"].values == pytest.approx(reference(problem), abs=1e-8)
    last = at_time(problem, STOP)
    W = [part.astype(complex) for part in problem.initial_weights.like(found["weights"].values[-1]).W]
    assert float(found["loss"][-1]) == pytest.approx(enumeration.loss(last, W, []).real, rel=1e-12)  # rounding


def test_phases_are_schedules_that_jump():
    given = case_b(normalised=True, stop=STOP, loss={"kind": "infonce", "temperature": 0.5}, population=FINE)
    jumps = {"times": [0.0, 0.2], "values": [0.5, 0.9], "interpolation": "step"}
    phases = [{"stop": 0.2}, {"stop": STOP, "set": {"loss.temperature": 0.9}}]
    one = meanfield.solve(with_value(given, "loss.temperature", jumps), "population")
    two = meanfield.solve(with_value(given, "phases", phases), "population")
    assert np.array_equal(one["weights"], two["weights"])
    assert two["phase"].values.tolist() == [0, 1, 1]
    more = meanfield.solve(with_values(given, {"phases": phases, "time.outputs": 5}), "population")
    # Outputs are interpolated between steps, to less than the tolerance of one.
    assert np.abs(more["weights"].values[::2] - two["weights"].values).max() < 1e-10


def test_a_jump_between_output_times_and_at_one_is_where_it_is():
    """A run until the jump, and another one from there, are the same."""
    given = case_b(stop=0.5, loss={"kind": "beta", "beta": 0.1}, population=FINE)
    for jump in (0.25, 0.2):
        steps = {"times": [0.0, jump], "values": [0.1, 0.6], "interpolation": "step"}
        found = meanfield.solve(with_value(given, "loss.beta", steps), "population")["weights"].values
        first = meanfield.solve(with_value(given, "time.stop", jump), "population")["weights"].values[-1]
        W = [part.reshape(*part.shape[:2], -1).tolist() for part in given.initial_weights.like(first).W]
        rest = {"network.initial.weights": W, "loss.beta": 0.6, "time.stop": 0.5 - jump}
        second = meanfield.solve(with_values(given, rest), "population")["weights"].values[-1]
        assert found[-1] == pytest.approx(second, abs=1e-10)


def driven(**more):
    return problem_of(loss={"kind": "infonce", "temperature": 1.0}, **more)


def test_the_density_follows_the_temperature():
    """Jumps do not depend on output times, and a line is many small ones."""
    given = with_values(driven(), {"time.stop": 0.5, "density.tolerance": 2e-3})
    number = meanfield.solve(given, "density")
    jumps = {"times": [0.0, 0.15], "values": [1.0, 0.3], "interpolation": "step"}
    found = meanfield.solve(with_value(given, "loss.temperature", jumps), "density")
    more = meanfield.solve(with_values(given, {"loss.temperature": jumps, "time.outputs": 5}), "density")
    error = found["Delta_error"].values + more["Delta_error"].values[::2]
    assert np.all(np.abs(found["Delta"].values - more["Delta"].values[::2]) <= error)
    assert abs(float(found["Delta"][-1] - number["Delta"][-1])) > 10.0 * error[-1]
    line = {"schedule": "linear", "start": 1.0, "end": 0.3, "duration": 0.5}
    count = 20
    middles = {
        "times": list(0.5 * np.arange(count) / count),
        "values": list(1.0 - 0.7 * (np.arange(count) + 0.5) / count),
    }
    one = meanfield.solve(with_value(given, "loss.temperature", line), "density")
    other = meanfield.solve(with_value(given, "loss.temperature", middles | {"interpolation": "step"}), "density")
    # Steps at the middles of intervals are off by a share (1/20)^2 of what the schedule does.
    allowed = one["Delta_error"] + other["Delta_error"] + abs(one["Delta"] - number["Delta"]) / count**2
    assert np.all(abs(one["Delta"] - other["Delta"]) <= allowed)
    assert float(abs(one["Delta"] - number["Delta"])[-1]) > 10.0 * float(allowed[-1])


RATES = {"times": [0.0, 0.5, 1.0], "values": [0.01, 0.03, 0.02]}


def test_steps_have_the_values_of_their_times():
    """Step by step beside steppers of problems that do not change: t_(k+1) = t_k + eta(t_k)."""
    from meanfield.families.latent_tree.particles import Replicas

    given = case_b(normalised=True, stop=STOP, loss={"kind": "infonce", "temperature": 0.5})
    problem = with_values(
        given,
        {
            "training.learning_rate": RATES,
            "training.batch_size": {"times": [0.0, 0.3], "values": [8, 16], "interpolation": "step"},
            "loss.temperature": {"schedule": "linear", "start": 0.5, "end": 1.0, "duration": 1.0},
        },
    )
    ours, t = Replicas(problem, range(2)), 0.0
    w, rngs = ours.w.copy(), ours.rngs
    theirs = Replicas(given, range(2))
    for k in range(70):
        now = Replicas(at_time(problem, t), range(2))
        now.w, now.rngs = theirs.w, theirs.rngs
        now.step(k)
        theirs.w, theirs.rngs = now.w, now.rngs
        ours.step(k)
        t += float(np.interp(t, RATES["times"], RATES["values"]))
        assert np.allclose(ours.w, theirs.w, rtol=1e-9, atol=1e-12), k  # rounding of sums of times
        if t >= STOP:
            break
    assert np.abs(ours.w - w).max() > 0.01
    assert rngs is ours.rngs
    assert t >= STOP


@pytest.mark.parametrize("method", ["operator", "stationary"])
def test_what_has_no_time_refuses(method):
    with pytest.raises(InputError, match=r"loss.temperature: changes in time .*meanfield.at_time\(problem, t\)"):
        meanfield.solve(scheduled("infonce"), method)


def test_faults_are_said_with_their_keys():
    given = case_b(normalised=True, loss={"kind": "nt_xent", "temperature": 0.5})
    small = {"times": [0.0, 0.5], "values": [4, 1], "interpolation": "step"}
    with pytest.raises(InputError, match=r"training.batch_size = .*'nt_xent' takes negatives"):
        with_value(given, "training.batch_size", small)
    with pytest.raises(InputError, match=r"learning_rate: is 0 at t = 0 .*must be above 0"):
        with_value(given, "training.learning_rate", {"times": [0.0, 1.0], "values": [0.0, 0.1]})
    with pytest.raises(InputError, match=r"loss.beta = .*remove it"):
        with_value(given, "loss.beta", {"times": [0.0, 1.0], "values": [0.0, 0.1]})
    with pytest.raises(InputError, match="stays the same in all phases"):
        with_value(given, "phases", [{"stop": 0.5}, {"stop": 1.0, "set": {"loss.kind": "infonce"}}])


def test_explanations_know_what_changes():
    problem = with_value(scheduled("infonce"), "training.learning_rate", RATES)
    explained = meanfield.explain(problem)
    assert "temperature" in str(dict(explained.statements)["loss"])
    predicted = {one.method: one for one in explained.predictions}
    for method in ("population", "particles"):
        assert predicted[method].seconds > 0.0, predicted[method].reason
