"""What a comparison of two results leaves out, and why, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from meanfield.comparison.inputs import own_times
from meanfield.comparison.judgement import EXACT_START_SCATTER, FEWEST_RUNS, MOST_PLACES, SOLVER_ROUNDING, Judgement
from meanfield.comparison.sides import finished_runs, largest_value, moments
from meanfield.problems.base import same_times
from meanfield.problems.family import resolve
from meanfield.results.result import Result
from meanfield.results.text import plain
from meanfield.typing import FloatArray


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
    phrases += _weights(whole, pair, found)
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
    if len(holders) < 2 or not found.places:
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


def _weights(whole: Sequence[Result], pair: Result, found: Judgement) -> Iterator[str]:
    """Snapshots at which weights are not judged."""
    kept = [own_times(result, "snapshot_time") for result in whole if result.dataset.sizes.get("snapshot_time")]
    judged = pair.family.judged
    if not kept or not judged:
        return
    snapshots = np.unique(np.concatenate(kept))
    if not any(np.isfinite(pair.dataset[name].values).any() for name in judged if name in pair.dataset):
        yield "weights, which are compared with a density alone"
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
