"""How fast SGD at finite N is: the normals, the chain, one vector per step, the same SGD elsewhere, and two cores.

Everything but the last table runs in one thread and is timed by the processor time of that thread, so that other
programs disturb less. What is compared is run in turns; times are medians. The last table is in wall time, and its
speedups mean something on an idle machine only; "work" is the processor time of all threads. All steps are those of
quadratic activations and three-point features.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from statistics import median
from timeit import timeit
from typing import Any

import numba
import numpy as np
from normals import contenders
from sgd_elsewhere import INSTALLED, LIBRARIES, Elsewhere
from threadpoolctl import threadpool_limits

from meanfield import Problem, simulate_sgd
from meanfield.closures import Closure
from meanfield.particles.batch import training_of
from meanfield.particles.steppers import STEPPERS
from meanfield.particles.streams import VECTOR, fill_normals, stream_key

THREE_POINT = {"law": "three_point", "second_moment": 1.1, "fourth_moment": 6.05}
CORRELATED = {"variance": [0.3, 0.3], "correlation": 0.5}
NOISY = {"batch_size": 16, "noise": CORRELATED}
CHAINS: dict[str, dict[str, Any]] = {
    "m = 1": {},
    "m = 10": {"batch_size": 10},
    "m = 16, correlated noise": NOISY,
    "m = 1, two features": {"features": 2},
    "m = 1, population centring": {"centering": "population"},
    "m = 1, population centring, q = 0.99": {"centering": "population", "overlap": 0.99},
    "m = 10, batch centring": {"batch_size": 10, "centering": "batch"},
}
PRIORS: dict[str, dict[str, Any] | None] = {
    "none": None,
    "l1": {"name": "l1", "strength": 1.0},
    "quartic": {"name": "quartic", "strength": 0.1},
}
ROUNDS = 9
STILL = 1e-6
"""A learning rate at which q stays where it is: the cost of the population mean depends on q."""
L2_RESIDENT = 1 << 15
"""Numbers in 256 KiB."""
FAR = 5.0
"""Standard errors by which means that should be the same do not differ in practice."""


def make_problem(
    method: str,
    dimension: int,
    *,
    batch_size: int = 1,
    noise: dict[str, Any] | None = None,
    prior: dict[str, Any] | None = None,
    features: int = 1,
    overlap: float = 0.5,
    centering: str = "none",
    learning_rate: float = STILL,
    replicas: int = 1,
    stop: float = 1.0,
) -> Problem:
    model = {"activation": "quadratic", "centering": centering}
    overlaps = [overlap / (1 + k) for k in range(features)]
    description: dict[str, Any] = {
        "model": model | {"learning_rate": learning_rate, "batch_size": batch_size},
        "features": [{"hidden": THREE_POINT, "initial_overlap": overlap} for overlap in overlaps],
        "time": {"stop": stop, "outputs": 2},
        "particles": {"method": method, "dimension": dimension, "replicas": replicas},
    }
    optional = {"augmentation": noise, "prior": prior}
    return Problem.model_validate(description | {key: value for key, value in optional.items() if value})


def seconds(*works: Callable[[], object], about: float = 0.02) -> list[float]:
    """Median processor time of one call of each, after calls that are not timed; they take turns of `about` seconds."""
    counts = []
    for work in works:
        work()
        once = min(timeit(work, timer=time.thread_time, number=1) for _ in range(2))
        counts.append(max(1, round(about / max(once, 1e-9))))
    rounds = [
        [timeit(work, timer=time.thread_time, number=count) / count for work, count in zip(works, counts, strict=True)]
        for _ in range(ROUNDS)
    ]
    return [median(times) for times in zip(*rounds, strict=True)]


def stepping(problem: Problem, steps: int) -> Callable[[], None]:
    """Takes the next steps of one replica by the method of the problem."""
    stepper = STEPPERS[problem.particles.method](problem, training_of(problem), Closure(problem).expectation, range(1))
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


def head(title: str, label: str, *columns: str) -> None:
    print(f"\n{title}")
    line(label, *columns)


def line(label: str, *values: str) -> None:
    print(f"{label:<52}" + "".join(f"{value:>15}" for value in values), flush=True)


def normals_table() -> None:
    head("normals into a vector in the second-level cache", "generator", "ns each", "M/s", "to ours", "<x^4> = 3")
    out = np.empty(L2_RESIDENT)
    fills = contenders(out)
    installed = {name: fill for name, fill in fills.items() if fill is not None}
    times = dict(zip(installed, seconds(*(lambda f=f: f(out) for f in installed.values())), strict=True))
    ours = next(iter(times.values()))
    for name in fills:
        if name not in installed:
            line(name, "not installed")
            continue
        installed[name](out)
        each, fourth = times[name] / len(out), np.mean(out**4)
        line(name, f"{1e9 * each:.2f}", f"{1e-6 / each:.0f}", f"{times[name] / ours:.1f} x", f"{fourth:.2f}")


def chain_table() -> None:
    head("chain, steps of one replica", "problem", "M/s, N = 1e3", "M/s, N = 1e9", "time ratio")
    for label, settings in CHAINS.items():
        small, large = seconds(*(stepping(make_problem("chain", N, **settings), 1000) for N in (10**3, 10**9)))
        line(label, f"{1e-3 / small:.2f}", f"{1e-3 / large:.2f}", f"{large / small:.2f}")


def projected_table() -> None:
    head("projected", "problem", "ns/coordinate", "normals alone", "their part")
    for N in (512, 4096, 65536, 10**6):
        for noise, settings in (("m = 1", {}), ("m = 16, correlated noise", NOISY)):
            problems = [make_problem("projected", N, prior=prior, **settings) for prior in PRIORS.values()]
            steps = max(1, 100_000 // N)
            alone, *times = seconds(generator(N, steps), *(stepping(problem, steps) for problem in problems))
            for prior, took in zip(PRIORS, times, strict=True):
                each, normals = 1e9 * took / steps / N, 1e9 * alone / steps / N
                line(f"N = {N}, {noise}, prior {prior}", f"{each:.2f}", f"{normals:.2f}", f"{normals / each:.0%}")


def elsewhere_table() -> None:
    columns = ("us, N = 512", "to projected", "us, N = 4096", "to projected")
    head("one step, m = 16, correlated noise", "method", *columns)
    ours = {"projected": 200, "chain": 200, "plain": 4}
    timings = []
    for N in (512, 4096):
        steps = ours | dict.fromkeys(INSTALLED, 4)
        problems = {method: make_problem(method, N, **NOISY) for method in ours}
        works = [stepping(problems[method], steps[method]) for method in ours]
        others = [Elsewhere(library, problems["plain"]) for library in INSTALLED]
        works += [lambda sgd=sgd: sgd.advance(4) for sgd in others]  # type: ignore[misc]
        timings.append({name: took / steps[name] for name, took in zip(steps, seconds(*works), strict=True)})
    for name in (*ours, *LIBRARIES):
        label = f"{name}, ours" if name in ours else f"plain, {name}"
        if name not in timings[0]:
            line(label, "not installed")
            continue
        cells = [(f"{1e6 * times[name]:.2f}", f"{times[name] / times['projected']:.3g} x") for times in timings]
        line(label, *(text for cell in cells for text in cell))


def same_law() -> None:
    """That all of them do the same: the mean overlap after a short run from the same start, N = 64 and t = 2.

    Raises
    ------
    SystemExit
        If one is too far from the chain.
    """
    settings: dict[str, Any] = {"learning_rate": 0.05, "stop": 2.0} | NOISY

    def ours(method: str, replicas: int) -> np.ndarray:
        return simulate_sgd(make_problem(method, 64, replicas=replicas, **settings)).q.values[:, -1, 0]

    def theirs(library: str, replicas: int) -> np.ndarray:
        runs = [Elsewhere(library, make_problem("plain", 64, **settings), i) for i in range(replicas)]
        for run in runs:
            run.advance(128)
        return np.array([run.overlap[0] for run in runs])

    head("the same law: q after 128 steps at N = 64 from q = 0.5", "method", "mean", "standard error", "from the chain")
    results = {"chain, ours": ours("chain", 20_000)}
    results |= {f"{method}, ours": ours(method, 2000) for method in ("projected", "plain")}
    results |= {f"plain, {library}": theirs(library, 400) for library in INSTALLED}
    means = {name: q.mean() for name, q in results.items()}
    errors = {name: q.std(ddof=1) / np.sqrt(len(q)) for name, q in results.items()}
    far = {name: (means[name] - means["chain, ours"]) / np.hypot(errors[name], errors["chain, ours"]) for name in means}
    for name in results:
        line(name, f"{means[name]:.4f}", f"{errors[name]:.4f}", f"{far[name]:+.1f} errors")
    if max(map(abs, far.values())) > FAR:
        raise SystemExit("they do not agree: the times compare different things")


def cores_table() -> None:
    busy = f"{os.getloadavg()[0]:.1f} programs ran on {os.cpu_count()} cores before"
    columns = ("s, 1 worker", "s, 2 workers", "speedup", "work of 2 / 1")
    head(f"an ensemble, m = 16, correlated noise, wall time; {busy}", "method", *columns)
    ensembles: Sequence[tuple[str, int, int, float]] = (
        ("chain", 10_000, 64, 2.0),
        ("projected", 4096, 16, 1.0),
        ("plain", 512, 16, 1.0),
    )
    for method, N, replicas, stop in ensembles:
        problem = make_problem(method, N, replicas=replicas, stop=stop, **NOISY)
        simulate_sgd(problem)
        wall: list[list[float]] = [[], []]
        work: list[list[float]] = [[], []]
        for workers in (1, 2) * 5:
            started, used = time.perf_counter(), time.process_time()
            simulate_sgd(problem, workers=workers)
            wall[workers - 1].append(time.perf_counter() - started)
            work[workers - 1].append(time.process_time() - used)
        one, two = map(median, wall)
        more = median(work[1]) / median(work[0])
        line(f"{method}, N = {N}, {replicas} replicas", f"{one:.2f}", f"{two:.2f}", f"{one / two:.2f}", f"{more:.2f}")


TABLES: dict[str, Sequence[Callable[[], None]]] = {
    "normals": [normals_table],
    "chain": [chain_table],
    "projected": [projected_table],
    "elsewhere": [elsewhere_table, same_law],
    "cores": [cores_table],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES, help="these tables instead of all")
    wanted = parser.parse_args().only
    if find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
    with threadpool_limits(1):
        for table in wanted:
            for part in TABLES[table]:
                part()


if __name__ == "__main__":
    main()
