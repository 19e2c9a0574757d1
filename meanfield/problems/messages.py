"""Messages about problem files: every faulty key with its value, what is allowed, and what to change."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from meanfield.ingredients.nearest import meant_number, meant_word
from meanfield.ingredients.part import FieldError

MOST_LINES = 20
"""Largest number of faults in a message."""

MOST_CHARACTERS = 500
"""Largest number of characters of a fault: what a file holds may be a book, a message is to be read."""

_PLAIN_WORDS = {
    "missing": "is missing; add it",
    "model_type": "should be a table of keys",
    "model_attributes_type": "should be a table of keys",
    "tuple_type": "should be a list in square brackets",
    "too_short": "should have at least {min_length} element(s)",
    "too_long": "should have at most {max_length} elements",
    "dict_type": "should be a table of keys",
    "string_pattern_mismatch": "should match {pattern}",
    "string_too_short": "should have at least {min_length} character(s)",
    "string_too_long": "should have at most {max_length} characters",
    "greater_than": "should be greater than {gt:.15g}",
    "greater_than_equal": "should be greater than or equal to {ge:.15g}",
    "less_than": "should be less than {lt:.15g}",
    "less_than_equal": "should be less than or equal to {le:.15g}",
    "union_tag_not_found": "is missing; add it",
    "union_tag_invalid": "should be one of {expected_tags}",
}


def message(error: ValidationError, model: type[BaseModel]) -> str:
    """Message about a file that `model` describes, with a line per fault."""
    lines = [_shortened(line) for line in _faults(error, model)]
    more = [f"and {len(lines) - MOST_LINES} faults more"] if len(lines) > MOST_LINES else []
    return "\n".join(lines[:MOST_LINES] + more)


def keys_at_fault(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Keys of which something is wrong by itself; checks of several keys name the table that holds them."""
    return [_key(item["loc"], model) for item in error.errors()]


def _shortened(line: str) -> str:
    """Fault without its middle: the beginning has the key and the value, the end the remedy."""
    return (
        line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS // 2]} ... {line[-MOST_CHARACTERS // 2 :]}"
    )


def _faults(error: ValidationError, model: type[BaseModel]) -> Iterator[str]:
    """Faults as one line per offending key, or per failed check of a problem class."""
    reasons: dict[str, list[str]] = {}
    hints: dict[str, str] = {}
    for item in error.errors():
        location, given, kind = item["loc"], item["input"], item["type"]
        if kind == "value_error":
            # Our own checks name value and remedy themselves.
            fault = item["ctx"]["error"]
            location = (*location, fault.key) if isinstance(fault, FieldError) else location
            path, reason = _key(location, model), item["msg"].removeprefix("Value error, ")
            reason += _place(reason, model) if path else ""
            yield f"{path}{' ' if reason.startswith('=') else ': '}{reason}" if path else reason
            continue
        if kind == "too_short" and given:
            continue  # its elements are at fault, and reported themselves
        if kind == "tuple_type" and isinstance(given, str) and _key(location, model) + f" = {given!r}" in reasons:
            continue  # a text in place of a number or word is no slip of a list
        hint = _innermost(location, model)[0] or (_keys(location, model) if kind.startswith("model_") else "")
        reason = item["msg"].replace("Input should", "should")
        if kind in ("int_type", "float_type") and isinstance(given, dict):
            reason = "should be a number, the same at all times; no table stands here"
        if kind in _PLAIN_WORDS:
            reason = _PLAIN_WORDS[kind].format(**item.get("ctx", {}))
        if kind == "union_tag_invalid":
            location, given = (*location, "law"), given["law"]
        elif kind == "union_tag_not_found":
            location = (*location, "law")
        elif kind == "missing" and isinstance(location[-1], int):
            location, reason = location[:-1], "has too few elements"
        start = _key(location, model) + ("" if isinstance(given, dict) else f" = {given!r}")
        # A key that takes several kinds of value has one reason for each, and what was probably meant is the best hint.
        reasons.setdefault(start, []).append(reason)
        meant = _meant(given, reason) if isinstance(given, str) else None
        if meant or start not in hints:
            hints[start] = meant or hint
    for start, (first, *others) in reasons.items():
        reason = " or ".join([first, *(other.removeprefix("should be ") for other in others)])
        yield f"{start}: {reason}" + (f" ({hints[start]})" if hints[start] else "")


