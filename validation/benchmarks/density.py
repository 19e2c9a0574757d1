"""How fast the density solver is, next to what the processor could do and to FiPy.

The kernel needs at least one division per cell and step, so the rate of divisions bounds it. Times are medians.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from timeit import repeat

import numba
import numpy as np

from meanfield import load_problem, solve_density
from meanfield.closures import Closure
from meanfield.density.evolution import Evolution
from meanfield.density.fipy_stepper import FiPyStepper
from meanfield.density.kernel import LANES, midpoint_step
from meanfield.density.plan import make_plan
from meanfield.density.steppers import NumbaStepper

EXAMPLE = Path(__file__).parents[2] / "data/problems/sparse_prior.toml"
PROBLEM = load_problem(EXAMPLE)
ORDER_TWO = PROBLEM.model_copy(update={"density": PROBLEM.density.model_copy(update={"order": 2})})


@numba.njit(error_model="numpy")
def divide(x: np.ndarray, result: np.ndarray, times: int) -> None:
    """Divisions that do not wait for each other, in the first-level cache."""
    for _ in range(times):
        for i in range(x.size):
            result[i] = 1.0 / (x[i] + result[i])


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Median time of `work`, after one call that is not timed."""
    work()
    return median(repeat(work, number=1, repeat=repeats))


def line(label: str, value: float, unit: str, remark: str = "") -> None:
    print(f"{label:<58}{value:>10.4g} {unit:<14}{remark}")


def kernel_rate(nodes: int, cells: int) -> float:
    rng, blocks = np.random.default_rng(0), nodes // LANES
    P, after, scratch = rng.random(nodes * cells), np.empty(nodes * cells), np.empty(4 * (cells + 1) * LANES)
    a, b = rng.normal(0, 0.1, cells - 1), rng.normal(0, 0.1, nodes)
    took = seconds(lambda: midpoint_step(P, after, scratch, a, b, 3.0, cells, blocks), repeats=25)
    return nodes * cells / took / 1e6


def kernel_table() -> None:
    x, result = np.linspace(1, 2, 1000), np.ones(1000)
    divisions = 1e7 / seconds(lambda: divide(x, result, 10_000)) / 1e6
    line("vectorised divisions, one core", divisions, "M/s")
    for nodes, cells in ((LANES, 200), (3 * LANES, 800), (6 * LANES, 1000), (40 * LANES, 1000)):
        rate = kernel_rate(nodes, cells)
        line(f"kernel, {nodes} nodes x {cells} cells, one core", rate, "Mcell-steps/s", f"{rate / divisions:.0%} of it")


def fresh_process(**environment: str) -> float:
    """Seconds for `import meanfield` and one solution in a process that has just started."""
    code = (
        "import sys, time; started = time.perf_counter(); import meanfield;"
        "meanfield.solve_density(meanfield.load_problem(sys.argv[1])); print(time.perf_counter() - started)"
    )
    command = [sys.executable, "-c", code, str(EXAMPLE)]
    return float(subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, check=True).stdout)


def solver_table() -> None:
    order = PROBLEM.density.order
    line(f"solve_density, order {order} as in the file", seconds(lambda: solve_density(PROBLEM)), "s")
    line("solve_density, order 2", seconds(lambda: solve_density(ORDER_TWO)), "s")
    line("import and first call, compiled code on disk", fresh_process(), "s", "fresh process")
    with tempfile.TemporaryDirectory() as empty:
        line("import and first call, nothing on disk", fresh_process(NUMBA_CACHE_DIR=empty), "s", "fresh process")


def fipy_table(full: bool) -> None:
    closure = Closure(ORDER_TWO)
    plan = make_plan(ORDER_TWO, closure)
    grid = plan.grid(ORDER_TWO)
    steps = plan.steps_per_output * (ORDER_TWO.time.outputs - 1)

    def timed(stepper: type, count: int) -> float:
        evolution = Evolution(ORDER_TWO, closure, grid, stepper, plan.dt)
        return repeat(lambda: evolution.advance(count), number=1, repeat=1)[0]

    ours = median(timed(NumbaStepper, steps) for _ in range(5))
    some = steps if full else min(steps, 20)
    fipys = timed(FiPyStepper, some) * steps / some
    work = f"{steps} steps of {grid.shape[0]} nodes x {grid.shape[1]} cells"
    remark = "measured" if full else f"extrapolated from {some} steps to {steps}"
    line(f"ours, {work}", ours, "s")
    line(f"FiPy, {work}", fipys, "s", remark)
    line("FiPy / ours", fipys / ours, "times", remark)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="run FiPy to the end instead of extrapolating (minutes)")
    full = parser.parse_args().full
    kernel_table()
    solver_table()
    fipy_table(full)


if __name__ == "__main__":
    main()
