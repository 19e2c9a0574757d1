"""Definition of a sweep, in a file: a base problem, axes over its keys, methods, and the results to keep."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import tomli_w
from pydantic import Field, PrivateAttr, SerializeAsAny, field_validator

from meanfield.arguments import as_path
from meanfield.errors import InputError
from meanfield.ingredients.objects import with_texts
from meanfield.ingredients.part import Part, after_fields
from meanfield.ingredients.user_functions import is_address, load_object
from meanfield.problems.base import Problem, Whole
from meanfield.problems.file import load_problem, parse_toml, plain_data, problem_from, read_text
from meanfield.problems.known_families import family_of
from meanfield.problems.problem_keys import held_by
from meanfield.sweep.reductions import check_reductions
from meanfield.typing import FloatArray

MOST_POINTS = 10**6
"""Largest number of points of a sweep, each of which has a file of its own."""

WAYS = ("values", "grid", "log", "random")
"""Keys of an axis, one of which says its values."""


class Range(Part):
    """Numbers from one end to the other."""

    start: float = Field(description="the first value")
    stop: float = Field(description="the last value")
    points: int = Field(ge=2, le=MOST_POINTS, description="the number of values, both ends included")

    @after_fields
    def _ends_differ(self) -> None:
        if self.start == self.stop:
            raise ValueError(f"start and stop are both {self.start:g}; give two ends that differ")


class LogRange(Range):
    """Numbers with a constant ratio."""

    @after_fields
    def _ends_are_positive(self) -> None:
        if min(self.start, self.stop) <= 0:
            raise ValueError(
                f"start = {self.start:g}, stop = {self.stop:g}: logarithms need numbers above 0; use grid instead"
            )


class RandomRange(Part):
    """Independent uniform numbers, in order."""

    low: float = Field(description="the lower end")
    high: float = Field(description="the upper end")
    points: int = Field(ge=1, le=MOST_POINTS, description="the number of values")
    seed: int = Field(ge=0, description="decides the values, a whole number >= 0")

    @after_fields
    def _low_is_below(self) -> None:
        if self.low >= self.high:
            raise ValueError(f"low = {self.low:g} is not below high = {self.high:g}; exchange them")


class Axis(Part):
    """Axis of a sweep: the keys that vary along it, and their values."""

    key: str | Annotated[tuple[str, ...], Field(strict=False, min_length=1)] = Field(
        description="what varies: a key of the problem such as 'model.learning_rate' or 'features[0].hidden', or a "
        "list of keys that vary together"
    )
    name: str | None = Field(
        default=None,
        pattern="^[A-Za-z_][A-Za-z0-9_]*$",
        description="of the dim in the result; the last word of the key if nothing is said",
    )
    values: Annotated[tuple[Any, ...], Field(strict=False, min_length=1)] | None = Field(
        default=None, description="a list of what the key takes; for several keys a list of lists, one entry per key"
    )
    grid: Range | None = Field(default=None, description="{ start, stop, points }, evenly spaced")
    log: LogRange | None = Field(default=None, description="{ start, stop, points }, evenly spaced logarithms")
    random: RandomRange | None = Field(default=None, description="{ low, high, points, seed }, uniform")

    @field_validator("values", mode="before")
    @classmethod
    def _take_objects(cls, values: Any) -> Any:
        return with_texts(values)

    @after_fields
    def _one_way_to_say_the_values(self) -> None:
        given = [way for way in WAYS if getattr(self, way) is not None]
        if len(given) != 1:
            raise ValueError(f"{' and '.join(given) or 'no values'} for {self.keys[0]}; give one of {', '.join(WAYS)}")

    @after_fields
    def _values_are_finite(self) -> None:
        for i, value in enumerate(self.values or ()):
            if not _is_finite(value):
                raise ValueError(f"values[{i}] = {value!r:.60}: should hold finite numbers; correct or remove it")

    @after_fields
    def _a_value_for_every_key(self) -> None:
        if len(self.keys) > 1:
            for value in self.values or ():
                if not isinstance(value, list | tuple) or len(value) != len(self.keys):
                    raise ValueError(f"values: {value!r} is no list of {len(self.keys)} values, one for each key")

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys that vary along the axis."""
        return (self.key,) if isinstance(self.key, str) else self.key

    @property
    def dim(self) -> str:
        """Name of the dim of the axis in results."""
        return self.name or self.keys[0].rpartition(".")[2].partition("[")[0]

    @property
    def way(self) -> str:
        """Key that says the values."""
        return next(way for way in WAYS if getattr(self, way) is not None)

    @property
    def size(self) -> int:
        """Number of values along the axis."""
        spread = self.grid or self.log or self.random
        return spread.points if spread is not None else len(self.values or ())

    def settings(self, problem: Problem) -> list[dict[str, Any]]:
        """Values of the keys at each position along the axis.

        Parameters
        ----------
        problem : Problem
            In which keys that hold whole numbers take the nearest ones of a range.
        """
        if self.values is not None:
            rows = [value if len(self.keys) > 1 else [value] for value in self.values]
            return [dict(zip(self.keys, row, strict=True)) for row in rows]
        whole = {key: isinstance(held_by(problem, key), int) for key in self.keys}
        return [{key: round(x) if whole[key] else x for key in self.keys} for x in self._numbers().tolist()]

    def _numbers(self) -> FloatArray:
        if self.random is not None:
            low, high, points = self.random.low, self.random.high, self.random.points
            return np.sort(np.random.default_rng(self.random.seed).uniform(low, high, points))
        spread = self.grid or self.log
        assert spread is not None
        space = np.linspace if self.grid is not None else np.geomspace
        numbers = space(spread.start, spread.stop, spread.points)
        # with 12 digits 0.3 is 0.3, and a finer grid has the points of a coarser one
        numbers[1:-1] = [float(f"{x:.12g}") for x in numbers[1:-1]]
        return numbers


