"""How fast SGD at finite N is: the chain, one vector per step, the same SGD elsewhere, and two cores.

All steps are those of quadratic activations and three-point features. What is compared is run in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from statistics import median
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from meanfield import simulate_sgd
from meanfield.contrastive import Problem
from meanfield.ensembles.streams import VECTOR, fill_normals, stream_key
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.sgd.steppers import STEPPERS
from meanfield.families.contrastive.sgd.training import training_of
from validation.benchmarks.sgd_elsewhere import INSTALLED, Elsewhere
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import CORES, ONE_THREAD, WALL, seconds

THREE_POINT = {"law": "three_point", "second_moment": 1.1, "fourth_moment": 6.05}
CORRELATED = {"variance": [0.3, 0.3], "correlation": 0.5}
NOISY = {"batch_size": 16, "noise": CORRELATED}
CHAINS: dict[str, dict[str, Any]] = {
    "m = 1": {},
    "m = 10": {"batch_size": 10},
    "m = 16, correlated noise": NOISY,
    "m = 1, two features": {"features": 2},
    "m = 1, population centring": {"centering": "population"},
    "m = 1, two features, population centring": {"centering": "population", "features": 2},
    "m = 10, batch centring": {"batch_size": 10, "centering": "batch"},
}
PRIORS: dict[str, dict[str, Any] | None] = {
    "none": None,
    "l1": {"name": "l1", "strength": 1.0},
    "quartic": {"name": "quartic", "strength": 0.1},
}
STILL = 1e-6
"""Learning rate at which q stays where it is."""
MOST_SIGMAS = 5.0
"""Largest difference, in standard errors, of means that should be the same."""


def make_problem(
    method: str,
    dimension: int,
    *,
    batch_size: int = 1,
    noise: dict[str, Any] | None = None,
    prior: dict[str, Any] | None = None,
    features: int = 1,
    centering: str = "none",
    learning_rate: float = STILL,
    replicas: int = 1,
    stop: float = 1.0,
) -> Problem:
    model = {"activation": "quadratic", "centering": centering}
    overlaps = [0.5 / (1 + k) for k in range(features)]
    description: dict[str, Any] = {
        "model": model | {"learning_rate": learning_rate, "batch_size": batch_size},
        "features": [{"hidden": THREE_POINT, "initial_overlap": overlap} for overlap in overlaps],
        "time": {"stop": stop, "outputs": 2},
        "particles": {"method": method, "dimension": dimension, "replicas": replicas},
    }
    optional = {"augmentation": noise, "prior": prior}
    return Problem.model_validate(description | {key: value for key, value in optional.items() if value})


def stepping(problem: Problem, steps: int) -> Callable[[], None]:
    """Takes the next steps of one replica by the method of the problem."""
    stepper = STEPPERS[problem.particles.method](problem, training_of(problem), Closure(problem).mean_outputs, range(1))
    taken = 0

    def advance() -> None:
        nonlocal taken
        stepper.advance(taken, steps)
        taken += steps

    return advance


@numba.njit
def fill_again(key: np.ndarray, out: np.ndarray, times: int) -> None:
    for i in range(times):
        fill_normals(key, 0, VECTOR, i * out.size, out)


def generator(size: int, times: int) -> Callable[[], None]:
    """Fills a vector by our generator, again and again."""
    key, out = stream_key(0), np.empty(size)
    return lambda: fill_again(key, out, times)


def chain_table() -> Table:
    rows = []
    for label, settings in CHAINS.items():
        small, large = seconds(*(stepping(make_problem("chain", N, **settings), 1000) for N in (10**3, 10**9)))
        rows.append(Row(label, 1e-3 / large, "M/s", "at N = 1e3", 1e-3 / small))
    return Table("Steps of the chain at N = 1e9, of one replica", ONE_THREAD, tuple(rows))


def projected_table() -> Table:
    rows = []
    for N in (512, 4096, 65536, 10**6):
        for noise, settings in (("m = 1", {}), ("m = 16, correlated noise", NOISY)):
            problems = [make_problem("projected", N, prior=prior, **settings) for prior in PRIORS.values()]
            steps = max(1, 100_000 // N)
            alone, *times = seconds(generator(N, steps), *(stepping(problem, steps) for problem in problems))
            for prior, taken in zip(PRIORS, times, strict=True):
                reached, limit = (1e-6 * steps * N / t for t in (taken, alone))
                rows.append(Row(f"N = {N}, {noise}, prior {prior}", reached, "M/s", "normals alone", limit))
    return Table("Coordinates of steps with one vector", ONE_THREAD, tuple(rows))


def elsewhere_table() -> Table:
    ours, rows = {"projected": 200, "chain": 200, "plain": 4}, []
    for N in (512, 4096):
        problems = {method: make_problem(method, N, **NOISY) for method in ours}
        others = {library: Elsewhere(library, problems["plain"]) for library in INSTALLED}
        works = [stepping(problems[method], steps) for method, steps in ours.items()]
        works += [lambda sgd=sgd: sgd.advance(4) for sgd in others.values()]  # type: ignore[misc]
        names = [*(f"{method}, ours" for method in ours), *(f"plain, {library}" for library in others)]
        steps = [*ours.values(), *[4] * len(others)]
        each = [1e6 * taken / count for taken, count in zip(seconds(*works), steps, strict=True)]
        rows += [Row(f"{name}, N = {N}", t, "us", "projected", each[0]) for name, t in zip(names, each, strict=True)]
    return Table("One step, m = 16, correlated noise", ONE_THREAD, tuple(rows))


def same_law() -> Table:
    """That all of them do the same: the mean overlap after a short run from the same start, N = 64 and t = 2.

    Raises
    ------
    RuntimeError
        If one is too far from the chain: the times would compare different things.
    """
    settings: dict[str, Any] = {"learning_rate": 0.05, "stop": 2.0} | NOISY

    def ours(method: str, replicas: int) -> np.ndarray:
        return simulate_sgd(make_problem(method, 64, replicas=replicas, **settings)).q.values[:, -1, 0]

    def theirs(library: str, replicas: int) -> np.ndarray:
        runs = [Elsewhere(library, make_problem("plain", 64, **settings), i) for i in range(replicas)]
        for run in runs:
            run.advance(128)
        return np.array([run.overlap[0] for run in runs])

    results = {"chain, ours": ours("chain", 20_000)}
    results |= {f"{method}, ours": ours(method, 2000) for method in ("projected", "plain")}
    results |= {f"plain, {library}": theirs(library, 400) for library in INSTALLED}
    means = {name: q.mean() for name, q in results.items()}
    errors = {name: q.std(ddof=1) / np.sqrt(len(q)) for name, q in results.items()}
    far = {name: (means[name] - means["chain, ours"]) / np.hypot(errors[name], errors["chain, ours"]) for name in means}
    if max(map(abs, far.values())) > MOST_SIGMAS:
        raise RuntimeError(f"they do not agree: standard errors from the chain {far}")
    rows = tuple(
        Row(
            name,
            means[name],
            "",
            required=f"within {MOST_SIGMAS:g} standard errors",
            note=f"{far[name]:+.1f} of them away",
        )
        for name in results
    )
    return Table("The same law: mean overlap after 128 steps", "N = 64, from q = 0.5; away from the chain", rows)


def cores_table() -> Table:
    rows = []
    ensembles: Sequence[tuple[str, int, int, float]] = (
        ("chain", 10_000, 64, 2.0),
        ("projected", 4096, 16, 1.0),
        ("plain", 512, 16, 1.0),
    )
    for method, N, replicas, stop in ensembles:
        problem = make_problem(method, N, replicas=replicas, stop=stop, **NOISY)
        simulate_sgd(problem)
        wall: dict[int, list[float]] = {1: [], CORES: []}
        work: dict[int, list[float]] = {1: [], CORES: []}
        for workers in (1, CORES) * 5:
            started, used = time.perf_counter(), time.process_time()
            simulate_sgd(problem, workers=workers)
            wall[workers].append(time.perf_counter() - started)
            work[workers].append(time.process_time() - used)
        one, shared = (median(wall[workers]) for workers in (1, CORES))
        more = median(work[CORES]) / median(work[1])
        note = f"{one:.2f} s and {shared:.2f} s; {more:.2f} times the processor time"
        what = f"{method}, N = {N}, {replicas} replicas"
        rows.append(Row(what, one / shared, "times as fast", f"{CORES} workers", CORES, note=note))
    return Table(f"An ensemble on {CORES} workers", f"m = 16, correlated noise; {WALL}", tuple(rows))


def tables() -> Iterator[Table]:
    if find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
    with threadpool_limits(1):
        for table in (chain_table, projected_table, elsewhere_table, same_law, cores_table):
            yield table()
