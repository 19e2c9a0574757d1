"""Fingerprints in files: which version of meanfield, functions and data made a result or an unfinished run.

What was computed by others than those of now is never mixed with what they would give.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from meanfield.ingredients.fingerprints import Fingerprint
from meanfield.problems.base import Problem
from meanfield.results.provenance import digest_of_sources, own_version

MadeBy = Mapping[str, Fingerprint]
"""Fingerprints by the keys that name what they are of; under `meanfield` the version of this package."""

FINGERPRINTS = "fingerprints"
"""Attribute of a result: JSON text of them. Files of earlier versions have none."""

DIGITS_SHOWN = 8
"""Number of digits of a fingerprint in messages."""

NOT_KEPT = "which ones is not known, it is older than fingerprints in files"
"""Words about the functions, files and versions that made a file without fingerprints."""

RESTART = "--restart on the command line, restart=True in Python"
"""Remedy, to begin a run anew that other functions or versions made, for messages."""

UNKNOWN_HASH = "not known"
"""Placeholder of the hash of a function or file that was not read."""


def made_by(problem: Problem) -> dict[str, Fingerprint]:
    """Functions, files and versions that decide the numbers of a problem besides its text, as they are now."""
    version = f"{own_version()}+{digest_of_sources()[:DIGITS_SHOWN]}"  # that of sources behind it, as packages write it
    own = Fingerprint(what="meanfield", sha256="", version=version)
    return {"meanfield": own} | problem.fingerprints()


def to_json(found: MadeBy) -> str:
    """JSON text of fingerprints."""
    return json.dumps(found, sort_keys=True)


def from_json(text: Any) -> dict[str, Fingerprint] | None:
    """Fingerprints from their JSON text, None if it holds none."""
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    wanted = set(Fingerprint.__annotations__)
    if not isinstance(found, dict):
        return None
    for entry in found.values():
        if not isinstance(entry, dict) or set(entry) != wanted or not all(isinstance(v, str) for v in entry.values()):
            return None
    return found


class Change(NamedTuple):
    """Difference in origin of two results: in words, and whether it is certain, because both origins are known."""

    words: str
    certain: bool


def changes(before: MadeBy | None, now: MadeBy, names: tuple[str, str] = ("before", "now")) -> list[str]:
    """Functions and files that are others now than when a result was made, a text for each key."""
    return [NOT_KEPT] if before is None else [change.words for change in _changes(before, now, names)]


def differences(first: MadeBy, second: MadeBy, names: tuple[str, str]) -> list[Change]:
    """Functions and files that differ, or are not known, of two results of one problem; versions of meanfield may."""
    own = [{key: entry for key, entry in each.items() if key != "meanfield"} for each in (first, second)]
    return list(_changes(own[0], own[1], (f"in {names[0]}", f"in {names[1]}")))


def _changes(first: MadeBy, second: MadeBy, names: tuple[str, str]) -> Iterator[Change]:
    for key in {**first, **second}:
        one, other = first.get(key), second.get(key)
        states = [_state(one, other), _state(other, one)]
        if states != ["", ""] or _is_unknown(one):
            what = (one or other or {"what": key})["what"]
            name = key if key == what else f"{key} = '{what}'"
            words = " and ".join(f"{state or UNKNOWN_HASH} {where}" for state, where in zip(states, names, strict=True))
            yield Change(f"{name} ({words})", not _is_unknown(one) and not _is_unknown(other))


def _is_unknown(entry: Fingerprint | None) -> bool:
    return entry is not None and not entry["sha256"] and not entry["version"]


def _state(entry: Fingerprint | None, other: Fingerprint | None) -> str:
    """Short hash, and the versions that differ from those of another entry; empty where it is equal or not known."""
    if entry is None:
        return "not there"
    if other is not None and (entry["sha256"], entry["version"]) == (other["sha256"], other["version"]):
        return ""
    known = other["version"] if other is not None else ""
    versions = [text for text in entry["version"].split(", ") if known and text not in known.split(", ")]
    return " with ".join(text for text in (entry["sha256"][:DIGITS_SHOWN], ", ".join(versions)) if text)
