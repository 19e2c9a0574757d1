"""Verdicts on own training runs, and the assumption that they name: 100 true cases, and 100 that break one of six.

Each case is a random problem, contrastive with one or two features or linear regression by a rule, and eight runs of a
NumPy loop at N = 1000, of which the result keeps 2,000 inputs of the first run. Inputs of true cases are Gaussian, or
have independent entries of Student's law with five degrees of freedom, for which the limit holds, too, with errors of
order 1/N that are larger. Broken ones use 300 samples again and again, have a common radius of that law, inputs whose
covariance is not the identity, hidden variables of another law, another learning rate or noise of labels, or start on
few coordinates. The verdict is of what runs show alone. The cause counts as named if it comes first in the reason,
also where runs agree, or in what labels show. Rows are kept in data/measured/own_runs.jsonl as they end, and not done
again.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import binom

import meanfield
from meanfield.comparison.judgement import FALSE_ALARMS
from meanfield.plotting import COLOURS, place_legend
from meanfield.problems.variable import DIFFERS
from validation import ROOT
from validation.own_runs.cases import case_of, train
from validation.rows import Row, measure
from validation.study import Statement, Study

CASES, FIRST_SEED = 200, 46_000

CHANCE = 0.01
"""Share of studies in which chance alone adds more false alarms than are allowed."""

KINDS = {
    "repeated samples": "every sample was used|had been used before",
    "common radius": "scatters by",
    "correlated inputs": "variances of directions|times the variance",
    "hidden law": "the hidden variables have another law",
    "step": "look at the step",
    "mass on few coordinates": "their length on about",
}
"""Broken assumptions, and how reasons begin that name them."""


def do(task: str) -> Row:
    """Verdict on a case, and what it names; a task is the seed and what is broken."""
    seed, _, broken = task.partition(" ")
    case = case_of(int(seed), broken)
    own, labels = train(case)
    by_density = not case.problem.prior.functions.linear
    limit = (meanfield.solve_density if by_density else meanfield.solve_order_parameters)(case.problem)
    found = meanfield.compare(limit, own).isel(pair=0)
    reason = str(found["reason"].values)
    in_data = reason.startswith("Data of the runs")
    first = reason.partition(";" if in_data or reason.startswith("As is to be expected") else "which counts")[0]
    named = [name for name, words in KINDS.items() if re.search(words, re.sub(r"\(though .*\)", "", first))]
    has_labels = "rule_parameters" in case.problem.model.model_fields_set
    data = {"labels": labels, "label_noise": "model.rule_parameters.sigma"} if has_labels else {}
    report = meanfield.problem_from(own["samples"], features=own["U"][0], like=case.problem, **data)
    named += ["step"] if "label noise" in report.broken else []
    return {
        "broken": broken,
        "heavy": case.heavy,
        "differs": str(found["verdict"].values) == DIFFERS,
        "named": named[:1],
        "in data": list(report.broken),
        "p": float(found["p_value"]),
    }


def numbers() -> xr.Dataset:
    """Rows of all cases."""
    kinds = list(KINDS)
    tasks = [f"{FIRST_SEED + k} {kinds[k // 2 % len(kinds)] if k % 2 else ''}" for k in range(CASES)]
    rows = measure(do, tasks, [ROOT / "data/measured/own_runs.jsonl"])
    return dataset_of([rows[task] for task in tasks])


def dataset_of(rows: list[Row]) -> xr.Dataset:
    """What is told of each case: lists become whether the first is what is broken, and whether there is any."""
    arrays = {name: [row[name] for row in rows] for name in ("broken", "heavy", "differs")}
    arrays |= {
        "named": [row["named"] == [row["broken"]] for row in rows],
        "in_data": [any(row["in data"]) for row in rows],
    }
    return xr.Dataset({name: ("case", np.array(each)) for name, each in arrays.items()})


def judge(found: xr.Dataset) -> list[Statement]:
    """What the cases decide."""
    true, broken = (found.isel(case=np.flatnonzero((found["broken"] == "") == which)) for which in (True, False))
    heavy = true.isel(case=np.flatnonzero(true["heavy"]))
    alarms, in_data, of_heavy = int(true["differs"].sum()), int(true["in_data"].sum()), f"of {heavy.sizes['case']}"
    allowed = int(binom.isf(CHANCE, true.sizes["case"], FALSE_ALARMS))
    right = true.sizes["case"] - alarms + int(broken["differs"].sum())

    def but_for(what: str) -> str:
        """Broken cases without something, by what is broken."""
        without = Counter(broken["broken"].values[~broken[what].values].tolist())
        return ", ".join(
            f"{count} of {(broken['broken'] == kind).sum().item()} {kind}" for kind, count in without.items()
        )

    return [
        Statement(
            "verdicts are right in at least 95 % of all cases",
            "ours",
            right >= 0.95 * found.sizes["case"],
            f"{right} of {found.sizes['case']}; broken ones that agree: {but_for('differs') or 'none'}",
        ),
        Statement(
            "where an assumption is broken the reason names it first, in at least 90 %",
            "ours",
            broken["named"].mean() >= 0.9,
            f"{broken['named'].sum().item()} of {broken.sizes['case']}; not: {but_for('named') or 'none'}",
        ),
        Statement(
            f"verdicts on true cases differ no more often than the {FALSE_ALARMS:.0%} of their test and chance allow",
            "ours",
            alarms <= allowed,
            f"{alarms} of {true.sizes['case']} ({heavy['differs'].sum().item()} {of_heavy} with heavy tails), and "
            f"{allowed} or fewer in {1 - CHANCE:.0%} of studies",
        ),
        Statement(
            "samples of at most 5 % of true cases are said to contradict the problem",
            "ours",
            in_data <= 0.05 * true.sizes["case"],
            f"{in_data} of {true.sizes['case']}; {heavy['in_data'].sum().item()} {of_heavy} with heavy tails",
        ),
    ]


def draw(found: xr.Dataset) -> Figure:
    """Share of verdicts that differ, and of causes that are named, by what is broken."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    ax, kinds = figure.subplots(), ["", *KINDS]
    for number, (what, label) in enumerate({"differs": "DIFFERS", "named": "named first"}.items()):
        shares = [found[what].values[found["broken"].values == kind].mean() for kind in kinds]
        ax.bar(np.arange(len(kinds)) + 0.4 * number - 0.2, shares, 0.4, label=label, color=COLOURS[number])
    ax.axhline(FALSE_ALARMS, color="black", lw=0.8, ls=":", label=f"{FALSE_ALARMS:.0%}")
    ax.set_xticks(range(len(kinds)), [textwrap.fill(kind or "nothing", 12) for kind in kinds])
    ax.set(xlabel="what is broken", ylabel="share of cases")
    place_legend(ax)
    return figure


STUDY = Study(numbers, judge, draw)