class Sweep(Whole):
    """Sweep: all combinations of the values along the axes, laid over one base problem.

    Examples
    --------
    >>> import meanfield
    >>> sweep = meanfield.load_sweep("data/sweeps/phase_diagram.toml")
    >>> [axis.dim for axis in sweep.axes]
    ['learning_rate', 'second_moment']
    """

    made_by: ClassVar[str] = "call meanfield.load_sweep(path)"

    title: str = Field(default="", description="a line about the sweep")
    problem: SerializeAsAny[Problem] = Field(
        description="the base problem: the path of a problem file relative to the sweep file, or a [problem] table"
    )
    axes: Annotated[tuple[Axis, ...], Field(strict=False, min_length=1)] = Field(
        description="one [[axes]] table per direction, with double brackets"
    )
    methods: dict[str, Annotated[tuple[str, ...], Field(strict=False, min_length=1)]] = Field(
        min_length=1, description="a [methods] table: for each method to run what to keep, such as density = ['final']"
    )
    _folder: Path | None = PrivateAttr(default=None)
    _problem_folder: Path | None = PrivateAttr(default=None)

    @property
    def folder(self) -> Path | None:
        """Folder in which modules of reductions are looked for; None where none may be."""
        return self._folder

    @property
    def problem_folder(self) -> Path | None:
        """Folder in which files and modules that the problem names are looked for."""
        return self._problem_folder

    @field_validator("problem", mode="before")
    @classmethod
    def _problem_of_its_family(cls, problem: Any) -> Any:
        return Problem.model_validate(problem) if isinstance(problem, Mapping) else problem

    @after_fields
    def _axes_are_keys_of_the_problem(self) -> None:
        seen: list[str] = []
        for i, axis in enumerate(self.axes):
            for key in axis.keys:
                try:
                    held_by(self.problem, key)
                except InputError as error:
                    raise ValueError(f"axes[{i}].key: {error}") from error
                for other in seen:
                    if key == other or is_within(key, other) or is_within(other, key):
                        raise ValueError(f"axes[{i}].key: '{key}' varies with '{other}' already; remove one of them")
                seen.append(key)
            settings = [json.dumps(values, default=str) for values in axis.settings(self.problem)]
            twice = (
                next((text for text in settings if settings.count(text) > 1), None) if len(settings) < 1000 else None
            )
            if twice is not None:
                raise ValueError(f"axes[{i}]: {twice} comes twice; give every value once, or fewer points")

    @after_fields
    def _axes_have_names_of_their_own(self) -> None:
        names = [axis.dim for axis in self.axes]
        for i, name in enumerate(names):
            if name in names[:i] or name in ("status", "feature", "time", "mode"):
                raise ValueError(f"axes[{i}]: the name '{name}' is taken; choose another, such as name = 'axis_{i}'")

    @after_fields
    def _can_be_done(self) -> None:
        size = math.prod(axis.size for axis in self.axes)
        if size > MOST_POINTS:
            raise ValueError(f"axes: {size} points, but at most {MOST_POINTS} are allowed; give fewer values")
        check_reductions(family_of(self.problem), self.methods)


