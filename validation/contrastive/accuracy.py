"""Accuracy of the density compared with the accuracy asked for, and its cost.

Twelve problems, six priors with one feature and with two, are solved at tolerances from 1e-3 to 1e-8. The true error of
q and r at all output times comes from references of another kind (spectral elements, `density_problems.py`), which are
known to 1e-10 or so. At 1e-4, 1e-6 and 1e-8 it must lie below the tolerance, and no looser tolerance may do the same in
a fraction of the time: orders are so high that a little more work is many digits, so accuracy beyond what is asked for
says nothing of waste.

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
from validation.study import Statement, Study, run_study

TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(6, 17))
ASKED = (1e-4, 1e-6, 1e-8)
MOST_WASTE = 3.0
"""Largest ratio of the time of a solution to that of one with a looser tolerance that is accurate enough, too: that
knows the true error, where the solver has an estimate with its safety, and takes whole levels."""
QUICK = 2.0
"""Processor time in seconds up to which a solution is timed three times."""


def at_tolerance(problem: Problem, tolerance: float) -> Problem:
    """The problem, to be solved to that tolerance."""
    return meanfield.with_value(problem, "density", DensitySettings(tolerance=tolerance))


def largest_error(solution: xr.Dataset, name: str) -> float:
    """True error of q and r over all output times; that of the reference itself counts in full."""
    exact = load_reference(name)
    q = np.abs(solution.q.values - exact.q) + exact.q_error
    r = np.abs(solution.r.values - exact.r) + exact.r_error
    return float(max(q.max(), r.max()))


def measure(name: str, tolerance: float) -> dict[str, float]:
    """Solve one problem to one tolerance."""
    problem = at_tolerance(accuracy_problem(name), tolerance)
    times = []
    while not times or (sum(times) < QUICK and len(times) < 3):
        started = time.process_time()
        solution = meanfield.solve_density(problem)
        times.append(time.process_time() - started)
    estimate = float(max(solution.q_error.max(), solution.r_error.max()))
    return {
        "error": largest_error(solution, name),
        "estimate": estimate,
        "seconds": median(times),
        "complete": solution.attrs["status"] == "complete",
    }


def measure_all(names: list[str], tolerances: tuple[float, ...]) -> xr.Dataset:
    """All problems at all tolerances."""
    meanfield.solve_density(at_tolerance(accuracy_problem(names[0]), 1e-3))  # not timed: the first call compiles
    pairs = [(name, tolerance) for name in names for tolerance in tolerances]
    rows = [measure(*pair) for pair in tqdm(pairs, disable=None, leave=False, desc="accuracy")]
    shape = len(names), len(tolerances)
    meanings = {
        "error": "largest true error of q and r",
        "estimate": "largest estimated error of q and r",
        "seconds": "processor time of a solution",
        "complete": "whether the solver says that it met the tolerance",
    }
    variables = {
        key: (("problem", "tolerance"), np.array([row[key] for row in rows]).reshape(shape), {"long_name": text})
        for key, text in meanings.items()
    }
    return xr.Dataset(variables, {"problem": names, "tolerance": list(tolerances)})


def waste(data: xr.Dataset, k: int) -> float:
    """Median over problems of the time at tolerance number k, relative to the least that is known to do."""
    seconds = data.seconds.values[:, : k + 1]
    enough = data.error.values[:, : k + 1] <= data.tolerance.values[k]
    return float(np.median(seconds[:, k] / np.where(enough, seconds, seconds[:, k:]).min(axis=1)))


def judge(data: xr.Dataset) -> list[Statement]:
    """Whether errors are below the tolerances that are asked for, at no great cost beyond what these need."""
    statements = []
    for tolerance in ASKED:
        k = int(np.abs(data.tolerance.values / tolerance - 1).argmin())
        at, worst, more = f"tolerance {tolerance:g}", float(data.error[:, k].max()) / tolerance, waste(data, k)
        statements += [
            Statement(f"{at}: error / tolerance <= 1", "ours", worst <= 1, f"{worst:.2f}"),
            Statement(
                f"{at}: median time / least time that does <= {MOST_WASTE:g}", "ours", more <= MOST_WASTE, f"{more:.1f}"
            ),
        ]
    missed = int((data.complete.astype(bool) & (data.error > data.tolerance)).sum())
    statements.append(Statement("no tolerance is missed without saying so", "ours", missed == 0, f"{missed} are"))
    return statements


def plot(data: xr.Dataset) -> Figure:
    """True errors over the tolerance, and times."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
    tolerance = data.tolerance.values
    left.plot(tolerance, tolerance, color="0.6", lw=1, label="asked for")
    for place, name in enumerate(data.problem.values):
        prior, features = str(name).rsplit("_", 1)
        number = place % 6
        style = {"color": COLOURS[number], "ls": LINES[number], "marker": MARKERS[number]}
        style["fillstyle"] = "full" if features == "1" else "none"
        rows = data.sel(problem=name)
        name = prior.replace("_", " ") if features == "1" else None
        left.loglog(tolerance, rows.error, ms=4.5, lw=1, label=name, **style)
        right.loglog(tolerance, rows.seconds, ms=4.5, lw=1, **style)
    left.set(xlabel="tolerance", ylabel="largest true error of q and r", title="as accurate as it is asked to be")
    right.set(xlabel="tolerance", ylabel="processor time, seconds", title="at what cost")
    left.plot([], [], "o", color="0.3", label="one feature")
    left.plot([], [], "o", color="0.3", fillstyle="none", label="two features")
    share_legend(figure)
    for ax in (left, right):
        ax.invert_xaxis()
        ax.grid(alpha=0.25, lw=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    return figure


STUDY = Study(lambda: measure_all(list(TEXTS), TOLERANCES), judge, plot, must_hold=True, folder=OUTPUT)

if __name__ == "__main__":
    run_study(STUDY, __file__)
