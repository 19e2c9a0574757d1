"""Run of a sweep: points go to workers, their outcomes are saved, and an earlier run that was ended is resumed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from pathlib import Path
from typing import Any

import xarray as xr

from meanfield.arguments import as_path, as_text, as_whole
from meanfield.errors import InputError
from meanfield.problems.file import plain_data
from meanfield.process.floating_point import own_errstate
from meanfield.process.locking import FolderLock
from meanfield.process.progress import progress_bar
from meanfield.results.files import save
from meanfield.results.provenance import provenance
from meanfield.sweep.definition import Sweep
from meanfield.sweep.merge import merged
from meanfield.sweep.points import Point, points_of
from meanfield.sweep.solve import Outcome, Work, solve_points
from meanfield.sweep.store import Store
from meanfield.sweep.workers import ClusterWorkers, LocalWorkers, Workers

TASK_SECONDS = 0.5
"""Approximate time in seconds of a task of several points: a kill may lose it, and it is far above the overhead."""

MOST_TOGETHER = 256
"""Largest number of points of a task."""

LOOK_SECONDS = 1.0
"""Time in seconds between checks whether a cluster has grown."""


@own_errstate()
def run_sweep(sweep: Sweep, folder: str | Path, workers: int | None = None, scheduler: str | None = None) -> xr.Dataset:
    """Solve all points of a sweep, or those that are missing, and merge them.

    Parameters
    ----------
    sweep : Sweep
    folder : str or Path
        Where results go: a file for each point, which is there as soon as the point is solved, and `sweep.nc`, which is
        what this function returns. A folder that holds part of the sweep is completed; failed points stay failed until
        their files are deleted.
    workers : int, optional
        Processes on this machine; by default one per core.
    scheduler : str, optional
        The address of a Dask scheduler, whose workers do the work instead.

    Returns
    -------
    xarray.Dataset
        Of the method `sweep`, along the axes: `status` of each point, and what the sweep keeps. The attribute `status`
        is `complete`, or `interrupted` if there are points that were not computed.

    Raises
    ------
    InputError
        If a value is one that its key never takes, no point is a problem, the folder holds something else or is in use,
        or no scheduler answers.
    OSError
        If files cannot be written, or workers cannot run.

    Notes
    -----
    The numbers of a point depend on its problem alone: not on where, when and beside what it is solved. Random streams
    come from `particles.seed` and the values of the keys, unless the seed is itself a key.
    """
    if not isinstance(sweep, Sweep):
        raise InputError("run_sweep takes a sweep; give what meanfield.load_sweep(path) returns")
    if workers is not None and scheduler is not None:
        raise InputError("workers are started on this machine only; a cluster brings its own: give one of the two")
    folder = as_path(folder, "folder", "give the path of the folder for the results")
    if workers is not None:
        as_whole(workers, "workers", "give at least 1, or none for one per core", least=1)
    if scheduler is not None:
        as_text(scheduler, "scheduler", "give the address of a Dask scheduler, such as 'tcp://127.0.0.1:8786'")
    started = time.perf_counter()
    points = points_of(sweep)
    store = Store(folder)
    store.check(sweep)
    with FolderLock(store.folder):  # two runs at once would do the same work, and replace each other's files
        return _completed(sweep, points, store, workers, scheduler, started)


def _completed(
    sweep: Sweep, points: list[Point], store: Store, workers: int | None, scheduler: str | None, started: float
) -> xr.Dataset:
    """Solve the points that are missing, and merge all."""
    outcomes = {point.name: Outcome(point.name, f"failed: {point.fault}") for point in points if point.problem is None}
    for point in points:
        known = store.read(point) if point.name not in outcomes else None
        outcomes |= {} if known is None else {point.name: known}
    left = [point for point in points if point.name not in outcomes]
    status = "complete"
    if left:
        dispatch = _Dispatch(sweep, left, _workers(len(left), workers, scheduler))
        try:
            _keep_all(sweep, dispatch, store, outcomes, len(points))
        except KeyboardInterrupt:
            status = "interrupted"
    else:
        store.open(sweep)  # with other axes than before, perhaps
    if not all(outcome.lasting for outcome in outcomes.values()):
        status = "interrupted"
    dataset = merged(sweep, points, outcomes, status, provenance(time.perf_counter() - started))
    save(dataset, store.merged)
    return dataset


def _workers(points: int, count: int | None, scheduler: str | None) -> Workers:
    return LocalWorkers(count, points) if scheduler is None else ClusterWorkers(scheduler)


def _keep_all(sweep: Sweep, dispatch: _Dispatch, store: Store, outcomes: dict[str, Outcome], total: int) -> None:
    """Save the outcomes of points as they arrive. This process writes them: workers may see another disk."""
    with progress_bar(total, "sweep", "point", done=len(outcomes)) as bar, dispatch:
        store.open(sweep)
        for point, outcome in dispatch.outcomes():
            if outcome.lasting:
                store.write(point, outcome, sweep)
            outcomes[point.name] = outcome
            bar.update()


class _Dispatch:
    """Points on their way through workers, which are released at the end of its context.

    Parameters
    ----------
    sweep : Sweep
    points : list of Point
        Each a problem.
    workers : Workers
    """

    def __init__(self, sweep: Sweep, points: list[Point], workers: Workers) -> None:
        taken = {"status"} | {axis.dim for axis in sweep.axes} | {key for axis in sweep.axes for key in axis.keys}
        self._work = Work(sweep.methods, tuple(sorted(taken)), sweep.folder, sweep.problem_folder)
        self._workers = workers
        self._waiting = deque(points)
        self._alone: deque[Point] = deque()
        """Points during whose tasks a worker died: each is a task of its own from then on."""
        self._deaths: dict[str, int] = {}
        self._running: dict[Future[list[Outcome]], list[Point]] = {}
        self._seconds = TASK_SECONDS
        """Time in seconds that a point takes: the mean over the last task."""

    def __enter__(self) -> _Dispatch:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._workers.close(now=kind is not None)

    def outcomes(self) -> Iterator[tuple[Point, Outcome]]:
        """Outcomes of all points, in the order in which they arrive."""
        while self._waiting or self._alone or self._running:
            self._fill()
            done, _ = wait(self._running, LOOK_SECONDS, FIRST_COMPLETED)
            arrived = [(self._running.pop(future), future) for future in done]
            results = [self._result(points, future) for points, future in arrived]
            self._fill()  # workers go on while what they have done is written
            for result in results:
                yield from result

    def _fill(self) -> None:
        """Submit tasks to workers that have none."""
        while (self._waiting or self._alone) and len(self._running) < self._workers.slots:
            points = [self._alone.popleft()] if self._alone else self._next_points()
            data = [(point.name, _data(point)) for point in points]
            self._running[self._workers.submit(solve_points, self._work, data)] = points

    def _next_points(self) -> list[Point]:
        share = -(-len(self._waiting) // (2 * self._workers.slots))  # so that workers end at about the same time
        count = min(max(1, int(TASK_SECONDS / self._seconds)), MOST_TOGETHER, share)
        return [self._waiting.popleft() for _ in range(count)]

    def _result(self, points: list[Point], future: Future[list[Outcome]]) -> list[tuple[Point, Outcome]]:
        """Outcomes of a task whose worker lived; else its points wait again, except for one that is to blame."""
        try:
            outcomes = future.result()
        except self._workers.died:
            return self._blame(points)
        except CancelledError as error:
            raise OSError("the scheduler gave up our tasks, or is gone") from error
        except Exception as error:
            remedy = "a cluster needs the same meanfield at its scheduler, its workers and here"
            raise OSError(f"workers cannot solve points: {type(error).__name__}: {error}; {remedy}") from error
        self._seconds = max(1e-6, sum(outcome.seconds for outcome in outcomes) / len(outcomes))
        return list(zip(points, outcomes, strict=True))

    def _blame(self, points: list[Point]) -> list[tuple[Point, Outcome]]:
        if len(points) == 1:
            name = points[0].name
            self._deaths[name] = self._deaths.get(name, 0) + 1
            if self._deaths[name] >= self._workers.most_deaths:
                status = (
                    "failed: its worker process died, every time that it was tried; perhaps it takes more memory than "
                    "there is"
                )
                return [(points[0], Outcome(name, status, provenance=provenance(0.0)))]
        self._alone.extend(points)
        return []


def _data(point: Point) -> dict[str, Any]:
    assert point.problem is not None
    return plain_data(point.problem)
