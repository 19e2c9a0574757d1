"""Run replicas of SGD over all cores and collect what the schema asks for."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import xarray as xr
from numpy.random import PCG64, Generator, SeedSequence

from meanfield.closures import Closure
from meanfield.errors import BlowUpError
from meanfield.particles.plain import sgd_steps
from meanfield.particles.start import draw_features, draw_weights
from meanfield.problem import Problem
from meanfield.progress import progress_bar
from meanfield.provenance import provenance
from meanfield.scalar_functions import compile_scalar
from meanfield.schema import build_dataset
from meanfield.typing import FloatArray


def simulate_sgd(problem: Problem, workers: int | None = None) -> xr.Dataset:
    """Replicas of one-pass SGD at finite N.

    Parameters
    ----------
    problem : Problem
        Any number of features, any prior, any start.
    workers : int, optional
        Threads; by default one per core. The numbers do not depend on it: replica i draws from streams spawned
        from (seed, i).

    Returns
    -------
    xarray.Dataset
        `q`, `r` at every output time, `weights` at the snapshots, `U`, as `meanfield.schema` describes them. Output
        time t is step round(t N). The attribute `status` is `complete`, `interrupted` or `failed: ...`; what was not
        reached is NaN.

    Notes
    -----
    All quantities are dimensionless. Source: theory.md, section 1.
    """
    started = time.perf_counter()
    simulation = _Simulation(problem)
    status = simulation.run(workers or os.cpu_count() or 1)
    record = provenance(time.perf_counter() - started, seed=problem.particles.seed)
    return build_dataset("particles", problem, simulation.arrays, status, record)


class _Simulation:
    """The arrays of all replicas and the code that fills them."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._closure = Closure(problem)
        self._force = compile_scalar(problem.prior.functions.force)
        v = problem.noise_covariance
        l11 = np.sqrt(v[0, 0])
        l21 = v[0, 1] / l11 if l11 > 0 else 0.0
        self._noise_factor = np.array([[l11, 0.0], [l21, np.sqrt(max(v[1, 1] - l21**2, 0.0))]])
        self._stop = threading.Event()
        times = problem.time.outputs_at
        N, replicas, d1 = problem.particles.dimension, problem.particles.replicas, len(problem.features)
        self._step_at = np.rint(times * N).astype(int)
        snapshots = problem.snapshot_index
        self._snapshot_of = {output: position for position, output in enumerate(snapshots)}
        self.arrays = {
            "time": times,
            "snapshot_time": times[snapshots],
            "q": np.full((replicas, len(times), d1), np.nan),
            "r": np.full((replicas, len(times)), np.nan),
            "weights": np.full((replicas, len(snapshots), N), np.nan),
            "U": np.full((replicas, N, d1), np.nan),
        }

    def run(self, workers: int) -> str:
        """Run all replicas and return the status."""
        replicas = self._problem.particles.replicas
        with (
            progress_bar(replicas * (len(self._step_at) - 1), "SGD") as bar,
            ThreadPoolExecutor(min(workers, replicas)) as pool,
        ):
            lock = threading.Lock()

            def tick() -> None:
                with lock:
                    bar.update()

            futures = [pool.submit(self._run_replica, replica, tick) for replica in range(replicas)]
            try:
                failures = [error for future in futures if (error := future.result()) is not None]
            except KeyboardInterrupt:
                self._stop.set()
                return "interrupted"
        return min(failures, key=lambda error: error.time).status if failures else "complete"

    def _run_replica(self, replica: int, tick) -> BlowUpError | None:  # type: ignore[no-untyped-def]
        problem = self._problem
        # One stream for each kind of draw, so that none depends on how another is cut into calls.
        start, noise, *hidden = (
            Generator(PCG64(SeedSequence(problem.particles.seed, spawn_key=(replica, stream))))
            for stream in range(2 + len(problem.hidden_laws))
        )
        U = draw_features(problem, start)
        w = draw_weights(problem, U, start)
        self.arrays["U"][replica] = U
        self._record(replica, 0, U, w)
        for output in range(1, len(self._step_at)):
            if self._stop.is_set():
                return None
            steps = int(self._step_at[output] - self._step_at[output - 1])
            done = self._advance(w, U, self._draw_hidden(hidden, steps), noise)
            if done < steps:
                time = (self._step_at[output - 1] + done) / len(w)
                return BlowUpError(
                    float(time),
                    f"the weights of replica {replica} are no longer finite",
                    "lower model.learning_rate, or prior.strength if it is large",
                )
            self._record(replica, output, U, w)
            tick()
        return None

    def _draw_hidden(self, streams: list[Generator], steps: int) -> FloatArray:
        size = (steps, self._problem.model.batch_size)
        laws = self._problem.hidden_laws
        return np.concatenate([law.sample(rng, size) for law, rng in zip(laws, streams, strict=True)], axis=2)

    def _advance(self, w: FloatArray, U: FloatArray, hidden: FloatArray, rng: Generator) -> int:
        closure, model, prior = self._closure, self._problem.model, self._problem.prior
        value, derivative = model.activation_functions.addresses
        return int(
            sgd_steps(
                w,
                U,
                hidden,
                rng,
                value,
                derivative,
                self._force,
                prior.strength,
                model.learning_rate,
                closure.centering,
                self._noise_factor,
                closure.expectation,
            )
        )

    def _record(self, replica: int, output: int, U: FloatArray, w: FloatArray) -> None:
        self.arrays["q"][replica, output] = U.T @ w / len(w)
        self.arrays["r"][replica, output] = w @ self._problem.prior.force(w) / len(w)
        if output in self._snapshot_of:
            self.arrays["weights"][replica, self._snapshot_of[output]] = w
