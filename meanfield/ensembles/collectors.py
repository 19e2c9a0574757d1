"""Collectors of an ensemble's results: every replica, or statistics over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from meanfield.ensembles.arrays import Array, Record, State
from meanfield.ensembles.simulation import Simulation
from meanfield.ensembles.statistics import LEVELS, RunningStatistics
from meanfield.ensembles.stepper import Stepper
from meanfield.typing import FloatArray

Rows = Mapping[str, FloatArray]
"""Results of a block of replicas at all output times, by name: arrays of shape (replicas, outputs, ...)."""


class Collector(Protocol):
    """Interface of collectors, which take in the results of blocks of replicas."""

    def rows(self, replicas: range) -> Rows:
        """Empty arrays for the results of a block."""

    def keep_snapshot(self, replicas: range, output: int, finite: NDArray[np.bool_], stepper: Stepper) -> None:
        """Keep the larger arrays of finite replicas at an output time if they were asked for."""

    def add(self, block: int, rows: Rows) -> None:
        """Take in the results of a block that is complete."""

    def written(self, replicas: range, output: int) -> list[Array]:
        """Arrays of the record that hold results of a block, up to an output time."""

    def arrays(self) -> dict[str, Any]:
        """Variables of the resulting Dataset."""

    @property
    def state(self) -> State:
        """State of the collector, for `restore`, besides the arrays of the record."""

    def restore(self, state: State) -> None:
        """Restore a saved state."""


class Replicas:
    """Collector that keeps the rows of every replica, and larger arrays at the snapshots."""

    def __init__(self, simulation: Simulation, record: Record) -> None:
        settings, outputs = simulation.particles, simulation.time.outputs
        index, dtype, replicas = simulation.snapshot_index, settings.snapshot_dtype, settings.replicas
        self._rows = {
            name: record.open_array(name, (replicas, outputs, *shape)) for name, shape in simulation.rows.items()
        }
        self._snapshot_of = {output: position for position, output in enumerate(index)}
        self._time = {"snapshot_time": simulation.snapshot_time} if index else {}
        self._snapshots: dict[str, Array] = {}
        self._constants: dict[str, Array] = {}
        if index:
            for name, shape in simulation.snapshots.items():
                self._snapshots[name] = record.open_array(name, (replicas, len(index), *shape), dtype)
            for name, shape in simulation.constants.items():
                self._constants[name] = record.open_array(name, (replicas, *shape), dtype)

    def rows(self, replicas: range) -> Rows:
        """See `Collector.rows`."""
        return {name: array[_place(replicas)] for name, array in self._rows.items()}

    def keep_snapshot(self, replicas: range, output: int, finite: NDArray[np.bool_], stepper: Stepper) -> None:
        """See `Collector.keep_snapshot`."""
        position = self._snapshot_of.get(output)
        if position is None:
            return
        found = stepper.snapshot
        for name, array in self._snapshots.items():
            array[_place(replicas)][finite, position] = found[name][finite]
        if position == 0:
            for name, array in self._constants.items():
                array[_place(replicas)][finite] = found[name][finite]

    def add(self, block: int, rows: Rows) -> None:
        """See `Collector.add`: nothing is left to be done."""

    def written(self, replicas: range, output: int) -> list[Array]:
        """See `Collector.written`."""
        place, snapshots = _place(replicas), sum(at <= output for at in self._snapshot_of)
        written: list[Array] = [rows[:, : output + 1] for rows in self.rows(replicas).values()]
        if snapshots:
            written += [array[place, :snapshots] for array in self._snapshots.values()]
            written += [array[place] for array in self._constants.values()]
        return written

    def arrays(self) -> dict[str, Any]:
        """See `Collector.arrays`."""
        return self._rows | self._time | self._snapshots | self._constants

    @property
    def state(self) -> State:
        """See `Collector.state`: everything is in the record."""
        return {}

    def restore(self, state: State) -> None:
        """See `Collector.restore`."""


class Statistics:
    """Collector that keeps mean, covariance and quantiles over replicas."""

    def __init__(self, simulation: Simulation) -> None:
        self._N, self._outputs = simulation.N, simulation.time.outputs
        self._shapes, self._columns = simulation.rows, simulation.columns
        wanted = simulation.rows if simulation.quantiles is None else simulation.quantiles
        self._ranked = [name for name in simulation.rows if name in wanted]
        columns = (self._columns[name] for name in self._ranked)
        ranked = [column for some in columns for column in range(some.start, some.stop)]
        self._running = RunningStatistics(self._outputs, sum(map(_width, self._columns.values())), ranked)
        self._next = 0
        self._early: dict[int, Rows] = {}

    def rows(self, replicas: range) -> Rows:
        """See `Collector.rows`."""
        return {name: np.full((len(replicas), self._outputs, *shape), np.nan) for name, shape in self._shapes.items()}

    def keep_snapshot(self, replicas: range, output: int, finite: NDArray[np.bool_], stepper: Stepper) -> None:
        """See `Collector.keep_snapshot`: statistics keep none."""

    def add(self, block: int, rows: Rows) -> None:
        """See `Collector.add`: blocks wait for those before them, so that rounding does not depend on workers."""
        self._early[block] = rows
        while self._next in self._early:
            together = [row.reshape(*row.shape[:2], -1) for row in self._early.pop(self._next).values()]
            self._running.add(np.concatenate(together, axis=2))
            self._next += 1

    def written(self, replicas: range, output: int) -> list[Array]:
        """See `Collector.written`: all is in the state."""
        return []

    def arrays(self) -> dict[str, Any]:
        """See `Collector.arrays`."""
        mean, covariance, quantiles = self._running.mean, self._N * self._running.covariance, self._running.quantiles
        found: dict[str, Any] = {"count": np.array(self._running.count)}
        if self._ranked:
            found["quantile"] = np.array(LEVELS)
        first = 0
        for name, shape in self._shapes.items():
            place = self._columns[name]
            found[f"{name}_mean"] = mean[:, place].reshape(-1, *shape)
            spread = "covariance" if shape else "variance"
            found[f"{name}_{spread}"] = covariance[:, place, place].reshape(-1, *shape, *shape)
            if name in self._ranked:
                last = first + _width(place)
                found[f"{name}_quantile"] = quantiles[:, :, first:last].reshape(len(LEVELS), -1, *shape)
                first = last
        return found

    @property
    def state(self) -> State:
        """See `Collector.state`."""
        early = {f"early_{block}_{name}": row for block, rows in self._early.items() for name, row in rows.items()}
        return {"next": np.array(self._next)} | dict(self._running.state) | early

    def restore(self, state: State) -> None:
        """See `Collector.restore`."""
        self._running.restore(state)
        self._next = int(state["next"])
        blocks = {int(key.split("_")[1]) for key in state if key.startswith("early_")}
        self._early = {block: {name: state[f"early_{block}_{name}"] for name in self._shapes} for block in blocks}


def make_collector(simulation: Simulation, record: Record) -> Collector:
    """The collector that `particles.record` names."""
    return Statistics(simulation) if simulation.particles.record == "statistics" else Replicas(simulation, record)


def _place(replicas: range) -> slice:
    return slice(replicas.start, replicas.stop)


def _width(columns: slice) -> int:
    return int(columns.stop - columns.start)
