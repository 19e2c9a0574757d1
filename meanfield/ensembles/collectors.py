"""What is kept of an ensemble: every replica, or statistics over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from meanfield.ensembles.arrays import Array, Record, State
from meanfield.ensembles.statistics import LEVELS, RunningStatistics
from meanfield.families.contrastive.problem import Problem
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    from meanfield.families.contrastive.sgd.steppers import WithWeights

DTYPES = {"double": np.float64, "single": np.float32}


class Rows(NamedTuple):
    """Where the results of one block of replicas go: q (replicas, outputs, d1) and r (replicas, outputs)."""

    q: FloatArray
    r: FloatArray


class Collector(Protocol):
    """Takes in blocks of replicas."""

    def rows(self, replicas: range) -> Rows:
        """Room for the results of a block."""

    def keep_weights(self, replica: int, output: int, stepper: WithWeights) -> None:
        """Keep the weights at an output time if they were asked for."""

    def add(self, block: int, rows: Rows) -> None:
        """Take in a block that is complete."""

    def written(self, replicas: range, output: int) -> list[Array]:
        """What is in arrays of the record, of a block that keeps its results up to an output time."""

    def arrays(self) -> dict[str, Any]:
        """Variables of the Dataset."""

    @property
    def state(self) -> State:
        """What `restore` needs besides the arrays of the record."""

    def restore(self, state: State) -> None:
        """Go on from a state."""


class Replicas:
    """Keeps q and r of every replica, and weights at the snapshots."""

    def __init__(self, problem: Problem, snapshots: list[int], record: Record) -> None:
        settings, outputs, d1 = problem.particles, problem.time.outputs, len(problem.features)
        N, replicas = settings.dimension, settings.replicas
        self._q = record.array("q", (replicas, outputs, d1))
        self._r = record.array("r", (replicas, outputs))
        self._snapshot_of = {output: position for position, output in enumerate(snapshots)}
        self._weights: dict[str, Any] = {}
        if snapshots:
            dtype = DTYPES[settings.snapshot_precision]
            self._weights = {
                "snapshot_time": problem.time.outputs_at[snapshots],
                "weights": record.array("weights", (replicas, len(snapshots), N), dtype),
                "U": record.array("U", (replicas, N, d1), dtype),
            }

    def rows(self, replicas: range) -> Rows:
        """See `Collector.rows`."""
        place = slice(replicas.start, replicas.stop)
        return Rows(self._q[place], self._r[place])

    def keep_weights(self, replica: int, output: int, stepper: WithWeights) -> None:
        """See `Collector.keep_weights`."""
        position = self._snapshot_of.get(output)
        if position is None:
            return
        self._weights["weights"][replica, position] = stepper.weights
        if position == 0:
            self._weights["U"][replica] = stepper.features

    def add(self, block: int, rows: Rows) -> None:
        """See `Collector.add`: nothing is left to be done."""

    def written(self, replicas: range, output: int) -> list[Array]:
        """See `Collector.written`."""
        rows, snapshots = self.rows(replicas), sum(at <= output for at in self._snapshot_of)
        written: list[Array] = [rows.q[:, : output + 1], rows.r[:, : output + 1]]
        if snapshots:
            place = slice(replicas.start, replicas.stop)
            written += [self._weights["weights"][place, :snapshots], self._weights["U"][place]]
        return written

    def arrays(self) -> dict[str, Any]:
        """See `Collector.arrays`."""
        return {"q": self._q, "r": self._r} | self._weights

    @property
    def state(self) -> State:
        """See `Collector.state`: everything is in the record."""
        return {}

    def restore(self, state: State) -> None:
        """See `Collector.restore`."""


class Statistics:
    """Keeps mean, covariance and quantiles over replicas."""

    def __init__(self, problem: Problem) -> None:
        self._N = problem.particles.dimension
        self._shape = problem.time.outputs, len(problem.features)
        self._running = RunningStatistics(*self._shape)
        self._next = 0
        self._early: dict[int, Rows] = {}

    def rows(self, replicas: range) -> Rows:
        """See `Collector.rows`."""
        outputs, d1 = self._shape
        return Rows(np.full((len(replicas), outputs, d1), np.nan), np.full((len(replicas), outputs), np.nan))

    def keep_weights(self, replica: int, output: int, stepper: WithWeights) -> None:
        """See `Collector.keep_weights`: statistics keep none."""

    def add(self, block: int, rows: Rows) -> None:
        """See `Collector.add`: blocks wait for those before them, so that rounding does not depend on workers."""
        self._early[block] = rows
        while self._next in self._early:
            self._running.add(*self._early.pop(self._next))
            self._next += 1

    def written(self, replicas: range, output: int) -> list[Array]:
        """See `Collector.written`: all is in the state."""
        return []

    def arrays(self) -> dict[str, Any]:
        """See `Collector.arrays`."""
        mean, covariance = self._running.mean, self._N * self._running.covariance
        return {
            "count": np.array(self._running.count),
            "q_mean": mean[:, :-1],
            "q_covariance": covariance[:, :-1, :-1],
            "quantile": np.array(LEVELS),
            "q_quantile": self._running.quantiles,
            "r_mean": mean[:, -1],
            "r_variance": covariance[:, -1, -1],
        }

    @property
    def state(self) -> State:
        """See `Collector.state`."""
        early: dict[str, FloatArray] = {}
        for block, rows in self._early.items():
            early |= {f"early_{block}_q": rows.q, f"early_{block}_r": rows.r}
        return {"next": np.array(self._next)} | dict(self._running.state) | early

    def restore(self, state: State) -> None:
        """See `Collector.restore`."""
        self._running.restore(state)
        self._next = int(state["next"])
        blocks = {int(key.split("_")[1]) for key in state if key.startswith("early_")}
        self._early = {block: Rows(state[f"early_{block}_q"], state[f"early_{block}_r"]) for block in blocks}
