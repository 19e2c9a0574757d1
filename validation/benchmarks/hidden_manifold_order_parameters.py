"""Order parameters of hidden manifolds: error against time, beside fixed Euler steps and SciPy; for hidden_manifold.py.

All integrators solve one problem, with the eigenvalues of features drawn at D = 500, from the same start: two erf
students and teachers, delta = 1/2, t = 100. Its public code (S. Goldt and others, Physical Review X 10, 041044, 2020)
takes Euler steps of .01 at all eigenvalues, and is reported to need 87 us for one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.figure import Figure
from scipy.linalg import eigvalsh_tridiagonal

from meanfield.families.hidden_manifold.order_parameters import solve_order_parameters
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.start_from_run import own_system, solve_from_run, start_of_run
from meanfield.families.hidden_manifold.order_parameters.system import make_system, start_of
from meanfield.families.hidden_manifold.order_parameters.trajectory import COMPARED
from meanfield.families.hidden_manifold.particles.simulation import simulate_sgd
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.plotting import COLOURS, MARKERS
from meanfield.problems.file import problem_from
from meanfield.results.figure_files import save_figure
from validation import ROOT
from validation.benchmarks.order_parameters_elsewhere import Euler, with_scipy
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import ONE_THREAD, seconds
from validation.hidden_manifold.sgd_against_theory import BASE, merged

D, STEP = 500, 0.01
REPORTED = 87e-6
"""Seconds that a step of the public code is reported to take at D = 500, K = M = 2."""

FIGURE = ROOT / "validation" / "benchmarks" / "hidden_manifold.png"
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
SCIPY = (("RK45", 6, 1e-4), ("RK45", 8, 1e-6), ("DOP853", 8, 1e-6), ("DOP853", 12, 1e-8), ("DOP853", 16, 1e-10))
"""Integrators of SciPy with numbers of nodes and tolerances of a step."""

RATE = 0.2
"""Learning rate of both layers on mixtures."""

WANTED_ERROR = 1e-6
"""Largest error that has to be reached in 10 ms."""

Run = Callable[[], Mapping[str, Any]]


class Timed(NamedTuple):
    """A solution: its largest error in Q, R and the generalisation error at any output time, and its time."""

    what: str
    error: float
    seconds: float


def eigenvalues(dimension: int, aspect_ratio: float = 0.5) -> list[float]:
    """Eigenvalues of F F^T/N of normal features, from a bidiagonal matrix of the same law, with mean 1."""
    rng, N = np.random.default_rng(0), round(dimension / aspect_ratio)
    a = np.sqrt(rng.chisquare(N - np.arange(dimension)))
    b = np.sqrt(rng.chisquare(np.arange(dimension - 1, 0, -1)))
    diagonal = a**2 + np.append(0.0, b**2)
    rho = np.maximum(eigvalsh_tridiagonal(diagonal, a[:-1] * b), 0.0)
    return list(map(float, rho / rho.mean()))


def make_problem(changes: dict[str, Any]) -> Problem:
    """Problem of the studies with changes."""
    problem: Problem = problem_from(merged(BASE, changes))
    return problem


def long_run(dimension: int, tolerance: float, stop: float = 100.0) -> Problem:
    """The problem that all integrators solve, with a tolerance of ours."""
    spectrum = {"law": "atoms", "eigenvalues": eigenvalues(dimension)}
    return make_problem(
        {
            "inputs": {"spectrum": spectrum},
            "time": {"stop": stop, "outputs": round(stop) + 1},
            "order_parameters": {"tolerance": tolerance},
        }
    )


def arrays(result: Any) -> dict[str, np.ndarray]:
    """Arrays of a result of ours that are compared."""
    return {name: result[name].values for name in COMPARED}


def largest_error(found: Mapping[str, np.ndarray], exact: Mapping[str, np.ndarray]) -> float:
    """Of what is compared, at any time."""
    return max(float(np.abs(found[name] - exact[name]).max()) for name in COMPARED)


def our_run(tolerance: float) -> Run:
    """Solution by the library, as users call it."""
    problem = long_run(D, tolerance)
    return lambda: arrays(solve_order_parameters(problem))


def solutions() -> tuple[list[Timed], list[Timed], Timed]:
    """Ours by tolerance, those of SciPy, and Euler's; all but the last take turns."""
    problem = long_run(D, 1e-12)
    exact = arrays(solve_order_parameters(problem))
    runs = {f"ours, tolerance {tolerance:g}": our_run(tolerance) for tolerance in TOLERANCES}
    runs |= {
        f"{method} of SciPy, {nodes} nodes, {tolerance:g}": with_scipy(problem, method, nodes, tolerance)
        for method, nodes, tolerance in SCIPY
    }
    errors = [largest_error(run(), exact) for run in runs.values()]
    found = [Timed(*row) for row in zip(runs, errors, seconds(*runs.values()), strict=True)]
    started = time.thread_time()
    error = largest_error(Euler(problem, STEP).run(), exact)
    euler = Timed(f"Euler in NumPy, steps of {STEP}", error, time.thread_time() - started)
    return found[: len(TOLERANCES)], found[len(TOLERANCES) :], euler


