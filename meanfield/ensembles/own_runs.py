"""Runs of training code of one's own as results of SGD: from arrays, or recorded while it trains.

Arrays have the names and dims that the family declares of its `particles`, with the dim `replica` in front. What
follows from others, such as overlaps from weights, is measured by the family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meanfield.arguments import as_array, as_whole
from meanfield.ensembles.settings import EnsembleSettings
from meanfield.errors import InputError
from meanfield.ingredients.nearest import nearest
from meanfield.problems.base import Problem, check_problem
from meanfield.problems.clock import Clock
from meanfield.problems.family import resolve
from meanfield.problems.known_families import family_of
from meanfield.problems.problem_keys import with_values
from meanfield.results.checks import faults
from meanfield.results.result import Result
from meanfield.results.solved import Solved
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

KIND = "particles"
"""Kind of results that own runs are, as SGD of the library is."""

AT_SNAPSHOTS = "snapshot_time"
"""Dim of arrays that are kept at some output times only."""

AGREEMENT = 1e-3
"""Largest difference of what is given and what follows, in units of the largest value: far beyond single precision."""

Arrays = dict[str, Any]
Measure = Callable[[FloatArray, Mapping[str, Any]], Mapping[str, Any]]
"""What follows from arrays of runs at some times; see `meanfield.problems.family.Family.measure`."""


def runs(problem: Problem, *, time: Any = None, steps: Any = None, **variables: Any) -> xr.Dataset:
    """Runs of one's own training code as a result of SGD, for `compare`, `save`, plots and reports.

    Parameters
    ----------
    problem : Problem
        What the code trains. N and the number of replicas are those of the arrays.
    time : array_like, shape (T,)
        Times t = k/N, all of them output times of the problem.
    steps : array_like of int, shape (T,)
        Numbers k of steps taken, in place of `time`.
    **variables
        Arrays by the names of results, with the replicas first, then the T times: of the family `contrastive` `q` of
        shape (replica, T, feature) or `weights` of shape (replica, T, N), NaN at times where weights were not kept; and
        `U` of shape (N, feature), or (replica, N, feature) where each run has its own. Dims with a single entry, such
        as one student, may be left out.

    Returns
    -------
    xarray.Dataset
        A result of the kind `particles`. In it is also what follows from what is given: overlaps from `weights` and
        `U`, observables from overlaps, `r` from weights or, under a linear phi, from their length.

    Raises
    ------
    InputError
        If a name, a shape or a time does not fit the problem, something is missing, numbers are not finite, or two
        arrays contradict each other.

    Notes
    -----
    All quantities are dimensionless.

    Examples
    --------
    >>> import meanfield
    >>> problem = meanfield.load_problem("data/problems/no_prior.toml")
    >>> own = meanfield.runs(problem, time=[0.0, 20.0], q=[[[0.3], [0.8]], [[0.3], [0.82]]])
    >>> own["q"].shape
    (2, 2, 1)
    """
    check_problem(problem)
    given = {name: as_array(each, name, "give an array of numbers") for name, each in variables.items()}
    arrays, sizes = _fitted(problem, given)
    problem = with_values(problem, _settings(problem, sizes))
    times = _times(problem, time, steps, sizes)
    found = _completed(arrays, _measure_of(problem)(times, arrays), times)
    kept = _snapshots(problem, arrays, times)
    found = {name: each[:, kept] if _is_kept(problem, name) else each for name, each in found.items()}
    return _result(problem, times, found, times[kept])


class Recorder:
    """Recorder of runs in a training loop, which keeps what a result needs at the output times of a problem.

    Parameters
    ----------
    problem : Problem
        What the loop trains.
    features : array_like, shape (N, feature) or (replica, N, feature), optional
        U, where the data have features.

    Notes
    -----
    Arrays of PyTorch, JAX and NumPy are taken as they are; none of these packages is imported. Between output times a
    call looks up a number, and memory is taken by the weights at the snapshots alone, `particles.snapshots`.

    Examples
    --------
    >>> import meanfield, numpy as np
    >>> problem = meanfield.load_problem("data/problems/no_prior.toml")
    >>> U = np.ones((100, 1))
    >>> record = meanfield.Recorder(problem, features=U)
    >>> for k in range(2001):
    ...     record(k, U.T + np.zeros((4, 1)))  # the weights after k steps, of four runs at once
    >>> record.result()["q"].shape
    (4, 41, 1)
    """

    def __init__(self, problem: Problem, features: Any = None) -> None:
        check_problem(problem)
        self._problem: Any = problem
        self._features = None if features is None else as_array(_at_hand(features), "features", "give U, an array")
        self._outputs: dict[int, int] = {}
        self._runs: list[dict[int, Arrays]] = [{}]
        """What is kept of runs that are recorded at once, by the number of the output time."""

    def __call__(self, k: int, weights: Any, **variables: Any) -> None:
        """Keep what is needed after k steps, if an output time is there; where k falls, other runs begin.

        Parameters
        ----------
        k : int
            Number of steps taken, 0 before the first.
        weights : array_like, shape (N, ...) or (replica, N, ...)
            After these steps, of one run or of several at once.
        **variables
            Others by the names of results, such as side variables `v`, of the same runs.

        Raises
        ------
        InputError
            If something does not fit the problem.
        """
        if k in self._outputs or not self._outputs:
            self._keep(k, {"weights": weights, **variables})

    def _keep(self, k: int, variables: Arrays) -> None:
        number = as_whole(k, "k", "give the number of steps taken", least=0)
        given = {name: as_array(_at_hand(each), name, "give numbers") for name, each in variables.items()}
        of_one = [dim for dim in _dims(self._problem)["weights"][2:] if self._problem.fixed_dims.get(dim, 2) > 1]
        if given["weights"].ndim <= len(of_one):
            given = {name: each[None] for name, each in given.items()}
        if not self._outputs:
            self._begin(given["weights"].shape[1])
        output = self._outputs.get(number)
        if output is None:
            return
        if any(output <= known for known in self._runs[-1]):
            self._runs.append({})
        features = {} if self._features is None else {"U": self._features_of(len(given["weights"]))}
        arrays, _ = _fitted(self._problem, {name: each[:, None] for name, each in given.items()} | features)
        found = _completed(arrays, self._measure(self._times[[output]], arrays), self._times[[output]])
        whole = output in self._snapshots
        kept = {name: each for name, each in found.items() if whole or not _is_kept(self._problem, name)}
        self._runs[-1][output] = kept

    def _begin(self, N: int) -> None:
        """Find out after how many steps there are output times."""
        self._snapshots = self._problem.particles.snapshot_index(self._problem.time)
        self._problem = with_values(self._problem, _settings(self._problem, {"replica": 1, "coordinate": N}))
        self._measure, self._times = _measure_of(self._problem), self._problem.time.outputs_at
        N = self._problem.labels.get("dimension")
        steps = np.rint(self._times * N) if N else Clock(self._problem).steps_at(self._times)
        self._outputs = {int(step): number for number, step in enumerate(steps)}

    def _features_of(self, count: int) -> FloatArray:
        """Features of the runs that are recorded now."""
        assert self._features is not None
        before = sum(len(next(iter(kept.values()))["weights"]) for kept in self._runs[:-1])
        return self._features if self._features.ndim < 3 else self._features[before : before + count]

    def result(self) -> xr.Dataset:
        """Result of all runs, at the output times that all of them reached; see `runs`.

        Raises
        ------
        InputError
            If there are no runs, or they do not fit the problem.
        """
        outputs = sorted(set.intersection(*map(set, self._runs)))
        if not outputs:
            raise InputError("Recorder: no runs are recorded; call it with the number of steps taken and the weights")
        kept = [output for output in outputs if output in self._snapshots]
        dims = _dims(self._problem)

        def joined(name: str) -> Any:
            if name not in dims:  # the same of all runs and times
                return self._runs[0][outputs[0]][name]
            at = kept if _is_kept(self._problem, name) else outputs if "time" in dims[name] else outputs[:1]
            return np.concatenate([np.concatenate([run[o][name] for o in at], axis=1) for run in self._runs])

        arrays = {name: joined(name) for name in self._runs[0][kept[0] if kept else outputs[0]]}
        problem = with_values(self._problem, _settings(self._problem, {"replica": len(arrays["weights"])}))
        return _result(problem, self._times[outputs], arrays, self._times[kept])


def _at_hand(given: Any) -> Any:
    """Numbers of an array in the memory of this process; one of PyTorch may take part in gradients, or lie on a GPU."""
    for name in ("detach", "cpu"):
        given = getattr(given, name, lambda found=given: found)()
    return given


def _dims(problem: Problem) -> dict[str, tuple[str, ...]]:
    """Dims of the arrays of runs of a problem: the replica first, and times in place of snapshots."""
    family, held = family_of(problem), problem.fixed_dims
    if KIND not in family.all_kinds:
        raise InputError(f"runs: the family '{family.name}' has no runs of SGD; give a problem of one that has")
    found = {}
    for name in family.all_kinds[KIND].names:
        known = family.variables[name]
        if "replica" in (*known.dims, *known.optional_dims) and family.exists(known, held):
            inner = ("time" if dim == AT_SNAPSHOTS else dim for dim in known.dims if dim != "replica")
            found[name] = ("replica", *inner, *(dim for dim in known.last_dims if dim in held))
    return found


def _is_kept(problem: Problem, name: str) -> bool:
    """Whether an array is kept at snapshots."""
    known = family_of(problem).variables.get(name)
    return known is not None and AT_SNAPSHOTS in known.dims


def _fitted(problem: Problem, given: Mapping[str, FloatArray]) -> tuple[Arrays, dict[str, int]]:
    """Arrays with all their dims, single ones included, and the sizes of these."""
    known, sizes, found = _dims(problem), dict(problem.fixed_dims), {}
    for name in given:
        if name not in known:
            raise InputError(f"runs: '{name}' is no array of runs of this problem; {nearest(name, known)}")
    in_time = [name for name in given if "time" in known[name]]
    if not in_time:
        raise InputError(f"runs: no run is given; give one or more of {', '.join(known)}")
    for name in (*in_time, *(given.keys() - in_time)):
        dims, array = known[name], given[name]
        fits = _whole(array, dims, sizes)
        if fits is None and "time" not in dims:  # the same of all runs
            one = _whole(array, dims[1:], sizes)
            fits = None if one is None else np.broadcast_to(one, (sizes["replica"], *one.shape))
        if fits is None:
            words = ", ".join(f"{dim}: {sizes[dim]}" if dim in sizes else dim for dim in dims)
            raise InputError(f"{name}: has the shape {array.shape}; give one of ({words})")
        sizes |= dict(zip(dims, fits.shape, strict=True))
        found[name] = np.array(fits)  # a copy: training goes on in the array that was given
    return found, sizes


def _whole(array: FloatArray, dims: tuple[str, ...], sizes: Mapping[str, int]) -> FloatArray | None:
    """Array with all dims, if its shape is that of all, or of those with more than one entry; else None."""
    wanted = [sizes.get(dim) for dim in dims]
    single = [place for place, size in enumerate(wanted) if size == 1]
    if array.ndim == len(dims) - len(single) < len(dims):
        array = np.expand_dims(array, single)
    fits = array.ndim == len(dims) and all(n in (None, m) for n, m in zip(wanted, array.shape, strict=True))
    return array if fits else None


def _settings(problem: Any, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Keys of a problem that arrays decide."""
    found = {"particles.replicas": sizes["replica"], "particles.record": "replicas", "particles.snapshots": ()}
    if isinstance(problem.particles, EnsembleSettings) and _is_kept(problem, "weights") and "coordinate" in sizes:
        found["particles.dimension"] = sizes["coordinate"]
    return found


