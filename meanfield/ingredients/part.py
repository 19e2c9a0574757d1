"""Base class of all parts of a problem: frozen, strict, and with suggestions for misspelt keys."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import Fingerprint
from meanfield.ingredients.nearest import nearest

FEW_KEYS = 8
"""Largest number of keys of a table that are all listed in the message about an unknown one."""

LARGEST_EXACT = 2**53
"""Largest number below which a double stands for one whole number."""


class FieldError(ValueError):
    """Error of a check of several keys that lays the fault on one of them."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


class NamedNumbers(dict[str, float]):
    """Immutable mapping of names to numbers, which can be part of a hashable value."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


Parameters = Annotated[dict[str, float], AfterValidator(NamedNumbers)]


class Part(BaseModel):
    """Frozen part of a problem that takes only the keys it knows, each of its type; 1e4 is a whole number, too."""

    keys_besides: ClassVar[tuple[str, ...]] = ()
    """Keys of the table of a part that are read before it is validated."""

    made_by: ClassVar[str] = "give its keys by name"
    """How to get one, for the message to those who give it something else, such as the path of a file."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    def named_outside(self) -> dict[str, Fingerprint]:
        """Fingerprints of what this part names and its text does not hold, functions and files, by its own keys."""
        return {}

    def __new__(cls, *given: object, **keys: Any) -> Self:
        """Refuse values without a key, of which pydantic says only how many arguments its own function takes."""
        if given:
            raise InputError(f"{cls.__name__} takes keys and their values only; {cls.made_by}")
        return super().__new__(cls)

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
        return {key: _whole(value, cls.model_fields[key].annotation) for key, value in data.items()}


def _whole(value: Any, wanted: Any) -> Any:
    """Whole number for a float that is one exactly, if a whole number is wanted."""
    exact = isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_EXACT
    return int(value) if exact and int in (wanted, *get_args(wanted)) else value


def _hint(key: str, known: list[str]) -> str:
    """Suggestion for an unknown key, with all keys of the table where they are few."""
    suggestion, listed = nearest(key, known), f"known: {', '.join(sorted(known))}"
    return suggestion if suggestion == listed or len(known) > FEW_KEYS else f"{suggestion} ({listed})"
