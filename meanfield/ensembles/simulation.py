"""Description of an ensemble of SGD: results that are kept of each replica, output times, and memory of a step."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
import psutil

from meanfield.ensembles.arrays import Identity, identity_of
from meanfield.ensembles.settings import EnsembleSettings, ReplicaSettings
from meanfield.ensembles.statistics import BINS, MOST_SORTED
from meanfield.errors import InputError
from meanfield.problems.base import Time
from meanfield.problems.clock import Clock
from meanfield.problems.in_time import InTime
from meanfield.typing import FloatArray, IntArray

RESERVED = ("time", "snapshot_time", "failed", "count", "quantile")
"""Names of arrays that every ensemble has already."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Simulation:
    """Description of an ensemble, except for its steps.

    Parameters
    ----------
    identity : Identity
        Everything that decides its numbers, `meanfield.ensembles.arrays.identity_of(problem)`: an unfinished run goes
        on only under the same one.
    particles : ReplicaSettings
    time : Time
        Output times; step k is at time k/N.
    rows : mapping of str to tuple of int
        Names and shapes of what is kept at every output time, such as `{"q": (features,), "r": ()}`. The statistics
        of rows that are vectors or matrices are `NAME_mean`, `NAME_covariance` and `NAME_quantile`, those of rows that
        are numbers `NAME_mean`, `NAME_variance` and `NAME_quantile`; covariances and variances are times N.
    label : str
        How steps are taken, in progress bars, messages and the provenance of results.
    snapshots, constants : mapping of str to tuple of int
        Names and shapes of larger arrays, such as weights: kept at every snapshot, or once because they stay the same.
    without_snapshots : str
        Why there are none, with a remedy, for the message to those who ask for them.
    marks : tuple of str
        Names of whole numbers that are kept of each replica at its end, -1 for none.
    quantiles : collection of str, optional
        Rows whose quantiles statistics keep; by default all.
    together : int
        Largest number of replicas that one stepper advances; their numbers must not depend on it.
    working_set : int
        Bytes that one thread needs to advance a block of replicas.
    remedy : str
        What to change when weights are no longer finite.
    steps_per_time : float
        N, where the settings have no `particles.dimension`.
    steps : ndarray of int, shape (outputs,), optional
        Number of the step at each output time, where steps are not all of the same length.
    size : str
        What makes a run large, for messages to those who ask for too much.

    Raises
    ------
    InputError
        If the problem asks for snapshots that are not there, or that statistics do not keep.
    """

    identity: Identity
    particles: ReplicaSettings
    time: Time
    rows: Mapping[str, Shape]
    label: str = "plain"
    snapshots: Mapping[str, Shape] = field(default_factory=dict)
    constants: Mapping[str, Shape] = field(default_factory=dict)
    without_snapshots: str = ""
    marks: tuple[str, ...] = ()
    quantiles: Collection[str] | None = None
    together: int = 1
    working_set: int = 0
    remedy: str = "lower model.learning_rate"
    steps_per_time: float = 0.0
    steps: IntArray | None = None
    size: str = "particles.dimension"

    def __post_init__(self) -> None:
        if not isinstance(self.identity, Identity):  # a text alone says nothing of functions and files that it names
            raise ValueError(f"identity = {self.identity!r:.40}: give meanfield.ensembles.arrays.identity_of(problem)")
        names = [*self.rows, *self.snapshots, *self.constants, *self.marks]
        if len(set(names)) < len(names) or not set(RESERVED).isdisjoint(names):
            raise ValueError(f"arrays {names} of an ensemble: names must differ, and be none of {', '.join(RESERVED)}")
        self._check_snapshots()

    def _check_snapshots(self) -> None:
        asked = self.particles.snapshots
        if not asked:
            return
        start = f"particles.snapshots = {list(asked)}: "
        if self.without_snapshots:
            raise InputError(f"{start}{self.without_snapshots}, or remove particles.snapshots")
        if not self.snapshots:
            raise InputError(f"{start}there is nothing to be kept at snapshots; remove particles.snapshots")
        if self.particles.record == "statistics":
            raise InputError(
                f"{start}particles.record = 'statistics' keeps no weights; set it to 'replicas', or remove "
                "particles.snapshots"
            )

    @cached_property
    def snapshot_index(self) -> list[int]:
        """Indices of the output times at which snapshots are kept; none without weights or if none are asked for."""
        if not self.snapshots or self.particles.record == "statistics":
            return []
        return self.particles.snapshot_index(self.time)

    @property
    def N(self) -> float:
        """Number of steps per unit of time."""
        if isinstance(self.particles, EnsembleSettings):
            return self.particles.dimension
        return self.steps_per_time

    @cached_property
    def step_at(self) -> IntArray:
        """Number of the step at each output time, shape (outputs,)."""
        if self.steps is not None:
            return self.steps
        return np.rint(self.time.outputs_at * self.N).astype(np.int64)

    def time_of(self, step: int) -> float:
        """Time of a step, between output times where steps are not all of the same length."""
        return step / self.N if self.steps is None else float(np.interp(step, self.steps, self.time.outputs_at))

    @property
    def snapshot_time(self) -> FloatArray:
        """Times of the snapshots."""
        return self.time.outputs_at[self.snapshot_index]

    @property
    def snapshot_bytes(self) -> int:
        """Bytes of all snapshots of one replica, with what stays the same."""
        if not self.snapshot_index:
            return 0
        often, once = (sum(map(math.prod, shapes.values())) for shapes in (self.snapshots, self.constants))
        return (len(self.snapshot_index) * often + once) * self.particles.snapshot_dtype.itemsize

    @property
    def columns(self) -> dict[str, slice]:
        """Column of each row where all rows are put side by side as one vector."""
        ends = np.cumsum([0, *map(math.prod, self.rows.values())])
        return {name: slice(int(ends[i]), int(ends[i + 1])) for i, name in enumerate(self.rows)}

    @cached_property
    def blocks(self) -> Blocks:
        """Blocks of replicas that are advanced together."""
        return blocks_of(self.particles.replicas, self.together)


