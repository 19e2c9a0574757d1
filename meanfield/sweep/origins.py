"""Functions and files that decide the numbers of a sweep: those of problems, and reductions of a user.

Objects, and functions of `__main__`, go to workers by value: nobody can import them there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import Fingerprint, fingerprint_of
from meanfield.ingredients.objects import Object, packed, texts_in
from meanfield.ingredients.user_functions import load_object
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


def sent(sweep: Sweep) -> bytes:
    """All that a sweep names in `__main__` or is given as an object, by value; nothing if there is none.

    Raises
    ------
    InputError
        If it cannot be sent.
    """
    texts = set(texts_in([sweep.model_dump(), sweep.problem.model_dump()]))
    names = sorted(text for text in texts if text.startswith(MAIN) or isinstance(text, Object))
    return packed({name: load_object(name) for name in names}) if names else b""
