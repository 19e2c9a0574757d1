"""Tables of the keys of a file, from the models that validate it: a key without a description is an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen, MultipleOf
from pydantic.fields import FieldInfo

from meanfield.ingredients.part import Part
from meanfield.problems.base import Problem


class Table(NamedTuple):
    """A table of a file: its key, how a file begins it, its meaning, its model, and the law that it names, if any.

    One that may name several laws comes without a model before those of its laws.
    """

    key: str
    heading: str
    meaning: str
    part: type[Part] | None
    law: str = ""

    @property
    def path(self) -> str:
        """How keys in it begin."""
        return f"{self.key}." if self.key else ""


class Key(NamedTuple):
    """A key of a table: its name, type and range, default, and meaning."""

    name: str
    kind: str
    default: str
    meaning: str


class Words:
    """How values and links to tables are written, as plain text here."""

    def literal(self, value: Any) -> str:
        """Value as a file has it."""
        if isinstance(value, bool):
            return str(value).lower()
        return f'"{value}"' if isinstance(value, str) else str(value)

    def tables(self, word: str, part: type[Part], key: str) -> str:
        """The word for tables under a key."""
        return word


def tables_of(model: type[Part], path: str = "") -> Iterator[Table]:
    """All tables below a model, the outer ones first, then laws that tables name; `path` ends in a dot if not empty."""
    below: list[Iterator[Table]] = []
    for name, field in model.model_fields.items():
        parts, key = list(parts_in(field.annotation)), path + name
        if not parts or parts[0] is Problem:
            continue
        if "law" in parts[0].model_fields:
            below.append(_laws(key, field, parts))
            continue
        heading = key if path else f"[[{key}]]" if get_origin(field.annotation) is tuple else f"[{key}]"
        yield Table(key, heading, parts[0].__doc__ or "", parts[0])
        below.append(tables_of(parts[0], f"{key}."))
    for tables in below:
        yield from tables


def _laws(key: str, field: FieldInfo, parts: list[type[Part]]) -> Iterator[Table]:
    yield Table(key, key, f"{described(key, field)}.", None)
    for part in parts:
        (law,) = get_args(part.model_fields["law"].annotation)
        yield Table(key, key, part.__doc__ or "", part, str(law))
        yield from tables_of(part, f"{key}.")


def keys_of(model: type[Part], path: str, words: Words) -> list[Key]:
    """Keys of a table, but for that of its law."""
    return [
        Key(
            name,
            ", ".join([kind(field.annotation, path + name, words), *allowed(field)]),
            "required" if field.is_required() else _default(field.default, words),
            described(path + name, field),
        )
        for name, field in model.model_fields.items()
        if name != "law"
    ]


def described(key: str, field: FieldInfo) -> str:
    """The meaning of a key: its description, or that of the table that it holds.

    Raises
    ------
    ValueError
        If neither exists.
    """
    tables = [part.__doc__ for part in parts_in(field.annotation)]
    meaning = field.description or (tables[0] if len(tables) == 1 else None)
    if not meaning:
        raise ValueError(f"the key '{key}' has no description; give its Field one")
    return meaning.split("\n\n")[0].removesuffix(".")


def _default(value: Any, words: Words) -> str:
    """The value of a key that is left out."""
    if isinstance(value, Part):
        return words.literal(value.law) if hasattr(value, "law") else "optional"
    return "none" if value is None or value == {} or value == "" else words.literal(value)


NAMES = {float: "number", int: "whole number", str: "text", bool: "true or false", Any: "value"}


def kind(annotation: Any, key: str, words: Words) -> str:
    """The type of the value of a key."""
    parts, origin, inner = list(parts_in(annotation)), get_origin(annotation), get_args(annotation)
    if parts:
        return words.tables("tables" if origin is tuple else "table", parts[0], key)
    if origin is Annotated:
        return kind(inner[0], key, words)
    if origin is Literal:
        return " or ".join(words.literal(value) for value in inner)
    if origin in (Union, UnionType):
        return " or ".join(kind(choice, key, words) for choice in inner if choice is not NoneType)
    if origin is dict:
        return f"table of {_several(kind(inner[1], key, words))}"
    if origin is tuple:
        return f"list of {'' if inner[-1] is ... else f'{len(inner)} '}{_several(kind(inner[0], key, words))}"
    return NAMES[annotation]


def _several(one: str) -> str:
    """The plural of a type."""
    each = one.split(" or ")
    return " or ".join(kind.replace("list", "lists", 1) if kind.startswith("list") else f"{kind}s" for kind in each)


SIGNS: dict[type, Callable[[Any], str]] = {
    Gt: lambda bound: f">\u00a0{_number(bound.gt)}",
    Ge: lambda bound: f"≥\u00a0{_number(bound.ge)}",
    Lt: lambda bound: f"<\u00a0{_number(bound.lt)}",
    Le: lambda bound: f"≤\u00a0{_number(bound.le)}",
    MultipleOf: lambda bound: f"a multiple of {_number(bound.multiple_of)}",
    MinLen: lambda bound: "not empty",
}

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _number(bound: float) -> str:
    """A bound as a person writes it."""
    if bound < 0:
        return f"-{_number(-bound)}"
    for base in (10, 2):
        power = round(math.log(bound, base)) if bound > 0 else 0
        if abs(power) > 3 and math.isclose(float(base) ** power, bound):
            return str(base) + str(power).translate(_RAISED)
    return f"{bound:g}"


def allowed(field: FieldInfo) -> list[str]:
    """The range of a key's values, as far as it does not depend on other keys."""
    bounds = [*field.metadata, *_metadata_in(field.annotation)]
    return list(dict.fromkeys(SIGNS[type(bound)](bound) for bound in bounds if type(bound) in SIGNS))


def _metadata_in(annotation: Any) -> Iterator[Any]:
    """Everything that an annotation and those inside it say about values."""
    for item in getattr(annotation, "__metadata__", ()):
        yield from getattr(item, "metadata", [item])
    for inner in get_args(annotation):
        yield from _metadata_in(inner)


def parts_in(annotation: Any) -> Iterator[type[Part]]:
    """The models that an annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for inner in get_args(annotation):
        yield from parts_in(inner)
