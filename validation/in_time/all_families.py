"""Schedules and phases of all families, held against SciPy, densities and SGD.

Random problems follow schedules of all shapes, half of them through two or three phases. Order parameters and exact
flows are those of an integrator that shares no code in time, densities under linear priors have the overlaps within
their stated errors, and SGD agrees with its own limit and differs from one with a number that is a fifth larger.

    python -m validation.in_time.all_families --page docs/in_time.md

prints tables, and writes the numbers to data/runs/in_time/all_families.nc and the figure beside this module; it takes
two hours of one core, and uses all of them. Every row is written to a file as it is found: `--rows` names files of
calls that were stopped, or of other machines that did a `--part`, and what they have is not done again. With `--again`
it judges and draws the numbers that are there.
"""

from __future__ import annotations

import json
import signal
import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import binom, binomtest

import meanfield
from meanfield.cli import DONE, at_least, parser, run
from meanfield.comparison import rotations
from meanfield.comparison.judgement import FALSE_ALARMS
from meanfield.errors import InputError
from meanfield.plotting import COLOURS, MARKERS, place_legend
from meanfield.problems.variable import AGREES, DIFFERS
from meanfield.typing import FloatArray
from validation.in_time import cases, references
from validation.in_time.cases import Case
from validation.pages import markdown_table
from validation.publication import Publication, claim_of, verdicts
from validation.study import Statement

Row = dict[str, Any]

ALLOWED = 1e-8
"""Largest difference from SciPy."""

FACTOR = 1.2
"""What is larger in a wrong limit, relative to the right one."""

POWER = 1.5
"""Least effect of a change, in units of what chance allows, of which the verdict is asked."""

WANTED = 0.95
"""Share of verdicts on wrong limits that should be right."""

CHANCE = 0.01
"""Share of studies in which chance alone adds more false alarms than it is allowed to."""

FIRST_PAIR = 1000
"""Seeds from here on are those of pairs, on which no flow was tried."""


class Kind(NamedTuple):
    """Problems of one kind.

    Parameters
    ----------
    title : str
    method : str
        The limit in time.
    case : callable
        Seed to a case.
    reference : callable
        Case to what SciPy finds.
    trained : tuple of str
        What a wrong limit is judged by: what training moves, and no number says by itself.
    """

    title: str
    method: str
    case: Callable[[int], Case]
    reference: Callable[[Case], FloatArray]
    trained: tuple[str, ...]


MOMENTS = ("moment_cos", "moment_sin", "G")

KINDS = {
    "one_channel": Kind("contrastive", "order_parameters", cases.one_channel, references.one_channel, ("q",)),
    "two_channels": Kind(
        "contrastive, two channels", "order_parameters", cases.two_channels, references.two_channels, ("q", "M")
    ),
    "hidden_manifold": Kind(
        "hidden_manifold", "order_parameters", cases.hidden_manifold, references.hidden_manifold, ("Q", "R", "v")
    ),
    "alpha_contrastive": Kind(
        "alpha_contrastive", "population", cases.alpha_contrastive, references.alpha_contrastive, MOMENTS
    ),
    "latent_tree": Kind("latent_tree", "population", cases.latent_tree, references.latent_tree, ("selectivity",)),
    "update_rule": Kind("update_rule", "order_parameters", cases.update_rule, references.update_rule, ("R", "Q")),
}

WITH_PRIORS = ("one_channel", "two_channels")
"""Kinds with a linear prior, of which densities have the overlaps of the order parameters."""