def batched(problem: Any, numbers: int, together: int, *, besides: int = 0, **described: Any) -> Simulation:
    """Description of SGD of a problem whose steps take arrays of some numbers.

    Parameters
    ----------
    problem : Problem
        With `particles`, `time` and `steps_per_time`.
    numbers : int
        Inputs, activations and pairs of a step of one replica.
    together : int
        Numbers up to which replicas are advanced together, because they fit into the caches.
    besides : int
        Further numbers that are kept as often, such as weights.
    **described
        What else describes the `Simulation`.
    """
    some = max(1, together // numbers)
    return Simulation(
        identity=identity_of(problem),
        particles=problem.particles,
        time=problem.time,
        together=some,
        # some 8 arrays of doubles at once
        working_set=8 * 8 * (numbers + besides) * min(some, problem.particles.replicas),
        steps_per_time=problem.steps_per_time,
        steps=Clock(problem).steps_at(problem.time.outputs_at) if InTime(problem).moves else None,
        **described,
    )


def blocks_of(replicas: int, together: int) -> Blocks:
    """Ranges of at most `together` replicas that cover all, fewer in each where that would give too few ranges."""
    return Blocks(replicas, min(together, -(-replicas // 16)))  # so that every thread has something to do


@dataclass(frozen=True)
class Blocks:
    """Ranges of `size` replicas, but for the last one; each is made when it is asked for, as there may be a million."""

    replicas: int
    size: int

    def __len__(self) -> int:
        return -(-self.replicas // self.size)

    def __getitem__(self, index: SupportsIndex) -> range:
        first = range(len(self))[index] * self.size
        return range(first, min(first + self.size, self.replicas))


BYTES_PER_NUMBER = 8
"""Number of bytes of a double."""


def predicted_memory(simulation: Simulation, workers: int, in_memory: bool) -> int:
    """Bytes that a run takes at its peak, besides what Python and its packages take.

    Parameters
    ----------
    workers : int
        Threads.
    in_memory : bool
        Whether what is kept is in memory, and not in files.
    """
    return _kept(simulation, in_memory) + _of_threads(simulation, workers)


def _kept(simulation: Simulation, in_memory: bool) -> int:
    """Bytes of what is kept of all replicas."""
    replicas, rows = simulation.particles.replicas, _bytes_of_rows(simulation)
    kept = replicas * BYTES_PER_NUMBER
    if simulation.particles.record == "statistics":
        kept += (3 * min(replicas, MOST_SORTED) + 4 * BINS) * rows  # quantiles take copies
    elif in_memory:
        kept += replicas * (rows + simulation.snapshot_bytes)
    return kept


def _of_threads(simulation: Simulation, workers: int) -> int:
    """Bytes of the blocks that are advanced at once."""
    blocks = simulation.blocks
    return min(workers, len(blocks)) * (len(blocks[0]) * _bytes_of_rows(simulation) + simulation.working_set)


def _bytes_of_rows(simulation: Simulation) -> int:
    """Bytes of the rows of one replica."""
    columns = max((place.stop for place in simulation.columns.values()), default=0)
    return int(simulation.time.outputs * columns * BYTES_PER_NUMBER)


def check_memory(simulation: Simulation, workers: int, in_memory: bool) -> None:
    """Refuse a run that does not fit into the memory that is free.

    Raises
    ------
    InputError
        With the keys to change.
    """
    settings = simulation.particles
    kept, of_threads = _kept(simulation, in_memory), _of_threads(simulation, workers)
    needed = kept + of_threads
    free = psutil.virtual_memory().available
    if needed <= 0.8 * free:  # other programs need some memory, too
        return
    # what takes less than a tenth of the memory is not worth while to save
    keeps_much, threads_take_much = (part >= 0.1 * needed for part in (kept, of_threads))
    remedies = [f"lower {simulation.size}" + " or particles.replicas" * keeps_much]
    if keeps_much and simulation.snapshot_index and in_memory:
        remedies.append("name fewer particles.snapshots, or save to a file with solvers/simulate_sgd.py")
    elif keeps_much and settings.record == "replicas" and in_memory:
        remedies.append("set particles.record = 'statistics'")
    if threads_take_much and simulation.together == 1:  # replicas go together where one takes next to none
        remedies.append(f"use fewer workers than {workers}")
    raise InputError(
        f"particles: {settings.replicas} replicas with N = {simulation.N:.15g} ('{simulation.label}') take "
        f"{needed / 2**30:.3g} GiB, but {free / 2**30:.3g} GiB are free; {'; '.join(remedies)}"
    )
