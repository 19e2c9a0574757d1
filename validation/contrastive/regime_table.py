"""Table of all runs on random problems: outcomes, seconds, and true errors beside those that were claimed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from validation.bounded_calls import TIME_LIMIT
from validation.contrastive.random_problems import random_problem
from validation.contrastive.regime_runs import IN_TIME, REFERENCES, Run
from validation.study import Statement

OUTCOMES = ("complete", "refused", "failed", TIME_LIMIT, "broken")
"""Ends of a run: a result, an input error with its reason, a failure with its reason, the limit on processor time, and
anything else, such as a traceback."""

LONG_NAMES = {
    "outcome": f"end of the run, by number {', '.join(OUTCOMES)}; -1 where none was asked for",
    "cause": "message of a run that is not complete, without its numbers",
    "seconds": "processor time",
    "error": "largest true error of q and r over all output times; of stationary states the largest residual",
    "claimed": "largest claimed error",
    "excess": "largest true error in units of the claimed one, those of the reference added to it",
    "reference_error": "claimed error of the reference itself",
    "second_excess": "largest difference from the Eulerian scheme in units of both claimed errors",
    "marginal_error": "larger error of the marginal density in L1 halfway and at the end, for linear priors",
    "marginal_claimed": "claimed error of densities in L1",
}

LEAST_TOLERANCE = 1e-9
"""Error of the quadrature over w that stationary states are held against."""

ODE_ERROR = 1e-10
"""Error of a reference by integration of the reduced ODEs, which claims none."""

MOST_EXCESS = 1.0
"""Largest ratio of a true error to a claimed one that is honest."""

Runs = Mapping[tuple[int, str], Run]


@dataclass(frozen=True)
class Truth:
    """Comparison of one run with one reference; see `LONG_NAMES`."""

    error: float = math.nan
    claimed: float = math.nan
    excess: float = math.nan
    reference_error: float = math.nan


def outcome_of(run: Run) -> str:
    """One of `OUTCOMES`."""
    return next(name for name in OUTCOMES if run.status.startswith(name))


def cause_of(run: Run) -> str:
    """Message of a run that is not complete, up to its remedy and without its numbers, so that like ones group."""
    if outcome_of(run) == "complete":
        return ""
    first = run.status.strip().splitlines()
    text = first[-1] if outcome_of(run) == "broken" else first[0]
    text = re.sub(r"^(failed|refused): ", "", text).split("; ")[0]
    return re.sub(r"[-+]?\d+\.?\d*(e[-+]?\d+)?", "#", text)[:160]


def compare(run: Run, reference: Run) -> Truth:
    """Largest error of a run over all outputs, by a reference."""
    found, exact = (np.array(one.moments, dtype=float) for one in (run, reference))
    known = np.isfinite(found) & np.isfinite(exact)
    away = np.abs(np.where(known, found - exact, 0.0))
    claimed = np.array(run.errors) if run.errors else np.full_like(away, math.nan)
    its_own = np.array(reference.errors) if reference.errors else np.zeros_like(away)
    allowed = claimed.max() + its_own.max() + ODE_ERROR
    return Truth(float(away.max()), float(claimed.max()), float(away.max() / allowed), float(its_own.max()))


def truth_of(seed: int, method: str, runs: Runs) -> tuple[Truth, float]:
    """True error by the most trusted reference that is complete, and the excess over the Eulerian scheme's errors."""
    run = runs[seed, method]
    if outcome_of(run) != "complete":
        return Truth(), math.nan
    if method == "stationary" and run.residual is not None:
        found, claimed, own = run.residual
        return Truth(found, claimed, found / (claimed + own + LEAST_TOLERANCE), own + LEAST_TOLERANCE), math.nan
    if method not in IN_TIME:
        return Truth(), math.nan
    names = [name for name in REFERENCES if (seed, name) in runs and is_known(runs[seed, name])]
    found = {name: compare(run, runs[seed, name]) for name in names}
    second = found["eulerian"].excess if "eulerian" in found else math.nan
    return next(iter(found.values()), Truth()), second


def is_known(reference: Run) -> bool:
    """Whether a reference is complete, or missed its tolerance but says by how much."""
    return outcome_of(reference) == "complete" or (
        bool(reference.errors) and bool(np.isfinite(np.array(reference.moments, dtype=float)).all())
    )


