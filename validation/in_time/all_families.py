"""Schedules and phases of all families, held against SciPy, densities and SGD.

Random problems follow schedules of all shapes, half of them through two or three phases. Order parameters and exact
flows are those of an integrator that shares no code in time, densities under linear priors have the overlaps within
their stated errors, and SGD agrees with its own limit and differs from one with a number that is a fifth larger.

    python -m validation.in_time.all_families --page docs/in_time.md

prints tables, and writes the numbers to data/runs/in_time/all_families.nc and the figure beside this module. Every row
is written to data/measured/in_time.jsonl as it is found, and what is there is not done again: remove rows that other
code has found. `--rows` names other files, of machines that did a `--part`. With `--again` it judges and draws the
numbers that are there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import binom, binomtest

from meanfield.cli import DONE, at_least, parser, run
from meanfield.comparison.judgement import FALSE_ALARMS
from meanfield.plotting import COLOURS, MARKERS, place_legend
from meanfield.problems.variable import AGREES, DIFFERS
from validation import ROOT
from validation.in_time.measurements import ALLOWED, KINDS, POWER, TASKS, do
from validation.pages import markdown_table
from validation.publication import Publication, claim_of, verdicts
from validation.rows import Row, measure, part_of
from validation.study import Statement

WANTED = 0.95
"""Share of verdicts on wrong limits that should be right."""

ROWS = ROOT / "data/measured/in_time.jsonl"
"""Rows that are known."""

CHANCE = 0.01
"""Share of studies in which chance alone adds more false alarms than it is allowed to."""


def columns(dim: str, rows: Sequence[Row]) -> xr.Dataset:
    """Variables of one dim from rows."""
    return xr.Dataset({name: (dim, [row[name] for row in rows]) for name in rows[0]})


def gathered(rows: dict[str, Row]) -> xr.Dataset:
    """All numbers in one Dataset."""
    ordered = sorted(rows.items(), key=lambda item: int(item[0].split()[1]))
    of = {name: [dict(row) for task, row in ordered if task.startswith(name)] for name in TASKS}
    tried = list(chain.from_iterable(row.pop("tried") for row in of["pair"]))
    parts = {"true_pair" if name == "pair" else name: each for name, each in of.items()} | {"change": tried}
    return xr.merge([columns(dim, each) for dim, each in parts.items()])


def counted(names: xr.DataArray, of: str, right: xr.DataArray | None = None) -> str:
    """Number of those of a kind, or of those that are right among them."""
    mine = names == of
    return f"{int(mine.sum())}" if right is None else f"{int((mine & right).sum())} of {int(mine.sum())}"


def share(found: int, count: int) -> str:
    """Number of those that are found, and the interval in which their share is in 95 of 100 studies."""
    low, high = (100.0 * end for end in binomtest(found, count).proportion_ci(0.95))
    return f"{found} of {count}, {100 * found / count:.1f} % ({low:.1f} to {high:.1f})"


def by_chance(count: int, studies: int = 1) -> int:
    """Most false alarms of so many true pairs that chance brings, but for one in a hundred such sets of studies."""
    return int(binom.isf(CHANCE / studies, count, FALSE_ALARMS))


def judge(data: xr.Dataset) -> list[Statement]:
    """What the numbers say."""
    furthest, ratio = float(data["flow_difference"].max()), float(data["density_ratio"].max())
    agree, pairs = data["verdict"] == AGREES, data.sizes["true_pair"]
    others = {name: int((~agree & (data["pair_kind"] == name)).sum()) for name in KINDS}
    most = {name: by_chance(int((data["pair_kind"] == name).sum()), len(KINDS)) for name in KINDS}
    worst = max(KINDS, key=lambda name: others[name] - most[name])
    told = data["changed_verdict"].isel(true_pair=np.flatnonzero(data["changed_verdict"] != ""))
    differ = int((told == DIFFERS).sum())
    return [
        Statement(
            f"order parameters and exact flows of {int(data['flow_difference'].count())} random problems are those of "
            f"SciPy to {ALLOWED:g}", "ours", furthest <= ALLOWED, f"off by {furthest:.1g} at most",
        ),
        Statement(
            f"{data.sizes['density']} densities under linear priors have the overlaps of order parameters within their "
            "stated errors", "ours", ratio <= 1.0, f"{ratio:.2f} of the stated error at most",
        ),
        Statement(
            "SGD agrees with its own limit, but for 5 false alarms in 100 cases, which is the rate of the test, and "
            "what chance adds to them in 99 of 100 studies", "ours", sum(others.values()) <= by_chance(pairs),
            f"{share(int(agree.sum()), pairs)} agree; of the {sum(others.values())} others {by_chance(pairs)} are "
            "allowed",
        ),
        Statement(
            "so it does in each family", "ours", others[worst] <= most[worst],
            f"{KINDS[worst].title}: {others[worst]} others, and {most[worst]} are allowed",
        ),
        Statement(
            "SGD differs from a limit with a number that is a fifth larger in 95 of 100 cases", "ours",
            differ >= WANTED * told.size, share(differ, told.size),
        ),
    ]  # fmt: skip


def table(data: xr.Dataset) -> str:
    """A line for each kind."""
    told = data["changed_verdict"] != ""
    rows = []
    for name, kind in KINDS.items():
        away = data["flow_difference"][data["flow_kind"] == name].dropna("flow")
        dense = data["density_ratio"][data["density_kind"] == name]
        rows.append(
            (
                kind.title,
                f"{away.size}",
                f"{float(away.max()):.1e}",
                f"{dense.size}" if dense.size else "",
                f"{float(dense.max()):.2f}" if dense.size else "",
                counted(data["pair_kind"], name, data["verdict"] == AGREES),
                counted(data["pair_kind"][told], name, data["changed_verdict"][told] == DIFFERS),
            )
        )
    header = ("problems", "flows", "furthest off", "densities", "of stated error", "true pairs agree", "wrong differ")
    return markdown_table(header, rows)


def powers(data: xr.Dataset) -> str:
    """A line for each key that was made a fifth larger."""
    rows = []
    for name, kind in KINDS.items():
        mine = data["tried_kind"] == name
        for key in sorted(set(data["tried_key"].values[mine].tolist())):
            sizes = data["tried_effect"].values[mine & (data["tried_key"] == key)]
            median = f"{np.median(sizes):.2g}"
            rows.append((kind.title, f"`{key}`", f"{len(sizes)}", f"{int((sizes < POWER).sum())}", median))
    return markdown_table(("problems", "what is a fifth larger", "tried", "too little", "median effect"), rows)


def draw(data: xr.Dataset) -> Figure:
    """Differences of flows, errors of densities, p values of true pairs, and effects of changes."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
    for i, (name, kind) in enumerate(KINDS.items()):
        away = np.sort(data["flow_difference"][data["flow_kind"] == name].dropna("flow"))
        left.semilogx(
            np.maximum(away, 1e-16), (np.arange(len(away)) + 1) / len(away), color=COLOURS[i], label=kind.title
        )
        mine = (data["pair_kind"] == name) & (data["changed_verdict"] != "")
        seen = data["changed_verdict"].values[mine] == DIFFERS
        size = data["changed_effect"].values[mine]
        right.semilogx(size[seen], np.full(seen.sum(), i), MARKERS[i], color=COLOURS[i], mfc="none", ms=5)
        right.semilogx(size[~seen], np.full((~seen).sum(), i), "x", color="black", ms=7)
    left.axvline(ALLOWED, color="0.5", lw=1)
    left.set(
        xlabel="largest difference from SciPy", ylabel="share of flows", title="flows", yticks=np.linspace(0.0, 1.0, 6)
    )
    place_legend(left)
    p = np.sort(data["p_value"].values[np.isfinite(data["p_value"].values)])
    middle.plot(p, (np.arange(len(p)) + 1) / len(p), color=COLOURS[0], label="SGD and its limit")
    middle.plot([0, 1], [0, 1], color="0.5", lw=1, label="chance")
    middle.set(xlabel="p value", ylabel="share of pairs", title="true pairs")
    place_legend(middle)
    right.set(xlabel="effect by what chance allows", title="a fifth more (x: not seen)", xlim=(1.0, None))
    right.set_yticks(range(len(KINDS)), [kind.title for kind in KINDS.values()])
    return figure


