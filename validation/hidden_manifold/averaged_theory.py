"""Inputs with a mean: SGD on a hidden manifold against the average over fast fields, and against the ordinary theory.

Where inputs have a mean, one step of SGD moves the student's field along it by a number of order 1, and overlaps follow
an average over the stationary law of these moves. Plain SGD at N = 3000 is held at t = 5 against this average, for a
nonlinearity that is not centred, for one whose mean differs between latents of two scales, and for tanh units; and
against the theory without means, in which inputs are centred and the scale is that of all samples together.

    python -m validation.hidden_manifold.averaged_theory --page docs/hidden_manifold_averages.md

prints the table, and writes the numbers to data/runs/hidden_manifold/averaged_theory.nc and the figure beside this
module.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.cli import run
from meanfield.plotting import COLOURS
from validation.hidden_manifold.sgd_against_theory import NAMES, merged, numbers, problem_of
from validation.pages import markdown_table
from validation.publication import Publication, claim_of, verdicts
from validation.study import Statement

MOST_SIGMAS = 3.5
"""Standard errors, of SGD and of the average, within which both have to agree: of 48 numbers 1 in 40 by chance."""

REFUSED = 8.0
"""Standard errors beyond which at least one number refuses the theory without means."""

STATED = 3.0
"""Standard errors in the errors that order parameters state."""

THEORIES = ("average", "without means")

COMMON: dict[str, Any] = {"time": {"stop": 5.0, "outputs": 6}}
TWO_SCALES = [{"weight": 0.5, "scale": 0.5}, {"weight": 0.5, "scale": math.sqrt(1.75)}]
SIGN = {"nonlinearity": "sign"}
SHIFTED = {"nonlinearity": "validation.hidden_manifold.sgd_against_theory:shifted_sign", "centered": False}
UNEVEN = {"nonlinearity": "validation.hidden_manifold.averaged_theory:twice_rectified", "centered": False}
TANH = {"teacher": {"activation": "tanh"}, "student": {"activation": "tanh"}}
BOTH_LAYERS = {"training": {"output_learning_rate": 0.2}}
CLOSER = {"student": {"on_teacher": [[0.6, 0.2], [0.3, 0.5]]}}


def twice_rectified(u: float) -> float:
    """Twice u if it is positive: a nonlinearity whose mean grows with the scale of u."""
    return 2.0 * u if u > 0 else 0.0


CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "shifted_sign": ("erf units, sign + 1", {"inputs": SHIFTED}, {"inputs": SIGN}),
    "scales": (
        "erf units, 2 ReLU, two scales",
        merged(CLOSER, {"inputs": UNEVEN | {"components": TWO_SCALES}}),
        merged(CLOSER, {"inputs": UNEVEN | {"centered": True}}),
    ),
    "tanh": (
        "tanh units, sign + 1, both layers",
        merged(TANH, BOTH_LAYERS, {"inputs": SHIFTED}),
        merged(TANH, BOTH_LAYERS, {"inputs": SIGN}),
    ),
}
"""Titles, what differs from the base problem, and what is left of it in the theory without means."""


def measure(dimension: int, replicas: int, seed: int) -> xr.Dataset:
    """Means and standard errors of SGD and of both theories at all times."""
    shape = (len(CASES), COMMON["time"]["outputs"], len(NAMES))
    mean, deviation = np.empty(shape), np.empty(shape)
    theory, stated = np.empty((len(CASES), len(THEORIES), *shape[1:])), np.zeros(shape)
    relaxation = np.empty(shape[:2])
    for i, (_, changes, without) in enumerate(CASES.values()):
        particles = {"dimension": dimension, "replicas": replicas, "seed": seed + i, "snapshots": []}
        case = problem_of(merged(COMMON, changes), particles)
        runs = numbers(meanfield.solve(case, "particles"))
        mean[i], deviation[i] = runs.mean(axis=0), runs.std(axis=0, ddof=1) / math.sqrt(replicas)
        solved = meanfield.solve(case, "order_parameters")
        theory[i, 0], stated[i] = numbers(solved), numbers(errors_of(solved)) / STATED
        relaxation[i] = solved["relaxation_steps"]
        theory[i, 1] = numbers(meanfield.solve(problem_of(merged(COMMON, without)), "order_parameters"))
    dims = ("case", "time", "number")
    data = xr.Dataset(
        {
            "mean": (dims, mean, {"long_name": "mean over runs of SGD"}),
            "standard_error": (dims, deviation, {"long_name": "its standard error"}),
            "theory": ((dims[0], "model", *dims[1:]), theory, {"long_name": "the same by a theory"}),
            "theory_error": (dims, stated, {"long_name": "standard error of the average"}),
            "relaxation_steps": (dims[:2], relaxation, {"long_name": "relaxation time of the fast fields in steps"}),
        },
        {
            "case": list(CASES),
            "model": list(THEORIES),
            "time": np.linspace(0.0, COMMON["time"]["stop"], shape[1]),
            "number": list(NAMES),
        },
        {"N": dimension, "replicas": replicas},
    )
    return data


def errors_of(solved: xr.Dataset) -> xr.Dataset:
    """Stated errors under the names of what they belong to."""
    names = ("Q", "R", "generalisation_error")
    return xr.Dataset({name: solved[f"{name}_error"] for name in names})


def away(data: xr.Dataset) -> xr.DataArray:
    """Differences of SGD and theories at the end, in standard errors of both."""
    end = data.isel(time=-1)
    return (end["mean"] - end.theory) / np.hypot(end.standard_error, end.theory_error)


def judge(data: xr.Dataset) -> list[Statement]:
    """Statements on the average, and on the theory without means."""
    found, differences = [], away(data)
    for name, (title, _, _) in CASES.items():
        for theory, agrees in zip(THEORIES, (True, False), strict=True):
            distance = np.abs(differences.sel(case=name, model=theory))
            worst = float(distance.max())
            number = f"off by {worst:.1f} standard errors at most ({distance.idxmax().values!s})"
            text = f"{title}: SGD {'agrees with' if agrees else 'refuses'} the theory '{theory}'"
            found.append(
                Statement(text, "theory, section 4", worst < MOST_SIGMAS if agrees else worst > REFUSED, number)
            )
    return found


def table(data: xr.Dataset) -> str:
    """Values of theories, and differences of SGD with standard errors in the last digit, at the end."""
    end, rows, shown = data.isel(time=-1), [], ("Q11", "Q12", "R11", "R12", "error")
    for name, (title, _, _) in CASES.items():
        for theory in THEORIES:
            cells = []
            for number in shown:
                here = end.sel(case=name, number=number)
                value = float(here.theory.sel(model=theory))
                error = math.hypot(float(here.standard_error), float(here.theory_error))
                cells.append(f"{value:.4f}: {float(here['mean']) - value:+.4f}({round(1e4 * error)})")
            rows.append([title, theory, *cells])
    return markdown_table(["SGD", "theory", *shown], rows)


def draw(data: xr.Dataset) -> Figure:
    """Generalisation error and R12 in time, a column for each case."""
    figure, axes = plt.subplots(2, len(CASES), sharex=True, figsize=(10.5, 5.4), layout="constrained")
    for column, (name, (title, _, _)) in zip(axes.T, CASES.items(), strict=True):
        for axis, number, label in zip(column, ("error", "Q12"), ("generalisation error", "$Q_{12}$"), strict=True):
            here = data.sel(case=name, number=number)
            for theory, style in zip(THEORIES, ("-", "--"), strict=True):
                values = here.theory.sel(model=theory)
                axis.plot(data.time, values, style, color=COLOURS[THEORIES.index(theory)], label=theory)
            axis.errorbar(
                data.time,
                here["mean"],
                2 * here.standard_error,
                fmt="o",
                color="0.2",
                ms=4,
                fillstyle="none",
                label="SGD",
            )
            axis.set_ylabel(label)
        column[0].set_title(title, fontsize="medium")
        column[1].set_xlabel("time $t$")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


def page(data: xr.Dataset, statements: list[Statement]) -> str:
    """The page of the site."""
    slowest = ", ".join(
        f"{float(data.relaxation_steps.sel(case=name).max()):.0f} ({title})" for name, (title, _, _) in CASES.items()
    )
    return f"""# Inputs with a mean

Written by `python -m validation.hidden_manifold.averaged_theory --page docs/hidden_manifold_averages.md`.

{claim_of(Path(__file__))}

![SGD and averages in time](../validation/hidden_manifold/averaged_theory.png)

Of {data.attrs["replicas"]} runs at N = {data.attrs["N"]}, at t = 5: the value of the theory, and SGD - theory with the
standard error of both in units of the last digit. Means over runs are off by O(1/N) besides. Fast fields come to rest
within at most this many steps: {slowest}.

{table(data)}

{verdicts(statements)}
"""


PUBLICATION = Publication(
    Path(__file__), "SGD on inputs with a mean against averages over fast fields", draw, table, page
)


def main() -> int:
    """Run, judge, print; write numbers, figure and page."""
    return PUBLICATION.measured(measure, judge, dimension=3000)


if __name__ == "__main__":
    run(main)