def _place(reason: str, model: type[BaseModel]) -> str:
    """Place of a key that a table does not know, but the file does."""
    found = re.match(r"unknown key '(\w+)'", reason)
    if found is None or found[1] not in model.model_fields:
        return ""
    return f"; '{found[1]}' is a key of the whole file: write it above the first table"


def _meant(given: str, reason: str) -> str | None:
    """Guess what a text was meant to say where a number or one of some words is wanted."""
    if "valid number" in reason or "valid integer" in reason:
        meant = meant_number(given)
        return meant if meant is None or "with" in meant else f"{meant}, without quotes"
    word = meant_word(given, re.findall(r"'([^']*)'", reason))
    return None if word is None else f"did you mean '{word}'?"


def _key(location: tuple[int | str, ...], model: type[BaseModel]) -> str:
    """Key such as `features[0].hidden.values`, without the tags of unions that pydantic puts in between."""
    fields, unions = _field_names(model), _union_fields(model)
    path, before = "", ""
    for part in location:
        tag = before in unions and part != "law"
        before = "" if isinstance(part, int) or tag else part
        if tag:
            continue
        if isinstance(part, int):
            path += f"[{part}]"
        elif part in fields or (path.endswith(("parameters", "methods", "coins", "side")) and part != "[key]"):
            path += f".{part}" if path else part
    return path


def _keys(location: tuple[int | str, ...], model: type[BaseModel]) -> str:
    """Keys of the table at `location`."""
    return ", ".join(dict.fromkeys(key for table in _innermost(location, model)[1] for key in table.model_fields))


def _innermost(location: tuple[int | str, ...], model: type[BaseModel]) -> tuple[str, list[type[BaseModel]]]:
    """Description of the innermost field on the way to `location`, and the models of its value."""
    models: list[type[BaseModel]] = [model]
    description = ""
    for part in location:
        if isinstance(part, int):
            continue
        field = next((model.model_fields[part] for model in models if part in model.model_fields), None)
        if field is not None:
            description, models = field.description or description, list(_models_of(field))
        else:  # the tag of a union
            models = [model for model in models if _law_of(model) == part] or models
    return description, models


def _law_of(model: type[BaseModel]) -> Any:
    """Name of a law in problem files."""
    return model.model_fields["law"].default if "law" in model.model_fields else None


def _field_names(model: type[BaseModel]) -> dict[str, str]:
    """Descriptions of all fields below `model`, by name."""
    found: dict[str, str] = {}
    for name, field in model.model_fields.items():
        for part in _models_of(field):
            found |= _field_names(part)
        found[name] = field.description or found.get(name, "")
    return found


def _union_fields(model: type[BaseModel]) -> set[str]:
    """Names of all fields below `model` whose tables have a law: behind them pydantic puts its name."""
    found = {name for name, field in model.model_fields.items() if field.discriminator is not None}
    for field in model.model_fields.values():
        for part in _models_in(field.annotation):
            found |= _union_fields(part)
    return found


def _models_of(field: FieldInfo) -> Iterator[type[BaseModel]]:
    """Models of the value of a field, those included that marks in its annotation let stand there."""
    yield from _models_in(field.annotation)
    for mark in field.metadata:
        yield from getattr(mark, "models", ())


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Models that an annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (Annotated, Union, types.UnionType, tuple, dict):
        for inner in get_args(annotation):
            yield from _models_in(inner)
