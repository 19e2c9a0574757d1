"""Ensembles of a family with a step in plain NumPy: the exact law, and the same bits however the run is cut.

The seed is fixed. Had it been drawn at random, the test of the law would raise a false alarm with probability below
`FALSE_ALARM`, of which each of its p-values has an equal share (Bonferroni); they are exact, because all is Gaussian.
"""

import os
import signal
import time
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import meanfield
from meanfield.ensembles import ensemble
from meanfield.ensembles.checkpoint import Checkpoint
from meanfield.ensembles.simulation import predicted_memory
from meanfield.ensembles.statistics import LEVELS
from meanfield.errors import InputError
from tests.ensembles.ornstein_uhlenbeck import (
    BEGINNING,
    MIX,
    MORE,
    OrnsteinUhlenbeck,
    WithMore,
    same,
    simulate,
    simulation_of,
)
from tests.example_problems import make_problem
from tests.oracles.p_values import all_above

FALSE_ALARM = 1e-3

SMALL = {"dimension": 20, "replicas": 40, "seed": 5}
RECORDS = {
    "replicas": SMALL,
    "statistics": SMALL | {"record": "statistics"},
}


def in_short_calls(patched):
    """So that states fall between output times, too."""
    patched.setattr(ensemble, "FIRST_CALL", 3)
    patched.setattr(ensemble._Pace, "look", lambda pace, steps: None)


@pytest.mark.parametrize("workers", [-1, 0, 1.5, "2"])
def test_what_is_no_number_of_threads_is_refused(workers):
    with pytest.raises(InputError, match=r"workers = .*: give the number of threads, 1 or more"):
        meanfield.simulate_sgd(make_problem(), workers=workers)


def test_mean_and_covariance_are_those_of_the_exact_solution():
    replicas, N = 4000, 20
    simulation = simulation_of({"dimension": N, "replicas": replicas, "seed": 1, "record": "statistics"}, together=256)
    result = simulate(simulation)
    assert result.status == "complete"
    assert result.arrays["count"] == replicas
    shrink, p = 1 - 1 / N, {}
    for output, step in enumerate(simulation.step_at):
        mean, covariance = (result.arrays[f"x_{name}"][output] for name in ("mean", "covariance"))
        if step == 0:
            assert np.array_equal(mean, BEGINNING)
            assert np.array_equal(covariance, np.zeros((2, 2)))
            continue
        exact = MIX @ MIX.T / N * (1 - shrink ** (2 * step)) / (1 - shrink**2)
        z = (mean - shrink**step * BEGINNING) / np.sqrt(np.diag(exact) / replicas)
        p |= {f"mean {k} at {step}": 2 * stats.norm.sf(abs(z[k])) for k in range(2)}
        for v in ([1, 0], [0, 1], [1, 1]):
            share = stats.chi2(replicas - 1).sf((replicas - 1) * (v @ (covariance / N) @ v) / (v @ exact @ v))
            p[f"variance along {v} at {step}"] = 2 * min(share, 1 - share)
    assert len(p) == 20
    all_above(FALSE_ALARM, **p)


def test_statistics_are_those_of_the_replicas():
    whole = simulate(simulation_of(RECORDS["replicas"])).arrays
    summed = simulate(simulation_of(RECORDS["statistics"])).arrays
    assert list(summed) == [
        *("time", "count", "quantile", "x_mean", "x_covariance", "x_quantile"),
        *("energy_mean", "energy_variance", "energy_quantile"),
    ]
    for name in ("x", "energy"):
        assert summed[f"{name}_mean"] == pytest.approx(whole[name].mean(axis=0), abs=1e-14)  # rounding
        assert np.array_equal(summed[f"{name}_quantile"], np.quantile(whole[name], LEVELS, axis=0))
    assert summed["energy_variance"] == pytest.approx(20 * whole["energy"].var(axis=0, ddof=1), abs=1e-12)  # rounding
    expected = [20 * np.cov(whole["x"][:, t].T) for t in range(5)]
    assert summed["x_covariance"] == pytest.approx(np.array(expected), abs=1e-12)  # rounding, times N