def draw(ours: list[Timed], others: list[Timed], euler: Timed) -> Figure:
    """Error against time."""
    reported = Timed("", euler.error, REPORTED * 100 / STEP)
    curves = {f"ours, tolerances {TOLERANCES[0]:g} to {TOLERANCES[-1]:g}, with error estimate and Dataset": ours}
    for method in dict.fromkeys(method for method, _, _ in SCIPY):
        label = f"{method} of SciPy with our compiled rates, nodes and tolerance by hand"
        curves[label] = [run for run in others if run.what.startswith(method)]
    curves[f"Euler in NumPy, steps of {STEP}, all eigenvalues"] = [euler]
    curves["the same in the public C++ code, as reported"] = [reported]
    figure, axes = plt.subplots(figsize=(6.4, 5.0), layout="constrained")
    for i, (label, runs) in enumerate(curves.items()):
        x, y = [1e3 * run.seconds for run in runs], [run.error for run in runs]
        face = "none" if runs == [reported] else COLOURS[i]
        axes.plot(x, y, "-", color=COLOURS[i], marker=MARKERS[i], mfc=face, label=label)
    axes.set(xscale="log", yscale="log", xlabel="processor time in ms")
    axes.set_ylabel("largest error of Q, R and generalisation error")
    axes.set_title(f"Order parameters to t = 100, D = {D} eigenvalues, K = M = 2")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", fontsize="small")
    return figure


def accuracy_table() -> Table:
    """Error and time side by side, and the figure of both."""
    ours, others, euler = solutions()
    save_figure(draw(ours, others, euler), FIGURE)
    quickest = next(run.what for run in ours if run.error <= WANTED_ERROR)
    required, rows = {quickest: f"below 10 ms for errors up to {WANTED_ERROR:g}"}, []
    for run in (*ours, *others, euler):
        note = f"largest error {run.error:.1e}"
        against = "Euler in NumPy", 1e3 * euler.seconds
        rows.append(Row(run.what, 1e3 * run.seconds, "ms", *against, required.get(run.what, ""), note))
    note = f"largest error {euler.error:.1e}, as of all Euler steps of {STEP}"
    reported = Row("public C++ code, 87 us a step reported", 1e5 * REPORTED / STEP, "ms", note=note)
    how = f"{ONE_THREAD}; errors against tolerance 1e-12; SciPy calls our compiled rates"
    return Table("Order parameters to t = 100", how, (*rows, reported), f"../{FIGURE.relative_to(ROOT)}")


def dimension_table() -> Table:
    """Time by the number of eigenvalues."""
    rows = []
    for dimension in (50, 500, 5000):
        problem, short = long_run(dimension, 1e-6), long_run(dimension, 1e-6, stop=1.0)
        per_unit = seconds(Euler(short, STEP).run, rounds=3)[0]
        own = seconds(lambda p=problem: solve_order_parameters(p), rounds=5)[0]  # type: ignore[misc]
        rows.append(Row(f"D = {dimension}, tolerance 1e-6", 1e3 * own, "ms", "Euler in NumPy", 1e5 * per_unit))
    how = f"{ONE_THREAD}; Euler's time is 100 times that to t = 1; ours after the first call, which finds the nodes"
    return Table("Order parameters by the number of eigenvalues", how, tuple(rows))


@numba.njit(cache=True, nogil=True)
def _evaluate(y, system, change, times):  # type: ignore[no-untyped-def]
    for _ in range(times):
        rates(y, system, change)


def one_evaluation(activation: str, units: int) -> float:
    """Seconds of one evaluation of all rates of change, at 8 nodes and, where one is needed, 20 points of a rule."""
    eye = np.eye(units)
    rng = np.random.default_rng(0)
    network = {"activation": activation, "output_weights": [1.0] * units}
    start = {"on_teacher": (0.3 * rng.standard_normal((units, units))).tolist(), "elsewhere": (0.5 * eye).tolist()}
    problem = make_problem({"teacher": {"overlap": eye.tolist()} | network, "student": network | start})
    system = make_system(problem, problem.inputs.eigenvalues.nodes(8), 20)
    y = start_of(problem, system)
    change, times = np.empty_like(y), 20
    return seconds(lambda: _evaluate(y, system, change, times), rounds=5)[0] / times


def rates_table() -> Table:
    """Right-hand sides by activation and size."""
    required = {("scaled_erf", 8): "below 400 us"}
    rows = [
        Row(
            f"{name}, K = M = {units}",
            1e6 * one_evaluation(name, units),
            "us",
            required=required.get((name, units), ""),
        )
        for name, sizes in {"scaled_erf": (2, 4, 8), "relu": (2, 4, 8), "tanh": (2, 4)}.items()
        for units in sizes
    ]
    return Table(
        "One evaluation of the rates of change, 8 nodes",
        f"{ONE_THREAD}; tanh by quadrature, 20 points of a variable",
        tuple(rows),
    )