def _times(problem: Any, time: Any, steps: Any, sizes: Mapping[str, int]) -> FloatArray:
    """Output times of the problem at which arrays are."""
    if (time is None) == (steps is None):
        raise InputError("runs: give either time=..., which is t = k/N, or steps=..., the numbers k of steps taken")
    name = "time" if steps is None else "steps"
    values = as_array(time if steps is None else steps, name, "give a list of numbers").ravel()
    if len(values) != sizes["time"]:
        raise InputError(f"{name}: has {len(values)} entries, and arrays have {sizes['time']} times; give one for each")
    N = problem.labels.get("dimension")
    if steps is not None:
        clock = None if N else Clock(problem)
        values = np.array([k / N if clock is None else clock.time_of(int(k)) for k in values])
    place = problem.time.output_of(values, 0.5 / N if N else 0.0)
    if (place < 0).any():
        other = float(values[place < 0][0])
        near = problem.time.outputs_at[np.abs(problem.time.outputs_at - other).argmin()]
        raise InputError(
            f"{name}: t = {other:g} is no output time of the problem ({problem.time.in_words}; the nearest is "
            f"{near:g}); {_clock_in_words(problem)}; change time.stop and time.outputs, or give steps=... for time=..."
        )
    if not (np.diff(place) > 0).all():
        raise InputError(f"{name}: does not increase; give each time once, in order")
    outputs: FloatArray = problem.time.outputs_at[place]
    return outputs


