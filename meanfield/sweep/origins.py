"""Functions and files that decide the numbers of a sweep: those of problems, and reductions of a user.

Functions of `__main__`, of a script or a notebook, go to workers by value: nobody can import them there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import Fingerprint, fingerprint_of
from meanfield.ingredients.user_functions import load_object
from meanfield.problems.file import plain_data
from meanfield.results.made_by import RESTART, MadeBy, changes
from meanfield.sweep.definition import Sweep

MAIN = "__main__:"
"""Beginning of the addresses of such functions."""


def of_reductions(methods: Mapping[str, Sequence[str]], own: Mapping[str, Any]) -> dict[str, Fingerprint]:
    """Fingerprints of the reductions of a user, from `meanfield.sweep.reductions.own_reductions`."""
    return {
        f"methods.{method}[{i}]": fingerprint_of(own[name], name)
        for method, names in methods.items()
        for i, name in enumerate(names)
        if name in own
    }


def together(found: Iterable[MadeBy]) -> dict[str, Fingerprint]:
    """Fingerprints that decide the numbers of all points; a key that names several things has one for each."""
    everything: dict[str, Fingerprint] = {}
    for each in found:
        for key, entry in each.items():
            if everything.setdefault(key, entry) != entry:
                everything[f"{key} = '{entry['what']}'"] = entry
    return everything


def check_origin(place: Path, before: MadeBy | None, now: MadeBy) -> None:
    """Refuse a point in a folder that other functions, files or versions made than there are now."""
    changed = changes(before, now)
    if changed:
        raise InputError(
            f"{place}: holds points of this sweep that other functions, files or versions made: {'; '.join(changed)}. "
            f"Take the change back, give another folder, or compute all points anew: {RESTART}"
        )


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
    """Packed objects by their addresses: the same objects for the same data, which are compiled once."""
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