def table(runs: Runs, methods: list[str]) -> xr.Dataset:
    """Dataset of all runs, over problem and method; its attribute `processor_time` is that of all in seconds."""
    seeds = sorted({seed for seed, _ in runs})
    shape = len(seeds), len(methods)
    arrays = {name: np.full(shape, math.nan) for name in LONG_NAMES if not name.startswith("marginal")}
    arrays |= {"outcome": np.full(shape, -1, dtype=np.int8), "cause": np.full(shape, "", dtype=object)}
    marginal = np.full((len(seeds), 2), math.nan)
    for i, seed in enumerate(seeds):
        for j, method in enumerate(methods):
            run = runs.get((seed, method))
            if run is None:
                continue
            truth, second = truth_of(seed, method, runs)
            values = vars(truth) | {"second_excess": second, "seconds": run.seconds, "cause": cause_of(run)}
            for name, value in (values | {"outcome": OUTCOMES.index(outcome_of(run))}).items():
                arrays[name][i, j] = value
            if run.marginal is not None:
                marginal[i] = run.marginal
    arrays["cause"] = arrays["cause"].astype(str)
    variables = {
        name: (("problem", "method"), values, {"long_name": LONG_NAMES[name]}) for name, values in arrays.items()
    }
    for k, name in enumerate(("marginal_error", "marginal_claimed")):
        variables[name] = ("problem", marginal[:, k], {"long_name": LONG_NAMES[name]})
    problems = [random_problem(seed) for seed in seeds]
    variables["prior"] = ("problem", [p.prior.name for p in problems], {"long_name": "name of the prior"})
    variables["features"] = ("problem", [len(p.features) for p in problems], {"long_name": "number of features"})
    total = sum(run.seconds for run in runs.values())
    return xr.Dataset(variables, {"problem": seeds, "method": methods}, {"processor_time": total})


@dataclass(frozen=True)
class Summary:
    """Numbers of one method over all problems that it applies to.

    Parameters
    ----------
    counts : dict
        Number of runs by outcome.
    seconds : ndarray
        Processor times.
    judged, honest, missed : int
        Complete runs whose true error is known; those of them whose true error is below what was claimed; and those
        whose true error is above the tolerance though they are complete.
    largest : float
        Largest true error of complete runs.
    """

    counts: dict[str, int]
    seconds: np.ndarray
    judged: int
    honest: int
    missed: int
    largest: float

    @property
    def runs(self) -> int:
        """Number of all runs."""
        return sum(self.counts.values())

    def share(self, outcome: str) -> float:
        """Share of an outcome among all runs."""
        return self.counts[outcome] / max(self.runs, 1)


def summary(data: xr.Dataset, method: str, tolerance: float) -> Summary:
    """Summary of one method; the tolerance is that of the density."""
    column = data.loc[{"method": method}]
    column = column.isel(problem=np.flatnonzero(column.outcome.values >= 0))
    counts = {name: int((column.outcome == k).sum()) for k, name in enumerate(OUTCOMES)}
    known = column.isel(problem=np.flatnonzero(np.isfinite(column.error.values)))
    missed = int((known.error > tolerance + known.reference_error).sum()) if method == "density" else 0
    honest = int((known.excess <= MOST_EXCESS).sum())
    largest = float(known.error.max()) if known.sizes["problem"] else math.nan
    return Summary(counts, column.seconds.values, known.sizes["problem"], honest, missed, largest)


def statements(data: xr.Dataset, tolerance: float) -> list[Statement]:
    """Statements that must hold of the density, and of every method."""
    found = [
        Statement(
            f"{method}: every run ends with a result or a reason",
            "ours",
            not (one := summary(data, method, tolerance)).counts["broken"] + one.counts[TIME_LIMIT],
            f"{one.counts['broken']} broken, {one.counts[TIME_LIMIT]} over the time limit, of {one.runs}",
        )
        for method in data.method.values.tolist()
    ]
    if "density" not in data.method:
        return found
    density = summary(data, "density", tolerance)
    median, most = np.quantile(density.seconds, [0.5, 0.95])
    honest = density.honest / max(density.judged, 1)
    return [
        *found,
        Statement(
            "density: 99 % are complete", "ours", density.share("complete") >= 0.99, f"{density.share('complete'):.1%}"
        ),
        Statement("density: 99 % of claimed errors hold", "ours", honest >= 0.99, f"{honest:.1%} of {density.judged}"),
        Statement(
            "density: no tolerance is missed without saying so", "ours", not density.missed, f"{density.missed} are"
        ),
        Statement("density: median below 0.3 s", "ours", median <= 0.3, f"{median:.2f} s"),
        Statement("density: 95 % below 3 s", "ours", most <= 3.0, f"{most:.2f} s"),
        Statement("density: none above 30 s", "ours", density.seconds.max() <= 30.0, f"{density.seconds.max():.1f} s"),
    ]