def test_quantiles_are_kept_of_the_rows_that_are_named():
    found = simulate(simulation_of(RECORDS["statistics"], quantiles=("energy",))).arrays
    every = simulate(simulation_of(RECORDS["statistics"])).arrays
    assert "x_quantile" not in found
    assert np.array_equal(found["energy_quantile"], every["energy_quantile"])
    assert not {"quantile", "x_quantile"} & set(simulate(simulation_of(RECORDS["statistics"], quantiles=())).arrays)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_of_years_is_refused_within_seconds(workers, monkeypatch):
    monkeypatch.setattr(ensemble, "TRIAL_SECONDS", 0.05)
    long = SMALL | {"dimension": 10**6, "replicas": 2}
    with pytest.raises(
        InputError, match=r"2 replicas of 1e\+12 steps .* about .* (days|years) at .*longest_days = 1; lower"
    ):
        simulate(simulation_of(long, stop=1e6), workers)


def test_how_long_a_run_may_take_is_said_by_the_problem(monkeypatch):
    monkeypatch.setattr(ensemble, "TRIAL_SECONDS", 1e-3)
    particles = SMALL | {"dimension": 10_000, "replicas": 1}
    assert simulate(simulation_of(particles, stop=0.5)).status == "complete"
    with pytest.raises(InputError, match=r"longest_days = 1e-09; lower"):
        simulate(simulation_of(particles | {"longest_days": 1e-9}, stop=0.5))


def test_the_call_that_may_compile_does_not_count_as_the_pace(monkeypatch):
    monkeypatch.setattr(ensemble, "TRIAL_SECONDS", 0.05)

    class SlowAtFirst(OrnsteinUhlenbeck):
        def advance(self, first, steps):
            time.sleep(0.2 if first == 0 else 0.0)  # 3 ms a step would make it 30 s
            super().advance(first, steps)

    particles = SMALL | {"dimension": 20_000, "replicas": 1, "longest_days": 10.0 / ensemble.DAY}
    assert simulate(simulation_of(particles, stop=0.5), stepper=SlowAtFirst).status == "complete"


class Matrices(OrnsteinUhlenbeck):
    @property
    def rows(self):
        return {"x": self._x, "product": self._x[:, :, None] * self._x[:, None, :]}


def test_rows_may_be_matrices():
    simulation = simulation_of(RECORDS["statistics"])
    simulation = type(simulation)(**vars(simulation) | {"rows": {"x": (2,), "product": (2, 2)}})
    found = simulate(simulation, stepper=Matrices).arrays
    assert found["product_covariance"].shape == (5, 2, 2, 2, 2)
    assert found["product_quantile"].shape == (len(LEVELS), 5, 2, 2)
    second = found["product_mean"] - found["x_mean"][:, :, None] * found["x_mean"][:, None, :]
    assert second * 40 / 39 * 20 == pytest.approx(found["x_covariance"], abs=1e-12)  # rounding, times N


@pytest.mark.parametrize("record", RECORDS)
def test_numbers_do_not_depend_on_threads_or_blocks(record):
    one = simulate(simulation_of(RECORDS[record]), workers=1)
    same(simulate(simulation_of(RECORDS[record]), workers=2), one)
    together = simulate(simulation_of(RECORDS[record], together=16), workers=2)
    for name, array in together.arrays.items():
        assert array == pytest.approx(one.arrays[name], abs=0 if record == "replicas" else 1e-12)  # order of sums
    if record == "replicas":
        few = simulate(simulation_of(SMALL | {"replicas": 7}))
        assert np.array_equal(few.arrays["x"], one.arrays["x"][:7])


def test_snapshots_constants_and_marks():
    particles = SMALL | {"snapshots": (0.5, 1.0), "snapshot_precision": "single"}
    found = simulate(simulation_of(particles, **MORE), stepper=WithMore).arrays
    assert found["snapshot_time"].tolist() == [0.5, 1.0]
    assert found["weights"].shape == (40, 2, 6)
    assert found["weights"].dtype == np.float32
    assert np.array_equal(found["weights"], np.repeat(found["x"][:, [2, 4]], 3, axis=2).astype(np.float32))
    assert np.array_equal(found["number"], np.arange(40))
    assert np.array_equal(found["top"], found["energy"].argmax(axis=1))
    none = simulate(simulation_of(particles | {"snapshots": ()}, **MORE), stepper=WithMore).arrays
    assert not {"weights", "number", "snapshot_time"} & set(none)
    summed = simulate(simulation_of(RECORDS["statistics"], **MORE), stepper=WithMore).arrays
    assert np.array_equal(summed["top"], found["top"])
    assert "weights" not in summed


