"""Runs of SGD on a hidden manifold at finite N: their scatter, and when they leave the symmetric plateau.

To leading order in 1/N the order parameters of runs have the covariance C/N, which `order_parameters` predicts for
spectra of few eigenvalues. Students of a random start are told apart by differences of order 1/sqrt(N), those of the
start and those that the noise of SGD adds on the way, and `escape` predicts when these reach 0.15. Both are held
against the chain of Gram matrices, which has the law of SGD with Gaussian covariates at any N.

    python -m validation.hidden_manifold.finite_size --page docs/hidden_manifold_finite_size.md

prints tables, and writes the numbers to data/runs/hidden_manifold/finite_size.nc and the figure beside this module; it
takes half an hour on two cores. With `--again` it judges and draws the numbers that are there.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

import meanfield
from meanfield.cli import at_least, parser, run
from meanfield.families.hidden_manifold.escape import ESCAPED
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.plotting import curve_style, marker_style
from validation.hidden_manifold.sgd_against_theory import NAMES, merged, numbers, problem_of
from validation.pages import markdown_table
from validation.publication import Publication, claim_of, verdicts
from validation.study import Statement

MOST_SIGMAS = 4.0
"""Standard errors within which deviations and shares of escaped runs have to agree with predictions."""

SCATTER: dict[str, Any] = {
    "inputs": {"spectrum": {"law": "atoms", "eigenvalues": [0.4, 1.6]}},
    "time": {"stop": 10.0, "outputs": 6},
}
SCATTER_RUNS = {512: 1000, 4096: 250}
"""Number of runs at each N whose scatter is measured."""

PLATEAU: dict[str, Any] = {
    "inputs": {"aspect_ratio": 0.1, "spectrum": {"law": "atoms", "eigenvalues": [1.0]}},
    "student": {"initial": "random", "variance": 1.0, "on_teacher": None, "elsewhere": None},
}
ESCAPE_RUNS = {512: (400, 100.0), 8192: (256, 160.0), 65536: (64, 130.0)}
"""Number of runs at each N whose escape is measured, and the time that they are followed."""

OUTPUTS_PER_TIME = 2

GRID = np.arange(0.0, 201.0, 4.0)
"""Times at which shares of escaped runs are compared."""

PLACES = ("Q00", "Q01", "Q11", "R00", "R01", "R10", "R11", "error")
"""Entries of covariances that belong to `NAMES`, counted from 0."""


def scatter_problem(N: int, seed: int) -> Problem:
    """Two eigenvalues of the features, and an informed start."""
    return problem_of(SCATTER, {"method": "chain", "dimension": N, "replicas": SCATTER_RUNS[N], "seed": seed})


def escape_problem(N: int, seed: int) -> Problem:
    """One eigenvalue, data of low dimension, and a random start."""
    runs, stop = ESCAPE_RUNS[N]
    at = {"time": {"stop": stop, "outputs": round(OUTPUTS_PER_TIME * stop) + 1}}
    particles = {"method": "chain", "dimension": N, "replicas": runs, "seed": seed}
    problem = problem_of(merged(PLATEAU, at), particles)
    return problem


def simulate(seed: int) -> xr.Dataset:
    """Deviations of runs times sqrt(N), and the time of escape of each run, NaN of those that have not escaped."""
    deviations, times = [], SCATTER["time"]["outputs"]
    for N in SCATTER_RUNS:
        found = numbers(meanfield.solve(scatter_problem(N, seed), "particles"))
        deviations.append(found.std(axis=0, ddof=1) * math.sqrt(N))
    most = max(runs for runs, _ in ESCAPE_RUNS.values())
    escapes = np.full((len(ESCAPE_RUNS), most), np.nan)
    for i, N in enumerate(ESCAPE_RUNS):
        found = meanfield.solve(escape_problem(N, seed + 1), "particles")
        R = found["R"].values
        apart = 0.5 * np.abs(R[..., 0, 0] + R[..., 1, 1] - R[..., 0, 1] - R[..., 1, 0]) >= ESCAPED
        first = found["time"].values[np.argmax(apart, axis=1)]
        escapes[i, : len(first)] = np.where(apart.any(axis=1), first, np.nan)
    return xr.Dataset(
        {
            "sgd_deviation": (("scatter_N", "time", "number"), np.array(deviations)),
            "sgd_escape_time": (("escape_N", "run"), escapes),
        },
        {
            "scatter_N": list(SCATTER_RUNS),
            "escape_N": list(ESCAPE_RUNS),
            "number": list(NAMES),
            "time": np.linspace(0.0, SCATTER["time"]["stop"], times),
        },
    )


def predict(seed: int) -> xr.Dataset:
    """Deviations by `order_parameters`, and by `escape` the share of starts that left by some times, and quantiles."""
    N = next(iter(SCATTER_RUNS))
    solved = meanfield.solve(scatter_problem(N, seed), "order_parameters")
    deviations = np.sqrt(np.stack([_variances(solved, place) for place in PLACES], axis=-1))
    found = [meanfield.solve(escape_problem(N, seed), "escape") for N in ESCAPE_RUNS]
    quantiles = np.array([each["escape_time_quantile"].values for each in found])
    parts = [each["antisymmetric_part"].interp(time=GRID).values for each in found]
    size = {"escape_share": (("escape_N", "grid"), 2.0 * norm.sf(ESCAPED / np.array(parts)))}
    return xr.Dataset(
        {
            "deviation": (("time", "number"), deviations),
            "escape_quantile": (("escape_N", "quantile"), quantiles),
            **size,
        },
        {"number": list(NAMES), "grid": GRID, "quantile": found[0]["quantile"].values, "escape_N": list(ESCAPE_RUNS)},
    )


def _variances(solved: xr.Dataset, place: str) -> np.ndarray:
    """N times the variance of a number at all times."""
    if place == "error":
        return np.asarray(solved["generalisation_error_variance"].values)
    k, j = int(place[1]), int(place[2])
    return np.asarray(solved[f"{place[0]}_covariance"].values[:, k, j, k, j])


def shares(data: xr.Dataset) -> xr.DataArray:
    """Share of runs that have escaped by each time of the grid, where they were followed that long."""
    escaped = (data.sgd_escape_time <= data.grid).sum("run")
    runs = xr.DataArray([ESCAPE_RUNS[N][0] for N in ESCAPE_RUNS], dims="escape_N")
    stop = xr.DataArray([ESCAPE_RUNS[N][1] for N in ESCAPE_RUNS], dims="escape_N")
    return (escaped / runs).where(data.grid <= stop)


def judge(data: xr.Dataset) -> list[Statement]:
    """Statements on predicted deviations, and on predicted times of escape."""
    found = []
    for N, runs in SCATTER_RUNS.items():
        away = data.sgd_deviation.sel(scatter_N=N) / data.deviation - 1.0
        worst = float(np.abs(away.isel(time=slice(1, None))).max()) * math.sqrt(2 * (runs - 1))
        text = f"sqrt(N) times the deviations of {runs} runs at N = {N:,} are those that are predicted"
        found.append(
            Statement(text, "theory, section 8", worst < MOST_SIGMAS, f"off by {worst:.1f} standard errors at most")
        )
    for N, (runs, _) in ESCAPE_RUNS.items():
        p, share = data.escape_share.sel(escape_N=N), shares(data).sel(escape_N=N)
        away = np.abs(share - p) / np.sqrt(np.maximum(p * (1.0 - p), 1.0 / runs) / runs)
        text = f"of {runs} random starts at N = {N:,} as many escape by each time as are predicted"
        worst, far = float(away.max()), float(np.abs(share - p).max())
        number = f"off by {100 * far:.0f} %, or {worst:.1f} standard errors, at most"
        found.append(Statement(text, "theory, section 5", worst < MOST_SIGMAS, number))
    return found


def tables(data: xr.Dataset) -> str:
    """Deviations at the end, and quantiles of the time of escape."""
    end, rows = data.isel(time=-1), [["predicted", *(f"{float(x):.3f}" for x in data.deviation[-1])]]
    for N, runs in SCATTER_RUNS.items():
        values = end.sgd_deviation.sel(scatter_N=N).values
        digits = [round(1e3 * x / math.sqrt(2 * (runs - 1))) for x in values]
        cells = [f"{x:.3f}({d})" for x, d in zip(values, digits, strict=True)]
        rows.append([f"N = {N:,}, {runs} runs", *cells])
    scatter = markdown_table(["sqrt(N) times deviation", *NAMES], rows)
    header = ["N", "runs", *(f"{100 * q:g} % by: predicted, SGD" for q in data["quantile"].values)]
    rows = []
    for N, (runs, stop) in ESCAPE_RUNS.items():
        times = np.sort(np.where(np.isnan(t := data.sgd_escape_time.sel(escape_N=N).values[:runs]), np.inf, t))
        cells = []
        for q, predicted in zip(data["quantile"].values, data.escape_quantile.sel(escape_N=N).values, strict=True):
            spread = 2.0 * math.sqrt(q * (1 - q) / runs)
            low, middle, high = (
                times[min(max(int(share * runs), 0), runs - 1)] for share in (q - spread, q, q + spread)
            )
            shown = [f"{x:.0f}" if np.isfinite(x) else f"> {stop:g}" for x in (middle, low, high)]
            cells.append(f"{predicted:.1f}, {shown[0]} ({shown[1]} to {shown[2]})")
        rows.append([f"{N:,}", f"{runs}", *cells])
    return f"{scatter}\n\n{markdown_table(header, rows)}"


def draw(data: xr.Dataset) -> Figure:
    """Deviations in time, and the share of runs that have escaped."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
    _draw_scatter(data, left)
    _draw_escapes(data, right)
    return figure


