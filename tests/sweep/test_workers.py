"""Processes that solve points: one that is killed before it has begun is replaced; if none begins, an error says so."""

import os
import signal
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from meanfield.sweep import workers


class Killed(workers._Process):
    """A worker that is killed at its start, as often as is said."""

    left = 0

    def has_begun(self):
        if Killed.left:
            Killed.left -= 1
            os.kill(self._pid.result(), signal.SIGKILL)
            self._pid = Future()
            self._pid.set_exception(BrokenProcessPool("killed"))
        return super().has_begun()


def test_a_worker_that_is_killed_at_its_start_is_replaced(monkeypatch):
    monkeypatch.setattr(workers, "_Process", Killed)
    Killed.left = 1
    local = workers.LocalWorkers(1, points=5)
    assert local.submit(os.getpid).result() != os.getpid()
    local.close(now=False)
    assert Killed.left == 0


def test_one_that_never_begins_is_an_error(monkeypatch):
    monkeypatch.setattr(workers, "_Process", Killed)
    Killed.left = 2
    with pytest.raises(
        OSError, match="no worker process can be started; a script that calls run_sweep must do so under"
    ):
        workers.LocalWorkers(1, points=5)
    assert Killed.left == 0


def test_what_starts_workers_may_be_killed_itself(monkeypatch):
    def refused(*arguments, **keywords):
        monkeypatch.undo()
        raise ConnectionRefusedError

    monkeypatch.setattr(workers.ProcessPoolExecutor, "submit", refused)
    local = workers.LocalWorkers(1, points=5)
    assert local.submit(os.getpid).result() != os.getpid()
    local.close(now=False)
