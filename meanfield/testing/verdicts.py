"""Check of verdicts: two methods that share a meaning agree, and differ where one of them learns too fast."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import xarray as xr

import meanfield.methods
from meanfield.comparison import compare
from meanfield.comparison.inputs import is_comparable
from meanfield.problems.base import Problem
from meanfield.problems.file import format_problem
from meanfield.problems.known_families import family_of
from meanfield.problems.problem_keys import number_keys, value_of, with_values
from meanfield.problems.variable import AGREES, DIFFERS
from meanfield.results.result import Result
from meanfield.testing.methods import Example, refusal


class Trial:
    """Problem whose methods are held against each other.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._kept: dict[tuple[str, bool], xr.Dataset] = {}

    def result(self, method: str) -> xr.Dataset:
        """Result of a method, solved once."""
        return self._once(method, too_fast=False)

    def too_fast(self, method: str) -> xr.Dataset:
        """Prediction of a method for twice the learning rate, as if it were one for the problem itself.

        Where time counts learning rates, a prediction knows none: it runs through the time twice as fast.
        """
        return self._once(method, too_fast=True)

    def _once(self, method: str, too_fast: bool) -> xr.Dataset:
        if (method, too_fast) not in self._kept:
            self._kept[method, too_fast] = (
                self._faster(method) if too_fast else meanfield.methods.solve(self.problem, method)
            )
        return self._kept[method, too_fast]

    def _faster(self, method: str) -> xr.Dataset:
        right = self.result(method)
        if hasattr(self.problem, "steps_per_time") or not rate_key(self.problem):
            stop, outputs = value_of(self.problem, "time.stop"), len(right["time"])
            longer = with_values(self.problem, {"time.stop": 2 * stop, "time.outputs": 2 * outputs - 1})
            fast = meanfield.methods.solve(longer, method).isel(time=slice(None, None, 2))
            return fast.assign_coords(time=right["time"]).assign_attrs(right.attrs)
        fast = meanfield.methods.solve(twice_the_rate(self.problem), method)
        given = [
            name
            for name in fast.variables
            if name not in family_of(self.problem).compared and fast[name].dims == ("time",)
        ]
        return fast.assign({name: right[name] for name in given}).assign_attrs(right.attrs)


def rate_key(problem: Problem) -> str:
    """Key of the learning rate, in whichever table of the problem that is; empty where there is none."""
    names = ("learning_rate", "rate")
    return next((key for key in number_keys(problem) if key.rpartition(".")[2] in names), "")


def twice_the_rate(problem: Problem) -> Problem:
    """Problem with twice the learning rate, if it has one."""
    key = rate_key(problem)
    return with_values(problem, {key: 2 * value_of(problem, key)}) if key else problem


def check_verdicts(example: Example, folder: Path) -> None:
    """Check that every two methods in time agree in a trial, and differ where one of them learns twice as fast.

    Verdicts of runs are right by chance: of true pairs one in twenty differs, with another seed of the trial another
    one. Kinds that say where runs end, at whatever rate, and those that stand alone are not among them.
    """
    trials = [Trial(with_values(example.problem, dict(values))) for values in example.family.trials]
    kinds = {name: Result.of(example.result(name)) for name in example.family.methods}
    names = [name for name, result in kinds.items() if is_comparable(result) and not result.kind.at_end]
    for pair in combinations(names, 2):
        told = next((trial for trial in trials if _agrees(trial, pair)), None)
        known = example.family.untold.get(pair)
        assert (told is None) != (known is None), (
            f"no trial tells {pair}: declare Family.trials, or why not in Family.untold"
            if told is None
            else f"untold has {pair}, which agree"
        )
        if told is not None:
            _check_rate(told, pair)


def _agrees(trial: Trial, pair: tuple[str, str]) -> bool:
    """Whether two methods agree in a trial, which may not be one that tells them apart."""
    report = compare(*map(trial.result, pair))
    verdict, reason = report.attrs["verdict"], str(report["reason"].values[0])
    assert verdict != DIFFERS, f"{pair} differ: {reason}"
    return bool(verdict == AGREES)


def _check_rate(trial: Trial, pair: tuple[str, str]) -> None:
    """Check that predictions of twice the learning rate are found, and refused where they say so."""
    decides = twice_the_rate(trial.problem).limit() != trial.problem.limit()
    for wrong, other in (pair, pair[::-1]):
        if not Result.of(trial.result(wrong)).is_prediction:
            continue
        report = compare(trial.too_fast(wrong), trial.result(other))
        assert report.attrs["verdict"] == DIFFERS, (
            f"{wrong} that learns twice as fast against {other}: {report.attrs['verdict']}, "
            f"{report['reason'].values[0]} Declare trials with more runs"
        )
        if decides:
            _check_refusal(trial, wrong, other)


def _check_refusal(trial: Trial, wrong: str, other: str) -> None:
    labelled = trial.result(wrong).assign_attrs(problem=format_problem(twice_the_rate(trial.problem)))
    said = refusal(lambda right: compare(labelled, right), trial.result(other))
    rate = rate_key(trial.problem).rpartition(".")[2]
    assert rate in said, f"{wrong} of another {rate} than {other} is not refused by its key: {said}"
