"""The compiled loop of steps against the plain one."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

from meanfield.density import marching
from meanfield.density.evolution import Evolution, LongStepsError
from meanfield.density.marching import MarchingEvolution, make_evolution
from meanfield.density.plan import coarse_plan
from meanfield.density.steppers import NumbaStepper
from meanfield.errors import BlowUpError
from meanfield.families.contrastive.closures import Closure
from meanfield.numerics.compiled.thread_barrier import counters, give_way_address, meet
from tests.example_problems import feature, features, make_problem

TWO_FEATURES = features(feature(0.5), feature(0.3, coordinate="rademacher"))
PROBLEMS = {
    "l1": ('prior = { name = "l1", strength = 2.0 }',),
    "quartic, two features": (TWO_FEATURES, 'prior = { name = "quartic", strength = 0.5 }'),
    "batch centring": ('model = { activation = "tanh", centering = "batch" }',),
}


def both(*lines):
    problem = make_problem(*lines, "time = { stop = 4.0, outputs = 5 }")
    closure = Closure(problem)
    plan = coarse_plan(problem, closure, 1e-4)
    grid = plan.grid(problem)
    made = [kind(problem, closure, grid, NumbaStepper, 0.5) for kind in (Evolution, MarchingEvolution)]
    return made, plan.schedule.refined(2)


@pytest.mark.parametrize("lines", PROBLEMS.values(), ids=PROBLEMS)
def test_both_take_the_same_steps(lines):
    (plain, marching), schedule = both(*lines)
    start = plain.moments.vector
    for interval in range(4):
        for evolution in (plain, marching):
            evolution.advance(schedule.steps(interval))
        assert marching.moments.vector == pytest.approx(plain.moments.vector, abs=1e-12)  # rounding of other sums
        assert marching.density == pytest.approx(plain.density, abs=1e-12)  # the same
    assert np.abs(plain.moments.vector - start).max() > 1e-3


def test_steps_do_not_depend_on_how_they_are_handed_over():
    (_, at_once), schedule = both(*PROBLEMS["l1"])
    (_, one_by_one), _ = both(*PROBLEMS["l1"])
    steps = schedule.steps(0)
    at_once.advance(steps)
    for end in steps:
        one_by_one.advance(np.array([end]))
    assert np.array_equal(at_once.moments.vector, one_by_one.moments.vector)
    assert np.array_equal(at_once.density, one_by_one.density)


def test_both_refuse_the_same_steps_with_the_same_words():
    (plain, marching), _ = both('prior = { name = "l1", strength = 2.0 }', "model.learning_rate = 0.3")
    messages = []
    for evolution in (plain, marching):
        with pytest.raises(LongStepsError) as error:
            evolution.advance(np.array([0.1, 0.2, 50.0]))
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "at t = 0.2" in messages[0]


def test_both_notice_a_blow_up_at_the_same_time():
    messages = []
    for kind in (Evolution, MarchingEvolution):
        problem = make_problem("density = { cells = 40, half_width = 9.0 }")
        closure = Closure(problem)
        evolution = kind(problem, closure, coarse_plan(problem, closure, 1e-4).grid(problem), NumbaStepper, 1e-2)
        with pytest.raises(BlowUpError) as error:
            evolution.advance(np.linspace(0.0, 20.0, 401)[1:])
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "in the density, where the dynamics conserves 1" in messages[0]


@pytest.mark.parametrize("threads", [2, 3])
def test_numbers_do_not_depend_on_threads(monkeypatch, threads):
    """More threads than cores only take longer: those that wait give way."""
    monkeypatch.setattr(marching, "VALUES_PER_THREAD", 1)
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", threads)
    results = []
    for cores in (1, threads):
        monkeypatch.setattr(marching, "available_cores", lambda cores=cores: cores)
        (_, evolution), schedule = both(TWO_FEATURES, 'prior.name = "l1"')
        for interval in range(2):
            evolution.advance(schedule.steps(interval))
        results.append((evolution.moments.vector, evolution.density))
    for alone, shared in zip(*results, strict=True):
        assert np.array_equal(alone, shared)


def test_threads_meet_before_they_go_on():
    """Each writes, meets the others, and reads what they wrote."""

    @numba.njit(nogil=True)
    def rounds(thread, arrived, written, give_way):
        seen = 0
        for meeting in range(1, 2001):
            written[meeting % 2, thread] = meeting
            meet(arrived, thread, meeting, give_way)
            for other in range(written.shape[1]):
                seen += written[meeting % 2, other] == meeting
        return seen

    arrived, written = counters(3), np.zeros((2, 3), dtype=np.int64)
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(rounds, thread, arrived, written, give_way_address()) for thread in range(3)]
        assert [run.result(timeout=120) for run in runs] == [6000, 6000, 6000]


def test_other_steppers_are_not_marched():
    problem = make_problem()
    closure = Closure(problem)
    grid = coarse_plan(problem, closure, 1e-4).grid(problem)
    assert isinstance(make_evolution(problem, closure, grid, NumbaStepper, 0.5), MarchingEvolution)
    assert not isinstance(make_evolution(problem, closure, grid, OtherStepper, 0.5), MarchingEvolution)


class OtherStepper(NumbaStepper):
    """Not ours."""
