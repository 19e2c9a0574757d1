"""How fast the density solver is, next to what the machine can do and to other software. Times are medians.

The kernel needs one division per cell and step, so the rate of divisions bounds it; where they are fast, so do some 20
multiply-adds per cell. To see what the processor is given:

    (listing,) = numba.njit(midpoint_step.signatures[0], error_model="numpy", fastmath={"contract"})(
        midpoint_step.py_func).inspect_asm().values()

has two vdivpd per row of 16 cells in zmm registers (four in ymm without AVX-512), one in ymm per row of 4, and no
vdivsd; the loop over cells around them holds everything but P, the result and the factors in registers. Rows of 4, for
problems of few nodes, wait for one division after the other.

Rates and what runs in one thread are by the processor time of that thread, so that other programs disturb less.
Speedups and whole solutions are in wall time and mean something on an idle machine only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from timeit import repeat

import numba
import numpy as np
from density_elsewhere import FINE, OURS, contenders, error
from machine import LIMITS, Work, rate, take_turns

from meanfield import load_problem, solve_density
from meanfield.closures import Closure
from meanfield.density.fipy_stepper import FiPyStepper
from meanfield.density.kernel import midpoint_step
from meanfield.density.lanes import WIDE, lanes_for
from meanfield.density.marching import MarchingEvolution, make_evolution
from meanfield.density.plan import fixed_plan
from meanfield.density.steppers import NumbaStepper
from meanfield.method_settings import DensitySettings

EXAMPLE = Path(__file__).parents[2] / "data/problems/sparse_prior.toml"
PROBLEM = load_problem(EXAMPLE)
ORDER_TWO = PROBLEM.model_copy(update={"density": DensitySettings(order=2, cells=800, feature_nodes=31)})
CORES = os.cpu_count() or 1
STEPS = 20
"""Steps between outputs that are timed together."""
SIZES = ((1, 200), (WIDE, 200), (3 * WIDE, 800), (6 * WIDE, 800), (6 * WIDE, 1600))
"""Nodes and cells."""
STEEPNESS = {"|z| < 8": 4.0, "|z| > 600, almost no diffusion": 1e5}
"""What is told of the drift across a cell, and its size."""


def line(label: str, value: float, unit: str, remark: str = "") -> None:
    print(f"{label:<58}{value:>10.4g} {unit:<14}{remark}")


def seconds(work: Work, repeats: int = 5) -> float:
    """Median time of `work`, after one call that is not timed."""
    work()
    return median(repeat(work, number=1, repeat=repeats))


def kernel_work(nodes: int, cells: int, steepness: float) -> Work:
    """One step of the kernel."""
    rng, lanes = np.random.default_rng(0), lanes_for(nodes)
    blocks = -(-nodes // lanes)
    padded = blocks * lanes
    P, after, scratch = rng.random(padded * cells), np.empty(padded * cells), np.empty(cells * (lanes + 1))
    a, b = steepness * np.linspace(-1, 1, cells - 1), steepness * np.sort(rng.uniform(-1, 1, padded))
    sizes = np.uint64(cells), np.uint64(blocks), np.uint64(lanes)
    return lambda: midpoint_step(P, after, scratch, a, b, 3.0, *sizes)


def machine_table() -> None:
    """The limits, and the kernel beside them; all cores at once, each with a work of its own."""
    print(f"{'':<58}{'one core':>10} {f'{CORES} cores':>10}")
    divisions = 0.0
    for name, (make, amount, unit) in LIMITS.items():
        rates = [rate(make, amount, cores) / 1e6 for cores in (1, CORES)]
        divisions = divisions or rates[0]
        print(f"{name:<58}{rates[0]:>10.0f} {rates[1]:>10.0f} {unit}")
    for remark, steepness in STEEPNESS.items():
        for nodes, cells in SIZES:
            make = partial(kernel_work, nodes, cells, steepness)
            rates = [rate(make, nodes * cells, cores) / 1e6 for cores in (1, CORES)]
            label = f"kernel, {nodes} nodes x {cells} cells, {remark}"
            share = f"{rates[0] / divisions:.0%} of the divisions"
            print(f"{label:<58}{rates[0]:>10.0f} {rates[1]:>10.0f} Mcell-steps/s, {share}")


def marching_work(nodes: int, cells: int, threads: int) -> Work:
    """Steps of an evolution, closure and moments included."""
    problem = PROBLEM.model_copy(update={"density": DensitySettings(cells=cells, feature_nodes=nodes, steps=STEPS)})
    closure = Closure(problem)
    plan = fixed_plan(problem, closure)
    allowed = numba.config.NUMBA_NUM_THREADS
    numba.config.NUMBA_NUM_THREADS = threads
    evolution = MarchingEvolution(problem, closure, plan.grid(problem), NumbaStepper, worst_norm=0.5)
    numba.config.NUMBA_NUM_THREADS = allowed
    taken = 0

    def work() -> None:
        nonlocal taken
        evolution.advance(1e-3 * np.arange(taken + 1, taken + STEPS + 1))
        taken += STEPS

    return work


def step_table() -> None:
    """A whole step in one thread, beside the kernel's part of it, and in as many as there are cores."""
    for nodes, cells in SIZES[1:]:  # no problem has a single node
        alone, shared = (marching_work(nodes, cells, threads) for threads in (1, CORES))
        kernel, step = take_turns([kernel_work(nodes, cells, 4.0), alone], clock=time.thread_time)
        before, after = take_turns([alone, shared], rounds=25)
        remark = f"kernel {1e6 * median(kernel):.1f}"
        if nodes > WIDE:
            gain = [x / y for x, y in zip(before, after, strict=True)]
            remark += f"; in {CORES} threads {median(gain):.2f} times as fast (best {max(gain):.2f})"
        line(f"whole step, {nodes} nodes x {cells} cells", 1e6 * median(step) / STEPS, "us", remark)


