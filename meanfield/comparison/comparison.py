"""Comparison of results of one problem pair by pair: they agree, they differ, or they cannot tell.

Runs one by one are rotated: their own scatter is the measure of chance. Where only moments over runs are kept, or few
runs have a predicted covariance, there are standard errors. Two predictions agree within the errors that they state.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr

from meanfield.comparison.inputs import (
    at_common_places,
    checked,
    common_origins,
    different_origins,
    different_starts,
    own_times,
)
from meanfield.comparison.judgement import (
    EXACT_START_SCATTER,
    FEWEST_RUNS,
    MOST_PLACES,
    SOLVER_ROUNDING,
    Judgement,
    Place,
)
from meanfield.comparison.known_errors import judge_moments, judge_predictions
from meanfield.comparison.order import in_order
from meanfield.comparison.rotations import FEWEST_WEIGHTS
from meanfield.comparison.runs import judge_runs, squared
from meanfield.comparison.sides import (
    finished_runs,
    largest_value,
    least_spread,
    moments,
    predicted_variance,
    share_features,
    within_half_a_step,
)
from meanfield.comparison.wording import overall, reason
from meanfield.problems.family import Family, resolve
from meanfield.problems.known_families import family_of
from meanfield.problems.output_times import same_times
from meanfield.problems.variable import AGREES, DIFFERS
from meanfield.process.progress import counted
from meanfield.results.collection import named
from meanfield.results.provenance import provenance
from meanfield.results.result import Result, check_dataset
from meanfield.results.schema import build_dataset
from meanfield.results.text import plain
from meanfield.samples.reasons import reason_in_data
from meanfield.typing import FloatArray


def compare(*datasets: xr.Dataset | xr.DataTree, labels: Sequence[str] | None = None) -> xr.Dataset:
    """Compare two or more results of the same problem, pair by pair, at the output times that all of them have.

    Parameters
    ----------
    *datasets : xarray.Dataset or DataTree
        Results of any methods, or what `meanfield.collect` returns of them.
    labels : sequence of str, optional
        Their names in the report; by default their methods, or the names of nodes.

    Returns
    -------
    xarray.Dataset
        Variables with the dim `pair`; what a pair cannot be compared in is NaN. Differences are second minus first.
        Overlaps q and prior work r come with the standard error of the replicas' mean where there are replicas.
        Weights of SGD against a density: W1 and KS distance, marginally and conditionally on groups of u, each
        beside its mean over independent samples of that size. Density against density: L1 distance. `verdict` is
        AGREES, DIFFERS or CANNOT TELL for each pair, and for all of them together as an attribute; `p_value` and
        `reason` say why, `left_out` what is not compared, and variables that end in `_chance` what is the largest
        difference that chance allows: of comparisons of true pairs 95 in 100 have none that is larger. `reason` also
        says what in the samples of own runs contradicts a prediction, whether they agree with it or not, and where two
        results come from different versions of a function or file of one name.

    Raises
    ------
    InputError
        If there are fewer than two results, one of them failed, is not whole or holds numbers that no run gives, or
        their problems differ in what decides the limit.
    """
    started = time.perf_counter()
    names, single = named(datasets, labels)
    for dataset in single:
        check_dataset(dataset)
    whole = checked(single, names)
    results, reordered = in_order(at_common_places(whole, names), names)
    problem = results[0].problem
    family = family_of(problem)  # which may be a part of that of the results
    pairs = list(combinations(range(len(results)), 2))
    arrays: dict[str, Any] = {"pair": np.array([f"{names[i]} - {names[j]}" for i, j in pairs])}
    for name in family.compared_with({dim for result in results for dim in result.dataset.dims}):
        arrays |= _differences(name, results, pairs)
    for result in results[::-1]:
        arrays |= {name: result.dataset[name].values for name in _coordinates(family) if name in result.dataset}
    if family.measure_distances:
        arrays |= resolve(family.measure_distances)(results, pairs)
    measured = Result.of(build_dataset("comparison", problem, arrays, "complete", "{}"), problem)
    rows = [measured.part(measured.dataset.isel(pair=row)) for row in range(len(pairs))]
    judgements: list[Judgement] = []
    without, reasons = [], []
    for row, (i, j) in zip(counted(rows, "verdicts", "pair"), pairs, strict=True):
        both, given, labels = (results[i], results[j]), (whole[i], whole[j]), (names[i], names[j])
        judgements.append(judge(*both, row, results))
        agree = judgements[-1].verdict == AGREES and any(result.is_prediction for result in both)
        in_data = reason_in_data(given, agree) if agree or judgements[-1].verdict == DIFFERS else ""
        without.append(left_out(labels, given, both, row, judgements[-1]))
        origins = different_origins(*given, labels) + reordered
        at_start = _apart_at_start(*both, row) if judgements[-1].why == "beyond" else ""
        reasons.append(origins + in_data + at_start + reason(judgements[-1], row, not in_data))
    arrays |= _judged(judgements, measured) | {"left_out": np.array(without), "reason": np.array(reasons)}
    report = build_dataset("comparison", problem, arrays, "complete", provenance(time.perf_counter() - started))
    verdict = overall([judgement.verdict for judgement in judgements])
    return report.assign_attrs(common_origins(whole), verdict=verdict)


def judge(first: Result, second: Result, comparison: Result, results: Sequence[Result]) -> Judgement:
    """Judge two results of one problem.

    Parameters
    ----------
    first, second : Result
    comparison : Result
        The pair of them in what `compare` returns, without a verdict.
    results : sequence of Result
        All results that are compared, one of which may predict the variance of runs.
    """
    found = replace(_judged_alike(first, second, comparison, results), by_steps=_by_steps(first, second, comparison))
    starts = different_starts(first, second) if found.why in ("beyond", "unstated") else ""
    return replace(found, why="start", starts=starts) if starts else found


def _apart_at_start(first: Result, second: Result, pair: Result) -> str:
    """Sentence on what differs at the start already, by more than single runs scatter; empty if nothing does."""
    at = np.flatnonzero(pair.dataset["time"].values == 0.0)
    runs = [result for result in (first, second) if not result.is_prediction]
    names = [name for name in first.family.compared if len(at) and runs and f"{name}_difference" in pair.dataset]
    starts = [result.part(result.dataset.isel(time=at)) for result in (first, second)]
    size = max([1.0, *(largest_value(starts[0], starts[1], name) for name in names)])
    errors = 5.0 if _few_runs(first, second) else 1.0  # few do not show how far they scatter
    for name in names:
        difference, error = (
            float(np.nan_to_num(np.abs(pair.dataset[f"{name}_{word}"].isel(time=at))).max(initial=0.0))
            for word in ("difference", "standard_error")
        )
        chance = errors * size / min(result.steps_per_time for result in runs) ** 0.5
        if difference > max(chance, 5.0 * error):  # five errors are no chance
            return f"They differ at the start, by {difference:.2g} in {name}: start runs as the problem says. "
    return ""


def _by_steps(first: Result, second: Result, comparison: Result) -> Place | None:
    """Where half a step explains most of the difference, if that is anywhere more than a standard error."""
    places = []
    for name in (name for name in first.family.compared if f"{name}_difference" in comparison.dataset):
        difference, error = (comparison.dataset[f"{name}_{word}"].values for word in ("difference", "standard_error"))
        if not np.isfinite(error).any():
            continue
        explained = np.abs(within_half_a_step(difference, first, second, name))
        away = np.divide(explained, error, out=np.zeros_like(explained), where=(error > 0) & (explained > error))
        at = tuple(map(int, np.unravel_index(np.argmax(away), away.shape)))
        if away[at] > 0:
            places.append(Place(name, at, float(explained[at]), float(error[at])))
    return max(places, key=lambda place: place.deviation / place.allowed, default=None)


def _judged_alike(first: Result, second: Result, comparison: Result, results: Sequence[Result]) -> Judgement:
    """Judgement of two results as if they started alike."""
    both = (first, second)
    if all(result.is_prediction for result in both):
        return judge_predictions(first, second, comparison)
    if any(not result.has_runs and not result.is_prediction for result in both):
        return judge_moments(first, second, results)
    names = first.family.compared
    if _few_runs(*both) and any(predicted_variance(result, name) is not None for result in results for name in names):
        return judge_moments(first, second, results)
    return judge_runs(first, second, comparison)


def _few_runs(*results: Result) -> bool:
    return any(result.has_runs and result.dataset.sizes["replica"] < FEWEST_RUNS for result in results)


def _judged(judgements: Sequence[Judgement], measured: Result) -> dict[str, Any]:
    """Variables that hold verdicts, and what chance allows."""
    family, dataset = family_of(measured.problem), measured.dataset
    arrays: dict[str, Any] = {
        "verdict": np.array([judgement.verdict for judgement in judgements]),
        "p_value": np.array([judgement.p_value for judgement in judgements]),
        "test": np.array([judgement.test for judgement in judgements]),
    }
    for name in (name for name in family.compared if f"{name}_difference" in dataset):
        arrays[f"{name}_chance"] = np.array([judgement.levels.get(name, np.nan) for judgement in judgements])
    for name in (name for name in family.judged if name in dataset):
        allowed = np.full(dataset[name].shape, np.nan)
        for row, judgement in enumerate(judgements):
            if name in judgement.distances:
                where, times = judgement.distances[name]
                allowed[row][where] = dataset[name].values[row][where] * times
        arrays[f"{name}_chance"] = allowed
    return arrays


def _coordinates(family: Family) -> list[str]:
    """Coordinates along which compared variables have values."""
    dims = {dim for variable in family.compared.values() for dim in variable.dims}
    return [name for name in family.variables if name in dims]


def _differences(name: str, results: Sequence[Result], pairs: list[tuple[int, int]]) -> dict[str, FloatArray]:
    """Differences of a variable and their standard errors, NaN where a result does not hold it; none if all lack it."""
    sides = [moments(result, name) for result in results]
    known = next((side.mean for side in sides if side is not None), None)
    if known is None:
        return {}
    difference, error = np.full((2, len(pairs), *known.shape), np.nan)
    for row, (i, j) in enumerate(pairs):
        first, second = sides[i], sides[j]
        if first is not None and second is not None:
            difference[row] = second.mean - first.mean
            spread = np.sqrt(first.variance + second.variance)
            error[row] = np.where(spread > least_spread(results[i], results[j], name), spread, np.nan)
    return {f"{name}_difference": difference, f"{name}_standard_error": error}


def left_out(
    names: Sequence[str], whole: Sequence[Result], results: Sequence[Result], pair: Result, found: Judgement
) -> str:
    """Phrases about what two results hold and the judgement of them does not cover; empty if that is nothing.

    Parameters
    ----------
    names : sequence of str
        Names of the two.
    whole, results : sequence of Result
        The two as they were given, and at the places at which they are compared.
    pair : Result
        The pair of them in what `compare` returns, without a verdict.
    found : Judgement
    """
    phrases = [*_places(whole, results), *_runs(names, results, found)]
    for name in pair.family.compared:
        phrases += _quantity(name, names, results, pair, found)
    phrases += _scarce(pair, found) if found.scarce else _weights(whole, pair, found)
    return "; ".join([*phrases, *(resolve(pair.family.leaves_out)(*results) if pair.family.leaves_out else ())])


def _places(whole: Sequence[Result], results: Sequence[Result]) -> Iterator[str]:
    """Places, above all times, that only one of the two has."""
    first, second = (result.dataset.sizes for result in results)
    for dim, size in first.items():
        most = max(result.dataset.sizes.get(dim, 0) for result in whole)
        if dim not in ("replica", "snapshot_time") and dim in second and size < most:
            yield f"compared at {size} of {most} {'times' if dim == 'time' else f'entries of {dim}'}"


def _runs(names: Sequence[str], results: Sequence[Result], found: Judgement) -> Iterator[str]:
    """Runs that ended early."""
    for name, result in zip(names, results, strict=True):
        if result.has_runs:
            runs, left = (each.dataset.sizes["replica"] for each in (result, finished_runs(result)))
            if left < runs and found.places:
                yield f"{runs - left} of the {runs} runs of {name}, which ended before the others"


def _quantity(
    name: str, names: Sequence[str], results: Sequence[Result], pair: Result, found: Judgement
) -> Iterator[str]:
    """Values of a compared quantity that only one of the two has, or in which runs do not scatter."""
    held = [moments(result, name) for result in results]
    holders = [label for label, values in zip(names, held, strict=True) if values is not None]
    size = largest_value(results[0], results[1], name)
    if len(holders) == 1 and size > 0.0:  # without a prior r vanishes
        yield f"{name}, which only {holders[0]} holds"
    if len(holders) < 2 or not found.places or squared(results[0], results[1], name):
        return
    times, difference = (pair.dataset[variable].values for variable in ("time", f"{name}_difference"))
    judged = np.zeros(difference.shape, dtype=bool)
    if name in found.places:
        judged[found.places[name]] = True
    if judged.sum() >= MOST_PLACES > 0 and difference.size > MOST_PLACES:
        yield f"{name} but for {MOST_PLACES} values that are evenly spread"
        return
    rest = ~judged.reshape(len(times), -1)
    known = np.isfinite(difference.reshape(len(times), -1))
    least = np.where(times == times[0], EXACT_START_SCATTER, SOLVER_ROUNDING)[:, None] * max(size, 1.0)
    apart = np.abs(np.nan_to_num(difference.reshape(len(times), -1))) > least
    missing = (rest & ~known).any(axis=1)
    still = (rest & apart).any(axis=1)
    if missing.any():
        yield f"{name}{_when(times, missing)}, where values are missing"
    if still.any():
        yield f"{name}{_when(times, still)}, where runs do not scatter"


def _scarce(pair: Result, found: Judgement) -> Iterator[str]:
    """Distances that are not judged everywhere, because runs have too few weights."""
    few = f"where all runs together have fewer than {FEWEST_WEIGHTS} weights, which are not Gaussian: take more runs"
    yield f"{' and '.join(found.scarce)} of weights, {few}"


def _weights(whole: Sequence[Result], pair: Result, found: Judgement) -> Iterator[str]:
    """Snapshots at which weights are not judged."""
    kept = [own_times(result, "snapshot_time") for result in whole if result.dataset.sizes.get("snapshot_time")]
    judged = pair.family.judged
    if not kept or not judged:
        return
    snapshots = np.unique(np.concatenate(kept))
    if not any(np.isfinite(pair.dataset[name].values).any() for name in judged if name in pair.dataset):
        yield "weights, which are compared with a density alone"
    elif any(share_features(result.dataset) for result in whole):
        yield "weights of runs that share their features, whose draw is in no scatter: draw features for each run"
    elif found.places and not found.distances:
        yield f"weights, which take {FEWEST_RUNS} or more runs that are kept one by one"
    else:
        at = [i for where, _ in found.distances.values() for i in where[0]]
        covered = pair.dataset["snapshot_time"].values[np.unique(at).astype(int)]
        others = same_times(covered, snapshots) < 0
        if others.any() and found.places:
            yield f"weights{_when(snapshots, others)}, where one of the two has none, or not of all runs"


def _when(times: FloatArray, which: np.ndarray) -> str:
    """Some of the times in words."""
    chosen = times[which]
    if len(chosen) == len(times):
        return ""
    if len(chosen) > 1 and which[-len(chosen) :].all():
        return f" from t = {plain(chosen[0])} on"
    if len(chosen) <= 4:  # so few are listed one by one
        return f" at t = {', '.join(map(plain, chosen))}"
    return f" at {len(chosen)} of {len(times)} times"