@pytest.mark.parametrize(
    ("particles", "more", "message"),
    [
        ({}, {}, "there is nothing to be kept at snapshots; remove particles.snapshots"),
        ({}, {"without_snapshots": "it has no weights"}, "it has no weights, or remove particles.snapshots"),
        ({"record": "statistics"}, MORE, "particles.record = 'statistics' keeps no weights; set it to 'replicas', or"),
    ],
)
def test_snapshots_that_are_not_there_are_refused(particles, more, message):
    with pytest.raises(InputError, match=rf"particles.snapshots = \[0\.5\]: {message}"):
        simulation_of(SMALL | {"snapshots": (0.5,)} | particles, **more)


@pytest.mark.parametrize("marks", [("x",), ("failed",), ("top", "top")])
def test_two_arrays_of_one_name_are_refused(marks):
    with pytest.raises(ValueError, match="names must differ"):
        simulation_of(SMALL, marks=marks)


def interrupt_after(steps, patched):
    """Ctrl-C in that step, in whichever thread."""
    left, step = iter(range(steps)), OrnsteinUhlenbeck.step

    def counted(stepper, k):
        step(stepper, k)
        if next(left, None) == steps - 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)  # until the main thread has it

    patched.setattr(OrnsteinUhlenbeck, "step", counted)


