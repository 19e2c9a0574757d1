"""Accuracy of the density by both schemes compared with the accuracy asked for, and its cost.

Twelve problems, six priors with one feature and with two, are solved at tolerances from 1e-3 to 1e-8 by the Lagrangian
and by the Eulerian scheme. The true error of q and r at all output times comes from references of another kind
(spectral elements, `density_problems.py`), which are known to 1e-10 or so. At 1e-4, 1e-6 and 1e-8 it must lie below the
tolerance, and no looser tolerance may do the same in a fraction of the time: orders are so high that a little more work
is many digits, so accuracy beyond what is asked for says nothing of waste. The schemes, which share no step and no
mesh, are held against each other, too, and the Eulerian one against FiPy on the same cells.

Writes data/runs/accuracy.nc and validation/contrastive/accuracy.png.
"""

from __future__ import annotations

import time
from statistics import median

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from tqdm import tqdm

import meanfield
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.plotting import COLOURS, LINES, MARKERS, share_legend
from validation import OUTPUT
from validation.references.density_problems import TEXTS, accuracy_problem, load_reference
from validation.study import Statement, Study

SCHEMES = ("lagrangian", "eulerian")
TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(6, 17))
ASKED = (1e-4, 1e-6, 1e-8)
MOST_WASTE = 3.0
"""Largest ratio of the time of a solution to that of one with a looser tolerance that is accurate enough, too: that
knows the true error, where the solver has an estimate with its safety, and takes whole levels."""
QUICK = 2.0
"""Processor time in seconds up to which a solution is timed three times."""


def at_tolerance(problem: Problem, scheme: str, tolerance: float) -> Problem:
    """The problem, to be solved by that scheme to that tolerance."""
    return meanfield.with_value(problem, "density", {"scheme": scheme, "tolerance": tolerance})


def largest_error(solution: xr.Dataset, name: str) -> float:
    """True error of q and r over all output times; that of the reference itself counts in full."""
    exact = load_reference(name)
    q = np.abs(solution.q.values - exact.q) + exact.q_error
    r = np.abs(solution.r.values - exact.r) + exact.r_error
    return float(max(q.max(), r.max()))


def measure(name: str, scheme: str, tolerance: float) -> tuple[dict[str, float], xr.Dataset]:
    """Solve one problem by one scheme to one tolerance; the numbers of the study, and the solution."""
    problem = at_tolerance(accuracy_problem(name), scheme, tolerance)
    times = []
    while not times or (sum(times) < QUICK and len(times) < 3):
        started = time.process_time()
        solution = meanfield.solve_density(problem)
        times.append(time.process_time() - started)
    row = {
        "error": largest_error(solution, name),
        "estimate": float(max(solution.q_error.max(), solution.r_error.max())),
        "seconds": median(times),
        "complete": solution.attrs["status"] == "complete",
    }
    return row, solution


def disagreement(first: xr.Dataset, second: xr.Dataset) -> float:
    """Largest difference of q and r between two solutions, in units of the sum of their estimated errors."""
    away = [
        float((abs(first[key] - second[key]) / (first[f"{key}_error"] + second[f"{key}_error"] + 1e-14)).max())
        for key in ("q", "r")  # 1e-14: both start from the same numbers, which are known to rounding
    ]
    return max(away)


def distance_to_fipy(name: str) -> float:
    """Largest difference of q on 160 cells in 80 steps between our kernel and FiPy, which has no tolerance."""
    fixed = DensitySettings(cells=160, steps=80, order=2)
    problem = meanfield.with_value(accuracy_problem(name), "density", fixed)
    return float(abs(meanfield.solve_density(problem).q - meanfield.solve_density(problem, backend="fipy").q).max())


def measure_all(names: list[str], tolerances: tuple[float, ...]) -> xr.Dataset:
    """All problems by both schemes at all tolerances."""
    for scheme in SCHEMES:
        meanfield.solve_density(at_tolerance(accuracy_problem(names[0]), scheme, 1e-3))  # the first call compiles
    pairs = [(name, tolerance) for name in names for tolerance in tolerances]
    rows, apart = [], []
    for name, tolerance in tqdm(pairs, disable=None, leave=False, desc="accuracy"):
        measured, solutions = zip(*(measure(name, scheme, tolerance) for scheme in SCHEMES), strict=True)
        rows.append(measured)
        apart.append(disagreement(*solutions))
    meanings = {
        "error": "largest true error of q and r",
        "estimate": "largest estimated error of q and r",
        "seconds": "processor time of a solution",
        "complete": "whether the solver says that it met the tolerance",
    }
    shape = len(names), len(tolerances)
    dims = "problem", "tolerance", "scheme"
    variables = {
        key: (dims, np.array([[row[key] for row in both] for both in rows]).reshape(*shape, 2), {"long_name": text})
        for key, text in meanings.items()
    }
    text = "largest difference of q and r between the schemes over the sum of their estimated errors"
    variables["disagreement"] = (dims[:2], np.array(apart).reshape(shape), {"long_name": text})
    text = "largest difference of q between our kernel and FiPy on the same cells"
    variables["fipy"] = ((), np.array(distance_to_fipy("l1_1")), {"long_name": text})
    return xr.Dataset(variables, {"problem": names, "tolerance": list(tolerances), "scheme": list(SCHEMES)})


