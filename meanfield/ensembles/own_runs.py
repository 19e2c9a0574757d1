"""Runs of training code of one's own as results of SGD, from arrays.

Arrays have the names and dims that the family declares of its `particles`, with the dim `replica` in front. What
follows from others, such as overlaps from weights, is measured by the family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meanfield.arguments import as_array
from meanfield.ensembles.settings import EnsembleSettings
from meanfield.errors import InputError
from meanfield.ingredients.nearest import nearest
from meanfield.problems.base import Problem, check_problem
from meanfield.problems.clock import Clock
from meanfield.problems.family import resolve
from meanfield.problems.known_families import family_of
from meanfield.problems.problem_keys import with_values
from meanfield.results.checks import faults, repeated_runs
from meanfield.results.result import Result
from meanfield.results.solved import Solved
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

KIND = "particles"
"""Kind of results that own runs are, as SGD of the library is."""

SAMPLES = "samples"
"""Inputs that a recorder keeps."""

AT_SNAPSHOTS = "snapshot_time"
"""Dim of arrays that are kept at some output times only."""

AGREEMENT = 1e-3
"""Largest difference of what is given and what follows, in units of the largest value: far beyond single precision."""

LENGTH_ERROR, FEATURE_LENGTH_ERROR = 0.02, 0.5
"""Largest errors of |w|^2/N of weights that count as normalised, as some measure before a step is complete, and of
|u|^2/N of features, which may be drawn at random."""

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
    dims = dims_of(problem)
    ordered = {name: _in_order(each, dims.get(name, ())) for name, each in variables.items()}
    given = {name: as_array(each, name, "give an array of numbers") for name, each in ordered.items()}
    arrays, sizes = fitted(problem, given)
    problem = with_values(problem, settings_of(problem, sizes))
    times = _times(problem, time, steps, sizes)
    found = completed(arrays, measure_of(problem)(times, arrays), times)
    kept = _snapshots(problem, arrays, times)
    found = {name: each[:, kept] if is_kept(problem, name) else each for name, each in found.items()}
    return result_of(problem, times, found, times[kept])


def dims_of(problem: Problem) -> dict[str, tuple[str, ...]]:
    """Dims of the arrays of runs of a problem: the replica first, and times in place of snapshots."""
    family, held = family_of(problem), problem.fixed_dims
    if KIND not in family.all_kinds:
        raise InputError(f"runs: the family '{family.name}' has no runs of SGD; give a problem of one that has")
    found = {}
    for name in family.all_kinds[KIND].names:
        known = family.variables[name].in_time
        if "replica" in (*known.dims, *known.optional_dims) and family.exists(known, held):
            inner = ("time" if dim == AT_SNAPSHOTS else dim for dim in known.dims if dim != "replica")
            found[name] = ("replica", *inner, *known.behind(held))
    return found


def _in_order(given: Any, dims: tuple[str, ...]) -> Any:
    """Array of xarray with its dims in the order of others, if it has their names."""
    own = {"time" if dim == AT_SNAPSHOTS else dim: dim for dim in getattr(given, "dims", ())}
    return given.transpose(*(own[dim] for dim in dims if dim in own)) if own and own.keys() <= set(dims) else given


def is_kept(problem: Problem, name: str) -> bool:
    """Whether an array is kept at snapshots."""
    known = family_of(problem).variables.get(name)
    return known is not None and AT_SNAPSHOTS in known.dims


def fitted(problem: Problem, given: Mapping[str, FloatArray]) -> tuple[Arrays, dict[str, int]]:
    """Arrays with all their dims, single ones included, and the sizes of these."""
    known, sizes, found = dims_of(problem), dict(problem.fixed_dims), {}
    for name in given:
        if name not in known:
            raise InputError(f"runs: '{name}' is no array of runs of this problem; {nearest(name, known)}")
    in_time = [name for name in given if "time" in known[name]]
    if not in_time:
        raise InputError(f"runs: no run is given; give one or more of {', '.join(known)}")
    for name in (*in_time, *(name for name in given if name not in in_time)):
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


def settings_of(problem: Any, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Keys of a problem that arrays decide."""
    found = {"particles.replicas": sizes["replica"], "particles.record": "replicas", "particles.snapshots": ()}
    if isinstance(problem.particles, EnsembleSettings) and is_kept(problem, "weights") and "coordinate" in sizes:
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
        if not (values == values.clip(min=0).round()).all():
            raise InputError("steps: are no whole numbers from 0 on; give the numbers k of steps taken")
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


