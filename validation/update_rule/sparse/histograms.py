"""Histograms of SGD against densities under priors that are not linear: how many pairs of a hundred agree.

Problems are those of *random problems* with fresh seeds, solved to 1e-6. At N = 100,000 steps are so many that runs end
at t = 0.1, with one sample a step; at N = 10,000 they end at t = 1, with batches as they are drawn. Four runs each are
held against the density by overlaps, work of the prior, and whole weights, alone and given u. The test errs in 5 of 100
true pairs. The same runs are held against the density without the prior, too. Lines are the shares of pairs whose p
value is at most the number below.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import binom

import meanfield
from meanfield.comparison import rotations
from meanfield.comparison.judgement import FALSE_ALARMS
from meanfield.plotting import COLOURS, place_legend
from meanfield.problems.variable import AGREES, DIFFERS
from validation.rows import Row, measure
from validation.study import Statement, Study
from validation.update_rule.sparse.random_problems import ROWS, SCHEMES, WRONG, random_problem, solved

PAIRS, FRESH = 100, 10_000
SIZES: dict[int, dict[str, Any]] = {
    100_000: {"model.batch_size": 1, "time": {"stop": 0.1, "outputs": 2}},
    10_000: {"time": {"stop": 1.0, "outputs": 2}},
}
"""What problems have besides, by the N of their runs."""

NO_PRIOR = {"name": "none"}


def pair(task: str) -> Row:
    """P value of a density and four runs, whether they agree, and whether the density without the prior differs."""
    N, number = map(int, task.split())
    rotations.SEED = number
    problem = meanfield.with_values(random_problem(FRESH + number, False), SIZES[N])
    # With one seed for all, runs of all rules of a kind have the same noise, and are off together or not at all.
    runs = {"dimension": N, "replicas": 4, "seed": number, "snapshots": [problem.time.stop]}
    sgd = meanfield.simulate_sgd(meanfield.with_value(problem, "particles", runs), workers=1)
    right, wrong = (solved(each, SCHEMES[0]) for each in (problem, meanfield.with_value(problem, "prior", NO_PRIOR)))
    # As if it were a prediction for the problem itself: what attributes say of it is the problem of SGD.
    right, wrong = (meanfield.compare(each, sgd) for each in (right, wrong.assign_attrs(right.attrs)))
    agrees, differs = right.attrs["verdict"] == AGREES, wrong.attrs["verdict"] == DIFFERS
    return {"p": float(right["p_value"].item()), "agrees": agrees, "wrong_differs": differs}


def simulate() -> xr.Dataset:
    """Rows of all pairs; those of a run that was stopped are known."""
    tasks = [f"{N} {number}" for N, number in product(SIZES, range(PAIRS))]
    rows = measure(pair, tasks, [ROWS.with_name("sgd_histograms.jsonl")])
    found = {
        f"sgd_{name}": (("N", "pair"), np.reshape([rows[task][name] for task in tasks], (len(SIZES), PAIRS)))
        for name in ("p", "agrees", "wrong_differs")
    }
    return xr.Dataset(found, {"N": list(SIZES)})


def judge(numbers: xr.Dataset) -> list[Statement]:
    """How many agree, and how many a wrong density is told from."""
    if "sgd_p" not in numbers:
        return []
    allowed, found = int(binom.isf(WRONG, PAIRS, FALSE_ALARMS)), []
    for N in SIZES:
        agree, told = (int(numbers[name].sel(N=N).sum()) for name in ("sgd_agrees", "sgd_wrong_differs"))
        text = f"at N = {N:,} all agree but false alarms, {allowed} at most in 99 of 100 studies"
        number = f"{agree} of {PAIRS} agree; without the prior {told} differ"
        found.append(Statement(text, "ours", PAIRS - agree <= allowed, number))
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Distribution functions of p values."""
    figure = Figure(figsize=(4.5, 3.8), layout="constrained")
    axes = figure.subplots()
    for N, colour in zip(SIZES, COLOURS, strict=False):
        p = np.sort(numbers["sgd_p"].sel(N=N))
        axes.plot(p, (np.arange(PAIRS) + 1) / PAIRS, color=colour, label=f"N = {N:,}")
    axes.axline((0.0, 0.0), slope=1.0, linestyle=":", color="0.5")
    axes.set(xlabel="p value", ylabel="share of pairs", xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    place_legend(axes)
    return figure


STUDY = Study(xr.Dataset, judge, draw, simulate)
