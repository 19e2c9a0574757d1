"""Verdicts on own training runs, and the assumption that they name: 100 true cases, and 100 that break one of six.

Each case is a random problem, contrastive with one or two features or linear regression by a rule, and eight runs of a
NumPy loop at N = 1000, of which the result keeps 2,000 inputs of the first run. Inputs of true cases are Gaussian, or
have independent entries of Student's law with five degrees of freedom, for which the limit holds, too, with errors of
order 1/N that are larger. Broken ones use 300 samples again and again, have a common radius of that law, inputs whose
covariance is not the identity, hidden variables of another law, another learning rate or noise of labels, or start on
few coordinates. The verdict is of what runs show alone. The cause counts as named if it comes first in the reason,
also where runs agree, or in what labels show. `python -m validation.own_runs.reasons` writes docs/reasons.md.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from scipy.stats import binom

import meanfield
from meanfield.cli import DONE, parser, run
from meanfield.comparison.judgement import FALSE_ALARMS
from meanfield.plotting import COLOURS, place_legend
from meanfield.problems.variable import DIFFERS
from meanfield.results.figure_files import save_figure
from validation import ROOT
from validation.own_runs.cases import case_of, train
from validation.pages import markdown_table, verdict
from validation.rows import Row, measure
from validation.study import Statement

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


def summary(rows: Sequence[Row]) -> list[Statement]:
    """What the cases decide."""
    true = [row for row in rows if not row["broken"]]
    broken = [row for row in rows if row["broken"]]
    alarms = sum(row["differs"] for row in true)
    in_data = sum(bool(row["in data"]) for row in true)
    allowed = int(binom.isf(CHANCE, len(true), FALSE_ALARMS))
    right = len(true) - alarms + sum(row["differs"] for row in broken)
    named = sum(row["named"] == [row["broken"]] for row in broken)
    heavy = [row for row in true if row["heavy"]]
    return [
        Statement(
            "verdicts are right in at least 95 % of all cases",
            "ours",
            right >= 0.95 * len(rows),
            f"{right} of {len(rows)}",
        ),
        Statement(
            "where an assumption is broken the reason names it first, in at least 90 %",
            "ours",
            named >= 0.9 * len(broken),
            f"{named} of {len(broken)}",
        ),
        Statement(
            f"verdicts on true cases differ no more often than the {FALSE_ALARMS:.0%} of their test and chance allow",
            "ours",
            alarms <= allowed,
            f"{alarms} of {len(true)} ({sum(row['differs'] for row in heavy)} of {len(heavy)} with heavy tails), and "
            f"{allowed} or fewer in {1 - CHANCE:.0%} of studies",
        ),
        Statement(
            "samples of at most 5 % of true cases are said to contradict the problem",
            "ours",
            in_data <= 0.05 * len(true),
            f"{in_data} of {len(true)}; {sum(bool(r['in data']) for r in heavy)} of {len(heavy)} with heavy tails",
        ),
    ]


def draw(rows: Sequence[Row]) -> Figure:
    """Share of verdicts that differ, and of causes that are named, by what is broken."""
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    kinds = ["", *KINDS]
    for offset, what, label in ((-0.2, "differs", "DIFFERS"), (0.2, "named", "named first")):
        shares = [
            np.mean([row[what] == [kind] if what == "named" else row[what] for row in rows if row["broken"] == kind])
            for kind in kinds
        ]
        shares = [np.nan if what == "named" and not kind else share for kind, share in zip(kinds, shares, strict=True)]
        ax.bar(np.arange(len(kinds)) + offset, shares, 0.4, label=label, color=COLOURS[0 if what == "differs" else 1])
    ax.axhline(FALSE_ALARMS, color="black", lw=0.8, ls=":", label="5 %")
    ax.set_xticks(range(len(kinds)), [textwrap.fill(kind or "nothing", 12) for kind in kinds])
    ax.set(xlabel="what is broken", ylabel="share of cases")
    place_legend(ax)
    return figure


def page(rows: Sequence[Row], statements: Sequence[Statement]) -> str:
    """The page of the study."""
    table = [
        (
            kind or "nothing",
            len(those),
            sum(row["differs"] for row in those),
            sum(row["named"] == [kind] for row in those) if kind else "-",
            sum(bool(row["in data"]) for row in those),
        )
        for kind in ["", *KINDS]
        if (those := [row for row in rows if row["broken"] == kind])
    ]
    head, _, claim = (__doc__ or "").partition("\n\n")
    return "\n\n".join(
        [
            "# What own runs break",
            head,
            claim.strip(),
            "![what own runs break](../validation/own_runs/reasons.png)",
            markdown_table(
                ("statement", "made in", "verdict", "number"),
                [(s.text, s.source, verdict(s.source, s.holds), s.number) for s in statements],
            ),
            markdown_table(("broken", "cases", "DIFFERS", "named first", "contradicted by samples"), table),
            f"{len(rows)} of {CASES} cases are measured, with seeds from {FIRST_SEED} on.\n",
        ]
    )


def main() -> int:
    """Measure all cases, and write the page, the figure and the rows."""
    options = parser(__doc__)
    options.add_argument("--rows", type=Path, nargs="+", default=[ROOT / "data/measured/own_runs.jsonl"])
    options.add_argument("--cases", type=int, default=CASES, help="number of the first cases, of which rows are there")
    asked, kinds = options.parse_args(), list(KINDS)
    broken = [kinds[number // 2 % len(kinds)] if number % 2 else "" for number in range(CASES)]
    tasks = [f"{FIRST_SEED + number} {name}" for number, name in enumerate(broken)]
    rows = list(measure(do, tasks[: asked.cases], asked.rows).values())
    statements = summary(rows)
    save_figure(draw(rows), ROOT / "validation/own_runs/reasons.png")
    (ROOT / "docs/reasons.md").write_text(page(rows, statements))
    print(*statements, sep="\n")
    return DONE


if __name__ == "__main__":
    run(main)
