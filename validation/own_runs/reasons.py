"""Verdicts on own training runs, and the assumption that they name: 100 true cases, and 100 that break one of six.

Each case is a random problem, contrastive with one or two features or linear regression by a rule, and eight runs of a
NumPy loop at N = 400, of which the result keeps 2,000 inputs of the first run. Inputs of true cases are Gaussian, or
have independent entries of Student's law with five degrees of freedom, for which the limit holds, too. Broken ones use
300 samples again and again, have a common radius of that law, inputs whose covariance is not the identity, hidden
variables of another law, another learning rate or noise of labels, or start on few coordinates. The verdict is DIFFERS
where runs show it, or where their inputs contradict the problem. The cause counts as named if it comes first.
`python -m validation.own_runs.reasons` writes docs/reasons.md.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import binom

import meanfield
from meanfield.cli import DONE, parser, run
from meanfield.comparison.judgement import FALSE_ALARMS
from meanfield.plotting import COLOURS, place_legend
from meanfield.problems.variable import DIFFERS
from meanfield.results.figure_files import save_figure
from validation import ROOT
from validation.pages import markdown_table, verdict
from validation.rows import Row, measure
from validation.study import Statement

Array = np.ndarray

N, RUNS, SAMPLES, STOCK = 400, 8, 2000, 300
CASES, FIRST_SEED = 200, 45_000

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


def noisy_regression(y: Any, s: Any, eps: Any, rate: float, sigma: float) -> Any:
    """Step of linear regression on labels with noise."""
    return rate * (y + sigma * eps - s)


class Case(NamedTuple):
    """What is trained, and on what.

    Parameters
    ----------
    problem : Problem
    broken : str
        One of `KINDS`, or nothing.
    heavy : bool
        Whether entries of inputs are of Student's law.
    seed : int
    """

    problem: Any
    broken: str
    heavy: bool
    seed: int


def case_of(seed: int, broken: str) -> Case:
    """Random case."""
    rng = np.random.default_rng(seed)
    kinds = {"hidden law": ["contrastive"], "mass on few coordinates": ["l1"], "": ["contrastive", "regression", "l1"]}
    kind = rng.choice(kinds.get(broken, ["contrastive", "regression"]))
    time = {"stop": 3.0, "outputs": 7}
    particles = {"dimension": N, "replicas": RUNS, "snapshots": [0.0]}
    if kind == "regression":
        problem = meanfield.Problem(
            family="update_rule",
            model={
                "rule": "validation.own_runs.reasons:noisy_regression",
                "rule_parameters": {"rate": round(rng.uniform(0.3, 0.8), 2), "sigma": round(rng.uniform(0.3, 0.8), 2)},
                "batch_size": 2,
            },
            data={"normals": ["eps"]},
            features=[{"initial_overlap": round(rng.uniform(0.0, 0.3), 2)}],
            time=time,
            particles=particles | {"method": "plain"},
        )
    else:
        tables = {"prior": {"name": "l1", "strength": 2.0}} if kind == "l1" else {}
        count = 1 if kind == "l1" else int(rng.integers(1, 3))
        tanh = kind != "l1" and rng.random() < 0.3
        problem = meanfield.Problem(
            model={
                "activation": "tanh" if tanh else "quadratic",
                "learning_rate": 0.3 if tanh else 0.06,
                "batch_size": 4,
            },
            features=[_feature(rng) for _ in range(count)],
            time=time,
            particles=particles,
            **tables,
        )
    return Case(problem, broken, not broken and rng.random() < 0.4, seed)


def _feature(rng: np.random.Generator) -> dict[str, Any]:
    moment = round(rng.uniform(0.9, 1.4), 2)
    sparse = {"law": "three_point", "second_moment": moment, "fourth_moment": round(5.0 * moment**2, 3)}
    law = sparse if rng.random() < 0.6 else {"law": "laplace", "second_moment": moment}
    return {"hidden": law, "initial_overlap": round(rng.uniform(0.3, 0.6), 2)}


def features_of(rng: np.random.Generator, count: int) -> Array:
    """Orthogonal features of length sqrt(N) of each run, shape (runs, N, count)."""
    return np.sqrt(N) * np.linalg.qr(rng.standard_normal((RUNS, N, count)))[0]


def inputs_of(case: Case, U: Array, rng: np.random.Generator) -> Callable[[int], Array]:
    """Function of a number of samples that draws so many of each run, shape (runs, samples, N)."""
    laws = getattr(case.problem, "hidden_laws", ())
    root = _covariance_root(rng) if case.broken == "correlated inputs" else None
    factor = rng.uniform(1.5, 2.0) if rng.random() < 0.5 else rng.uniform(0.5, 0.65)

    def fresh(count: int) -> Array:
        if case.heavy:
            a = rng.standard_t(5, (RUNS, count, N)) * np.sqrt(3 / 5)
        else:
            a = rng.standard_normal((RUNS, count, N))
        if root is not None:
            a = a @ root
        if laws:
            c = np.concatenate([law.sample(rng, (RUNS, count)) for law in laws], axis=2)
            if case.broken == "hidden law":
                c = _of_another_law(c, factor, rng)
            a = a - (a @ U / N) @ U.swapaxes(1, 2) + c @ U.swapaxes(1, 2) / np.sqrt(N)
        if case.broken == "common radius":
            a = a * np.sqrt(3 / rng.chisquare(5, (RUNS, count, 1)))
        return a

    if case.broken != "repeated samples":
        return fresh
    stock = fresh(STOCK)
    return lambda count: stock[np.arange(RUNS)[:, None], rng.integers(STOCK, size=(RUNS, count))]


def _of_another_law(c: Array, factor: float, rng: np.random.Generator) -> Array:
    """Hidden variables of another second moment, or Gaussian ones of the same."""
    if factor > 1.0:
        return np.sqrt(factor) * c
    return np.sqrt((c**2).mean()) * rng.standard_normal(c.shape)


def _covariance_root(rng: np.random.Generator) -> Array:
    """Root of a covariance of trace N: of a moving average, or of variances that differ in random directions."""
    if rng.random() < 0.5:
        rho = rng.uniform(0.5, 0.7)
        values, vectors = np.linalg.eigh(rho ** np.abs(np.subtract.outer(np.arange(N), np.arange(N))))
    else:
        values, vectors = np.exp(rng.uniform(-1.2, 1.2, N)), np.linalg.qr(rng.standard_normal((N, N)))[0]
    return (vectors * np.sqrt(values / values.mean())) @ vectors.T


def start_of(case: Case, U: Array, rng: np.random.Generator) -> Array:
    """Weights at the start, shape (runs, N)."""
    q = np.array([feature.initial_overlap for feature in case.problem.features], dtype=float)
    g = rng.standard_normal((RUNS, N))
    if case.broken == "mass on few coordinates":
        g[:, rng.integers(3, 9) :] = 0.0
    g -= np.einsum("rnk,rk->rn", U, np.einsum("rnk,rn->rk", U, g)) / N
    return U @ q + np.sqrt(1 - q @ q) * np.sqrt(N) * g / np.linalg.norm(g, axis=1, keepdims=True)


def train(case: Case) -> tuple[xr.Dataset, Array]:
    """Runs of a case as a result with samples of the inputs, and the labels of these."""
    rng = np.random.default_rng([case.seed, 1])
    problem, d = case.problem, len(case.problem.features)
    U = features_of(rng, d)
    draw, w = inputs_of(case, U, rng), start_of(case, U, rng)
    m, steps = problem.model.batch_size, round(problem.time.stop * N)
    outputs, sampled = np.rint(problem.time.outputs_at * N), np.linspace(0, steps - 1, SAMPLES // m).astype(int)
    numbers = dict(getattr(problem.model, "rule_parameters", {}))
    rate, sigma = numbers.get("rate") or problem.model.learning_rate, numbers.get("sigma", 0.0)
    if case.broken == "step":
        factor = rng.uniform(1.7, 2.5)
        rate, sigma = (rate, factor * sigma) if sigma and rng.random() < 0.5 else (factor * rate, sigma)
    weights, samples, labels = [], [], []
    for k in range(steps + 1):
        if k in outputs:
            weights.append(w[..., None] if sigma else w)
        x = draw(m)
        s = np.einsum("rmn,rn->rm", x, w) / np.sqrt(N)
        if sigma:
            y = np.einsum("rmn,rn->rm", x, U[..., 0]) / np.sqrt(N) + sigma * rng.standard_normal(s.shape)
            gain = y - s
        else:
            y, gain = s, 4 * s**3 if problem.model.activation == "quadratic" else 2 * np.tanh(s) / np.cosh(s) ** 2
        if k in sampled:
            samples.append(x[0])
            labels.append(y[0])
        w = w + rate / m / np.sqrt(N) * np.einsum("rm,rmn->rn", gain, x)
        if not sigma:
            w = w - rate / N * problem.prior.force(w)
            w *= np.sqrt(N) / np.linalg.norm(w, axis=1, keepdims=True)
    own = meanfield.runs(problem, steps=outputs, weights=np.stack(weights, axis=1), U=U)
    return own.assign(samples=(("sample", "coordinate"), np.concatenate(samples))), np.concatenate(labels)


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
    first = reason.partition(";" if in_data or reason.startswith("As is to be expected") else "prior.")[0]
    named = [name for name, words in KINDS.items() if re.search(words, re.sub(r"\(though .*\)", "", first))]
    has_labels = "rule_parameters" in case.problem.model.model_fields_set
    data = {"labels": labels, "label_noise": "model.rule_parameters.sigma"} if has_labels else {}
    report = meanfield.problem_from(own["samples"], features=own["U"][0], like=case.problem, **data)
    named += ["step"] if "label noise" in report.broken else []
    differs = str(found["verdict"].values) == DIFFERS
    return {
        "broken": broken,
        "heavy": case.heavy,
        "differs": differs,
        "shown": differs and not in_data,
        "named": named[:1] if differs else [],
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
    right, by_runs = (
        sum(not row[which] for row in true) + sum(row[which] for row in broken) for which in ("differs", "shown")
    )
    named = sum(row["named"] == [row["broken"]] for row in broken)
    heavy = [row for row in true if row["heavy"]]
    return [
        Statement(
            "verdicts are right in at least 95 % of all cases",
            "ours",
            right >= 0.95 * len(rows),
            f"{right} of {len(rows)}; {by_runs} by what runs show alone",
        ),
        Statement(
            "where an assumption is broken the verdict is DIFFERS and names it first, in at least 90 %",
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
            sum(row["shown"] for row in those),
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
            markdown_table(
                ("broken", "cases", "DIFFERS", "shown by runs", "named first", "contradicted by samples"), table
            ),
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
