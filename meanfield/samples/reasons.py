"""Reasons in the data of own runs for a difference from the limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from meanfield.ensembles.own_runs import SAMPLES
from meanfield.errors import InputError
from meanfield.problems.base import schedules_of
from meanfield.results.result import Result
from meanfield.samples.evidence import Evidence
from meanfield.samples.findings import findings_of
from meanfield.samples.problem_from import assumed_of
from meanfield.samples.statistics import FEWEST_COORDINATES, FEWEST_SAMPLES

AT_SMALL_N = ("N too small", "heavy tails")
"""Findings whose effect a larger N takes away."""

BESIDE_DATA = (*AT_SMALL_N, "mass on few coordinates")
"""Findings on what runs show themselves if it matters."""


def reason_in_data(results: Sequence[Result], agree: bool = False) -> str:
    """Sentences on what in the data of runs explains a difference, or that nothing does; empty without samples.

    Where runs agree with a limit, on what in their data contradicts it all the same, or nothing.
    """
    for e in _evidence(results):
        everything = findings_of(e)
        found = [each for each in everything if each.matters and not (agree and each.name in BESIDE_DATA)]
        words = "; ".join(each.words for each in found)
        if agree:
            start = "Data of the runs are not those of the problem, though the runs do not show it"
            return f"{start}: {words}; {found[0].remedy}. " if found else ""
        if found:
            help_ = "helps" if all(each.name in AT_SMALL_N for each in found) else "will not help"
            return f"As is to be expected: {words}; a larger N {help_}: {found[0].remedy}. "
        small = "; ".join(map(str, everything))
        return (
            f"The samples of its data contradict nothing in the problem (though {e.limits}): look at the step, which "
            "is its learning rate, batch size, noise of labels and prior, and at k, which counts each step once. "
            + (f"A larger N tells whether it is what is {small}. " if small else "")
        )
    return ""


def _evidence(results: Sequence[Result]) -> Iterator[Evidence]:
    """Evidence of the samples that results hold, where the problem says what data are throughout the run."""
    for result in results:
        held, problem = result.dataset, result.problem
        changes = any(key.startswith(("features", "hidden", "data", "phases")) for key in schedules_of(problem))
        if SAMPLES not in held or "U" not in held or problem.phases or changes:
            continue
        try:
            assumed = assumed_of(problem)
        except InputError:  # inputs are of another form
            continue
        x = held[SAMPLES].transpose("sample", "coordinate").values.astype(float)
        U = held["U"].transpose("replica", "coordinate", "feature").values[0]
        count, N = x.shape
        if count < FEWEST_SAMPLES or N < FEWEST_COORDINATES:
            continue
        stop, path = float(held["time"][-1]), []
        if "weights" in held:
            first = held["weights"].isel(replica=0).transpose("snapshot_time", "coordinate", ...)
            path = [(float(w["snapshot_time"]) / max(stop, 1e-300), w.values.reshape(N, -1)) for w in first]
        seen = assumed.samples_per_time * N * stop
        yield Evidence(x, U, assumed, seen, np.random.default_rng(0), tuple(path))
