"""Densities of random rules: both schemes against exact laws, against each other, and against SGD.

Random rules under a linear prior have weights that are Gaussian given u, with the mean R u and the variance Q - R^2, at
all times; R and Q are those of order parameters. Under one of seven other priors both schemes are held against each
other and against sixteen runs of SGD at N = 2,000. Rules are smooth, or have kinks, coins and label noise, or see a
spiked signal on the sphere; norms, laws of u, masks, batches, starts and strengths are random, too. Both schemes are
asked for errors of 1e-6. Left, true against stated errors under linear priors; right, seconds of one processor, without
those of compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from time import process_time
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import ndtr

import meanfield
from meanfield.mckean_vlasov.cells import edges_of, nodes_of
from meanfield.plotting import COLOURS, place_legend
from meanfield.problems.variable import DIFFERS
from meanfield.process.cores import available_cores
from validation.study import Statement, Study
from validation.update_rule.random_rules import problem_of

RULES, SCHEMES = ("smooth", "kinked", "noisy", "signal"), ("lagrangian", "eulerian")
LAWS = ({"law": "gaussian"}, {"law": "rademacher"}, {"law": "laplace"}, {"law": "three_point", "fourth_moment": 5.0})
PRIORS = ("l1", "elastic_net", "smooth_l1", "log_cosh", "quartic", "cauchy", "double_well", "l1")
LINEAR, OTHERS, FIRST, TOLERANCE = 100, 50, 4, 1e-6
QUANTITIES = ("R", "Q", "r")


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


def warm_up() -> None:
    """Compile what problems need, or read it from disk, in a process of its own, so that no seconds count it."""
    for seed, scheme in product(range(FIRST - 4, FIRST), SCHEMES):
        solved(random_problem(seed, True), scheme)


def linear_row(seed: int) -> Any:
    """Completeness, seconds, error, and error in units of the stated one of both schemes under a linear prior."""
    task, rows = random_problem(seed, True), np.full((2, 4), np.nan)
    for row, scheme in zip(rows, SCHEMES, strict=True):
        found = solved(task, scheme)
        row[:2] = found.status == "complete", found.seconds
        if found.status == "complete":
            row[2:] = gaussian_ratio(task, found)
    return rows


def other_row(seed: int) -> tuple[bool, float]:
    """Whether both schemes are complete under another prior, and how far apart, in units of what they state."""
    first, second = (solved(random_problem(seed, False), scheme) for scheme in SCHEMES)
    stated = [first[f"{name}_error"] + second[f"{name}_error"] + 1e-12 for name in QUANTITIES]
    apart = [abs(first[name] - second[name]) / error for name, error in zip(QUANTITIES, stated, strict=True)]
    return first.status == second.status == "complete", max(float(each.max()) for each in apart)


def p_values(seed: int) -> list[float]:
    """P value of SGD against the density and, if that differs, with another seed."""
    task, found = random_problem(seed, False), [np.nan, np.nan]
    density = solved(task, SCHEMES[0])
    for trial in range(2 if density.status == "complete" else 0):
        runs = {"dimension": 2000, "replicas": 16, "seed": trial, "snapshots": [task.time.stop]}
        sgd = meanfield.simulate_sgd(meanfield.with_value(task, "particles", runs), workers=1)
        compared = meanfield.compare(density, sgd)
        found[trial] = float(compared["p_value"][0])
        if compared.attrs["verdict"] != DIFFERS:
            break
    return found


def rows_of(function: Callable[[int], Any], count: int) -> Any:
    """Rows of problems on all cores, with linear algebra on one thread each."""
    with ProcessPoolExecutor(available_cores(), initializer=warm_up) as pool:
        return np.array(list(pool.map(function, range(FIRST, FIRST + count))), dtype=float)


def theory(linear: int = LINEAR, others: int = OTHERS) -> xr.Dataset:
    """Both schemes on all problems."""
    names, pairs = ("complete", "seconds", "error", "ratio"), rows_of(other_row, others)
    found = zip(names, np.moveaxis(rows_of(linear_row, linear), -1, 0), strict=True)
    arrays = {name: (("problem", "scheme"), values) for name, values in found}
    arrays |= {name: ("other", values) for name, values in zip(("both_complete", "apart"), pairs.T, strict=True)}
    return xr.Dataset(arrays, {"scheme": list(SCHEMES)})


def simulate() -> xr.Dataset:
    """P values of SGD of the problems with other priors."""
    return xr.Dataset({"sgd_p": (("other", "trial"), rows_of(p_values, OTHERS))})


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Honest errors, completeness and time, and what the others agree in."""
    complete, seconds, honest = numbers["complete"].values, numbers["seconds"].values, numbers["ratio"].values <= 1.0
    known, both = complete == 1.0, numbers["both_complete"].values == 1.0
    middle, late, apart = np.median(seconds), np.quantile(seconds, 0.95), numbers["apart"].values[both]
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
            apart.max() <= 1.0,
            f"at most {apart.max():.2f} of it in {int(both.sum())} of {len(both)} problems that both complete",
        ),
    ]
    if "sgd_p" in numbers:
        first, second = numbers["sgd_p"].values.T < 0.05
        text = "SGD differs from no density with two seeds"
        found.append(
            Statement(
                text,
                "ours",
                not second.any(),
                f"with one seed from {int(first.sum())} of {len(first)}, by chance from 1 in 20",
            )
        )
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
