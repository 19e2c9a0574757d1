"""Histograms of SGD against densities under priors that are not linear: how many pairs agree.

Problems are those of *random problems* with fresh seeds, solved to 1e-6. At N = 100,000 steps are so many that runs end
at t = 0.1, with one sample a step. Four runs each, with a seed for each pair, are held against the density by overlaps,
work of the prior, and whole weights, alone and given u. The test errs in 5 of 100 true pairs. The same runs are held
against the density without the prior, too. The line is the share of pairs whose p value is at most the number below.
These are the first 27 pairs of a hundred. A hundred each with one seed for all, so that pairs are off together, agreed
97 times at N = 100,000, and 91 times at N = 10,000 until t = 1, which cannot tell; neither has been run again in full.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import binom

import meanfield
from meanfield.comparison import rotations
from meanfield.comparison.judgement import FALSE_ALARMS
from meanfield.problems.variable import AGREES, DIFFERS
from validation.rows import Row, measure
from validation.study import Statement, Study
from validation.update_rule.sparse.random_problems import ROWS, SCHEMES, WRONG, random_problem, solved

N, PAIRS, FRESH = 100_000, 27, 10_000
SHORT = {"model.batch_size": 1, "time": {"stop": 0.1, "outputs": 2}}
"""What problems have besides: so many steps take a minute."""

NO_PRIOR = {"name": "none"}


def pair(task: str) -> Row:
    """P value of a density and four runs, whether they agree, and whether the density without the prior differs."""
    number = int(task.split()[1])
    rotations.SEED = number
    problem = meanfield.with_values(random_problem(FRESH + number, False), SHORT)
    runs = {"dimension": N, "replicas": 4, "seed": number, "snapshots": [problem.time.stop]}
    sgd = meanfield.simulate_sgd(meanfield.with_value(problem, "particles", runs), workers=1)
    right, wrong = (solved(each, SCHEMES[0]) for each in (problem, meanfield.with_value(problem, "prior", NO_PRIOR)))
    # As if it were a prediction for the problem itself: what attributes say of it is the problem of SGD.
    right, wrong = (meanfield.compare(each, sgd) for each in (right, wrong.assign_attrs(right.attrs)))
    agrees, differs = right.attrs["verdict"] == AGREES, wrong.attrs["verdict"] == DIFFERS
    return {"p": float(right["p_value"].item()), "agrees": agrees, "wrong_differs": differs}


def simulate() -> xr.Dataset:
    """Rows of all pairs; those of a run that was stopped are known."""
    tasks = [f"{N} {number}" for number in range(PAIRS)]
    rows = measure(pair, tasks, [ROWS.with_name("sgd_histograms.jsonl")])
    names = ("p", "agrees", "wrong_differs")
    return xr.Dataset({f"sgd_{name}": ("pair", [rows[task][name] for task in tasks]) for name in names})


def judge(numbers: xr.Dataset) -> list[Statement]:
    """How many agree, and how many a wrong density is told from."""
    if "sgd_p" not in numbers:
        return []
    allowed = int(binom.isf(WRONG, PAIRS, FALSE_ALARMS))
    agree, told = (int(numbers[name].sum()) for name in ("sgd_agrees", "sgd_wrong_differs"))
    text = f"at N = {N:,} all agree but false alarms, {allowed} at most in 99 of 100 studies"
    number = f"{agree} of {PAIRS} agree; without the prior {told} differ"
    return [Statement(text, "ours", PAIRS - agree <= allowed, number)]


def draw(numbers: xr.Dataset) -> Figure:
    """Distribution function of p values."""
    figure = Figure(figsize=(4.5, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.plot(np.sort(numbers["sgd_p"]), (np.arange(PAIRS) + 1) / PAIRS)
    axes.axline((0.0, 0.0), slope=1.0, linestyle=":", color="0.5")
    axes.set(xlabel="p value", ylabel="share of pairs", xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    return figure


STUDY = Study(xr.Dataset, judge, draw, simulate)
