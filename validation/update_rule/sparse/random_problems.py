"""Densities of random rules: both schemes against exact laws, against each other, against particles, and against SGD.

Random rules under a linear prior have weights that are Gaussian given u, with the mean R u and the variance Q - R^2, at
all times; R and Q are those of order parameters. Under one of seven other priors both schemes are held against each
other, points against particles of the limit and sixteen runs of SGD at N = 2,000. Rules are smooth, or have kinks,
coins and label noise, or see a spiked signal on the sphere; norms, laws of u, masks, batches, starts and strengths are
random, too. Both schemes are asked for errors of 1e-6, particles for 2e-3 in R and Q, where chance exceeds each stated
error of R, Q and r once in a hundred times. Left, true against stated errors under linear priors; right, seconds of one
processor, without those of compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from time import process_time
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import ndtr
from scipy.stats import binom

import meanfield
from meanfield.comparison import rotations
from meanfield.comparison.judgement import FALSE_ALARMS
from meanfield.families.update_rule.density.several import solve_several
from meanfield.mckean_vlasov.cells import edges_of, nodes_of
from meanfield.plotting import COLOURS, place_legend
from meanfield.problems.variable import AGREES
from validation import ROOT
from validation.rows import Row, measure
from validation.study import Statement, Study
from validation.update_rule.random_rules import problem_of

RULES, SCHEMES = ("smooth", "kinked", "noisy", "signal"), ("lagrangian", "eulerian")
LAWS = ({"law": "gaussian"}, {"law": "rademacher"}, {"law": "laplace"}, {"law": "three_point", "fourth_moment": 5.0})
PRIORS = ("l1", "elastic_net", "smooth_l1", "log_cosh", "quartic", "cauchy", "double_well", "l1")
FIRST, TOLERANCE, ASKED = 4, 1e-6, 2e-3
ROWS = ROOT / "data" / "measured" / "random_rules.jsonl"

WRONG = 0.01
"""Share of studies whose false alarms are more than are allowed."""

STATED = 2.5e-3
"""Largest error of R and Q that particles may state to be evidence: some give up a little above what they are asked."""

BEYOND = 0.09
"""Largest share of problems in which chance exceeds an error of particles: 1 % of each of R, Q, r at three times."""


def random_problem(seed: int, linear: bool) -> Any:
    """Random problem of one student and one feature, under a linear prior or another."""
    rng = np.random.default_rng([seed, linear])
    prior = "l2" if linear else str(rng.choice(PRIORS))
    changes = {
        "features[0].coordinate": LAWS[rng.integers(4)],
        "students[0].initial_norm": float(rng.uniform(0.5, 2.0)),
        "data.observed": float(rng.choice([1.0, 0.7])),
        "prior": {"name": prior, "strength": float(rng.uniform(0.05, 0.5))},
        "time": {"stop": float(rng.uniform(1.0, 4.0)), "outputs": 4},
    }
    return meanfield.with_values(problem_of(RULES[seed % 4], seed), changes)


def solved(task: Any, scheme: str) -> xr.Dataset:
    """Density by a scheme, with the seconds that it takes."""
    started = process_time()
    found = meanfield.solve_density(meanfield.with_value(task, "density", {"scheme": scheme, "tolerance": TOLERANCE}))
    return found.assign_attrs(seconds=process_time() - started)


def gaussian_ratio(task: Any, found: xr.Dataset) -> tuple[float, float]:
    """Largest error of R, Q and P from the exact law under a linear prior, and largest in units of the stated ones."""
    exact = meanfield.solve_order_parameters(meanfield.with_value(task, "order_parameters", {"tolerance": 1e-9}))
    away, allowed = [], []
    for name in ("R", "Q"):
        away.append(np.abs(found[name] - exact[name]).values.ravel())
        allowed.append((found[f"{name}_error"] + exact[f"{name}_error"]).values.ravel())
    edges, (u, u_weight) = edges_of(found), nodes_of(found)
    R, Q = exact["R"].values.reshape(-1, 1, 1), exact["Q"].values.reshape(-1, 1, 1)
    law = np.diff(ndtr((edges - R * u) / np.sqrt(Q - R * R)))
    away.append(np.abs(found["P"].values * np.diff(edges) - law).sum(axis=2) @ u_weight)
    allowed.append(found["P_error"].values + 1e-9)  # what the exact law owes to R and Q
    away, allowed = (np.concatenate(each) for each in (away, allowed))
    return float(away.max()), float((away / np.maximum(allowed, 1e-12)).max())


@cache
def warm_up() -> None:
    """Compile what problems need, or read it from disk, once in a process, so that no seconds count it."""
    for seed, scheme in product(range(FIRST - 4, FIRST), SCHEMES):
        solved(random_problem(seed, True), scheme)


def linear_row(seed: int) -> Row:
    """Completeness, seconds, error, and error in units of the stated one of each scheme under a linear prior."""
    warm_up()
    task, row = random_problem(seed, True), {}
    for scheme in SCHEMES:
        found = solved(task, scheme)
        complete = found.status == "complete"
        error, ratio = gaussian_ratio(task, found) if complete else (np.nan, np.nan)
        numbers = {"complete": complete, "seconds": found.seconds, "error": error, "ratio": ratio}
        row |= {f"{scheme} {name}": value for name, value in numbers.items()}
    return row


def apart(first: Any, second: Any) -> float:
    """Largest difference of overlaps and of work of the prior, in units of what both state."""
    away = [
        np.abs(np.ravel(first[name]) - np.ravel(second[name]))
        / (np.ravel(first[f"{name}_error"]) + np.ravel(second[f"{name}_error"]) + 1e-12)
        for name in ("R", "Q", "r")
    ]
    return float(np.max(away))


def other_row(seed: int) -> Row:
    """Whether both schemes are complete under another prior, and how far apart."""
    first, second = (solved(random_problem(seed, False), scheme) for scheme in SCHEMES)
    return {"both_complete": first.status == second.status == "complete", "apart": apart(first, second)}


def particles_row(seed: int) -> Row:
    """How far particles of the limit and a density are apart under another prior, and how exact particles are."""
    task = random_problem(seed, False)
    changes = {"density": {"scheme": "particles", "tolerance": ASKED}, "particles.seed": seed}
    found = solve_several(meanfield.with_values(task, changes))
    return {
        "particles_apart": apart(solved(task, SCHEMES[0]), found.arrays),
        "particles_complete": found.status == "complete",
        "particles_error": float(max(found.arrays[f"{name}_error"].max() for name in ("R", "Q"))),
    }


def sgd_row(seed: int) -> Row:
    """P value of SGD against the density under another prior, and the verdict."""
    rotations.SEED = seed
    task = random_problem(seed, False)
    runs = {"dimension": 2000, "replicas": 16, "seed": seed, "snapshots": [task.time.stop]}
    sgd = meanfield.simulate_sgd(meanfield.with_value(task, "particles", runs), workers=1)
    compared = meanfield.compare(solved(task, SCHEMES[0]), sgd)
    return {"sgd_p": float(compared["p_value"][0]), "sgd_agrees": compared.attrs["verdict"] == AGREES}


KINDS: dict[str, tuple[Callable[[int], Row], int]] = {
    "linear": (linear_row, 100), "other": (other_row, 50), "particles": (particles_row, 50), "sgd": (sgd_row, 50),
}  # fmt: skip
"""Rows of a problem, and numbers of problems."""


def row(task: str) -> Row:
    """Row of a kind and a seed."""
    kind, seed = task.split()
    return KINDS[kind][0](int(seed))


def arrays_of(*kinds: str) -> dict[str, tuple[str, Any]]:
    """Numbers of all problems of some kinds; those of files are known."""
    tasks = {kind: [f"{kind} {seed}" for seed in range(FIRST, FIRST + KINDS[kind][1])] for kind in kinds}
    rows = measure(row, [task for each in tasks.values() for task in each], [ROWS])
    return {
        name: (f"{kind}_problem", np.array([rows[task][name] for task in each], dtype=float))
        for kind, each in tasks.items()
        for name in rows[each[0]]
    }


def theory() -> xr.Dataset:
    """Both schemes on all problems."""
    found = arrays_of("linear", "other", "particles")
    for name in ("complete", "seconds", "error", "ratio"):
        parts = [found.pop(f"{scheme} {name}")[1] for scheme in SCHEMES]
        found[name] = (("problem", "scheme"), np.transpose(parts))  # type: ignore[assignment]
    return xr.Dataset(found, {"scheme": list(SCHEMES)})


def simulate() -> xr.Dataset:
    """P values and verdicts of SGD of the problems with other priors."""
    return xr.Dataset(arrays_of("sgd"))


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Honest errors, completeness and time, and what the others agree in."""
    complete, seconds, honest = numbers["complete"].values, numbers["seconds"].values, numbers["ratio"].values <= 1.0
    known, both = complete == 1.0, numbers["both_complete"].values == 1.0
    middle, late, away = np.median(seconds), np.quantile(seconds, 0.95), numbers["apart"].values[both]
    particles = numbers["particles_apart"].values
    reached, stated = numbers["particles_complete"].values == 1.0, numbers["particles_error"].values
    most = int(binom.isf(WRONG, particles.size, BEYOND))
    shares = [f"{scheme} {int(known[:, k].sum())} of {len(known)}" for k, scheme in enumerate(SCHEMES)]
    found = [
        Statement(
            "97 % are complete at 1e-6 under linear priors", "ours", known.mean(axis=0).min() >= 0.97, ", ".join(shares)
        ),
        Statement(
            "99 % are within their stated errors of the exact Gaussian law",
            "ours",
            honest[known].mean() >= 0.99,
            f"{int(honest[known].sum())} of {int(known.sum())}",
        ),
        Statement(
            "the median takes at most 0.5 s, 95 % at most 5 s",
            "ours",
            middle <= 0.5 and late <= 5.0,
            f"{middle:.2f} s and {late:.2f} s of one processor, both schemes",
        ),
        Statement(
            "under other priors the schemes differ by no more than they state",
            "ours",
            away.max() <= 1.0,
            f"at most {away.max():.2f} of it in {int(both.sum())} of {len(both)} problems that both complete",
        ),
        Statement(
            f"and from particles of the limit, which state {STATED:g} at most in R and Q, but by chance, {most} "
            "times at most in 99 of 100 studies",
            "ours",
            bool((stated <= STATED).all()) and (~(particles <= 1.0)).sum() <= most,
            f"at most {particles.max():.2f} of it, in {(particles <= 1.0).sum()} of {particles.size} no more than that"
            f"; {stated.max():.2g} stated at most, and {ASKED:g} reached by {reached.sum()}",
        ),
    ]
    if "sgd_p" in numbers:
        agrees = numbers["sgd_agrees"].values == 1.0
        allowed = int(binom.isf(WRONG, agrees.size, FALSE_ALARMS))
        kinds = [agrees[k :: len(RULES)] for k in range(len(RULES))]  # seeds begin with a multiple of their number
        shares = [f"{rule} {each.sum()} of {each.size}" for rule, each in zip(RULES, kinds, strict=True)]
        text = f"SGD agrees with all densities but false alarms, {allowed} at most in 99 of 100 studies"
        found.append(Statement(text, "ours", (~agrees).sum() <= allowed, ", ".join(shares)))
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Errors, and seconds."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    for k, scheme in enumerate(SCHEMES):
        one = numbers.sel(scheme=scheme)
        left.loglog(one["error"] / one["ratio"], one["error"], ".", color=COLOURS[k], label=scheme)
        right.plot(np.sort(one["seconds"]), np.linspace(0.0, 1.0, one.sizes["problem"]), color=COLOURS[k], label=scheme)
    left.axline((1e-8, 1e-8), (1e-4, 1e-4), linestyle=":", color="0.5")
    left.set(xlabel="stated error", ylabel="true error")
    right.set(xlabel="seconds of one processor", ylabel="share of problems", xscale="log")
    place_legend(left), place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