def waste(data: xr.Dataset, k: int) -> float:
    """Median over problems of the time at tolerance number k, relative to the least that is known to do."""
    seconds = data.seconds.values[:, : k + 1]
    enough = data.error.values[:, : k + 1] <= data.tolerance.values[k]
    return float(np.median(seconds[:, k] / np.where(enough, seconds, seconds[:, k:]).min(axis=1)))


def judge(data: xr.Dataset) -> list[Statement]:
    """Whether errors are below the tolerances that are asked for, at no great cost beyond what these need."""
    statements = [statement for scheme in SCHEMES for statement in judge_scheme(data.sel(scheme=scheme), scheme)]
    apart, fipy = float(data.disagreement.max()), float(data.fipy)
    return [
        *statements,
        Statement("schemes differ by no more than their estimated errors", "ours", apart <= 1, f"{apart:.2f} of them"),
        Statement("FiPy on the same cells: same q to 1e-9", "ours", fipy <= 1e-9, f"{fipy:.1e}"),  # its linear solver
    ]


def judge_scheme(data: xr.Dataset, scheme: str) -> list[Statement]:
    """Errors and waste of one scheme."""
    statements = []
    for tolerance in ASKED:
        k = int(np.abs(data.tolerance.values / tolerance - 1).argmin())
        worst, more = float(data.error[:, k].max()) / tolerance, waste(data, k)
        at = f"{scheme}, tolerance {tolerance:g}"
        least = f"{at}: median time / least time that does <= {MOST_WASTE:g}"
        statements += [
            Statement(f"{at}: error / tolerance <= 1", "ours", worst <= 1, f"{worst:.2f}"),
            Statement(least, "ours", more <= MOST_WASTE, f"{more:.1f}"),
        ]
    bounded = float((data.error <= data.estimate).mean())
    text = f"{scheme}: the estimated error bounds the true one in 98 % of solutions"
    statements.append(Statement(text, "ours", bounded >= 0.98, f"{100 * bounded:.1f} %"))
    missed = int((data.complete.astype(bool) & (data.error > data.tolerance)).sum())
    return [
        *statements,
        Statement(f"{scheme}: no tolerance is missed without saying so", "ours", missed == 0, f"{missed} are"),
    ]


def plot(data: xr.Dataset) -> Figure:
    """True errors over the tolerance, and times, a row for each scheme."""
    figure, axes = plt.subplots(2, 2, figsize=(10, 8.4), layout="constrained", sharex=True, sharey="col")
    tolerance = data.tolerance.values
    for scheme, (left, right) in zip(SCHEMES, axes, strict=True):
        left.plot(tolerance, tolerance, color="0.6", lw=1, label="asked for" if scheme == SCHEMES[0] else None)
        for place, name in enumerate(data.problem.values):
            prior, features = str(name).rsplit("_", 1)
            number = place % 6
            style = {"color": COLOURS[number], "ls": LINES[number], "marker": MARKERS[number]}
            style["fillstyle"] = "full" if features == "1" else "none"
            rows = data.sel(problem=name, scheme=scheme)
            label = prior.replace("_", " ") if features == "1" and scheme == SCHEMES[0] else None
            left.loglog(tolerance, rows.error, ms=4.5, lw=1, label=label, **style)
            right.loglog(tolerance, rows.seconds, ms=4.5, lw=1, **style)
        left.set(ylabel="largest true error of q and r", title=f"{scheme}: as accurate as it is asked to be")
        right.set(ylabel="processor time, seconds", title=f"{scheme}: at what cost")
    first = axes[0, 0]
    first.plot([], [], "o", color="0.3", label="one feature")
    first.plot([], [], "o", color="0.3", fillstyle="none", label="two features")
    share_legend(figure)
    first.invert_xaxis()  # axes share it
    for ax in axes[1]:
        ax.set(xlabel="tolerance")
    for ax in axes.flat:
        ax.grid(alpha=0.25, lw=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    return figure


STUDY = Study(lambda: measure_all(list(TEXTS), TOLERANCES), judge, plot, must_hold=True, folder=OUTPUT)
