"""Workers of a sweep: processes on this machine, or the workers of a Dask cluster, behind one interface."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Protocol

from meanfield.errors import InputError
from meanfield.process.cores import available_cores

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Environment variables with the number of threads of linear algebra: 1, since every core has a worker of its own."""

START_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
"""Start method of worker processes: copies of a process that has imported the library once, on one thread, where the
system has it."""


class Workers(Protocol):
    """Interface of the workers of a sweep."""

    died: type[BaseException]
    """Exception raised by the future of a task whose worker died."""

    most_deaths: int
    """Number of deaths of workers at a single point after which the point is to blame."""

    @property
    def slots(self) -> int:
        """Number of tasks that may be under way."""

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Begin a task."""

    def close(self, now: bool) -> None:
        """End the workers, or the work of a cluster for this process; tasks under way are abandoned if `now`."""


class LocalWorkers:
    """Processes on this machine, each in a pool of its own, so that a death is blamed on the right task.

    Parameters
    ----------
    count : int, optional
        How many; one per core if nothing is said.
    points : int
        There is no use for more workers than that.

    Raises
    ------
    OSError
        If none can be started.
    """

    died: type[BaseException] = BrokenProcessPool
    most_deaths = 3

    def __init__(self, count: int | None, points: int) -> None:
        self.slots = min(count or available_cores(), points)
        self._context = multiprocessing.get_context(START_METHOD)
        if START_METHOD == "forkserver":
            multiprocessing.set_forkserver_preload(["meanfield.sweep.solve"])
        self._processes: list[_Process] = []
        try:
            for _ in range(self.slots):
                self._processes.append(_Process(self._context))
            for i in range(self.slots):
                self._processes[i] = self._there(self._processes[i])
        except BaseException:
            self.close(now=True)
            raise

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """See `Workers.submit`."""
        i = next(i for i, process in enumerate(self._processes) if process.free)
        try:
            return self._processes[i].submit(task, *arguments)
        except BrokenProcessPool:  # it died at its last task, or since
            self._processes[i].end(now=False)
            self._processes[i] = self._there(_Process(self._context))
            return self._processes[i].submit(task, *arguments)

    def _there(self, process: _Process) -> _Process:
        """Wait until a worker has begun; one that died before is replaced."""
        for attempt in range(2):
            if attempt:
                process = _Process(self._context)
            if process.has_begun():
                return process
            process.end(now=False)
        raise OSError(
            "no worker process can be started; a script that calls run_sweep must do so under "
            "`if __name__ == '__main__':`, because every worker imports it"
        )

    def close(self, now: bool) -> None:
        """See `Workers.close`."""
        for process in self._processes:
            process.end(now)


class _Process:
    """A pool of one worker."""

    def __init__(self, context: Any) -> None:
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_begin)
        self._pid: Future[int] = Future()
        try:
            with _environment(dict.fromkeys(ONE_THREAD, "1")):
                self._pid = self._pool.submit(os.getpid)
        except (ConnectionError, EOFError) as error:  # the process was killed of which workers are copies
            self._pid.set_exception(BrokenProcessPool(str(error)))
        self._task: Future[Any] = self._pid

    def has_begun(self) -> bool:
        """Wait until the worker has begun; false if it died before."""
        return not isinstance(self._pid.exception(), BrokenProcessPool)

    @property
    def free(self) -> bool:
        """Whether the worker has no task."""
        return self._task.done()

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Begin a task."""
        self._task = self._pool.submit(task, *arguments)
        return self._task

    def end(self, now: bool) -> None:
        """End the worker, at once or when its task is done."""
        if now and not self._task.done():
            with suppress(ProcessLookupError, BrokenProcessPool):
                os.kill(self._pid.result(), signal.SIGTERM)
        self._pool.shutdown(wait=not now, cancel_futures=now)


def _begin() -> None:
    """Start of a worker, which leaves Ctrl-C to the process of the sweep, ends when told, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class ClusterWorkers:
    """The workers of a Dask cluster that runs already, however many there are at the time.

    Parameters
    ----------
    address : str
        Of its scheduler, such as `tcp://127.0.0.1:8786`.

    Raises
    ------
    InputError
        If Dask is not installed, or no scheduler answers.
    """

    most_deaths = 1  # the scheduler itself gives a task several workers

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
            from distributed.comm.addressing import parse_address, parse_host_port
            from distributed.scheduler import KilledWorker
        except ImportError as error:
            raise InputError("a cluster needs Dask: pip install 'meanfield-dynamics[cluster]'") from error
        connect: Any = Client  # has no types
        try:
            # A client that found nobody hangs when it is collected: knock first.
            socket.create_connection(parse_host_port(parse_address(address)[1]), CONNECT_SECONDS).close()
            self._client = connect(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise InputError(
                f"no Dask scheduler answers at {address} ({error}); start one with `dask scheduler`, and give the "
                "address that it shows"
            ) from error
        self.died: type[BaseException] = KilledWorker
        self._executor = self._client.get_executor(pure=False)
        self._logs = ExitStack()
        for name in ("distributed.client", "tornado.application"):  # which write a trace where a scheduler is gone
            self._logs.enter_context(_without_tracebacks(name))

    @property
    def slots(self) -> int:
        """See `Workers.slots`: one task in each thread, and one that waits for it.

        Raises
        ------
        OSError
            If the scheduler is gone.
        """
        try:
            threads: dict[str, int] = self._client.nthreads()
        except OSError as error:
            raise OSError(SCHEDULER_GONE) from error
        return 2 * max(1, sum(threads.values()))

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """See `Workers.submit`."""
        future: Future[Any] = self._executor.submit(task, *arguments)
        return future

    def close(self, now: bool) -> None:
        """See `Workers.close`."""
        with self._logs:
            self._executor.shutdown(wait=not now)
            self._client.close(timeout=CONNECT_SECONDS)


@contextmanager
def _without_tracebacks(logger: str) -> Iterator[None]:
    """Context in which a logger is silent about errors, of which the one line that a lost scheduler raises says all."""

    def is_no_error(record: logging.LogRecord) -> bool:
        return record.levelno < logging.ERROR

    logging.getLogger(logger).addFilter(is_no_error)
    try:
        yield
    finally:
        logging.getLogger(logger).removeFilter(is_no_error)


SCHEDULER_GONE = "the scheduler gave up our tasks, or is gone"
"""Error message for a scheduler that does not answer any more."""

CONNECT_SECONDS = 10
"""Time in seconds to wait for an answer of the scheduler."""
