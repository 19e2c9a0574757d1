"""Functions of `__main__`, of a script or a notebook, on their way to workers: nobody can import them there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from meanfield.errors import InputError
from meanfield.ingredients.user_functions import load_object
from meanfield.problems.file import plain_data
from meanfield.sweep.definition import Sweep

MAIN = "__main__:"
"""Beginning of the addresses of such functions."""


def packed(sweep: Sweep) -> bytes:
    """All that a sweep names in `__main__`, by value; nothing if it names nothing there.

    Raises
    ------
    InputError
        If cloudpickle is not installed.
    """
    names = sorted({text for text in _texts([sweep.model_dump(), plain_data(sweep.problem)]) if text.startswith(MAIN)})
    if not names:
        return b""
    try:
        import cloudpickle
    except ImportError as error:
        raise InputError(
            f"'{names[0]}': workers cannot import what stands in a script or a notebook, and get it by cloudpickle: "
            "pip install 'meanfield-dynamics[cluster]', or put it into a module beside the problem file"
        ) from error
    data: bytes = cloudpickle.dumps({name: load_object(name) for name in names})
    return data


@lru_cache(maxsize=4)
def unpacked(data: bytes) -> dict[str, Any]:
    """What was packed, by its addresses: the same objects for the same data, which are compiled once."""
    if not data:
        return {}
    import cloudpickle

    found: dict[str, Any] = cloudpickle.loads(data)
    return found


def _texts(value: Any) -> Iterator[str]:
    """All texts in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