def flow(i: int) -> Row:
    """Largest difference of a flow from SciPy; evenly over the kinds.

    It is NaN where a node slides along the surface on which its gate opens: the velocity jumps there from one side to
    the other, so that steps of SciPy do not end.
    """
    name, kind = list(KINDS.items())[i % len(KINDS)]
    case = kind.case(i // len(KINDS))
    found = meanfield.solve(case.problem, kind.method)
    slides = json.loads(found.attrs["provenance"]).get("slides", 0)
    away = np.nan if slides else float(np.abs(references.numbers_of(found) - kind.reference(case)).max())
    return {"flow_kind": name, "flow_phases": len(case.stops), "flow_difference": away}


def density(i: int) -> Row:
    """Difference of a density from order parameters, by the stated errors; evenly over kinds with priors."""
    kind = KINDS[name := WITH_PRIORS[i % len(WITH_PRIORS)]]
    problem = kind.case(i // len(WITH_PRIORS)).problem
    found, limit = meanfield.solve(problem, "density"), meanfield.solve(problem, kind.method)
    ratios = [np.abs(found[held] - limit[held]) / (found[f"{held}_error"] + ALLOWED) for held in kind.trained]
    return {"density_kind": name, "density_ratio": max(float(each.max()) for each in ratios)}


def changes(kind: Kind, case: Case, right: xr.Dataset, report: xr.Dataset) -> Iterator[tuple[str, float, xr.Dataset]]:
    """Keys in random order, effects of a fifth more, and limits that are wrong in what training moves.

    An effect is the largest change of the limit in units of what chance allows to its difference from the runs.
    """
    known = list(case.numbers())
    names = [name for name in kind.trained if np.isfinite(report.get(f"{name}_chance", np.nan))]
    allowed = {name: report[f"{name}_chance"] * report[f"{name}_standard_error"] for name in names}
    for place in np.random.default_rng(case.base.particles.seed).permutation(len(known)):
        phase, key = known[int(place)]
        other = meanfield.solve(case.larger(phase, key, FACTOR).problem, kind.method)
        effect = max(float((np.abs(other[name] - right[name]) / allowed[name]).max()) for name in names)
        yield key, effect, right.assign({name: right[name].copy(data=other[name]) for name in kind.trained})


def pair(i: int) -> Row:
    """Verdicts on a true pair of a limit and SGD and on a wrong limit, and the changes that were tried."""
    name, kind = list(KINDS.items())[i % len(KINDS)]
    case = kind.case(FIRST_PAIR + i // len(KINDS))
    rotations.SEED = i
    runs, right = meanfield.solve(case.problem, "particles"), meanfield.solve(case.problem, kind.method)
    report = meanfield.compare(right, runs)
    told = {"pair_kind": name, "p_value": float(report["p_value"][0]), "verdict": report.attrs["verdict"]}
    changed: Row = {"changed_key": "", "changed_effect": np.nan, "changed_verdict": ""}
    tried = []
    for key, effect, wrong in changes(kind, case, right, report.isel(pair=0)):
        tried.append({"tried_kind": name, "tried_key": key, "tried_effect": effect})
        if effect >= POWER:
            verdict = meanfield.compare(wrong, runs).attrs["verdict"]
            changed = {"changed_key": key, "changed_effect": effect, "changed_verdict": verdict}
            break
    return told | changed | {"tried": tried}


TASKS: dict[str, Callable[[int], Row]] = {"pair": pair, "flow": flow, "density": density}


def rows_of(path: Path) -> dict[str, Row]:
    """Rows of a file by the names of their tasks; a last line that was cut off is none.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        return dict(json.loads(line) for line in lines if line.endswith("\n"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as rows ({error}); give files that --rows wrote") from error


def line_of(item: tuple[str, Row]) -> str:
    """Line of a file of rows."""
    return json.dumps(item) + "\n"


def do(task: str) -> Row:
    """Row of a task, such as `flow 7`."""
    name, number = task.split()
    return TASKS[name](int(number))


def _begin() -> None:
    """Leave Ctrl-C to the process that writes rows: no row is that of a run that was interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def measure(tasks: Sequence[str], files: Sequence[Path]) -> dict[str, Row]:
    """Rows of tasks, side by side; those of files are known, and others are appended to the first one as they end."""
    known: dict[str, Row] = {}
    for path in files:
        known |= rows_of(path) if path.exists() or path is not files[0] else {}
    rows = {task: known[task] for task in tasks if task in known}
    files[0].parent.mkdir(parents=True, exist_ok=True)
    files[0].write_text("".join(map(line_of, known.items())), encoding="utf-8")
    with files[0].open("a", encoding="utf-8") as file, ProcessPoolExecutor(initializer=_begin) as pool:
        waiting = {pool.submit(do, task): task for task in tasks if task not in known}
        try:
            for future in as_completed(waiting):
                task = waiting[future]
                rows[task] = future.result()
                file.write(line_of((task, rows[task])))
                file.flush()
                print(f"{task}:", rows[task], flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return rows


def columns(dim: str, rows: Sequence[Row]) -> xr.Dataset:
    """Variables of one dim from rows."""
    return xr.Dataset({name: (dim, [row[name] for row in rows]) for name in rows[0]})


def gathered(rows: dict[str, Row]) -> xr.Dataset:
    """All numbers in one Dataset."""
    ordered = sorted(rows.items(), key=lambda item: int(item[0].split()[1]))
    of = {name: [dict(row) for task, row in ordered if task.startswith(name)] for name in TASKS}
    tried = list(chain.from_iterable(row.pop("tried") for row in of["pair"]))
    parts = {"flow": of["flow"], "density": of["density"], "true_pair": of["pair"], "change": tried}
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


def part_of(text: str) -> slice:
    """The type of an argument such as `2/3`, the second of three parts."""
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise ArgumentTypeError(f"'{text}' is no part; give one such as 2/3, the second of three")
    return slice(int(number) - 1, None, int(parts))


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
        files = arguments.rows or [PUBLICATION.numbers.with_suffix(".jsonl")]
        if not arguments.rows:
            files[0].unlink(missing_ok=True)
        rows = measure(tasks[arguments.part or slice(None)], files)
        if arguments.part:
            print(f"{len(rows)} of {len(tasks)} rows are in {files[0]}; give all parts to --rows for the page")
            return DONE
        data = gathered(rows)
    return PUBLICATION.write(data, judge(data), began, arguments.page)


if __name__ == "__main__":
    run(main)
