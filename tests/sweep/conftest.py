"""Workers that solve in the process of the tests, where processes are not the matter."""

from concurrent.futures import Future

import pytest

from meanfield.sweep import run


class Inside:
    """See `meanfield.sweep.workers.Workers`."""

    died = ArithmeticError
    most_deaths = 3
    slots = 2
    made = []  # noqa: RUF012

    def __init__(self, *_):
        Inside.made.append(self)
        self.tasks = []

    def submit(self, task, work, problems):
        self.tasks.append([name for name, _ in problems])
        future = Future()
        try:
            future.set_result(task(work, problems))
        except BaseException as error:
            future.set_exception(error)
        return future

    def close(self, now):
        self.ended_early = now


@pytest.fixture
def inside(monkeypatch):
    """The workers of all sweeps from then on, in order."""
    monkeypatch.setattr(run, "LocalWorkers", Inside)
    Inside.made = []
    return Inside.made