def quadrature_table() -> Table:
    """Runs for an activation without closed forms."""
    rows = []
    for tolerance in (1e-4, 1e-6):
        network, time_ = {"activation": "tanh"}, {"stop": 10.0, "outputs": 11}
        problem = make_problem(
            {"teacher": network, "student": network, "time": time_, "order_parameters": {"tolerance": tolerance}}
        )
        solve_order_parameters(problem)
        started = time.thread_time()
        result = solve_order_parameters(problem)
        largest = max(float(result[f"{name}_error"].max()) for name in COMPARED)
        rows.append(Row(f"tolerance {tolerance:g}", time.thread_time() - started, "s", note=f"claimed {largest:.0e}"))
    return Table(
        "tanh students and teachers, K = M = 2, to t = 10", "one core; processor time of one call", tuple(rows)
    )


def mixture_table() -> Table:
    """Runs for clusters on either side of the first teacher, whose fields have means; both layers are trained."""
    clusters = [{"weight": 0.3, "mean": [2.0, 0.0]}, {"weight": 0.7, "mean": [-6.0 / 7.0, 0.0]}]
    rows = []
    for activation in ("scaled_erf", "relu"):
        network, training = {"activation": activation}, {"learning_rate": RATE, "output_learning_rate": RATE}
        changes = {"inputs": {"components": clusters}, "teacher": network, "student": network, "training": training}
        problem = make_problem(changes | {"time": {"stop": 100.0, "outputs": 101}})
        own = seconds(lambda p=problem: solve_order_parameters(p), rounds=3)[0]  # type: ignore[misc]
        largest = max(float(solve_order_parameters(problem)[f"{name}_error"].max()) for name in COMPARED)
        rows.append(Row(activation, own, "s", required="below 10 s", note=f"claimed {largest:.0e}"))
    return Table("Mixtures with means along the teacher, K = M = 2, to t = 100", ONE_THREAD, tuple(rows))


def source_table() -> Table:
    """Overlap with a teacher that has shares 0 and 2 at two eigenvalues."""
    spectrum = {"law": "atoms", "eigenvalues": [0.4, 1.6], "teacher": [0.0, 2.0]}
    changes = {"inputs": {"spectrum": spectrum}, "time": {"stop": 10.0, "outputs": 2}}
    problem = make_problem(merged(changes, {"order_parameters": {"tolerance": 1e-8}}))
    own = float(solve_order_parameters(problem).R.values[-1, 0, 0])
    steps = {averaged: Euler(problem, STEP, averaged).run()["R"][-1, 0, 0] for averaged in (False, True)}
    sgd = simulate_sgd(
        make_problem(merged(changes, {"particles": {"dimension": 1000, "replicas": 16, "method": "plain"}}))
    )
    found = sgd.R.values[..., -1, 0, 0]
    error = found.std(ddof=1) / np.sqrt(found.size)
    rows = (
        Row("ours", own, "", "SGD at N = 1000", found.mean(), note=f"standard error of SGD: {error:.4f}"),
        Row("Euler in NumPy", steps[False], "", "SGD at N = 1000", found.mean()),
        Row("Euler, source averaged as in the public code", steps[True], "", "SGD at N = 1000", found.mean()),
    )
    return Table(
        "R11 at t = 10, teacher in the upper of two eigenspaces", "eigenvalues .4 and 1.6; 16 runs of SGD", rows
    )


def own_start_table() -> Table:
    """Generalisation error from the starts of single runs, whose teachers have other shares at each eigenvalue."""
    changes = {
        "time": {"stop": 100.0, "outputs": 2},
        "particles": {"dimension": 1000, "replicas": 4, "method": "plain", "snapshots": [0.0]},
    }
    problem = make_problem(changes)
    sgd = simulate_sgd(problem)
    rows = []
    for replica in range(sgd.sizes["replica"]):
        solved = solve_from_run(problem, sgd, replica)
        own = float(solved.generalisation_error[-1])
        start = own_system(problem, start_of_run(problem, sgd, replica), 0)
        euler, averaged = (
            float(Euler(problem, STEP, flag, start).run()["generalisation_error"][-1]) for flag in (False, True)
        )
        names = ("solve_from_run", "Euler in NumPy", "Euler, source averaged as in the public code")
        of_run = float(sgd.generalisation_error[replica, -1])
        for name, error in zip(names, (own, euler, averaged), strict=True):
            rows.append(Row(f"run {replica + 1}: {name}", error, "", "that run of SGD", of_run))
    how = "N = 1000, D = 500, K = M = 2; the error of a run is measured on 4,000 fresh samples, to 2 %"
    return Table("Generalisation error at t = 100 from a run's own start", how, tuple(rows))


def order_parameter_tables() -> Iterator[Table]:
    """All tables of this module."""
    sgd = source_table, own_start_table
    for table in (accuracy_table, dimension_table, *sgd, rates_table, quadrature_table, mixture_table):
        yield table()
