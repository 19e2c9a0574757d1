"""Tables of the keys of a file, from the models that validate it: a key without a description is an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen, MultipleOf
from pieces import code, plain, table
from pydantic.fields import FieldInfo

from meanfield.ingredients.part import Part
from meanfield.problems.base import Problem

PAGES = {Problem: "problem-file.md"}
"""Models with a page of their own."""


@dataclass(frozen=True)
class Place:
    """Where tables of keys stand on a page.

    Parameters
    ----------
    heading : str
        The marks of headings, for instance "##".
    anchors : str
        How names of anchors begin, which differs from file to file and from family to family.
    """

    heading: str = "##"
    anchors: str = "table"

    def anchor(self, key: str) -> str:
        """Where the section of a table begins."""
        return f"{self.anchors}-{key.replace('.', '-')}"


def all_keys(model: type[Part], place: Place, others: Sequence[Sequence[str]] = ()) -> str:
    """All tables of a file with their keys, the outer ones first, then laws that tables name.

    `others` are rows of keys at the top that are no fields of the model.
    """
    return "\n\n".join(
        [f"{place.heading} Keys at the top", keys(model, "", place, others), *sections(model, "", place)]
    )


def sections(model: type[Part], path: str, place: Place) -> Iterator[str]:
    """A section for every table below a model; `path` ends in a dot where it is not empty."""
    below: list[str] = []
    for name, field in model.model_fields.items():
        parts, key = list(parts_in(field.annotation)), path + name
        if not parts or parts[0] in PAGES:
            continue
        if has_law(parts[0]):
            below.append(laws(key, field, parts, place))
            continue
        heading = key if path else f"[[{key}]]" if get_origin(field.annotation) is tuple else f"[{key}]"
        head = f"({place.anchor(key)})=\n{place.heading} {code(heading)}"
        yield f"{head}\n\n{plain(parts[0].__doc__ or '')}\n\n{keys(parts[0], f'{key}.', place)}"
        below += sections(parts[0], f"{key}.", place)
    yield from below


def laws(key: str, field: FieldInfo, parts: list[type[Part]], place: Place) -> str:
    """A section of the laws that a table may name, each with its keys."""
    said = [f"({place.anchor(key)})=\n{place.heading} Laws of {code(key)}\n\n{sentence(described(key, field))}"]
    for part in parts:
        said.append(f"{place.heading}# {code(law_of(part))}\n\n{plain(part.__doc__ or '')}")
        if len(part.model_fields) > 1:
            said.append(keys(part, f"{key}.", place))
            said += sections(part, f"{key}.", place)
    return "\n\n".join(said)


def law_of(part: type[Part]) -> str:
    """Name of a law, which is the only value of its key."""
    (name,) = get_args(part.model_fields["law"].annotation)
    return str(name)


def keys(model: type[Part], path: str, place: Place, others: Sequence[Sequence[str]] = ()) -> str:
    """The table of a model's keys."""
    rows = [
        [
            code(name),
            ", ".join([kind(field.annotation, path + name, place), *allowed(field)]),
            "required" if field.is_required() else default(field.default),
            plain(described(path + name, field)),
        ]
        for name, field in model.model_fields.items()
        if name != "law"
    ]
    return table(["key", "type and range", "default", "meaning"], [*others, *rows])


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


def default(value: Any) -> str:
    """The value of a key that is left out."""
    if isinstance(value, Part):
        return code(value.law) if has_law(type(value)) else "optional"
    if value is None or value == {} or value == "":
        return "none"
    if isinstance(value, bool):
        return code(str(value).lower())
    return code(f'"{value}"' if isinstance(value, str) else value)


NAMES = {float: "number", int: "whole number", str: "text", bool: "true or false", Any: "value"}


def kind(annotation: Any, key: str, place: Place) -> str:
    """The type of the value of a key."""
    parts, origin, inner = list(parts_in(annotation)), get_origin(annotation), get_args(annotation)
    if parts:
        where = PAGES.get(parts[0], f"#{place.anchor(key)}")
        return f"[tables]({where})" if origin is tuple else f"[table]({where})"
    if origin is Annotated:
        return kind(inner[0], key, place)
    if origin is Literal:
        return " or ".join(code(f'"{value}"' if isinstance(value, str) else value) for value in inner)
    if origin in (Union, UnionType):
        return " or ".join(kind(choice, key, place) for choice in inner if choice is not NoneType)
    if origin is dict:
        return f"table of {several(kind(inner[1], key, place))}"
    if origin is tuple:
        return f"list of {'' if inner[-1] is ... else f'{len(inner)} '}{several(kind(inner[0], key, place))}"
    return NAMES[annotation]


def several(one: str) -> str:
    """The plural of a type."""
    each = one.split(" or ")
    return " or ".join(kind.replace("list", "lists", 1) if kind.startswith("list") else f"{kind}s" for kind in each)


SIGNS: dict[type, Callable[[Any], str]] = {
    Gt: lambda bound: f"\\>\u00a0{number(bound.gt)}",
    Ge: lambda bound: f"≥\u00a0{number(bound.ge)}",
    Lt: lambda bound: f"\\<\u00a0{number(bound.lt)}",
    Le: lambda bound: f"≤\u00a0{number(bound.le)}",
    MultipleOf: lambda bound: f"a multiple of {number(bound.multiple_of)}",
    MinLen: lambda bound: "not empty",
}


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(bound: float) -> str:
    """A bound as a person writes it."""
    if bound < 0:
        return f"-{number(-bound)}"
    for base in (10, 2):
        power = round(math.log(bound, base)) if bound > 0 else 0
        if abs(power) > 3 and math.isclose(float(base) ** power, bound):
            return str(base) + str(power).translate(_RAISED)
    return f"{bound:g}"


def allowed(field: FieldInfo) -> list[str]:
    """The range of a key's values, as far as it does not depend on other keys."""
    bounds = [*field.metadata, *metadata_in(field.annotation)]
    return list(dict.fromkeys(SIGNS[type(bound)](bound) for bound in bounds if type(bound) in SIGNS))


def metadata_in(annotation: Any) -> Iterator[Any]:
    """Everything that an annotation and those inside it say about values."""
    for item in getattr(annotation, "__metadata__", ()):
        yield from getattr(item, "metadata", [item])
    for inner in get_args(annotation):
        yield from metadata_in(inner)


def parts_in(annotation: Any) -> Iterator[type[Part]]:
    """The models that an annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for inner in get_args(annotation):
        yield from parts_in(inner)


def has_law(part: type[Part]) -> bool:
    """Whether a table is one of several that `law` tells apart."""
    return "law" in part.model_fields


def sentence(text: str) -> str:
    """A description as a sentence."""
    return plain(text[0].upper() + text[1:] + ".")
