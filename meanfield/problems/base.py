"""Base of the problems of all families."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

from pydantic import Field, ValidationError, ValidationInfo, model_validator

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import Fingerprint
from meanfield.ingredients.part import Part, after_fields
from meanfield.ingredients.schedules.sampling import run_until
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.problems.messages import message
from meanfield.problems.method import resolve
from meanfield.problems.output_times import Time as Time
from meanfield.problems.phases import Phase, as_files_say, checked_pieces, pieces_of

if TYPE_CHECKING:
    from meanfield.ingredients.laws import CoordinateLaw

T = TypeVar("T")

EQUATIONS = "meanfield.explanation.equations:equations_of"
"""Address of what writes equations, and imports SymPy."""


class Whole(Part):
    """Description of a whole file: in Python, too, faults are reported in the words for files."""

    def __init__(self, /, **keys: Any) -> None:
        with _faults_in_words(type(self)):
            super().__init__(**keys)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # else validation would call it, without context

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Validate data; see `pydantic.BaseModel.model_validate`.

        Raises
        ------
        InputError
            If something is wrong: a line for each key.
        """
        with _faults_in_words(cls):
            return super().model_validate(obj, **options)


@contextmanager
def _faults_in_words(model: type[Part]) -> Iterator[None]:
    """Context in which errors of validation become messages about a file."""
    try:
        yield
    except ValidationError as error:
        raise InputError(message(error, model)) from error


