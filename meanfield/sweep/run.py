"""Run of a sweep: points go to workers, their outcomes are saved, and an earlier run that was ended is resumed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from pathlib import Path
from typing import Any

import xarray as xr

from meanfield.arguments import as_flag, as_path, as_text, as_whole
from meanfield.errors import InputError
from meanfield.problems.file import plain_data
from meanfield.process.locking import FolderLock
from meanfield.process.progress import progress_bar
from meanfield.results.files import save
from meanfield.results.made_by import FINGERPRINTS, MadeBy, made_by, to_json
from meanfield.results.provenance import provenance
from meanfield.sweep.definition import Sweep
from meanfield.sweep.merge import merged
from meanfield.sweep.origins import check_origin, of_reductions, sent, together
from meanfield.sweep.points import Point, points_of
from meanfield.sweep.reductions import own_reductions
from meanfield.sweep.solve import Outcome, Work, checked, solve_points
from meanfield.sweep.store import Store
from meanfield.sweep.workers import SCHEDULER_GONE, ClusterWorkers, LocalWorkers, Workers

TASK_SECONDS = 0.5
"""Approximate time in seconds of a task of several points: a kill may lose it, and it is far above the overhead."""

Origins = Mapping[str, MadeBy]
"""Functions, files and versions that decide the numbers of each point, by the names of points."""


def run_sweep(
    sweep: Sweep,
    folder: str | Path,
    workers: int | None = None,
    scheduler: str | None = None,
    restart: bool = False,
) -> xr.Dataset:
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
    restart : bool
        Forget what a sweep left in the folder, and compute all points.

    Returns
    -------
    xarray.Dataset
        Of the method `sweep`, along the axes: `status` of each point, and what the sweep keeps. The attribute `status`
        is `complete`, `interrupted` if there are points that were not computed, or `failed: ...` if some failed.

    Raises
    ------
    InputError
        If a value is one that its key never takes, no point is a problem, the folder holds something else, or points
        that other functions, files or versions of meanfield made, or is in use, or no scheduler answers.
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
    as_flag(restart, "restart", "give True to compute all points anew, or False to go on with those that are there")
    started = time.perf_counter()
    points, store = points_of(sweep), Store(folder)
    reductions = of_reductions(sweep.methods, own_reductions(sweep.methods, sweep.folder))
    origins = {point.name: made_by(point.problem) | reductions for point in points if point.problem is not None}
    store.check(sweep, restart)
    with FolderLock(store.folder):  # two runs at once would do the same work, and replace each other's files
        if restart:
            store.clear()
        outcomes = _known(points, store, origins)
        status = _complete(sweep, points, store, outcomes, origins, lambda count: _workers(count, workers, scheduler))
        dataset = merged(sweep, points, outcomes, status, provenance(time.perf_counter() - started))
        dataset.attrs[FINGERPRINTS] = to_json(together(origins.values()))
        save(dataset, store.merged)
        return dataset


def _known(points: list[Point], store: Store, origins: Origins) -> dict[str, Outcome]:
    """Outcomes of points that are no problems, or that are in the folder.

    Raises
    ------
    InputError
        If other functions, files or versions made them than there are now.
    """
    outcomes = {point.name: Outcome(point.name, f"failed: {point.fault}") for point in points if point.problem is None}
    for point in points:
        known = store.read(point) if point.name not in outcomes else None
        if known is not None:
            check_origin(store.folder, known.made_by, origins[point.name])
            outcomes[point.name] = known
    return outcomes


def _complete(
    sweep: Sweep,
    points: list[Point],
    store: Store,
    outcomes: dict[str, Outcome],
    origins: Origins,
    make_workers: Callable[[int], Workers],
) -> str:
    """Solve the points that are missing, and return the status."""
    left = [point for point in points if point.name not in outcomes]
    if not left:
        store.open(sweep)  # with other axes than before, perhaps
        return "complete"
    dispatch = _Dispatch(sweep, left, sent(sweep), make_workers(len(left)))
    try:
        _keep_all(sweep, dispatch, store, outcomes, origins, len(points))
    except KeyboardInterrupt:
        return "interrupted"
    return "complete" if all(outcome.lasting for outcome in outcomes.values()) else "interrupted"


def _workers(points: int, count: int | None, scheduler: str | None) -> Workers:
    return LocalWorkers(count, points) if scheduler is None else ClusterWorkers(scheduler)


def _keep_all(
    sweep: Sweep, dispatch: _Dispatch, store: Store, outcomes: dict[str, Outcome], origins: Origins, total: int
) -> None:
    """Save the outcomes of points as they arrive. This process writes them: workers may see another disk."""
    with progress_bar(total, "sweep", "point", done=len(outcomes)) as bar, dispatch:
        store.open(sweep)
        for point, found in dispatch.outcomes():
            outcome = checked(found, origins[point.name])
            if outcome.lasting:
                store.write(point, outcome, sweep)
            outcomes[point.name] = outcome
            bar.update()


class _Dispatch:
    """Points on their way through workers, which are released at the end of its context.

    Parameters
    ----------
    points : list of Point
        Each a problem.
    by_value : bytes
        See `meanfield.sweep.solve.Work`.
    """

    def __init__(self, sweep: Sweep, points: list[Point], by_value: bytes, workers: Workers) -> None:
        taken = {"status"} | {axis.dim for axis in sweep.axes} | {key for axis in sweep.axes for key in axis.keys}
        self._work = Work(sweep.methods, tuple(sorted(taken)), sweep.folder, sweep.problem_folder, by_value)
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
            done, _ = wait(self._running, 1.0, FIRST_COMPLETED)  # a cluster may have grown since
            arrived = [(self._running.pop(future), future) for future in done]
            results = [self._result(points, future) for points, future in arrived]
            self._fill()  # workers go on while what they have done is written
            for result in results:
                yield from result

    def _fill(self) -> None:
        """Submit tasks to workers that have none."""
        slots = self._workers.slots  # an error where a cluster is gone, which would be waited for in vain
        while (self._waiting or self._alone) and len(self._running) < slots:
            points = [self._alone.popleft()] if self._alone else self._next_points()
            data = [(point.name, _data(point)) for point in points]
            self._running[self._workers.submit(solve_points, self._work, data)] = points

    def _next_points(self) -> list[Point]:
        share = -(-len(self._waiting) // (2 * self._workers.slots))  # so that workers end at about the same time
        count = min(max(1, int(TASK_SECONDS / self._seconds)), 256, share)  # most points of a task
        return [self._waiting.popleft() for _ in range(count)]

    def _result(self, points: list[Point], future: Future[list[Outcome]]) -> list[tuple[Point, Outcome]]:
        """Outcomes of a task whose worker lived; else its points wait again, except for one that is to blame."""
        try:
            outcomes = future.result()
        except self._workers.died:
            return self._blame(points)
        except CancelledError as error:
            raise OSError(SCHEDULER_GONE) from error
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