def _clock_in_words(problem: Problem) -> str:
    """How times follow from numbers of steps."""
    N = problem.labels.get("dimension")
    return f"step k is at t = k/{N:g}, for particles.dimension = {N:g}" if N else "a step takes training.learning_rate"


def _measure_of(problem: Problem) -> Measure:
    """The family's measure of a problem; without one nothing follows."""
    address = family_of(problem).measure
    found: Measure = resolve(address)(problem) if address else lambda times, arrays: {}
    return found


def _completed(given: Arrays, measured: Mapping[str, Any], times: FloatArray) -> Arrays:
    """Arrays with what follows from them; refused where both are there and differ."""
    for name in given.keys() & measured.keys():
        array, other = given[name], measured[name]
        differ = np.abs(array - other) > AGREEMENT * max(1.0, float(np.nanmax(np.abs(array), initial=0.0)))
        if differ.any():
            place = tuple(np.argwhere(differ)[0].tolist())
            raise InputError(
                f"{name}: is {array[place]:.6g} in replica {place[0]} at t = {times[place[1]]:g}, and "
                f"{other[place]:.6g} by the other arrays; see that both have the runs in one order, at the same steps, "
                "or give one of them"
            )
    return {**measured, **given}


def _snapshots(problem: Problem, arrays: Arrays, times: FloatArray) -> NDArray[np.bool_]:
    """Whether weights are kept at each time; refused where they are whole in some runs only."""
    kept = np.zeros(len(times), dtype=bool)
    for name in (name for name in arrays if _is_kept(problem, name)):
        finite = np.isfinite(arrays[name]).reshape(*arrays[name].shape[:2], -1)
        kept = finite.all(axis=(0, 2))
        for replica, at in np.argwhere(finite.any(axis=2) & ~kept).tolist():
            raise InputError(
                f"{name}: are known in replica {replica} at t = {times[at]:g}, but not whole in all replicas; give NaN "
                "at times where weights are not kept, and leave out runs that blew up"
            )
    return kept


