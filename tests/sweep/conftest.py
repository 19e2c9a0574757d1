"""Workers that solve in the process of the tests, where processes are not the matter, and a cluster where they are."""

import asyncio
import multiprocessing
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


def serve(make, *arguments):
    """A scheduler or a worker, until it is killed."""

    async def until_killed():
        async with make(*arguments) as server:
            await server.finished()

    asyncio.run(until_killed())


def make_scheduler(addresses):
    """Says where it is."""
    from distributed import Scheduler

    class Speaking(Scheduler):
        async def start(self):
            await super().start()
            addresses.put(self.address)
            return self

    return Speaking(host="127.0.0.1", port=0, dashboard=False)


def make_worker(address, folder):
    from distributed import Worker

    return Worker(address, nthreads=1, host="127.0.0.1", local_directory=str(folder), dashboard=False)


@pytest.fixture
def cluster(tmp_path):
    """Address and process of a scheduler, and two worker processes: forked, because then they need not import."""
    import distributed  # noqa: F401, not at the top: few tests have a cluster

    context = multiprocessing.get_context("fork")
    addresses = context.Queue()
    processes = [context.Process(target=serve, args=(make_scheduler, addresses))]
    processes[0].start()
    address = addresses.get(timeout=60)
    processes += [context.Process(target=serve, args=(make_worker, address, tmp_path / f"{i}")) for i in range(2)]
    for process in processes[1:]:
        process.start()
    yield address, *processes
    for process in processes:
        process.kill()
        process.join()
