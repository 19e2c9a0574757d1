"""Parts of a problem that find something outside of its text, functions or the numbers of a file, and keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pydantic import ValidationInfo

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import Fingerprint
from meanfield.ingredients.part import Part


class Missing(Enum):
    """Why something is not at hand."""

    SENT = "another process has found it, and sent us the problem"
    REFUSED = "a result alone names it"


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

    def __reduce__(self) -> Any:
        """Send fingerprints alone to other processes, which find the same there or refuse."""
        content = self.content if self.content is Missing.REFUSED else Missing.SENT
        return Found, (self.asked, content, self.fingerprints)

    def __deepcopy__(self, memo: Any) -> Found:
        """Nothing of it changes."""
        return self


class NamesOutside(Part):
    """Part that names something outside of its text, and keeps what it found there."""

    @property
    def asked(self) -> Any:
        """Keys that decide what is found."""
        raise NotImplementedError

    @property
    def kept(self) -> Found | None:
        """What was found for the keys as they are, if it is at hand."""
        found: Found | None = self.__dict__.get("_found")
        return found if found is not None and found.asked == self.asked and found.content is not Missing.SENT else None

    def keep(self, content: Any, fingerprints: Mapping[str, Fingerprint]) -> Found:
        """Keep what was found.

        Raises
        ------
        InputError
            If the problem comes from another process that found something else.
        """
        before: Found | None = self.__dict__.get("_found")
        sent: Mapping[str, Fingerprint] = (
            {} if before is None or before.content is not Missing.SENT else before.fingerprints
        )
        for key, found in fingerprints.items():
            if sent.get(key, found) != found:
                raise InputError(
                    f"'{found['what']}' is another one here than where the problem was loaded; load the problem here"
                )
        made = self.__dict__["_found"] = Found(self.asked, content, fingerprints)
        return made

    def take_kept(self, info: ValidationInfo) -> bool:
        """Keep what the problem has found of which this becomes a copy, as it may be another now; whether it has."""
        for part in (info.context or {}).get("kept", ()):
            if type(part) is type(self) and part.kept is not None and part.asked == self.asked:
                self.__dict__["_found"] = part.kept
        return self.kept is not None

    def named_outside(self) -> dict[str, Fingerprint]:
        """See `Part.named_outside`."""
        found = self.__dict__.get("_found")
        return {} if found is None else dict(found.fingerprints)