def _result(problem: Problem, times: FloatArray, arrays: Arrays, snapshots: FloatArray) -> xr.Dataset:
    """Result of arrays at some output times, with weights at some of these."""
    dims, family = _dims(problem), family_of(problem)
    for name in family.all_kinds[KIND].variables:
        if name in dims and name not in arrays:
            raise InputError(f"runs: '{name}' is missing, and does not follow from what is given; give {name}=...")
    for name in dims.keys() & arrays.keys():
        gaps = np.argwhere(~np.isfinite(arrays[name]))
        if len(gaps):
            place = dict(zip(dims[name], gaps[0].tolist(), strict=True))
            at = f" at t = {times[place['time']]:g}" if "time" in place else ""
            raise InputError(
                f"{name}: is not known in replica {place['replica']}{at}; give it at all times, or weights from which "
                "it follows, and leave out runs that blew up"
            )
    if len(snapshots):
        arrays = {**arrays, AT_SNAPSHOTS: snapshots}
    else:  # what is the same at all times stands beside weights only
        arrays = {
            name: each
            for name, each in arrays.items()
            if "time" in dims.get(name, ("time",)) and not _is_kept(problem, name)
        }
    problem = with_values(problem, {"particles.snapshots": tuple(snapshots.tolist())})
    built = Solved(KIND, {"time": times, **arrays}, effort={"steps": "own code"}).dataset(problem, 0.0)
    for fault in faults(Result.of(built, problem)):
        raise InputError(f"runs: {fault}")
    return built