def _draw_scatter(data: xr.Dataset, axes: Axes) -> None:
    markers = dict(zip(SCATTER_RUNS, ("o", "^"), strict=True))
    for place, number in enumerate(("Q11", "Q12", "R11", "R12", "error")):
        name = {"error": r"$\epsilon_g$"}.get(number, f"${number[0]}_{{{number[1:]}}}$")
        axes.plot(data.time, data.deviation.sel(number=number), label=name, **curve_style(place))
        for N, marker in markers.items():
            values = data.sgd_deviation.sel(scatter_N=N, number=number)
            style = marker_style(place) | {"marker": marker, "fillstyle": "none", "markersize": 5}
            axes.plot(data.time, values, **style)
    for N, marker in markers.items():
        axes.plot([], [], marker, color="0.3", fillstyle="none", label=f"SGD, N = {N:,}")
    axes.set(xlabel="time $t$", ylabel=r"$\sqrt{N}$ times standard deviation", ylim=(0.0, None))
    axes.legend(frameon=False, fontsize="small", ncols=2)


def _draw_escapes(data: xr.Dataset, axes: Axes) -> None:
    found = shares(data)
    for place, N in enumerate(ESCAPE_RUNS):
        axes.plot(data.grid, data.escape_share.sel(escape_N=N), label=f"N = {N:,}", **curve_style(place))
        axes.plot(data.grid, found.sel(escape_N=N), fillstyle="none", markersize=4, **marker_style(place))
    axes.set(xlabel="time $t$", ylabel="share of runs that have left the plateau", ylim=(0.0, 1.0))
    axes.legend(frameon=False, fontsize="small", title="lines: predicted; marks: SGD", title_fontsize="small")


