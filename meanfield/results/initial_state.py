"""Start from what is there: a result at one of its times, or arrays in a file. Families say what their state is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol
from zipfile import BadZipFile

import numpy as np
from pydantic import Field, field_validator

from meanfield.errors import InputError
from meanfield.ingredients.file_part import FilePart, absolute
from meanfield.ingredients.objects import Object
from meanfield.problems.base import parts_in
from meanfield.problems.output_times import same_times
from meanfield.problems.problem_keys import without_numbers
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.results.result import Result


class Moment(NamedTuple):
    """Result at one of its times.

    Parameters
    ----------
    path : Path
    result : Result
    held : xarray.Dataset
        What it holds at that time.
    time : float
    wanted : str
        Results that can be a start, in words.
    """

    path: Path
    result: Result
    held: xr.Dataset
    time: float
    wanted: str

    def runs_of(self, name: str, *last: str) -> FloatArray:
        """Values of a variable, of shape (runs, ...) with some dims last, where it has them; one run without replicas.

        Raises
        ------
        InputError
            If the result does not hold it, or was not computed until then.
        """
        if name not in self.held:
            raise InputError(
                f"{self.path}: is a result of the kind '{self.result.method}' without '{name}'; name {self.wanted}"
            )
        runs = "replica" in self.held[name].dims
        values = self.held[name].transpose("replica", ..., *last, missing_dims="ignore").values.astype(float)
        if not np.isfinite(values).all():
            raise InputError(f"{self.path}: was not computed until initial.time = {self.time:g}; name an earlier time")
        return np.asarray(values if runs else values[None])


class State(Protocol):
    """What a family reads from a file."""

    @property
    def runs(self) -> int:
        """Number of runs, each of which can be the start of one."""


class _Read(NamedTuple):
    """State, and the digest of its numbers."""

    state: Any
    digest: int

    @classmethod
    def of(cls, state: State) -> _Read:
        found = sha256()
        for numbers in _numbers_in(state):
            found.update(numbers.tobytes())
        return cls(state, int(found.hexdigest()[:32], 16))


def _numbers_in(value: Any) -> Iterator[FloatArray]:
    """Arrays of a state, in the order of its parts."""
    if isinstance(value, np.ndarray):
        yield np.ascontiguousarray(value, dtype=float)
    elif isinstance(value, Mapping):
        yield from _numbers_in(tuple(value[key] for key in sorted(value)))
    elif isinstance(value, tuple):
        for part in value:
            yield from _numbers_in(part)
    elif is_dataclass(value):
        yield from _numbers_in(tuple(vars(value).values()))


class InitialState(FilePart):
    """Start from a file: `from` names a result (.nc), or arrays (.npz)."""

    vars()["from"] = Field(description="a result such as 'run.nc' of the same family, or arrays in a file .npz")
    __annotations__["from"] = "str"  # a word of Python, which no field can be named with otherwise

    time: float | None = Field(default=None, ge=0, description="time t of a result; its last one if nothing is said")

    family: ClassVar[str]
    """Name of the family whose results can be a start."""

    arrays: ClassVar[Mapping[str, str]]
    """Names of arrays that a file .npz must hold, and for what they stand in the call that writes it."""

    further_arrays: ClassVar[tuple[str, ...]] = ()
    """Names of arrays that it may hold besides."""

    kept_at_snapshots: ClassVar[str] = ""
    """Name of the variable with weights, which results hold at times of its own."""

    wanted: ClassVar[str]
    """Results that can be a start, in words, for messages."""

    @classmethod
    def outside(cls) -> tuple[str, ...]:
        """See `NamesOutside.outside`."""
        return ("from",)

    @field_validator("from")
    @classmethod
    def _find_source(cls, path: str, info: Any) -> str:
        return absolute(path, info)

    @property
    def path(self) -> str:
        """Path of the file."""
        found: str = getattr(self, "from")
        return found

    @property
    def paths(self) -> dict[str, str]:
        """See `FilePart.paths`."""
        return {"from": self.path}

    @property
    def asked(self) -> Any:
        """See `FilePart.asked`: what is read depends on nothing else."""
        return self.path, self.time

    @property
    def atoms(self) -> Any:
        """State that the file holds.

        Raises
        ------
        InputError
            If the file cannot be read, or holds no start.
        """
        return self._read.state

    @property
    def digest(self) -> int:
        """Whole number that numbers of the state decide, and nothing else that its file says."""
        return self._read.digest

    @property
    def _read(self) -> _Read:
        return self.read_once("initial.from", lambda _: _Read.of(self._state_in(Path(self.path))))

    @property
    def in_words(self) -> str:
        """Where the weights start."""
        at = "" if self.time is None else f" at t = {self.time:g}"
        return f"from {Path(self.path).name}{at}"

    def of_result(self, moment: Moment) -> State:
        """State that a result is in."""
        raise NotImplementedError

    def of_arrays(self, given: dict[str, FloatArray], path: Path) -> State:
        """State that arrays are."""
        raise NotImplementedError

    def check_fits(self, problem: Any) -> None:
        """Refuse a start of other sizes than a problem has.

        Raises
        ------
        ValueError
            With the key, and what to change.
        """
        raise NotImplementedError

    def _state_in(self, path: Path) -> State:
        if path.suffix == ".npz":
            if self.time is not None:
                raise InputError(f"{path}: arrays have no time; remove initial.time")
            return self.of_arrays(self._arrays_in(path), path)
        return self.of_result(self._moment_of(path))

    def _arrays_in(self, path: Path) -> dict[str, FloatArray]:
        names = " and ".join(f"'{name}'" for name in self.arrays)
        call = f"write it by numpy.savez(path, {', '.join(f'{name}={of}' for name, of in self.arrays.items())})"
        try:
            with np.load(path, allow_pickle=False) as file:
                known = [name for name in (*self.arrays, *self.further_arrays) if name in file]
                given = {name: np.asarray(file[name], dtype=float) for name in known}
        except (OSError, ValueError, TypeError, EOFError, BadZipFile) as error:
            raise InputError(f"{path}: cannot be read ({error}); {call}") from error
        if not given.keys() >= self.arrays.keys():
            raise InputError(f"{path}: holds no {names}; {call}")
        for name, values in given.items():
            if not np.isfinite(values).all():
                raise InputError(
                    f"{path}: '{name}' holds numbers that are not finite; give those of a run that goes on"
                )
        return given

    def _moment_of(self, path: Path) -> Moment:
        from meanfield.results.files import load  # which imports xarray
        from meanfield.results.result import Result

        result = Result.of(self.path.content if isinstance(self.path, Object) else load(path))
        held, family = result.dataset, result.family.name
        if family != self.family:
            raise InputError(
                f"{path}: is a result of the family '{family}', and the problem of '{self.family}'; name {self.wanted}"
            )
        axis = "snapshot_time" if self.kept_at_snapshots in held else "time"
        if axis not in held.dims:
            raise InputError(f"{path}: is a result of the kind '{result.method}', without a time; name {self.wanted}")
        times = held[axis].values
        k = len(times) - 1 if self.time is None else int(same_times(times, np.array([self.time]))[0])
        if k < 0:
            what = "snapshots" if axis == "snapshot_time" else "output times"
            raise InputError(
                f"{path}: initial.time = {self.time:g} is none of its {what}, {', '.join(f'{t:g}' for t in times[:8])}"
                f"{', ...' if len(times) > 8 else ''}; name one of them"
            )
        return Moment(path, result, held.isel({axis: k}), float(times[k]), self.wanted)


def seed_of(problem: Any) -> int:
    """Seed of the random numbers of a problem.

    A run that goes on from a file draws others than the run that ended there, although both have one `particles.seed`:
    with the same numbers twice it would have another law than the unbroken run.
    """
    seed: int = problem.particles.seed
    initial: InitialState | None = getattr(problem, "initial", None)
    return seed if initial is None else seed ^ initial.digest


def first_weights(result: Result, *names: str) -> FloatArray | None:
    """Weights with which all of a result starts, None where its runs differ; empty if it does not hold them.

    Parameters
    ----------
    *names : str
        Names of the variables with weights; those that there are make up a row.
    """
    rows = []
    for name in names:
        if name in result.dataset:
            held = result.dataset[name]
            axis = "snapshot_time" if "snapshot_time" in held.dims else "time"
            first = held.isel({axis: 0}).values if held[axis].values[:1] == 0.0 else np.empty(0)
            rows.append(first.reshape(held.sizes.get("replica", 1), -1))
    joined = np.concatenate(rows or [np.empty((1, 0))], axis=1)
    return np.asarray(joined[0]) if np.array_equal(joined, np.broadcast_to(joined[0], joined.shape)) else None


def said_by_keys(problem: Any) -> dict[str, Any]:
    """Keys of the start that a problem sets, with their defaults, which leave it to a file."""
    found = {}
    start = re.compile("|".join(re.escape(key).replace(r"\*", r"[^.]+") for key in problem.keys_of_start))
    for path, part in parts_in(problem):
        for name, field in type(part).model_fields.items():
            key = f"{path}.{name}".removeprefix(".")
            if start.fullmatch(without_numbers(key)) and getattr(part, name) != field.default:
                found[key] = field.default
    return found


def check_start(problem: Any) -> None:
    """Refuse a start from a file that is said once more by other keys, or that does not fit; for validators.

    Parameters
    ----------
    problem : Problem
        With a key `initial`, and `keys_of_start`.

    Raises
    ------
    ValueError
        With the key, and what to change.
    """
    initial: InitialState | None = problem.initial
    if initial is None:
        return
    for key in said_by_keys(problem):
        raise ValueError(f"{key}: the start is that of initial.from already; remove one of the two")
    if not problem.trusted:  # what a result names is not opened
        return
    initial.check_fits(problem)
    runs, particles = initial.atoms.runs, problem.particles
    if 1 < runs < particles.replicas:
        raise ValueError(
            f"particles.replicas = {particles.replicas}: initial.from has {runs} runs, each the start of one; lower "
            f"replicas to {runs}, or name a file with one"
        )
    if runs > 1 and getattr(particles, "common_start", False):
        raise ValueError(
            f"particles.common_start = true: initial.from has {runs} runs, each the start of one; set it to false, or "
            "name a file with one"
        )