def page(data: xr.Dataset, statements: list[Statement]) -> str:
    """The page of the site."""
    pairs = data.sizes["true_pair"]
    sliding = int(data["flow_difference"].isnull().sum())
    lacking = int((data["tried_effect"] < POWER).sum())
    without = int((data["changed_verdict"] == "").sum())
    differ = data["again_verdict"] != AGREES
    trees = data["again_seed"].values[differ & (data["again_kind"] == "latent_tree")]
    others, others_differ = differ.size - trees.size, int(differ.sum()) - trees.size
    return f"""# Schedules and phases of all families

Written by `python -m validation.in_time.all_families --page docs/in_time.md`.

{claim_of(Path(__file__))}

![flows and verdicts in time](../validation/in_time/all_families.png)

{verdicts(statements)}

Problems are drawn by `validation/in_time/cases.py`. Flows are held against SciPy, which begins anew at jumps and bends,
with schedules that are evaluated there once more. Flows that slide along the surface on which the gate of a node opens,
where steps of SciPy do not end, are not: {sliding} of {data.sizes["flow"]}. {pairs} pairs are a limit and runs of SGD.

{table(data)}

A true pair that does not agree is a false alarm. The test allows 5 of them in 100 cases, so that of {pairs} pairs as
many as {by_chance(pairs)} come by chance in 99 of 100 studies; a rate of 10 % would bring more in
{100 * float(binom.sf(by_chance(pairs), pairs, 0.1)):.0f} of 100. What stands in brackets is where the share is in 95 of
100 studies. SGD of `latent_tree` and `alpha_contrastive` has a bias of the order of its learning rate, and a scatter of
its square root: half a step is allowed, under schedules that of the largest rate, and the rest shows in many runs at
large rates. So trees have rates of 0.00125 to 0.005 here, and eight runs. At four times these rates the trees of seeds
1001 and 1004 are off by 0.45 and 0.57 of the scatter of a run (128 runs), and differ. That of seed 1005 is off by 0.83
of it there, and by 0.61 at the rates here, where half is what a bias of the order of the rate leaves: which rates are
small enough for it is not known.

Chance alone brings {differ.size} others or more among {pairs} in
{100 * float(binom.sf(differ.size - 1, pairs, FALSE_ALARMS)):.0f} of 100 studies.
The {differ.size} were run again, each once with other random numbers of SGD (`again` in `data/measured/in_time.jsonl`):
the trees of seeds {", ".join(map(str, trees))} differ then,
too; so do {others_differ} of the {others} others, as {others_differ} or more of {others} do in
{100 * float(binom.sf(others_differ - 1, others, FALSE_ALARMS)):.0f} of 100 studies, and {others} or more of
{pairs - trees.size} come in {100 * float(binom.sf(others - 1, pairs - trees.size, FALSE_ALARMS)):.0f} of 100. Runs of
the tree 1039 divide: six of eight stay where the gate of a node shuts, and two pass it, as the flow does, at these
rates and at a quarter of them. The flow goes by so closely that noise decides, and the mean of runs is on neither way.

## What a fifth does

In each pair numbers of schedules and phases are made a fifth larger in random order, until one changes what training
moves by {POWER:g} times what chance allows; of that one the verdict is asked. {without} pairs have no such number.
Of {data.sizes["change"]} changes {lacking} do less. The strength of a linear prior leaves overlaps as they are;
learning rates of `alpha_contrastive` and `latent_tree` change the noise of SGD and not the flow, as do batches of the
latter, and batches of the former are in the flow with one over their size; weight decay is orthogonal to filters of
unit length. Others are too small, or come in phases that are too short or too late.

{powers(data)}
"""


