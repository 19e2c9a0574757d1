import os
import signal
import sys
import threading
import time
import weakref

import pytest
import xarray as xr

import meanfield
from meanfield.mckean_vlasov.density.evolution import Evolution
from meanfield.problems.file import parse_problem
from meanfield.process.interrupts import swallowed_interrupts_again, uninterrupted
from tests.example_problems import SMALL

NODES = SMALL.replace("feature_nodes = 15", "feature_nodes = 40")
"""Number of nodes, enough for two blocks."""


def _interrupt_within(times, reached, fails=None):
    with uninterrupted():
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
        reached.append(True)
        if fails:
            raise fails


@pytest.mark.parametrize("times", [0, 1, 2])
@pytest.mark.parametrize("fails", [None, OSError])
def test_ctrl_c_waits_for_the_end_of_the_block(times, fails):
    handler, reached = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt):
        _interrupt_within(times, reached, fails)
    assert reached
    assert signal.getsignal(signal.SIGINT) is handler


def test_what_is_ignored_stays_ignored_and_other_threads_are_left_alone():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    passed = []

    def inside():
        with uninterrupted():
            passed.append(True)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert passed


def test_ctrl_c_while_xarray_writes_or_reads_leaves_no_lock_taken(tmp_path, monkeypatch):
    """xarray takes its locks one after the other; an exception between two of them would keep the first for ever."""
    run = meanfield.solve_density(parse_problem(SMALL))
    acquire = xr.backends.locks.acquire

    def interrupted(lock, blocking=True):
        taken = acquire(lock, blocking)
        os.kill(os.getpid(), signal.SIGINT)
        return taken

    for work in (lambda: meanfield.save(run, tmp_path / "run.nc"), lambda: meanfield.load(tmp_path / "run.nc")):
        with monkeypatch.context() as patch:
            patch.setattr(xr.backends.locks, "acquire", interrupted)
            with pytest.raises(KeyboardInterrupt):
                work()
        assert list(tmp_path.glob(".*")) == []
        meanfield.save(run, tmp_path / "run.nc")
        assert meanfield.load(tmp_path / "run.nc").identical(run)


def _two_threads(monkeypatch, submit):
    """Densities on two threads, of which the second is sent off by `submit`; its futures are returned."""
    make, futures = Evolution.__init__, []

    class Pool:
        def __init__(self, pool):
            self.pool = pool

        def submit(self, *work):
            return submit(self.pool, futures, *work)

    def two_threads(self, *arguments):
        make(self, *arguments)
        assert self._pool
        self._pool = Pool(self._pool)

    monkeypatch.setattr("meanfield.mckean_vlasov.density.evolution.threads_of_loops", lambda: 2)
    monkeypatch.setattr("meanfield.mckean_vlasov.density.evolution.VALUES_PER_THREAD", 1)
    monkeypatch.setattr(Evolution, "__init__", two_threads)
    return futures


def test_ctrl_c_leaves_no_thread_of_a_density_that_waits_for_the_others(monkeypatch):
    def submit(pool, futures, *work):
        futures.append(pool.submit(*work))
        os.kill(os.getpid(), signal.SIGINT)  # the other thread is on its way, and the first one has not begun
        return futures[-1]

    futures = _two_threads(monkeypatch, submit)
    result = meanfield.solve_density(parse_problem(NODES))
    assert result.attrs["status"] == "interrupted"
    assert futures
    assert all(future.done() for future in futures)


def test_a_thread_that_cannot_be_started_leaves_none_that_waits_for_it(monkeypatch):
    def submit(pool, futures, *work):
        futures.append(pool.submit(*work))
        raise RuntimeError("can't start new thread")

    futures = _two_threads(monkeypatch, submit)
    with pytest.raises(RuntimeError, match="new thread"):
        meanfield.solve_density(parse_problem(NODES))
    futures[0].result(timeout=60)


class Thing:
    """Object with weak references."""


def test_ctrl_c_in_a_callback_that_swallows_exceptions_comes_again():
    def press(_):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)  # the handler runs here, at the latest

    thing = Thing()
    watched = weakref.ref(thing, press)
    with swallowed_interrupts_again(), pytest.raises(KeyboardInterrupt):  # noqa: PT012 -- it comes later
        del thing
        assert watched() is None
        for _ in range(1000):  # a signal that another thread raises does not end a sleep
            time.sleep(0.01)


def test_other_exceptions_of_callbacks_are_reported_as_ever(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    thing = Thing()
    watched = weakref.ref(thing, lambda _: 1 / 0)
    with swallowed_interrupts_again():
        del thing
    assert watched() is None
    assert [each.exc_type for each in reported] == [ZeroDivisionError]
    assert sys.unraisablehook == reported.append
