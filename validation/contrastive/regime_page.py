"""The page of the site on random problems: outcomes, seconds and errors of every method, and the causes of failures."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter

import numpy as np
import xarray as xr

from meanfield.results.provenance import describe_machine
from validation.contrastive.regime_table import MOST_EXCESS, OUTCOMES, summary
from validation.pages import markdown_table
from validation.study import Statement

INTRODUCTION = """# Every method on random problems

Written by `make regimes`, which runs everything anew or, with `--merge`, puts together what was run in blocks of seeds.
Problems are drawn at random by a law that covers all built-in activations, priors and laws, strengths from 0.03 to 10,
learning rates from 0.003 to 1, batches of 1 to 5000, one or two features, and times up to 100
(`validation/contrastive/random_problems.py`); a seed fixes a problem, and everything that the law does not draw is left
at its default. Each method runs in a process of its own, on one core, with a limit on its processor time."""

NOTES = """- **complete**, **refused**, **failed**: a result; an input error, or a status, that names the reason.
  **Time limit** and **broken** (a traceback, a crash) must not happen.
- **known**: complete runs whose true error is known, because a reference is complete: the reduced ODEs by another
  integrator under a linear prior; otherwise the density itself at a tenth of the tolerance, or as far as it came.
  Stationary states are put into their equations with another quadrature; the error is the largest residual.
- **honest**: the true error is at most the claimed one and that of the reference together. SGD claims five standard
  errors of its mean over replicas, which at N = 400 is off by an amount of order 1/N, too; others claim nothing.
- **missed**: densities that are complete, but further from the reference than the tolerance."""


def page(data: xr.Dataset, arguments: Namespace, holding: list[Statement]) -> str:
    """The page of the site."""
    about = (
        f"Machine: {describe_machine()} {data.sizes['problem']} problems from seed {arguments.seed} on; tolerance of"
        f" the density {arguments.tolerance:g}; at most {arguments.time_limit:g} s of processor time for a run. The"
        " seconds below are of processor time, too, on cores that may have been shared: an idle machine takes fewer."
        f" All runs, those of references included, took {data.attrs['processor_time'] / 60:.0f} minutes of it."
    )
    parts = [
        INTRODUCTION,
        about,
        "\n".join(f"- {statement}" for statement in holding),
        "## Methods",
        markdown_table(*method_table(data, arguments)),
        NOTES,
        "## Two schemes",
        second_opinions(data),
        "## Marginal densities",
        marginals(data),
        "## The density by prior",
        markdown_table(*prior_table(data)) if "density" in arguments.methods else "Not asked for.",
        "## Causes of what is not complete",
        causes(data),
        "Numbers in messages are written as #; the problem of a seed is printed by"
        " `python -m validation.contrastive.regimes --show SEED`.",
    ]
    return "\n\n".join(parts) + "\n"


def method_table(data: xr.Dataset, arguments: Namespace) -> tuple[list[str], list[list[str]]]:
    """One row for each method: outcomes, seconds, errors."""
    rows = []
    for method in data.method.values.tolist():
        one = summary(data, method, arguments.tolerance)
        times = [f"{x:.2g}" for x in np.quantile(one.seconds, [0.5, 0.95, 1.0])] if one.runs else ["", "", ""]
        claims = bool(np.isfinite(data.claimed.loc[{"method": method}].values).any())
        honest = str(one.honest) if claims else ""
        errors = [str(one.judged), honest, f"{one.largest:.1e}"] if one.judged else ["", "", ""]
        missed = str(one.missed) if method == "density" else ""
        rows.append([method, str(one.runs), *(str(one.counts[name]) for name in OUTCOMES), *times, *errors, missed])
    header = ["method", "problems", *OUTCOMES, "median, s", "95 %, s", "most, s", "known", "honest", "largest error"]
    return [*header, "missed"], rows


def second_opinions(data: xr.Dataset) -> str:
    """Densities of the default scheme against those of the Eulerian one."""
    excess = data.second_excess.values[np.isfinite(data.second_excess.values)]
    if not excess.size:
        return "Densities were not held against the Eulerian scheme; `--eulerian` does it."
    return (
        f"Of {excess.size} densities that the Eulerian scheme solves too, {(excess <= MOST_EXCESS).sum()} differ from"
        f" it by less than the errors that both claim; the largest difference is {excess.max():.2g} times these."
    )


def marginals(data: xr.Dataset) -> str:
    """Marginal densities under linear priors against exact mixtures of Gaussians."""
    error, claimed = (data[name].values for name in ("marginal_error", "marginal_claimed"))
    known = np.isfinite(error)
    if not known.any():
        return "No result has a marginal density `P_w` of a linear prior."
    return (
        f"Under linear priors the marginal is an exact mixture of Gaussians. Of {known.sum()} results the L1 distance"
        f" of `P_w` from it, halfway and at the end, has the median {np.median(error[known]):.1e} and is at most"
        f" {error[known].max():.1e}; it is below the claimed error in {(error[known] <= claimed[known]).sum()}."
    )


def prior_table(data: xr.Dataset) -> tuple[list[str], list[list[str]]]:
    """Outcomes and seconds of the density for each prior and number of features."""
    column = data.loc[{"method": "density"}]
    rows = []
    for prior in sorted(set(data.prior.values.tolist())):
        for features in (1, 2):
            some = column.isel(problem=np.flatnonzero((data.prior == prior) & (data.features == features)))
            if some.sizes["problem"]:
                times = np.quantile(some.seconds, [0.5, 1.0])
                complete = f"{int((some.outcome == 0).sum())} of {some.sizes['problem']}"
                rows.append([prior, str(features), complete, *(f"{x:.2g}" for x in times)])
    return ["prior", "features", "complete", "median, s", "most, s"], rows


def causes(data: xr.Dataset) -> str:
    """Messages of runs that are not complete, with how many there are and three of the seeds."""
    counts: Counter[tuple[str, str, str]] = Counter()
    seeds: dict[tuple[str, str, str], list[str]] = {}
    for method in data.method.values.tolist():
        column = data.loc[{"method": method}]
        for seed, outcome, cause in zip(column.problem.values, column.outcome.values, column.cause.values, strict=True):
            if outcome > 0:
                key = method, OUTCOMES[outcome], str(cause)
                counts[key] += 1
                seeds.setdefault(key, []).append(str(seed))
    rows = [[*key, str(number), ", ".join(seeds[key][:3])] for key, number in counts.most_common()]
    return markdown_table(["method", "outcome", "cause", "how many", "seeds"], rows) if rows else "All are complete."
