"""How fast the density solver is, next to what the machine can do and to other software. Times are medians.

The kernel needs one division per cell and step, so the rate of divisions bounds it; where they are fast, so do some 20
multiply-adds per cell. To see what the processor is given:

    (listing,) = numba.njit(midpoint_step.signatures[0], error_model="numpy", fastmath={"contract"})(
        midpoint_step.py_func).inspect_asm().values()

has two vdivpd per row of 16 cells in zmm registers (four in ymm without AVX-512), one in ymm per row of 4, and no
vdivsd; the loop over cells around them holds everything but P, the result and the factors in registers. Rows of 4, for
problems of few nodes, wait for one division after the other.

What runs in one thread is timed by the processor time of that thread, so that other programs disturb less. Speedups and
whole solutions are in wall time and mean something on an idle machine only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from functools import partial
from statistics import median

import numpy as np

from meanfield import load_problem, solve_density, with_value
from meanfield.extend import DensitySettings
from meanfield.families.contrastive.limit import limit_of
from meanfield.mckean_vlasov.density.evolution import Evolution
from meanfield.mckean_vlasov.density.plan import fixed_plan
from meanfield.mckean_vlasov.density.solver import BACKENDS
from meanfield.numerics.compiled.vectors import WIDE_LANES, lanes_for
from meanfield.numerics.finite_volumes.kernel import midpoint_step
from meanfield.process.cores import at_most
from validation import ROOT
from validation.benchmarks.density_elsewhere import FINE_CELLS, OURS, TARGET, contenders, error
from validation.benchmarks.machine import limit_rates
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import CORES, ONE_THREAD, WALL, Work, rate, seconds, take_turns

EXAMPLE = ROOT / "data/problems/sparse_prior.toml"
PROBLEM = load_problem(EXAMPLE)
ORDER_TWO = with_value(PROBLEM, "density", DensitySettings(order=2, cells=800, feature_nodes=31))
STEPS = 20
"""Number of steps between outputs that are timed together."""
SIZES = ((1, 200), (WIDE_LANES, 200), (3 * WIDE_LANES, 800), (6 * WIDE_LANES, 800), (6 * WIDE_LANES, 1600))
"""Numbers of nodes and cells."""
FIPY_STEPS = 20
"""Number of steps that FiPy takes; the rest of its time is extrapolated."""
STEEPNESS = {"|z| < 8": 4.0, "|z| > 600, almost no diffusion": 1e5}
"""Values of the drift across a cell, by their description in the table."""


def kernel_work(nodes: int, cells: int, steepness: float) -> Work:
    """One step of the kernel."""
    rng, lanes = np.random.default_rng(0), lanes_for(nodes)
    blocks = -(-nodes // lanes)
    padded = blocks * lanes
    P, after, scratch = rng.random(padded * cells), np.empty(padded * cells), np.empty(cells * (lanes + 1))
    a, b = steepness * np.linspace(-1, 1, cells - 1), steepness * np.sort(rng.uniform(-1, 1, padded))
    sizes = np.uint64(cells), np.uint64(blocks), np.uint64(lanes)
    return lambda: midpoint_step(P, after, scratch, a, b, 3.0, *sizes)


def kernel_table() -> Table:
    limits = dict(zip((1, CORES), limit_rates("divisions"), strict=True))
    rows = []
    for remark, steepness in STEEPNESS.items():
        for nodes, cells in SIZES:
            make = partial(kernel_work, nodes, cells, steepness)
            for cores, limit in limits.items():
                what = f"{nodes} nodes x {cells} cells, {remark}, {cores} core{'s' * (cores > 1)}"
                rate_here = rate(make, nodes * cells, cores) / 1e6
                rows.append(Row(what, rate_here, "Mcell-steps/s", "divisions, M/s", limit))
    how = "each core with a work of its own; processor time of each thread; medians"
    return Table("The kernel of a step against the machine's divisions", how, tuple(rows))


def marching_work(nodes: int, cells: int, threads: int) -> Work:
    """Steps of an evolution, closure and moments included."""
    problem = with_value(PROBLEM, "density", DensitySettings(cells=cells, feature_nodes=nodes, steps=STEPS))
    limit = limit_of(problem)
    plan = fixed_plan(limit, problem.density)
    with at_most(threads):
        evolution = Evolution(limit, plan.grid(limit), worst_norm=0.5)
    taken = 0

    def work() -> None:
        nonlocal taken
        evolution.advance(1e-3 * np.arange(taken + 1, taken + STEPS + 1))
        taken += STEPS

    return work


def step_tables() -> Iterator[Table]:
    """A whole step in one thread beside the kernel's part of it, then in as many threads as there are cores."""
    whole, speedups = [], []
    for nodes, cells in SIZES[1:]:  # no problem has a single node
        alone, shared = (marching_work(nodes, cells, threads) for threads in (1, CORES))
        kernel, steps = seconds(kernel_work(nodes, cells, 4.0), alone)
        what = f"{nodes} nodes x {cells} cells"
        whole.append(Row(what, 1e6 * steps / STEPS, "us", "the kernel alone", 1e6 * kernel))
        if nodes > WIDE_LANES:  # else there is one block
            before, after = take_turns([alone, shared], clock=time.perf_counter, rounds=25)
            gain = [x / y for x, y in zip(before, after, strict=True)]
            speedups.append(
                Row(what, median(gain), "times as fast", f"{CORES} threads", CORES, note=f"best {max(gain):.2f}")
            )
    yield Table("A whole step, closure and moments included", ONE_THREAD, tuple(whole))
    yield Table(f"A whole step in {CORES} threads", WALL, tuple(speedups))