PUBLICATION = Publication(Path(__file__), "Schedules and phases of all families", draw, table, page)


def main() -> int:
    """Measure, judge, print; write numbers, figure and page."""
    command = parser(__doc__ or "")
    command.add_argument("--flows", type=at_least(1, "flows"), default=200, metavar="N")
    command.add_argument("--densities", type=at_least(1, "densities"), default=40, metavar="N")
    command.add_argument("--pairs", type=at_least(1, "pairs"), default=480, metavar="N")
    command.add_argument("--rows", type=Path, nargs="+", metavar="ROWS.jsonl", help="the first one gets new rows")
    command.add_argument("--part", type=part_of, metavar="I/K", help="do the I-th of K parts, and judge nothing")
    command.add_argument("--again", action="store_true", help="judge and draw the numbers that are there")
    command.add_argument("--page", type=Path, metavar="OUT.md", help="where the page of the site goes")
    arguments = command.parse_args()
    began = time.perf_counter()
    if arguments.again:
        with xr.open_dataset(PUBLICATION.numbers) as known:
            data = known.load()
    else:
        counts = {"pair": arguments.pairs, "flow": arguments.flows, "density": arguments.densities}
        tasks = [f"{name} {i}" for name, count in counts.items() for i in range(count)]
        np.random.default_rng(0).shuffle(tasks)  # so that parts take equally long
        files = arguments.rows or [ROWS]
        rows = measure(do, tasks[arguments.part or slice(None)], files)
        pairs = [task.split()[1] for task, row in rows.items() if row.get("verdict", AGREES) != AGREES]
        if arguments.part:
            print(f"{len(rows)} of {len(tasks)} rows are in {files[0]}; give all parts to --rows for the page")
            return DONE
        data = gathered(rows | measure(do, [f"again {i}" for i in pairs], files))
    return PUBLICATION.write(data, judge(data), began, arguments.page)


if __name__ == "__main__":
    run(main)
