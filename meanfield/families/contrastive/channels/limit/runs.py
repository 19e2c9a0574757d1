"""Independent runs of interacting particles, each with its normal steps and with steps of twice the length.

Two steps and the long one beside them take the same noise, so that their difference is the error of the steps with
little of chance in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.ensembles.streams import VECTOR, fill_normals, stream_key
from meanfield.errors import BlowUpError
from meanfield.families.contrastive.channels.limit.particles import Averages, Particles, draw_sample
from meanfield.families.contrastive.problem import Problem
from meanfield.process.cores import one_thread
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Size:
    """Numbers of a computation.

    Parameters
    ----------
    particles : int
        n, of each run.
    steps : int
        Steps between two output times, even.
    """

    particles: int
    steps: int


@dataclass
class Runs:
    """Moments q, M and r of runs at the output times, NaN where these were not reached.

    Parameters
    ----------
    fine, coarse : ndarray, shape (runs, outputs, moments)
        By normal steps, and by steps of twice the length.
    features : ndarray, shape (runs, kept, d1)
    weights : ndarray, shape (runs, snapshots, kept, d2)
        Of the first particles of each run.
    status : str
    """

    fine: FloatArray
    coarse: FloatArray
    features: FloatArray
    weights: FloatArray
    status: str = "complete"


def march(
    problem: Problem, averages: Sequence[Averages], size: Size, label: str = "particles", matched: bool = True
) -> Runs:
    """Follow runs to the last output time; see `Particles` for what is not described here.

    Parameters
    ----------
    problem : Problem
    averages : sequence of callable
        Those of each run.
    size : Size
    label : str
        Of the progress bar.
    matched : bool
    """
    d1, d2 = len(problem.features), problem.model.channels
    key = stream_key(problem.particles.seed)
    outputs = problem.time.outputs
    snapshots = _snapshots(problem)
    kept = min(size.particles, 2**13)
    count = len(averages)
    samples = [draw_sample(problem, size.particles, key, run) for run in range(count)]
    fine, coarse = (
        [Particles(problem, *given, matched) for given in zip(averages, samples, strict=True)] for _ in range(2)
    )
    moments = d1 * d2 + d2 * d2 + d2
    runs = Runs(
        np.full((count, outputs, moments), np.nan),
        np.full((count, outputs, moments), np.nan),
        np.array([particles.features[:, :kept].T for particles in fine]),
        np.full((count, len(snapshots), kept, d2), np.nan),
    )
    try:
        with one_thread(), progress_bar((outputs - 1) * count, label, unit="interval") as bar:
            for output in range(outputs):
                for run in range(count):
                    if output and not _interval(problem, fine[run], coarse[run], size.steps, key, run, output - 1):
                        runs.status = _too_long(problem, output).status
                        return runs
                    runs.fine[run, output], runs.coarse[run, output] = fine[run].moments(), coarse[run].moments()
                    if output in snapshots:
                        runs.weights[run, snapshots.index(output)] = fine[run].weights[:, :kept].T
                    bar.update(output > 0)
    except KeyboardInterrupt:
        runs.status = "interrupted"
    return runs


def _interval(
    problem: Problem, fine: Particles, coarse: Particles, steps: int, key: FloatArray, run: int, interval: int
) -> bool:
    """March from one output time to the next; false if a step is far too long."""
    dt = problem.time.stop / ((problem.time.outputs - 1) * steps)
    shape = fine.weights.shape
    numbers = int(np.prod(shape))
    stream = np.empty(numbers + numbers % 2)
    first = np.empty(shape)
    try:
        for step in range(interval * steps, (interval + 1) * steps):
            fill_normals(key, run, VECTOR, step * stream.size, stream)
            normals = stream[:numbers].reshape(shape)
            if not fine.step(dt, normals):
                return False
            if step % 2 == 0:
                first[:] = normals
            elif not coarse.step(2.0 * dt, np.sqrt(0.5) * (first + normals)):
                return False
    except np.linalg.LinAlgError:  # averages that are not finite, or particles that are all but equal
        return False
    return True


def _snapshots(problem: Problem) -> list[int]:
    return problem.particles.snapshot_index(problem.time)


def _too_long(problem: Problem, output: int) -> BlowUpError:
    time = float(problem.time.outputs_at[output - 1])
    return BlowUpError(
        time,
        "the particles of the limit change their length by half within a step",
        "lower model.learning_rate or prior.strength",
    )
