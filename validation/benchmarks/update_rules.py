"""Update rules: order parameters from the rule alone, SGD with and without vectors, and the first results.

Plain SGD is held against loops in NumPy and PyTorch that draw one sample a step, as a user would write it, and the
order parameters of one erf unit against those of StatPhys-ML 0.1.0 (Y. Ichikawa, github.com/yuma-ichikawa/statphys-ml,
BSD), which solves the equations of Saad and Solla in closed form with SciPy, where these can be imported.
"""

from __future__ import annotations

import importlib
import math
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from time import process_time
from typing import Any

import numpy as np
from scipy.special import erf

import meanfield
from meanfield.ensembles.streams import VECTOR, fill_normals, fill_uniforms, stream_key
from validation.benchmarks.first_minutes import processor_and_wall_time
from validation.benchmarks.machine import limit_rates
from validation.benchmarks.sgd_elsewhere import INSTALLED, LIBRARIES
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import ONE_THREAD, Work, limited, seconds

HERE = "validation.benchmarks.update_rules"

MOST_SECONDS = 200.0
"""Processor time in seconds after which a row is given up."""

BYTES = 56
"""Bytes that a step of one student moves per coordinate: one pass reads u and w and writes x, the other reads these
and writes w."""


def slope(x: Any) -> Any:
    return math.sqrt(2 / math.pi) * np.exp(-x * x / 2)


def committee(y: Any, s: Any, rate: float) -> Any:
    """Step of the soft committee of Saad and Solla."""
    return rate * slope(s) * (np.sum(erf(y / np.sqrt(2))) - np.sum(erf(s / np.sqrt(2))))


def rectified(y: Any, s: Any, rate: float) -> Any:
    """The same with max(x, 0) in place of erf, whose slope jumps."""
    return rate * (s > 0) * (np.sum(np.maximum(y, 0.0)) - np.sum(np.maximum(s, 0.0)))


def majority(y: Any, s: Any, rate: float) -> Any:
    """Perceptron rule for labels of several teachers together."""
    label = np.sign(np.sum(y))
    return rate * label * (s * label < 0)


kinked_committee = meanfield.Rule(rectified, kinks=("y", "s"))
majority_of_three = meanfield.Rule(majority, kinks=("y[0] + y[1] + y[2]", "s"))


def perceptron(**keys: Any) -> Any:
    """Problem of the perceptron rule."""
    return _problem("perceptron", [{"initial_overlap": 0.2}], [{}], 0.7, **keys)


def committees(students: int, teachers: int, rule: str = "committee", rate: float = 0.9, **keys: Any) -> Any:
    """Problem of students of teachers, from random overlaps."""
    R = 0.1 * np.random.default_rng(0).standard_normal((students, teachers))
    features = [{"initial_overlap": column.tolist()} for column in R.T]
    return _problem(f"{HERE}:{rule}", features, [{"initial_norm": 0.5}] * students, rate, **keys)


def _problem(rule: str, features: list[Any], students: list[Any], rate: float, **keys: Any) -> Any:
    model = {"rule": rule, "rule_parameters": {"rate": rate}}
    time = {"stop": keys.pop("stop", 20.0), "outputs": 5}
    return meanfield.Problem(
        family="update_rule", model=model, features=features, students=students, time=time, particles=keys
    )


def loop(library: str, N: int, steps: int) -> Any:
    """Perceptron rule in NumPy or PyTorch, one sample a step; the weights."""
    lib = importlib.import_module(LIBRARIES[library])
    if library == "NumPy":
        normals: Any = np.random.default_rng(0).standard_normal
    else:
        lib.manual_seed(0)
        normals = partial(lib.randn, dtype=lib.float64)
    u, w = normals(N), normals(N)
    root = math.sqrt(N)
    for _ in range(steps):
        x = normals(N)
        y, s = u @ x / root, w @ x / root
        if y * s < 0:
            w += 0.7 * lib.sign(y) / root * x
    return w


def random_numbers(N: int) -> tuple[Work, ...]:
    """What draws the normal numbers of an input, ours and NumPy's, and the random bits of as many."""
    out, rng = np.empty(N), np.random.default_rng(0)
    ours = (partial(fill, stream_key(0), 0, VECTOR, 0, out) for fill in (fill_normals, fill_uniforms))
    return next(ours), partial(rng.standard_normal, out=out), next(ours)


def one_unit_elsewhere() -> Any:
    """The committee of one unit by StatPhys-ML, as its README calls it, at output times."""
    online = importlib.import_module("statphys.theory.online")
    equations = online.GaussianCommitteeMseEquations(k_student=1, k_teacher=1, lr=0.9)
    problem = committees(1, 1)
    start = problem.initial_R.item(), problem.initial_Q.item()
    return online.ODESolver(equations, ["r", "q"]).solve((0.0, 20.0), start, problem.time.outputs_at).order_params


