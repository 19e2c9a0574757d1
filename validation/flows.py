"""Means of plain SGD against exact flows, case by case: pieces of the studies of two families.

Runs with steps of two sizes are continued to 0, 2 x(eta/2) - x(eta), and what is of first order in the step is gone;
where the flow of finite batches is not exact, batches grow as steps shrink, and what is of first order in 1/N goes with
it. What is left is of second order, below the standard errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import t as student

import meanfield
from meanfield.plotting import COLOURS
from validation.study import Statement, Study, within_errors

FALSE_ALARMS = 0.01
"""Chance at most that a flow which is right is refused, for each case."""

FASTER = 1.25
"""Time scale of the flow that is to be refused."""

INTERVALS = 4
"""Times of the flow up to the end; one more is that of the faster flow."""


class Case(NamedTuple):
    """A flow and the SGD that it is held against.

    Parameters
    ----------
    title : str
    problem : Problem
        Its `time.stop` is where both are compared.
    train : callable
        Generator, number of replicas, batch size, step, and number of steps to weights, shape (replicas, numbers).
    batches : tuple of int
        Batch sizes of the larger step and of half of it.
    steps : int
        Number of the larger steps.
    replicas : int
    names : tuple of str
        Variables of the flow that the weights are.
    """

    title: str
    problem: meanfield.Problem
    train: Callable[[np.random.Generator, int, int, float, int], np.ndarray]
    batches: tuple[int, int]
    steps: int
    replicas: int
    names: tuple[str, ...] = ("weights",)


def flow_of(case: Case) -> np.ndarray:
    """Weights of the flow at the end, and of one that is faster, shape (2, numbers)."""
    longer = {"time.stop": FASTER * case.problem.time.stop, "time.outputs": INTERVALS + 2}
    found = meanfield.solve(meanfield.with_values(case.problem, longer), "population").isel(time=[INTERVALS, -1])
    parts = [found[name].values.reshape(2, -1) for name in case.names]
    return np.concatenate(parts, axis=1)


def together(rows: list[np.ndarray]) -> np.ndarray:
    """Rows of several lengths in one array, filled with nan."""
    found = np.full((len(rows), *rows[0].shape[:-1], max(row.shape[-1] for row in rows)), np.nan)
    for row, place in zip(rows, found, strict=True):
        place[..., : row.shape[-1]] = row
    return found


def flows(cases: dict[str, Case]) -> xr.Dataset:
    """The flows of all cases."""
    values = together([flow_of(case) for case in cases.values()])
    labels = {"case": list(cases), "pace": [1.0, FASTER]}
    return xr.Dataset({"flow": (("case", "pace", "number"), values, {"long_name": "weights at the end"})}, labels)


def continued(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Weights of replicas of SGD, continued to steps of 0, shape (replicas, numbers)."""
    coarse, fine = (
        case.train(rng, case.replicas, N, case.problem.time.stop / count, count)
        for N, count in zip(case.batches, (case.steps, 2 * case.steps), strict=True)
    )
    return 2.0 * fine - coarse


def means(cases: dict[str, Case], seed: int = 0) -> xr.Dataset:
    """Means over runs of SGD and their standard errors, for all cases."""
    runs = [continued(case, np.random.default_rng([seed, i])) for i, case in enumerate(cases.values())]
    errors = [part.std(axis=0, ddof=1) / np.sqrt(len(part)) + 1e-12 for part in runs]  # rounding, of what never moves
    dims = ("case", "number")
    return xr.Dataset(
        {
            "sgd_mean": (dims, together([part.mean(axis=0) for part in runs]), {"long_name": "mean over runs of SGD"}),
            "sgd_error": (dims, together(errors), {"long_name": "its standard error"}),
            "sgd_runs": ("case", [len(part) for part in runs], {"long_name": "number of runs"}),
        },
        {"case": list(cases)},
    )


def away(numbers: xr.Dataset) -> xr.DataArray:
    """Differences of SGD and flows, in standard errors."""
    return (numbers.sgd_mean - numbers.flow) / numbers.sgd_error


def allowed(numbers: xr.Dataset) -> float:
    """Standard errors that the largest of all numbers of a case may be off: Student's law and Bonferroni's bound."""
    count, runs = int(numbers.sgd_mean.count()), int(numbers.sgd_runs)
    return float(student.ppf(1.0 - 0.5 * FALSE_ALARMS / count, runs - 1))


def judge_flows(cases: dict[str, Case], numbers: xr.Dataset) -> list[Statement]:
    """Whether SGD follows the flow of each case, and whether it tells a faster one from it."""
    found = []
    for name, case in cases.items() if "sgd_mean" in numbers else ():
        one = numbers.sel(case=name)
        right, fast = (np.abs(away(one).sel(pace=pace)) for pace in (1.0, FASTER))
        size = f"{int(one.sgd_mean.count())} weights, {int(one.sgd_runs)} runs"
        found += [
            within_errors(f"{case.title}: SGD follows the flow ({size})", "ours", right, allowed(one)),
            Statement(
                f"{case.title}: SGD refuses a flow that is {100 * (FASTER - 1):.0f} % faster",
                "ours",
                float(fast.max()) > allowed(one),
                f"off by {float(fast.max()):.1f} standard errors, {allowed(one):.1f} are allowed",
            ),
        ]
    return found


def draw_flows(cases: dict[str, Case], numbers: xr.Dataset) -> Figure:
    """Differences of all weights in standard errors, a row for each case: the flow below, and a faster one above."""
    figure, axes = plt.subplots(figsize=(8.0, 1.4 + 0.6 * len(cases)), layout="constrained")
    for row, name in enumerate(cases):
        one = numbers.sel(case=name)
        edge = allowed(one)
        axes.fill_betweenx([row - 0.4, row + 0.4], -edge, edge, color="0.9", label="" if row else "allowed")
        for pace, place, label in ((FASTER, -0.2, f"{100 * (FASTER - 1):.0f} % faster"), (1.0, 0.2, "flow")):
            values = away(one).sel(pace=pace).values
            style = {"color": COLOURS[int(pace == 1.0)], "ls": "none", "marker": "|", "ms": 9}
            axes.plot(values, np.full(len(values), row + place), label="" if row else label, **style)
    axes.set_xscale("symlog", linthresh=5.0)
    axes.set_yticks(range(len(cases)), [case.title for case in cases.values()])
    axes.invert_yaxis()
    axes.set_xlabel("mean of a weight over runs of SGD - flow, in standard errors")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def study_of(cases: Callable[[], dict[str, Case]]) -> Study:
    """The study of cases."""
    return Study(
        lambda: flows(cases()),
        lambda numbers: judge_flows(cases(), numbers),
        lambda numbers: draw_flows(cases(), numbers),
        lambda: means(cases()),
        must_hold=True,
    )