def page(data: xr.Dataset, statements: list[Statement]) -> str:
    """The page of the site."""
    return f"""# Hidden manifolds at finite N

Written by `python -m validation.hidden_manifold.finite_size --page docs/hidden_manifold_finite_size.md`.

{claim_of(Path(__file__))}

![Deviations, and shares of runs that have escaped](../validation/hidden_manifold/finite_size.png)

Left, two eigenvalues 0.4 and 1.6 of the features and an informed start; right, one eigenvalue, D/N = 0.1, and a random
start. Standard errors stand in units of the last digit; behind times of escape stands twice the standard error.

{tables(data)}

{verdicts(statements)}
"""


PUBLICATION = Publication(
    Path(__file__), "Scatter of SGD on a hidden manifold, and its escape from the plateau", draw, tables, page
)


def main() -> int:
    """Run or load, judge, print; write numbers, figure and page."""
    command = parser(__doc__ or "")
    command.add_argument("--seed", type=at_least(0, "a seed"), default=0)
    command.add_argument("--again", action="store_true", help="take SGD from the numbers that are there")
    command.add_argument("--page", type=Path, metavar="OUT.md", help="where the page of the site goes")
    arguments = command.parse_args()
    began = time.perf_counter()
    sgd = load_numbers(PUBLICATION.numbers) if arguments.again else simulate(arguments.seed)
    data = xr.merge([sgd, predict(arguments.seed)])
    return PUBLICATION.write(data, judge(data), began, arguments.page)


def load_numbers(path: Path) -> xr.Dataset:
    """Numbers of SGD alone from a file that this study wrote."""
    with xr.open_dataset(path) as data:
        names = [name for name in data.data_vars if str(name).startswith("sgd")]
        return data[names].load().drop_vars(["grid", "quantile"], errors="ignore")


if __name__ == "__main__":
    run(main)