def limits() -> Iterator[Row]:
    """Order parameters with their errors and with bands, to 1e-6 at t = 20."""
    yield Row("erf, 1 of 1", _used(committees(1, 1)), "s", "StatPhys-ML, no errors, no bands", *_elsewhere())
    for what, required, problem in (
        ("perceptron, 1 of 1", 1.0, perceptron()),
        ("perceptron, 1 of the majority of 3", 1.0, committees(1, 3, "majority_of_three", 0.5)),
        ("ReLU, 1 of 1", 1.0, committees(1, 1, "kinked_committee", 0.5)),
        ("ReLU, 1 of 2", 1.0, committees(1, 2, "kinked_committee", 0.5)),
        ("ReLU, 2 of 1", 1.0, committees(2, 1, "kinked_committee", 0.5)),
        ("ReLU, 2 of 2", 1.0, committees(2, 2, "kinked_committee", 0.5)),
        ("erf, 2 of 2", 0.3, committees(2, 2)),
        ("erf, 8 of 8, without bands", 60.0, committees(8, 8)),
    ):
        used = _used(problem)
        note = f"more than {MOST_SECONDS:g} s" if math.isnan(used) else ""
        yield Row(what, used, "s", required=f"at most {required:g} s", note=note)


def _used(problem: Any) -> float:
    """Processor time of a solution; the least of three more, unless the first takes long."""
    return limited(partial(_least, partial(meanfield.solve_order_parameters, problem)), MOST_SECONDS)


def _least(work: Work) -> float:
    """Processor time of a call; the least of three more, unless that takes long."""
    first = _processor_time(work)
    return min(_processor_time(work) for _ in range(3)) if first < 0.1 * MOST_SECONDS else first


def _processor_time(work: Work) -> float:
    started = process_time()
    work()
    return process_time() - started


def _elsewhere() -> tuple[float, str, str]:
    """Processor time of StatPhys-ML, nothing that is required, and how far its R is from ours."""
    if find_spec("statphys") is None:
        return math.nan, "", "StatPhys-ML is not installed"
    used = limited(partial(_least, one_unit_elsewhere), MOST_SECONDS)
    if math.isnan(used):
        return used, "", f"StatPhys-ML takes more than {MOST_SECONDS:g} s"
    R = meanfield.solve_order_parameters(committees(1, 1))["R"].values.ravel()
    return used, "", f"R differs by {np.abs(R - one_unit_elsewhere()['r']).max():.0e}"


def chains() -> Iterator[Row]:
    """A step of SGD by overlaps alone, at a small N and at a large one."""
    for what, required, make in (("1 of 1", 1000, perceptron), ("2 of 2", 5000, partial(committees, 2, 2))):
        few, many = (
            _of_a_step(make, 16 * 4000, stop=4000 / N, dimension=N, replicas=16, method="chain") for N in (10**3, 10**8)
        )
        yield Row(f"{what}, N = 1e8", 1e9 * many, "ns", "at N = 1e3", 1e9 * few, f"at most {required:,} ns")


def vectors() -> Iterator[Row]:
    """A step of SGD with its vectors, next to loops elsewhere and to what memory can do."""
    for N, stop in ((1000, 20.0), (1_000_000, 2e-5)):
        count = round(N * stop)
        drawn, by_numpy, bits = seconds(*random_numbers(N), rounds=3)
        yield Row(f"random bits of {N:,} normal numbers alone", 1e6 * bits, "us")
        yield Row(f"{N:,} normal numbers alone", 1e6 * drawn, "us", "NumPy's", 1e6 * by_numpy)
        used = _of_a_step(perceptron, count, stop=stop, dimension=N, replicas=1, method="plain")
        for library in LIBRARIES:
            elsewhere, note, some = math.nan, f"{library} is not installed", min(count, 2000)
            if library in INSTALLED:
                (elsewhere,), note = seconds(partial(loop, library, N, some), rounds=3), ""
            required = "ratio at most 0.05" if library == "NumPy" else ""
            against = f"a loop in {library}"
            yield Row(f"a step at N = {N:,}", 1e6 * used, "us", against, 1e6 * elsewhere / some, required, note)
    moved, (triad, _) = 1e-6 * BYTES * N / used, limit_rates("triad beyond the caches, 300 MB")
    yield Row(f"bytes moved at N = {N:,}", moved, "MB/s", "triad", triad, "ratio at least 0.33")


def _of_a_step(make: Any, count: int, stop: float, **settings: Any) -> float:
    """Processor time of a step, from runs of one length and of two."""
    works = [partial(meanfield.simulate_sgd, make(stop=k * stop, **settings), workers=1) for k in (1, 2)]
    once, twice = seconds(*works, clock=process_time, rounds=3)
    return (twice - once) / count


def first() -> Iterator[Row]:
    """Results of a process that begins with an empty cache of compiled code."""
    for name in ("perceptron()", "committees(2, 2)"):
        code = f"import meanfield; from {HERE} import *; meanfield.solve_order_parameters({name})"
        with tempfile.TemporaryDirectory() as folder:
            used, wall = processor_and_wall_time([sys.executable, "-c", code], folder)
            yield Row(f"the first of {name}", used, "s", required="at most 15 s", note=f"{wall:.0f} s on the clock")
            used, wall = processor_and_wall_time([sys.executable, "-c", code], folder)
            yield Row("the same, once compiled", used, "s", note=f"{wall:.0f} s on the clock")


def tables() -> Iterator[Table]:
    how = f"to 1e-6; processor time; the least of three, if a call takes less than {0.1 * MOST_SECONDS:g} s"
    yield Table("Order parameters with bands, t = 20", how, tuple(limits()))
    yield Table("SGD of update rules by overlaps alone: a step", ONE_THREAD, tuple(chains()))
    yield Table("SGD of update rules with vectors", f"{ONE_THREAD}; {BYTES} bytes a coordinate", tuple(vectors()))
    yield Table("First results of update rules", "processor time of all threads", tuple(first()))
