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
from meanfield.ensembles.streams import VECTOR, fill_normals, stream_key
from validation.benchmarks.first_minutes import processor_and_wall_time
from validation.benchmarks.sgd_elsewhere import INSTALLED, LIBRARIES
from validation.benchmarks.table import Row, Table, run_benchmark
from validation.benchmarks.timing import ONE_THREAD, Work, seconds

HERE = "validation.benchmarks.update_rules"


def slope(x: Any) -> Any:
    return math.sqrt(2 / math.pi) * np.exp(-x * x / 2)


def committee(y: Any, s: Any, rate: float) -> Any:
    """Step of the soft committee of Saad and Solla."""
    return rate * slope(s) * (np.sum(erf(y / np.sqrt(2))) - np.sum(erf(s / np.sqrt(2))))


def perceptron(**keys: Any) -> Any:
    """Problem of the perceptron rule."""
    return _problem("perceptron", [{"initial_overlap": 0.2}], [{}], 0.7, **keys)


def committees(units: int, **keys: Any) -> Any:
    """Problem of as many students as teachers, from random overlaps."""
    R = 0.1 * np.random.default_rng(0).standard_normal((units, units))
    features = [{"initial_overlap": column.tolist()} for column in R.T]
    return _problem(f"{HERE}:committee", features, [{"initial_norm": 0.5}] * units, 0.9, **keys)


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


def normal_numbers(N: int) -> tuple[Work, Work]:
    """What draws the normal numbers of an input, ours and NumPy's."""
    out, rng = np.empty(N), np.random.default_rng(0)
    return partial(fill_normals, stream_key(0), 0, VECTOR, 0, out), partial(rng.standard_normal, out=out)


def one_unit_elsewhere() -> Any:
    """The committee of one unit by StatPhys-ML, as its README calls it, at output times."""
    online = importlib.import_module("statphys.theory.online")
    equations = online.GaussianCommitteeMseEquations(k_student=1, k_teacher=1, lr=0.9)
    problem = committees(1)
    start = problem.initial_R.item(), problem.initial_Q.item()
    return online.ODESolver(equations, ["r", "q"]).solve((0.0, 20.0), start, problem.time.outputs_at).order_params


def limits() -> Iterator[Row]:
    """Order parameters with their errors and with bands, to 1e-6 at t = 20."""
    one, known = committees(1), find_spec("statphys") is not None
    (used,) = seconds(partial(meanfield.solve_order_parameters, one), clock=process_time, rounds=3)
    (other,) = seconds(one_unit_elsewhere, clock=process_time, rounds=3) if known else (math.nan,)
    note = off_elsewhere(one) if known else "StatPhys-ML is not installed"
    yield Row("committee, 1 of 1", used, "s", "StatPhys-ML, no errors, no bands", other, note=note)
    for what, problem in (("perceptron", perceptron()), ("committee, 2 of 2", committees(2))):
        (used,) = seconds(partial(meanfield.solve_order_parameters, problem), clock=process_time, rounds=3)
        yield Row(what, used, "s")
    started = process_time()
    meanfield.solve_order_parameters(committees(8))
    yield Row("committee, 8 of 8, without bands", process_time() - started, "s", required="at most 60 s")


def off_elsewhere(problem: Any) -> str:
    """How far R of one unit is from that of StatPhys-ML."""
    R = meanfield.solve_order_parameters(problem)["R"].values.ravel()
    return f"R differs by {np.abs(R - one_unit_elsewhere()['r']).max():.0e}"


def steps() -> Iterator[Row]:
    """A step of SGD, by vectors and by overlaps alone."""
    for what, make in (("1 of 1", perceptron), ("2 of 2", partial(committees, 2))):
        settings = {"dimension": 1000, "replicas": 16, "method": "chain"}
        used = _of_a_step(make, 16 * 4000, stop=4.0, **settings)
        yield Row(f"overlaps alone, {what}", 1e9 * used, "ns a step")
    for N, stop in ((1000, 20.0), (1_000_000, 2e-5)):
        count = round(N * stop)
        drawn, by_numpy = seconds(*normal_numbers(N), rounds=3)
        yield Row(f"{N:,} normal numbers alone", 1e6 * drawn, "us", "NumPy's", 1e6 * by_numpy)
        used = _of_a_step(perceptron, count, stop=stop, dimension=N, replicas=1, method="plain")
        for library in LIBRARIES:
            elsewhere, note, some = math.nan, f"{library} is not installed", min(count, 2000)
            if library in INSTALLED:
                (elsewhere,), note = seconds(partial(loop, library, N, some), rounds=3), ""
            what = f"vectors, 1 of 1, N = {N:,}"
            yield Row(what, 1e6 * used, "us a step", f"a loop in {library}", 1e6 * elsewhere / some, note=note)


def _of_a_step(make: Any, count: int, stop: float, **settings: Any) -> float:
    """Processor time of a step, from runs of one length and of two."""
    works = [partial(meanfield.simulate_sgd, make(stop=k * stop, **settings), workers=1) for k in (1, 2)]
    once, twice = seconds(*works, clock=process_time, rounds=3)
    return (twice - once) / count


def first() -> Iterator[Row]:
    """Results of a process that begins with an empty cache of compiled code."""
    for name in ("perceptron()", "committees(2)"):
        code = f"import meanfield; from {HERE} import *; meanfield.solve_order_parameters({name})"
        with tempfile.TemporaryDirectory() as folder:
            used, wall = processor_and_wall_time([sys.executable, "-c", code], folder)
            yield Row(f"the first of {name}", used, "s", note=f"{wall:.0f} s on the clock")
            used, wall = processor_and_wall_time([sys.executable, "-c", code], folder)
            yield Row("the same, once compiled", used, "s", note=f"{wall:.0f} s on the clock")


def tables() -> Iterator[Table]:
    yield Table("Order parameters with bands, t = 20", "to 1e-6; processor time; medians", tuple(limits()))
    yield Table("SGD of update rules", ONE_THREAD, tuple(steps()))
    yield Table("First results of update rules", "processor time of all threads", tuple(first()))


if __name__ == "__main__":
    run_benchmark(tables, __file__, __doc__)
