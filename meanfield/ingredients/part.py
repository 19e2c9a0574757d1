"""Base class of all parts of a problem: frozen, strict, and with suggestions for misspelt keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, NoReturn, Self, TypeVar, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import Fingerprint
from meanfield.ingredients.nearest import nearest

CHANGED = "meanfield.with_value(problem, 'prior.strength', 2.0) returns a checked copy with another value under a key"
"""Remedy, to get another problem, for messages to those who would change one in place or copy it unchecked."""


class FieldError(ValueError):
    """Error of a check of several keys that lays the fault on one of them."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


class NamedValues(dict[str, Any]):
    """Immutable mapping of names to what a problem file may say, which can be part of a hashable value."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items())))  # lists and tables among the values have no hash

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Any]]]:
        """Copies and pickles are made at once, not item by item."""
        return type(self), (dict(self),)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise InputError(f"tables of a problem do not change; {CHANGED}")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse  # type: ignore[assignment]


Parameters = Annotated[dict[str, float], AfterValidator(NamedValues)]


def after_fields(check: Callable[[Any], None]) -> Any:
    """Decorator of a method of a part that refuses values which do not belong together, once each is checked alone."""

    def validate(self: Any) -> Any:
        check(self)
        return self

    return model_validator(mode="after")(validate)


class Part(BaseModel):
    """Frozen part of a problem that takes only the keys it knows, each of its type; 1e4 is a whole number, too."""

    keys_besides: ClassVar[tuple[str, ...]] = ()
    """Keys of the table of a part that are read before it is validated."""

    made_by: ClassVar[str] = "give its keys by name"
    """Remedy, to get a part, for the message to those who give something else, such as the path of a file."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    def named_outside(self) -> dict[str, Fingerprint]:
        """Fingerprints of what this part names and its text does not hold, functions and files, by its own keys."""
        return {}

    def __new__(cls, *given: object, **keys: Any) -> Self:
        """Refuse values without a key, of which pydantic says only how many arguments its own function takes."""
        if given:
            raise InputError(f"{cls.__name__} takes keys and their values only; {cls.made_by}")
        return super().__new__(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to change a problem, whose keys were checked together."""
        if name.startswith("_"):
            return super().__setattr__(name, value)
        raise InputError(f"{name} = {value!r:.60}: a {type(self).__name__} does not change; {CHANGED}")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy; pydantic would change it by an `update` without any check, misspelt keys included.

        Raises
        ------
        InputError
            If there is an `update`.
        """
        if update:
            raise InputError(f"model_copy(update={dict(update)!r:.60}) would be checked by nobody; {CHANGED}")
        return super().model_copy(deep=deep)

    def copy(self, **options: Any) -> Self:  # type: ignore[override]
        """Copy, of everything and unchanged; see `model_copy`."""
        return self.model_copy(**options)

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:
        """Refuse to make what nobody has checked."""
        raise InputError(f"model_construct makes a {cls.__name__} that nobody checks; {cls.made_by}")

    @model_validator(mode="before")
    @classmethod
    def _read_keys(cls, data: Any) -> Any:
        """Refuse unknown keys, and take floats such as 1e4 where whole numbers are wanted."""
        if not isinstance(data, dict):
            return data
        known = [*cls.model_fields, *cls.keys_besides]
        for key in data:
            if key not in cls.model_fields:
                raise ValueError(f"unknown key '{key}'; {_hint(key, known)}")
        return {key: _number(key, value, cls.model_fields[key].annotation) for key, value in data.items()}


P = TypeVar("P", bound=Part)


def with_unchecked(part: P, **values: Any) -> P:
    """Copy of a part with values that no file may say, such as a batch size between two whole numbers."""
    return BaseModel.model_copy(part, update=values)


def _number(key: str, value: Any, wanted: Any) -> Any:
    """Value of a key, the whole number for a float such as 1e4; of a boolean, which is 1 to Python, no number is made.

    Raises
    ------
    FieldError
        If it is a boolean where some whole numbers are allowed; pydantic itself refuses it where a range of them is.
    """
    # Beyond 2^53 a double stands for several integers.
    exact = isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
    if not exact and not isinstance(value, bool | list | tuple):
        return value
    kinds = list(_alternatives(wanted))
    listed = next((get_args(kind)[0] for kind in kinds if get_origin(kind) is tuple), None)
    if isinstance(value, list | tuple) and listed is not None:
        return type(value)(_number(key, inner, listed) for inner in value)
    few = [number for kind in kinds if get_origin(kind) is Literal for number in get_args(kind)]
    if isinstance(value, bool) and few and all(type(number) is int for number in few):
        raise FieldError(key, f"= {value}: should be {' or '.join(map(str, few))}")
    return int(value) if exact and int in kinds else value


def _alternatives(annotation: Any) -> Iterator[Any]:
    """Types any of which a value may have."""
    if get_origin(annotation) is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for inner in get_args(annotation):
            yield from _alternatives(inner)
    else:
        yield annotation


def _hint(key: str, known: list[str]) -> str:
    """Suggestion for an unknown key, with all keys of the table where they are few."""
    suggestion, listed = nearest(key, known), f"known: {', '.join(sorted(known))}"
    # More than eight keys would not be read.
    return suggestion if suggestion == listed or len(known) > 8 else f"{suggestion} ({listed})"
