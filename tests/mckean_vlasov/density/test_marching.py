"""The compiled loop of steps against plain ones, on threads, and with closures and steps that are called back."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numba
import numpy as np
import pytest

from meanfield.errors import BlowUpError, InputError
from meanfield.families.contrastive.limit import limit_of
from meanfield.mckean_vlasov.closures import compiled_closure
from meanfield.mckean_vlasov.density import evolution
from meanfield.mckean_vlasov.density.evolution import Evolution
from meanfield.mckean_vlasov.density.level_search import LongStepsError
from meanfield.mckean_vlasov.density.plan import coarse_plan
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.numerics.compiled.thread_barrier import counters, give_way_address, meet
from tests.example_problems import feature, features, make_problem
from tests.oracles.midpoint_evolution import MidpointEvolution

TWO_FEATURES = features(feature(0.5), feature(0.3, coordinate="rademacher"))
PROBLEMS = {
    "l1": ('prior = { name = "l1", strength = 2.0 }',),
    "quartic, two features": (TWO_FEATURES, 'prior = { name = "quartic", strength = 0.5 }'),
    "batch centring": ('model = { activation = "tanh", centering = "batch" }',),
}


def planned(*lines, feature_nodes=None):
    """A limit, a grid and steps."""
    limit = limit_of(make_problem(*lines, "time = { stop = 4.0, outputs = 5 }"))
    plan = coarse_plan(limit, DensitySettings(feature_nodes=feature_nodes), 1e-4)
    return limit, plan.grid(limit), plan.step_times.refined(2)


def called(limit):
    """The limit with its closure in Python."""
    return replace(limit, closure=lambda q: limit.closure(q))


@pytest.mark.parametrize("lines", PROBLEMS.values(), ids=PROBLEMS)
def test_steps_are_those_of_the_equations(lines):
    limit, grid, step_times = planned(*lines)
    plain, marching = MidpointEvolution(limit, grid), Evolution(limit, grid, 0.5)
    start = plain.history[0]
    for interval in range(4):
        for each in (plain, marching):
            each.advance(step_times.steps(interval))
        assert marching.moments.vector == pytest.approx(plain.history[-1], abs=1e-12)  # rounding of other sums
        assert marching.density == pytest.approx(plain.P, abs=1e-12)  # the same
    assert np.abs(marching.moments.vector - start).max() > 1e-3


@pytest.mark.parametrize("lines", PROBLEMS.values(), ids=PROBLEMS)
def test_a_closure_in_python_gives_the_same_steps(lines):
    """By a table where there is one feature, else by calls."""
    limit, grid, step_times = planned(*lines)
    ours, python = Evolution(limit, grid, 0.5), Evolution(called(limit), grid, 0.5)
    for interval in range(4):
        for each in (ours, python):
            each.advance(step_times.steps(interval))
    assert python.moments.vector == pytest.approx(ours.moments.vector, abs=1e-11)  # tables are good to 1e-12
    assert python.density == pytest.approx(ours.density, abs=1e-10)  # likewise
    assert compiled_closure(python._limit.closure, len(limit.coordinates))[1] == (
        -1.0 if len(limit.coordinates) > 1 else pytest.approx(1.0, abs=1e-3)  # the table ends at sqrt(1 - 0.01^2)
    )


def test_steps_do_not_depend_on_how_they_are_handed_over():
    limit, grid, step_times = planned(*PROBLEMS["l1"])
    at_once, one_by_one = Evolution(limit, grid, 0.5), Evolution(limit, grid, 0.5)
    steps = step_times.steps(0)
    at_once.advance(steps)
    for end in steps:
        one_by_one.advance(np.array([end]))
    assert np.array_equal(at_once.moments.vector, one_by_one.moments.vector)
    assert np.array_equal(at_once.density, one_by_one.density)


def test_steps_that_are_too_long_are_refused_with_the_keys_of_the_family():
    limit, grid, _ = planned('prior = { name = "l1", strength = 2.0 }', "model.learning_rate = 0.3")
    words = "raise density.steps, or lower model.learning_rate", "raise density.steps, or lower eta"
    for each, remedy in zip((limit, replace(limit, remedy_if_too_fast="lower eta")), words, strict=True):
        with pytest.raises(LongStepsError) as error:
            Evolution(each, grid, 0.5).advance(np.array([0.1, 0.2, 50.0]))
        assert "at t = 0.2: the density relaxes at a rate of " in str(error.value)
        assert str(error.value).endswith(remedy)


def test_a_blow_up_is_noticed_at_once_with_the_keys_of_the_family():
    limit = limit_of(make_problem('prior = { name = "l1", strength = 5.0 }'))
    grid = coarse_plan(limit, DensitySettings(cells=40, half_width=9.0), 1e-4).grid(limit)
    times = np.linspace(0.0, 20.0, 401)[1:]
    plain = MidpointEvolution(limit, grid)
    plain.advance(times)
    first = next(t for t, moments in zip(plain.times, plain.history, strict=True) if abs(moments[-2] - 1) > 0.1)
    for each, remedy in (
        (limit, "lower model.learning_rate or raise model.batch_size"),
        (replace(limit, remedy_if_norm_drifts="lower eta"), "lower eta"),
    ):
        with pytest.raises(BlowUpError) as error:
            Evolution(each, grid, 0.1).advance(times)
        assert error.value.time == first > times[0]
        assert "in the density, where the dynamics conserves 1" in str(error.value)
        assert str(error.value).endswith(f"; {remedy}, or raise density.steps and density.cells")


@pytest.mark.parametrize("make", [lambda limit: limit, called], ids=["compiled", "called"])
@pytest.mark.parametrize("threads", [2, 3])
def test_numbers_do_not_depend_on_threads(monkeypatch, threads, make):
    """More threads than cores only take longer: those that wait give way."""
    monkeypatch.setattr(evolution, "VALUES_PER_THREAD", 1)
    results = []
    for cores in (1, threads):
        monkeypatch.setattr(evolution, "threads_of_loops", lambda cores=cores: cores)
        limit, grid, step_times = planned(TWO_FEATURES, 'prior.name = "l1"', feature_nodes=25)
        found = Evolution(make(limit), grid, 0.5)
        assert len(found._shares) == cores
        for interval in range(2):
            found.advance(step_times.steps(interval))
        results.append((found.moments.vector, found.density))
    for alone, shared in zip(*results, strict=True):
        assert np.array_equal(alone, shared)


def test_threads_meet_before_they_go_on():
    """Each writes, meets the others, and reads what they wrote."""

    @numba.njit(nogil=True)
    def rounds(thread, arrived, written, give_way):
        seen = 0
        for meeting in range(1, 501):
            written[meeting % 2, thread] = meeting
            meet(arrived, thread, meeting, give_way)
            for other in range(written.shape[1]):
                seen += written[meeting % 2, other] == meeting
        return seen

    arrived, written = counters(3), np.zeros((2, 3), dtype=np.int64)
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(rounds, thread, arrived, written, give_way_address()) for thread in range(3)]
        assert [run.result(timeout=120) for run in runs] == [1500, 1500, 1500]


@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_closure_raises_arrives(monkeypatch, threads):
    """And no thread waits for the one that has raised it."""
    monkeypatch.setattr(evolution, "VALUES_PER_THREAD", 1)
    monkeypatch.setattr(evolution, "threads_of_loops", lambda: threads)
    limit, grid, step_times = planned(TWO_FEATURES)
    calls = []

    def failing(q):
        calls.append(q)
        if len(calls) == 7:
            raise ZeroDivisionError("the seventh")
        return limit.closure(q)

    found = Evolution(replace(limit, closure=failing), grid, 0.5)
    with pytest.raises(ZeroDivisionError, match="the seventh"):
        found.advance(step_times.steps(0))
    assert len(calls) == 7
    assert len(found._times) == 2  # the step before is taken: four calls
    found.advance(step_times.steps(0)[1:])  # and it goes on
    whole = Evolution(limit, grid, 0.5)
    whole.advance(step_times.steps(0))
    assert np.array_equal(found.moments.vector, whole.moments.vector)


def test_a_closure_of_another_shape_is_refused():
    limit, grid, step_times = planned(TWO_FEATURES)
    found = Evolution(replace(limit, closure=lambda q: (q[:1], 0.1)), grid, 0.5)
    with pytest.raises(InputError, match=r"closure: g has shape \(1,\) for 2 feature\(s\)"):
        found.advance(step_times.steps(0))


@pytest.mark.parametrize("ignored", [False, True])
def test_ctrl_c_does_not_wait_for_the_steps_of_a_closure_in_python(monkeypatch, ignored):
    limit, grid, step_times = planned(TWO_FEATURES)
    calls = []

    def interrupting(q):
        calls.append(q)
        if len(calls) == 7:
            os.kill(os.getpid(), signal.SIGINT)
        return limit.closure(q)

    before = signal.signal(signal.SIGINT, (lambda *_: None) if ignored else signal.default_int_handler)
    try:
        found, whole = Evolution(replace(limit, closure=interrupting), grid, 0.5), Evolution(limit, grid, 0.5)
        if ignored:
            found.advance(step_times.steps(0))
        else:
            with pytest.raises(KeyboardInterrupt):
                found.advance(step_times.steps(0))
            assert len(calls) <= 8
    finally:
        signal.signal(signal.SIGINT, before)
    if ignored:
        whole.advance(step_times.steps(0))
        assert np.array_equal(found.moments.vector, whole.moments.vector)
