"""Functions and files that decide the numbers of a sweep: those of problems, and reductions of a user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import Fingerprint, fingerprint_of
from meanfield.results.made_by import RESTART, MadeBy, changes


def of_reductions(methods: Mapping[str, Sequence[str]], own: Mapping[str, Any]) -> dict[str, Fingerprint]:
    """Fingerprints of the reductions of a user, from `meanfield.sweep.reductions.own_reductions`."""
    return {
        f"methods.{method}[{i}]": fingerprint_of(own[name], name)
        for method, names in methods.items()
        for i, name in enumerate(names)
        if name in own
    }


def together(found: Iterable[MadeBy]) -> dict[str, Fingerprint]:
    """What decides the numbers of all points: keys that name several things stand once for each."""
    everything: dict[str, Fingerprint] = {}
    for each in found:
        for key, entry in each.items():
            if everything.setdefault(key, entry) != entry:
                everything[f"{key} = '{entry['what']}'"] = entry
    return everything


def check_origin(place: Path, before: MadeBy | None, now: MadeBy) -> None:
    """Refuse a point in a folder that other functions, files or versions made than there are now.

    Raises
    ------
    InputError
    """
    changed = changes(before, now)
    if changed:
        raise InputError(
            f"{place}: holds points of this sweep that other functions, files or versions made: {'; '.join(changed)}. "
            f"Take the change back, give another folder, or compute all points anew: {RESTART}"
        )