def measure_of(problem: Problem) -> Measure:
    """The family's measure of a problem; without one nothing follows."""
    address = family_of(problem).measure
    found: Measure = resolve(address)(problem) if address else lambda times, arrays: {}
    return found


def check_lengths(
    name: str, squares: FloatArray, times: FloatArray | None = None, wanted: FloatArray | float = 1.0
) -> None:
    """Refuse vectors whose squared length over N is not as wanted, where they are known.

    Parameters
    ----------
    squares : ndarray, shape (replica, T, ...) of weights at some times, or (replica, ...) of features
        |.|^2/N.
    """
    wanted = np.broadcast_to(wanted, squares.shape)
    wrong = np.argwhere(np.abs(squares - wanted) > wanted * (FEATURE_LENGTH_ERROR if times is None else LENGTH_ERROR))
    if len(wrong):
        replica, at, *_ = wrong[0].tolist()
        when = "" if times is None else f" at t = {times[at]:g}"
        raise InputError(
            f"{name}: have |.|^2/N = {squares[tuple(wrong[0])]:.4g} in replica {replica}{when}, and "
            f"{wanted[tuple(wrong[0])]:.4g} here, where outputs are w.x/sqrt(N); multiply weights of length 1 by "
            "sqrt(N), and normalise them after each step"
        )


def completed(given: Arrays, measured: Mapping[str, Any], times: FloatArray) -> Arrays:
    """Arrays with what follows from them; refused where both are there and differ."""
    for name in (name for name in given if name in measured):
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
    for name in (name for name in arrays if is_kept(problem, name)):
        finite = np.isfinite(arrays[name]).reshape(*arrays[name].shape[:2], -1)
        kept = finite.all(axis=(0, 2))
        for replica, at in np.argwhere(finite.any(axis=2) & ~kept).tolist():
            raise InputError(
                f"{name}: are known in replica {replica} at t = {times[at]:g}, but not whole in all replicas; give NaN "
                "at times where weights are not kept, and leave out runs that blew up"
            )
    return kept


def check_complete(problem: Problem, arrays: Mapping[str, Any]) -> None:
    """Refuse arrays without what results must hold."""
    dims = dims_of(problem)
    for name in family_of(problem).all_kinds[KIND].variables:
        if name in dims and name not in arrays:
            raise InputError(f"runs: '{name}' is missing, and does not follow from what is given; give {name}=...")


def result_of(problem: Problem, times: FloatArray, arrays: Arrays, snapshots: FloatArray) -> xr.Dataset:
    """Result of arrays at some output times, with weights at some of these."""
    dims = dims_of(problem)
    check_complete(problem, arrays)
    # first what is the same at all times, from which others follow
    for name in sorted(dims.keys() & arrays.keys(), key=lambda name: ("time" in dims[name], name)):
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
    else:  # what is the same at all times stands beside weights and inputs only
        alone = SAMPLES not in arrays
        arrays = {
            name: each
            for name, each in arrays.items()
            if not (alone and "time" not in dims.get(name, ("time",))) and not is_kept(problem, name)
        }
    problem = with_values(problem, {"particles.snapshots": tuple(snapshots.tolist())})
    built = Solved(KIND, {"time": times, **arrays}, effort={"steps": "own code"}).dataset(problem, 0.0)
    result = Result.of(built, problem)
    for fault in (*faults(result), *repeated_runs(result, all_may=False)):
        raise InputError(f"runs: {fault}")
    return built
