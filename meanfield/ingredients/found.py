"""What a part of a problem found outside of its text: functions of a module, numbers of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from meanfield.ingredients.fingerprints import Fingerprint


@dataclass(frozen=True, eq=False)
class Found:
    """What was found, once: a problem keeps it, although the module or the file may change later.

    Parameters
    ----------
    asked : object
        What it was asked for, the keys of the part.
    content : object
        Functions or arrays.
    fingerprints : dict
        Of the functions and files, by the keys that name them; none for those of the library.
    """

    asked: Any
    content: Any
    fingerprints: Mapping[str, Fingerprint] = field(default_factory=dict)