def _is_finite(value: Any) -> bool:
    """Whether all numbers in a value of a TOML file are finite; no key takes others, and JSON has none."""
    if isinstance(value, float):
        return math.isfinite(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return all(map(_is_finite, parts))


def is_within(key: str, other: str) -> bool:
    """Whether a key belongs to the table or list under another one."""
    return key.startswith((f"{other}.", f"{other}["))


def load_sweep(path: str | Path) -> Sweep:
    """Read and validate a sweep file.

    Parameters
    ----------
    path : str or Path
        A TOML file.

    Raises
    ------
    InputError
        If the file, or the problem file that it names, is missing, is not TOML or does not describe what it should. The
        message names every offending key with its value, what is allowed and what to change.
    """
    path = as_path(path, "path", "give the path of a sweep file, such as 'data/sweeps/phase_diagram.toml'")
    text = read_text(path, "sweep file", "data/sweeps/")
    try:
        return parse_sweep(text, path.parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def parse_sweep(text: str, folder: Path | None = None) -> Sweep:
    """Validate the text of a sweep file; see `load_sweep`.

    Parameters
    ----------
    text : str
        TOML.
    folder : Path, optional
        Where files and modules that the text names are looked for. Without it, as for the text in a result, none is
        opened or imported.
    """
    data = parse_toml(text)
    problem, problem_folder = data.get("problem"), folder
    if isinstance(problem, str) and folder is not None:
        problem_folder = (folder / problem).parent
        data["problem"] = load_problem(folder / problem)
    elif isinstance(problem, dict):
        try:
            data["problem"] = problem_from(problem, folder, trusted=folder is not None)
        except InputError as error:
            raise InputError("\n".join(f"problem.{line}" for line in str(error).splitlines())) from error
    sweep = Sweep.model_validate(data)
    sweep._folder, sweep._problem_folder = folder, problem_folder
    if folder is not None:
        _check_own_reductions(sweep, folder)
    return sweep


def _check_own_reductions(sweep: Sweep, folder: Path) -> None:
    for method, names in sweep.methods.items():
        for name in filter(is_address, names):
            try:
                found = load_object(name, folder)
            except ValueError as error:
                raise InputError(f"methods.{method}: {error}") from error
            if not callable(found):
                raise InputError(f"methods.{method}: '{name}' is {type(found).__name__}, not a function of a Dataset")


def format_sweep(sweep: Sweep) -> str:
    """TOML text of a sweep with its problem, which `parse_sweep` reads."""
    data = sweep.model_dump(exclude_none=True, mode="json")
    return tomli_w.dumps(data | {"problem": plain_data(sweep.problem)})