def comparison_table(fine: bool) -> None:
    """All contenders at one accuracy, each with the coarsest setting that reaches it, or on the same fine cells."""
    print(f"{'cells, steps':>47}{'error':>10}{'time, us':>12}{'/ ours':>10}{f'/ ours in {WIDE} nodes':>22}")
    if not find_spec("pde"):
        print("py-pde is not installed: pip install 'meanfield[bench]'")
    rows = contenders()
    settings = [(FINE, row.on_fine_cells) if fine else row.coarsest for row in rows]
    works = [row.prepare(*setting) for row, setting in zip(rows, settings, strict=True)]
    full = [row.prepare(*setting, nodes=WIDE) for row, setting in zip(OURS, settings, strict=False)]
    times = [1e6 * median(column) for column in take_turns([*works, *full], clock=time.thread_time, rounds=5)]
    ours, ours_in_full = min(times[: len(OURS)]), min(times[len(works) :]) / WIDE
    for row, (cells, steps), work, taken in zip(rows, settings, works, times, strict=False):
        setting = f"{cells:>6}, {steps:>5}"
        print(
            f"{row.name:<34}{setting}{error(work()):>10.1e}{taken:>12.1f}{taken / ours:>10.1f}"
            f"{taken / ours_in_full:>22.0f}"
        )


def fresh_process(**environment: str) -> float:
    """Seconds for `import meanfield` and one solution in a process that has just started."""
    code = (
        "import sys, time; started = time.perf_counter(); import meanfield;"
        "meanfield.solve_density(meanfield.load_problem(sys.argv[1])); print(time.perf_counter() - started)"
    )
    command = [sys.executable, "-c", code, str(EXAMPLE)]
    return float(subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, check=True).stdout)


def solver_table() -> None:
    line(f"solve_density, tolerance {PROBLEM.density.tolerance:g}", seconds(lambda: solve_density(PROBLEM)), "s")
    line("solve_density, order 2, 800 cells", seconds(lambda: solve_density(ORDER_TWO)), "s")
    line("import and first call, compiled code on disk", fresh_process(), "s", "fresh process")
    with tempfile.TemporaryDirectory() as empty:
        line("import and first call, nothing on disk", fresh_process(NUMBA_CACHE_DIR=empty), "s", "fresh process")


def fipy_table(full: bool) -> None:
    closure = Closure(ORDER_TWO)
    plan = fixed_plan(ORDER_TWO, closure)
    grid = plan.grid(ORDER_TWO)
    steps = plan.schedule.steps(0)
    every = plan.schedule.total

    def timed(stepper: type, count: int) -> float:
        evolution = make_evolution(ORDER_TWO, closure, grid, stepper, worst_norm=0.05)
        ends = steps[0] * np.arange(1, count + 1)
        return repeat(lambda: evolution.advance(ends), number=1, repeat=1)[0]

    ours = median(timed(NumbaStepper, every) for _ in range(5))
    some = every if full else min(every, 20)
    fipys = timed(FiPyStepper, some) * every / some
    work = f"{every} steps of {grid.shape[0]} nodes x {grid.shape[1]} cells"
    remark = "measured" if full else f"extrapolated from {some} steps to {every}"
    line(f"ours, {work}", ours, "s")
    line(f"FiPy, {work}", fipys, "s", remark)
    line("FiPy / ours", fipys / ours, "times", remark)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="run FiPy to the end instead of extrapolating (minutes)")
    full = parser.parse_args().full
    warnings.simplefilter("ignore")
    machine_table()
    step_table()
    for fine in (False, True):
        comparison_table(fine)
    solver_table()
    fipy_table(full)


if __name__ == "__main__":
    main()
