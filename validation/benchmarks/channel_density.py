"""How fast and how right the density of two channels is, next to FiPy in the plane and to exact Gaussian laws.

FiPy solves the same Fokker-Planck equation of one node on a fixed grid of as many cells, with an anisotropic diffusion
term, an exponential convection term and the midpoint rule by half a step of backward Euler; it takes a few steps, and
the rest of its time is extrapolated. Ours has cells that move with the weights, and averages over a batch besides.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache

import numpy as np

from meanfield import load_problem, solve_density, solve_order_parameters
from meanfield.families.contrastive.channels.in_time import ChannelsInTime
from meanfield.families.contrastive.channels.limit import joint_limit_of
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.finite_volumes.fipy_step import import_fipy
from meanfield.problems.problem_keys import with_values
from meanfield.several_vectors.evolution import Evolution
from validation import ROOT
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import ONE_THREAD

CELLS, NODES, STEPS, STOP = 200, 16, 100, 10.0
"""Cells of each axis, nodes, steps and the last time of the work that is timed."""

MOST_SECONDS = 10.0
"""Seconds that it may take on one core."""

FIPY_STEPS = 2
"""Number of steps of one node that FiPy takes."""

WIDTHS = (25, 50, 100, 200)
"""Cells of each axis in the table of orders."""

TOO_WIDE = 1.3
"""Width of the frame at the start, in units of that of the law, which then moves in it."""


@cache
def problem(prior: str) -> Problem:
    """One feature of two channels, under a prior."""
    changes = {
        "prior": {"name": prior, "strength": 2.0 if prior == "l1" else 1.0},
        "features": [
            {
                "hidden": {"law": "three_point", "second_moment": 1.5, "fourth_moment": 11.25},
                "coordinate": {"law": "rademacher"},
                "initial_overlap": [0.6, 0.4],
            }
        ],
        "model.learning_rate": 0.02,
        "model.batch_size": 3,
        "model.initial_channel_overlap": 0.5,
        "model.centering": "none",
        "decorrelation.strength": 0.02,
        "time.stop": 1.5,
        "time.outputs": 2,
    }
    return with_values(load_problem(ROOT / "data/problems/two_channels.toml"), changes)


def ours() -> tuple[float, float]:
    """Seconds of the whole work, and the largest |E[w_k^2] - 1| at its end."""
    u = np.linspace(-1.5, 1.5, NODES)[:, None]
    weight = np.full(NODES, 1.0 / NODES)
    u /= np.sqrt(weight @ u**2)
    evolution = Evolution(joint_limit_of(ChannelsInTime(problem("l1")), in_plane=True), u, weight, CELLS, 6.0)
    evolution.step(1e-6)  # compiles, if it must
    started = time.thread_time()
    for step in range(1, STEPS + 1):
        evolution.step(STOP * step / STEPS)
    return time.thread_time() - started, float(np.abs(np.diag(evolution.averages.M) - 1.0).max())


def fipys() -> float:
    """Seconds of the whole work by FiPy, extrapolated from a few steps of one node."""
    fipy = import_fipy()
    width = 10.0
    mesh = fipy.Grid2D(nx=CELLS, ny=CELLS, dx=width / CELLS, dy=width / CELLS) - [[0.5 * width], [0.5 * width]]
    x, y = (np.asarray(centres) for centres in mesh.cellCenters)
    P = fipy.CellVariable(mesh=mesh, value=np.exp(-0.5 * (x**2 + y**2)) / (2 * np.pi), hasOld=True)
    faces = np.asarray(mesh.faceCenters)
    closure, given = ChannelsInTime(problem("l1")), problem("l1")
    noise = closure.at(0.0)(given.initial_overlap, given.initial_channel_overlap).Lambda
    velocity = fipy.FaceVariable(mesh=mesh, rank=1, value=-0.1 * faces - 0.04 * np.sign(faces))
    solver = fipy.LinearLUSolver(tolerance=1e-13, criterion="initial")
    started = time.thread_time()
    for _ in range(FIPY_STEPS):
        # Terms keep the diffusion coefficient that they met first, so they are built anew, as steps of ours are.
        equation = fipy.TransientTerm() == fipy.DiffusionTerm(
            coeff=[(0.5 * noise).tolist()]
        ) - fipy.ExponentialConvectionTerm(coeff=velocity)
        P.updateOld()
        before = P.value.copy()
        equation.solve(var=P, dt=0.5 * STOP / STEPS, solver=solver)
        P.setValue(2.0 * P.value - before)
    return (time.thread_time() - started) * STEPS * NODES / FIPY_STEPS


def speed_table() -> Table:
    taken, missed = ours()
    theirs = fipys()
    work = f"{CELLS} x {CELLS} cells x {NODES} nodes, {STEPS} steps to t = {STOP:g}, l1"
    rows = (
        Row(work, taken, "s", "allowed", MOST_SECONDS, "at most 1", f"|E[w^2] - 1| = {missed:.1e} at the end"),
        Row("FiPy, the same cells, nodes and steps", theirs, "s", "ours", taken, note=f"{FIPY_STEPS} steps, scaled"),
    )
    return Table("The density of two channels", ONE_THREAD, rows)


def order_table() -> Table:
    """Errors against the exact Gaussian law, in a frame that it moves in and in its own."""
    linear = problem("l2")
    run = solve_order_parameters(linear)
    exact = np.append(run["q"].values[-1].ravel(), run["M"].values[-1, 0, 1])
    rows = []
    for spread, what in ((TOO_WIDE, "a frame 1.3 times as wide as the law"), (1.0, "the frame of the law")):
        before = None
        for cells in WIDTHS:
            limit = joint_limit_of(ChannelsInTime(linear), in_plane=True)
            evolution = Evolution(limit, np.array([[-1.0], [1.0]]), np.full(2, 0.5), cells, 6.0, spread)
            for step in range(1, cells // 2 + 1):
                evolution.step(1.5 * step / (cells // 2))
            now = evolution.averages
            wrong = float(np.abs(np.append(now.q.ravel(), now.M[0, 1]) - exact).max())
            order = "" if before is None else f"order {np.log2(before / wrong):.2f}"
            rows.append(Row(f"{cells} x {cells} cells, {cells // 2} steps, {what}", wrong, "", note=order))
            before = wrong
    how = "against the Gaussian law by the overlaps; the same on every machine"
    return Table("Largest error of q and M12 at t = 1.5 under a linear prior", how, tuple(rows))


def solution_table() -> Table:
    rows = []
    for prior in ("l1", "quartic"):
        given = problem(prior)
        solve_density(given)
        started = time.thread_time()
        found = solve_density(given)
        taken = time.thread_time() - started
        errors = ", ".join(f"{name} {float(found[f'{name}_error'].max()):.1e}" for name in ("q", "M", "r", "P"))
        rows.append(Row(f"solve_density, {prior}, default tolerance", taken, "s", note=f"claimed errors: {errors}"))
    return Table("Whole solutions of one feature with two values of u", ONE_THREAD, tuple(rows))


def tables() -> Iterator[Table]:
    yield speed_table()
    yield order_table()
    yield solution_table()