def comparison_table(fine: bool) -> Table:
    """All contenders at one accuracy, each with the coarsest setting that reaches it, or on the same fine cells."""
    every = contenders()
    settings = [(FINE_CELLS, each.on_fine_cells) if fine else each.coarsest for each in every]
    works = [each.prepare(*setting) for each, setting in zip(every, settings, strict=True)]
    full = [each.prepare(*setting, nodes=WIDE_LANES) for each, setting in zip(OURS, settings, strict=False)]
    times = [1e6 * taken for taken in seconds(*works, *full, rounds=5)]
    best, in_full = min(times[: len(OURS)]), min(times[len(works) :]) / WIDE_LANES
    rows = []
    for each, (cells, steps), work, taken in zip(every, settings, works, times, strict=False):
        per_node = f"{taken / in_full:.0f} x ours per node of {WIDE_LANES}"
        note = f"{cells} cells, {steps} steps; error {error(work()):.1e}; {per_node}"
        rows.append(Row(each.name, taken, "us", "our best", best, f"error below {TARGET:g}", note))
    where = f"{FINE_CELLS} cells" if fine else "the fewest cells and steps that reach it"
    return Table(f"One accuracy in other software, with {where}", ONE_THREAD, tuple(rows))


def fresh_process(**environment: str) -> float:
    """Seconds for `import meanfield` and one solution in a process that has just started."""
    code = (
        "import sys, time; started = time.perf_counter(); import meanfield;"
        "meanfield.solve_density(meanfield.load_problem(sys.argv[1])); print(time.perf_counter() - started)"
    )
    command = [sys.executable, "-c", code, str(EXAMPLE)]
    return float(subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, check=True).stdout)


def solver_table() -> Table:
    default, fixed = (
        seconds(lambda given=given: solve_density(given), clock=time.perf_counter, rounds=5)[0]
        for given in (PROBLEM, ORDER_TWO)
    )
    rows = [
        Row(f"solve_density, tolerance {PROBLEM.density.tolerance:g}", default, "s"),
        Row("solve_density, order 2, 800 cells", fixed, "s"),
        Row("fresh process: import and first call, compiled code on disk", fresh_process(), "s"),
    ]
    with tempfile.TemporaryDirectory() as empty:
        rows.append(Row("fresh process, nothing on disk", fresh_process(NUMBA_CACHE_DIR=empty), "s", note="compiles"))
    return Table("Whole solutions of sparse_prior.toml", f"{CORES} cores; {WALL}", tuple(rows))


def fipy_table() -> Table:
    """Table of the steps by FiPy."""
    limit = limit_of(ORDER_TWO)
    plan = fixed_plan(limit, ORDER_TWO.density)
    grid = plan.grid(limit)
    step, every = plan.step_times.steps(0)[0], plan.step_times.total
    some = min(every, FIPY_STEPS)

    def timed(backend: str, count: int) -> float:
        evolution = Evolution(limit, grid, 0.05, BACKENDS[backend])
        started = time.perf_counter()
        evolution.advance(step * np.arange(1, count + 1))
        return (time.perf_counter() - started) / count

    ours, fipys = median(timed("numba", every) for _ in range(5)), timed("fipy", some)
    size = f"{grid.shape[0]} nodes x {grid.shape[1]} cells"
    rows = Row("ours", 1e3 * ours, "ms"), Row("FiPy", 1e3 * fipys, "ms", "ours", 1e3 * ours, note=f"{some} steps")
    return Table(f"One step of {size} by FiPy", f"{CORES} cores; {WALL}", rows)


def tables() -> Iterator[Table]:
    warnings.simplefilter("ignore")
    yield kernel_table()
    yield from step_tables()
    for fine in (False, True):
        yield comparison_table(fine)
    yield solver_table()
    yield fipy_table()
