"""Objects of Python where a problem file names one: functions, arrays, datasets, and what is made of functions.

What stands in a module that others can import is named "module:name", as files do. For anything else there is an
`Object`, a text that carries it: "object:name-digits", the digits of its fingerprint, so that no two have one text.
"""

from __future__ import annotations

import inspect
import pickle
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import is_dataclass
from functools import lru_cache
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

import numpy as np

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import fingerprint
from meanfield.ingredients.part import Part
from meanfield.ingredients.snapshots import snapshot

_TEXT = re.compile(r"object:\w+-[0-9a-f]{16}")

REBUILT = "give what it stands for, as in meanfield.parse_problem(text, objects=[my_function, my_array])"
"""Remedy for a text alone, for messages."""


class Object(str):
    """Text that stands for an object of Python in a problem, and holds a copy that no later change reaches."""

    content: Any

    @classmethod
    def of(cls, given: Any) -> Object:
        """Object with a text of its own."""
        is_array = hasattr(given, "__array__") and not hasattr(given, "data_vars")
        content: Any = np.asarray(given) if is_array else given
        kind = "array" if is_array else type(content).__name__
        name = re.sub(r"\W+", "_", getattr(content, "__name__", kind)).strip("_") or kind
        copied = content.copy(deep=True) if hasattr(content, "data_vars") else snapshot(content)
        return cls.at(f"object:{name}-{fingerprint(content)[:16]}", copied)

    @classmethod
    def at(cls, text: str, content: Any) -> Object:
        """Object with the text that it has in another process."""
        made = cls(text)
        made.content = content
        return made

    def __reduce__(self) -> Any:
        """Other processes get the object by value."""
        return _restored, (str(self), packed({self: self.content}))

    def __deepcopy__(self, memo: Any) -> Object:
        """Nothing of it changes."""
        return self


def _restored(text: str, data: bytes) -> Object:
    return Object.at(text, unpacked(data)[text])


def is_of_object(text: str) -> bool:
    """Whether a text stands for an object of Python."""
    return _TEXT.fullmatch(text) is not None


_lent: ContextVar[Mapping[str, Any]] = ContextVar("lent", default=MappingProxyType({}))


@contextmanager
def lent(objects: Mapping[str, Any]) -> Iterator[None]:
    """Context in which these objects stand at their addresses, for texts and for processes that cannot import them."""
    token = _lent.set({**_lent.get(), **objects})
    try:
        yield
    finally:
        _lent.reset(token)


def given_at(address: str) -> Object | None:
    """Object that an address is, or that is lent to it; None for one that is to be imported, or is a file.

    Raises
    ------
    ValueError
        If it stands for an object that nobody gave.
    """
    if isinstance(address, Object):
        return address
    if address in _lent.get():
        return Object.at(address, _lent.get()[address])
    if is_of_object(address):
        others = [f"'{text}'" for text in _lent.get() if is_of_object(text)]
        digits = "and other code, values or versions have other digits"
        hint = f"; given are {', '.join(others)}, {digits}" if others else ""
        raise ValueError(f"'{address}' stands for an object of Python, which no text holds; {REBUILT}{hint}")
    return None


def text_of(given: Any) -> str:
    """Text of an object: of the variable of a module that holds it and can be imported, else one that carries it."""
    parts = [given] if inspect.isfunction(given) else vars(given).values() if is_dataclass(given) else []
    for module in {str(getattr(part, "__module__", "__main__")): None for part in parts}:
        for name, value in list(vars(sys.modules[module]).items()) if module in sys.modules else ():
            if value is given and module != "__main__":
                return f"{module}:{name}"
    return Object.of(given)


def with_texts(given: Any) -> Any:
    """Data of a problem file with texts in place of objects, in lists and tables too."""
    if given is None or isinstance(given, str | bool | int | float | PurePath | Part | type):
        return given
    if type(given) in (list, tuple):
        return type(given)(map(with_texts, given))
    if isinstance(given, dict):
        return {key: with_texts(value) for key, value in given.items()}
    return text_of(given)


def texts_in(given: Any) -> Iterator[str]:
    """All texts in data."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, dict | list | tuple):
        for inner in given.values() if isinstance(given, dict) else given:
            yield from texts_in(inner)


def restored(given: Any, objects: Mapping[str, Object]) -> Any:
    """Data with the objects for their texts, which validation has taken out of them."""
    if isinstance(given, str):
        return objects.get(given, given)
    if isinstance(given, dict):
        return type(given)({key: restored(value, objects) for key, value in given.items()})
    return tuple(restored(value, objects) for value in given) if isinstance(given, tuple) else given


def by_text(objects: Iterable[Any]) -> dict[str, Any]:
    """Objects by their texts, to be lent."""
    return {str(each): each.content for each in map(Object.of, objects)}


def packed(objects: Mapping[str, Any]) -> bytes:
    """Objects by their addresses as bytes for other processes.

    Raises
    ------
    InputError
        If one is no array and cloudpickle is not installed, or it cannot be sent.
    """
    plain = {str(address): content for address, content in objects.items()}
    others = [address for address, content in plain.items() if not isinstance(content, np.ndarray)]
    if not others:
        return pickle.dumps(plain)
    try:
        import cloudpickle
    except ImportError as error:
        raise InputError(
            f"'{others[0]}': workers cannot import what stands in a script or a notebook, and get it by cloudpickle: "
            "pip install 'meanfield-dynamics[cluster]', or put it into a module beside the problem file"
        ) from error
    try:
        data: bytes = cloudpickle.dumps(plain)
    except Exception as error:  # whatever an object holds
        raise InputError(
            f"{', '.join(map(repr, plain))}: cannot go to another process ({type(error).__name__}: {error}); put it "
            "into a module beside the problem file, without what cannot be sent, such as open files"
        ) from error
    return data


@lru_cache(maxsize=16)
def unpacked(data: bytes) -> dict[str, Any]:
    """Objects from their bytes, which a process of ours has made: the same ones for the same, which compile once."""
    found: dict[str, Any] = pickle.loads(data)
    return found