class Problem(Whole):
    """Problem of any family: the base of the classes of all, to which a family adds tables of its own.

    Parameters
    ----------
    family : str
        Name or address of the family, as in a problem file; `contrastive` by default.
    **keys
        Tables and keys of a problem of that family, whose class the problem gets.

    Notes
    -----
    A problem knows no method. `fixed_dims` names the dims of results whose sizes the problem decides.

    Examples
    --------
    >>> import meanfield
    >>> problem = meanfield.load_problem("data/problems/latent_tree.toml")
    >>> isinstance(problem, meanfield.Problem), isinstance(problem, meanfield.latent_tree.Problem)
    (True, True)
    """

    def __new__(cls, *given: object, **keys: Any) -> Self:
        """Problem of the family that is named, if the class is that of no family."""
        if cls is Problem and not given:
            cls = _class_named(keys)
        return super().__new__(cls, *given, **keys)

    def __init__(self, /, **keys: Any) -> None:
        family = keys.pop("family", None)
        if family is not None and _class_named(keys | {"family": family}) is not type(self):
            raise InputError(
                f"family = {family!r:.60}: {type(self).__module__}.{type(self).__name__} is another one; leave the key "
                "out, or call meanfield.Problem"
            )
        with run_until(keys.get("time")):
            super().__init__(**keys)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # see `Whole`

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Validate data; see `meanfield.problems.base.Whole.model_validate`."""
        if cls is Problem and isinstance(obj, Mapping):
            cls = _class_named(obj)
            obj = {key: obj[key] for key in obj if key != "family"}
        with run_until(obj.get("time") if isinstance(obj, Mapping) else None):
            return super().model_validate(obj, **options)

    keys_besides: ClassVar[tuple[str, ...]] = ("family",)

    made_by: ClassVar[str] = "call meanfield.load_problem(path), or meanfield.parse_problem(text)"

    settings: ClassVar[frozenset[str]] = frozenset()
    """Keys of the tables with settings of methods, which do not change the limit N -> infinity."""

    seed_key: ClassVar[str | None] = None
    """Key of the seed of all random streams, which sweeps set at each point; None where nothing is random."""

    start_key: ClassVar[str | None] = None
    """Key that decides a start which is drawn once for all runs; None where `seed_key` does."""

    keys_of_start: ClassVar[tuple[str, ...]] = ()
    """Keys of the start, with [] for any number in brackets and * for any name, whose place a file takes."""

    in_phases: ClassVar[tuple[str, ...]] = ()
    """Keys, or tables of keys, that `phases` may change, such as `features[].hidden`."""

    title: str = Field(default="", description="a line about the problem")
    phases: Annotated[tuple[Phase, ...], Field(strict=False)] | None = Field(
        default=None, description="one [[phases]] table per stretch of the run, with double brackets"
    )

    @model_validator(mode="after")
    def _remember_origin(self, info: ValidationInfo) -> Self:
        """Keep whether the problem may open files and import modules, and from which folder, for its copies."""
        context = info.context or {}
        self.__dict__.update(_trusted=context.get("trusted", True), _folder=context.get("folder"))
        return self

    @after_fields
    def _phases_follow_each_other(self) -> None:
        if self.phases is not None:
            pieces = self.__dict__["_pieces"] = checked_pieces(self)
            self.__dict__["phases"] = as_files_say(self.phases, pieces)

    @after_fields
    def _schedules_are_in_range(self) -> None:
        stop = getattr(getattr(self, "time", None), "stop", 0.0)
        for key, schedule in schedules_of(self).items():
            if self.trusted:  # what a result names is not opened
                schedule.check(key, stop)

    @property
    def trusted(self) -> bool:
        """Whether what the problem names may be opened and imported; False for one that was read from a result."""
        return bool(self.__dict__.get("_trusted", True))

    @property
    def folder(self) -> Path | None:
        """Folder of the problem file, where files and modules that it names are looked for; None if there is none."""
        return self.__dict__.get("_folder")

    @property
    def fixed_dims(self) -> dict[str, int]:
        """Sizes of those dims of results that the problem fixes, such as one entry per feature."""
        return {}

    @property
    def coordinates(self) -> tuple[CoordinateLaw, ...]:
        """Laws of the feature coordinates u, where the limit is a density of weights and feature coordinates."""
        return ()

    @property
    def labels(self) -> dict[str, float]:
        """Numbers that results carry as attributes, such as `dimension` N, so that nobody has to parse the problem."""
        return {}

    def fingerprints(self) -> dict[str, Fingerprint]:
        """Fingerprints of all that the problem names and its text does not hold, by the keys that name it.

        Returns
        -------
        dict
            From keys, such as `model.activation` or `features[0].hidden.file`, to what stands there, its SHA-256, and
            the versions of packages that are part of it. `family` is there for a family that is none of this package.
            The SHA-256 is empty for what a result alone names, which is neither imported nor opened.
        """
        from meanfield.problems.known_families import fingerprint_of_family  # which knows problems

        return fingerprint_of_family(self) | _in_phases(self, _named_outside)

    def latex(self, symbols: bool = False) -> str:
        """Equations of the problem as LaTeX: its step, its limit and its order parameters, and a table of symbols.

        Parameters
        ----------
        symbols : bool
            Whether symbols stand for the numbers of the problem, which the table has in any case.

        Returns
        -------
        str
            For a document that loads amsmath.

        Raises
        ------
        InputError
            If the family declares no equations, or a function that the problem names is not at hand.
        """
        return str(resolve(EQUATIONS)(self, symbols).latex)

    def _repr_html_(self) -> str | None:
        """Equations of the problem in a notebook; nothing where there are none, so that its text stands there."""
        try:
            return str(resolve(EQUATIONS)(self)._repr_html_())
        except InputError:
            return None

    def limit(self) -> dict[str, Any]:
        """Data that fix the limit N -> infinity: everything but the title, the output times and settings of methods."""
        others: dict[str, Any] = dict.fromkeys(("title", *self.settings), True)
        return self.model_dump(exclude=others | {"time": set(Time.model_fields)})


def _class_named(keys: Mapping[str, Any]) -> Any:
    """Class of problems with some keys, by their family."""
    from meanfield.problems.known_families import class_named  # which knows problems

    return class_named(keys)


def parts_in(value: Any, path: str = "") -> Iterator[tuple[str, Part]]:
    """Parts of a problem with their keys, the problem itself first."""
    if isinstance(value, Part):
        yield path, value
        for key in type(value).__pydantic_fields__:
            if isinstance(inner := getattr(value, key), _HOLDERS):
                yield from parts_in(inner, f"{path}.{key}".removeprefix("."))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from parts_in(inner, f"{path}.{key}")
    elif isinstance(value, tuple | list):
        for index, inner in enumerate(value):
            if isinstance(inner, _HOLDERS):
                yield from parts_in(inner, f"{path}[{index}]")


_HOLDERS = (Part, dict, tuple, list)
"""What may hold parts; all else, such as thousands of numbers, is passed over at once."""


def _in_phases(problem: Problem, found_in: Callable[[Problem], dict[str, T]]) -> dict[str, T]:
    """What is found in a problem by its keys, and by those that phases set."""
    found = found_in(problem)
    for number, phase in enumerate(problem.phases or ()):
        for path, each in found_in(pieces_of(problem)[number].problem).items():
            if any(path == key or path.startswith((f"{key}.", f"{key}[")) for key in phase.set):
                found[f"phases[{number}].set.{path}"] = each
    return found


def _named_outside(problem: Problem) -> dict[str, Fingerprint]:
    """Fingerprints of what a problem names, by the keys that name it, without its phases."""
    found = ((path, part.named_outside()) for path, part in parts_in(problem))
    return {f"{path}.{key}".removeprefix("."): each for path, named in found for key, each in named.items()}


def schedules_of(problem: Problem) -> dict[str, Schedule]:
    """Schedules of a problem by the keys that hold them."""
    parts = _in_phases(problem, lambda each: dict(parts_in(each)))
    return {path: part for path, part in parts.items() if isinstance(part, Schedule)}


def corners_of(problem: Problem) -> tuple[float, ...]:
    """Times within a run at which a phase ends, or a schedule jumps or bends, increasing."""
    found = {
        time
        for start, stop, each in pieces_of(problem)
        for time in (start, *(corner for schedule in schedules_of(each).values() for corner in schedule.corners))
        if start <= time < stop and time > 0.0
    }
    return tuple(sorted(found))


def check_problem(given: object, wanted: type[Problem] = Problem) -> None:
    """Refuse what is no problem of a class, and say how to get one."""
    if isinstance(given, wanted):
        return
    if isinstance(given, Problem):
        raise InputError(
            f"this function takes problems of {wanted.__module__}, not of {type(given).__module__}; "
            "meanfield.solve(problem, method) takes those of every family"
        )
    if isinstance(given, str | Path):
        call = "parse_problem(text)" if "\n" in str(given) else f"load_problem('{given}')"
        raise InputError(f"a text is no problem; call meanfield.{call} first, and give what it returns")
    raise InputError(f"{type(given).__name__} is no problem; give what meanfield.load_problem returns")