@pytest.fixture
def heeds_ctrl_c():
    """Also where whoever started the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("record", RECORDS)
def test_a_run_that_is_interrupted_again_and_again_gives_the_same_bits(record, workers, tmp_path, monkeypatch):
    simulation = simulation_of(RECORDS[record] | {"replicas": 12}, **MORE)
    whole = simulate(simulation, stepper=WithMore)
    in_short_calls(monkeypatch)
    part, parts = None, 0
    while part is None or part.status == "interrupted":
        with monkeypatch.context() as patched:
            interrupt_after(50, patched)
            part = simulate(simulation, workers, Checkpoint(tmp_path / "run"), WithMore)
        parts += 1
    assert parts > 1  # on a busy machine Ctrl-C may come late
    assert part.status == "complete"
    same(part, whole)


LONG = {"dimension": 3000, "replicas": 3, "seed": 2}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_run_goes_on_from_its_last_state(workers, tmp_path):
    folder, simulation = tmp_path / "run", simulation_of(LONG)
    child = os.fork()
    if not child:
        ensemble.CALL_SECONDS = 0.005  # a state may be saved after every call
        simulate(simulation, workers, Checkpoint(folder, save_every=0.01))
        os._exit(0)
    seen, deadline = set(), time.monotonic() + 120
    while len(seen) < 3 and time.monotonic() < deadline:
        seen |= {(path.name, path.stat().st_mtime_ns) for path in folder.glob("block-*.npz")}
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    taken, step = [], OrnsteinUhlenbeck.step
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(OrnsteinUhlenbeck, "step", lambda stepper, k: (taken.append(k), step(stepper, k)))
        continued = simulate(simulation, workers, Checkpoint(folder))
    assert len(taken) < 3 * 3000  # not everything once more
    same(continued, long_run())


@cache
def long_run():
    """What no run of several workers or parts may differ from."""
    return simulate(simulation_of(LONG))


@pytest.mark.parametrize("other", [simulation_of(SMALL | {"seed": 6}), simulation_of(SMALL, label="faster")])
def test_the_folder_of_another_simulation_is_refused(other, tmp_path):
    simulate(simulation_of(SMALL), record=Checkpoint(tmp_path / "run"))
    with pytest.raises(InputError, match="holds an unfinished run of another problem"):
        simulate(other, record=Checkpoint(tmp_path / "run"))


class Exploding(OrnsteinUhlenbeck):
    def step(self, k):
        super().step(k)
        if k == 7:
            self._x[[replica in (3, 8) for replica in self.replicas]] *= np.inf


@pytest.mark.parametrize("together", [1, 256])
@pytest.mark.parametrize("calls", [1, 100])
def test_a_replica_that_blows_up_leaves_the_others(together, calls, monkeypatch):
    monkeypatch.setattr(ensemble, "FIRST_CALL", calls)
    whole = simulate(simulation_of(SMALL)).arrays
    result = simulate(simulation_of(SMALL, together=together, remedy="lower it"), stepper=Exploding)
    assert result.status == "failed: at t = 0.35: the weights of replica 3 are no longer finite; lower it"
    others = ~np.isin(np.arange(40), (3, 8))
    for name in ("x", "energy"):
        assert np.array_equal(result.arrays[name][others], whole[name][others])
        assert np.array_equal(result.arrays[name][3, :2], whole[name][3, :2])  # t = 0 and 0.25
        assert np.isnan(result.arrays[name][3, 2:]).all()


class Stateless(OrnsteinUhlenbeck):
    kept = ("_N",)


def test_a_state_that_could_not_be_restored_is_refused(tmp_path, monkeypatch):
    in_short_calls(monkeypatch)
    with pytest.raises(TypeError, match="state '_N' of a stepper"):
        simulate(simulation_of(SMALL), record=Checkpoint(tmp_path / "run", save_every=0.0), stepper=Stateless)


@pytest.mark.parametrize("calls", [1, 100])
def test_a_stepper_without_a_finite_replica_takes_no_more_steps(calls, monkeypatch):
    monkeypatch.setattr(ensemble, "FIRST_CALL", calls)
    taken = []

    class Lost(OrnsteinUhlenbeck):
        def step(self, k):
            taken.append(k)
            self._x = np.full_like(self._x, np.nan)

    result = simulate(simulation_of(SMALL | {"replicas": 1}), stepper=Lost)
    assert result.status.startswith("failed: at t = 0: ")
    assert taken == [0]


def test_memory_is_that_of_rows_snapshots_and_steps():
    """Counted by hand; `tests/families/contrastive/sgd/test_memory.py` compares with what NumPy is seen to take."""
    row, marks = 5 * (2 + 1) * 8, 40 * 8  # outputs, numbers, bytes
    simulation = simulation_of(SMALL, working_set=1000, together=2, **MORE)
    assert simulation.snapshot_bytes == (3 * 6 + 1) * 8
    steps = 2 * (2 * row + 1000)
    assert predicted_memory(simulation, 2, in_memory=True) == marks + 40 * (row + (3 * 6 + 1) * 8) + steps
    assert predicted_memory(simulation, 2, in_memory=False) == marks + steps
    assert predicted_memory(simulation, 100, in_memory=False) == marks + 10 * steps  # of 20 blocks


def test_a_simulation_that_does_not_fit_is_refused_before_anything_is_prepared(monkeypatch):
    free = SimpleNamespace(available=10**3)
    monkeypatch.setattr("psutil.virtual_memory", lambda: free)
    for particles, more, remedy in [
        (SMALL, {}, "lower particles.dimension or particles.replicas; set particles.record = 'statistics'$"),
        (SMALL, {"working_set": 10**3}, "set particles.record = 'statistics'; use fewer workers than 2$"),
        (SMALL, {"working_set": 10**6}, "lower particles.dimension; use fewer workers than 2$"),
        (SMALL, MORE, "name fewer particles.snapshots, or save to a file"),
        (
            RECORDS["statistics"],
            {"label": "quick"},
            r"40 replicas with N = 20 \('quick'\) take .*; lower particles.dim",
        ),
    ]:
        with pytest.raises(InputError, match=remedy):
            simulate(simulation_of(particles, **more), 2, stepper=None)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system grants all cores to every process")
def test_threads_are_as_many_as_the_cores_that_are_granted(monkeypatch):
    asked, pool = [], ensemble.ThreadPoolExecutor
    monkeypatch.setattr(ensemble, "ThreadPoolExecutor", lambda count: (asked.append(count), pool(count))[1])
    granted = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(granted)})
        simulate(simulation_of(SMALL))
    finally:
        os.sched_setaffinity(0, granted)
    simulate(simulation_of(SMALL))
    assert asked == [1, len(granted)]
