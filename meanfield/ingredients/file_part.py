"""Parts of a problem whose numbers stand in a file, which the problem file names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationInfo, field_validator

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import Fingerprint, fingerprint_of, fingerprint_of_file, unknown
from meanfield.ingredients.named_functions import Missing, NamesOutside, remedy_for
from meanfield.ingredients.objects import Object, is_of_object

T = TypeVar("T")


def is_trusted(info: ValidationInfo) -> bool:
    """Whether files that are named may be opened: not where a result names them."""
    return bool((info.context or {}).get("trusted", True))


def absolute(path: str, info: ValidationInfo) -> str:
    """Path of a file that may be opened, from the folder of the problem file or the working directory."""
    if not is_trusted(info) or is_of_object(path):
        return path
    return str((Path((info.context or {}).get("folder") or "") / path).resolve())


class FilePart(NamesOutside):
    """Part with a field `file` or `path`, and a property `atoms` that reads the file."""

    @classmethod
    def outside(cls) -> tuple[str, ...]:
        """See `NamesOutside.outside`."""
        return tuple(key for key in ("file", "path") if key in cls.model_fields)

    @field_validator("file", "path", check_fields=False)
    @classmethod
    def _find(cls, path: str, info: ValidationInfo) -> str:
        """Make the path absolute, which is relative to the problem file, or in Python to the working directory."""
        return absolute(path, info)

    def look_up(self, info: ValidationInfo) -> None:
        """See `NamesOutside.look_up`."""
        if self.may_open(info):
            try:
                _ = self.atoms
            except InputError as error:
                raise ValueError(str(error)) from error

    def may_open(self, info: ValidationInfo) -> bool:
        """Whether the files may be opened; if not, keep this for later."""
        if not is_trusted(info):
            self.keep(Missing.REFUSED, {key: unknown(path) for key, path in self.paths.items()})
            return False
        self.take_kept(info)
        return True

    @property
    def atoms(self) -> Any:
        """Values and their probabilities, from the file."""
        raise NotImplementedError

    @property
    def is_refused(self) -> bool:
        """Whether a result alone names the files, which are not opened then."""
        return self.kept is not None and self.kept.content is Missing.REFUSED

    @property
    def paths(self) -> dict[str, str]:
        """Paths of the files by the keys that name them."""
        return {key: getattr(self, key) for key in self.outside()}

    @property
    def asked(self) -> Any:
        """See `NamesOutside.asked`."""
        return {name: getattr(self, name) for name in type(self).model_fields}

    def read_once(self, key: str, read: Callable[[tuple[str, ...]], T]) -> T:
        """Content of the files, read once: it stays as it was although a file may change later.

        Parameters
        ----------
        key : str
            Where the problem names the file, for the message.
        read : callable
            Takes the fingerprints of the files in the order of `paths`, by which it may know them, and reads them.

        Raises
        ------
        InputError
            If only a result names the file, or it cannot be read.
        """
        found = self.kept
        if found is None:
            fingerprints = {key: _fingerprint_of(path) for key, path in self.paths.items()}
            content = read(tuple(each["sha256"] for each in fingerprints.values()))
            found = self.keep(content, fingerprints)
        if found.content is Missing.REFUSED:
            path = next(iter(self.paths.values()))
            raise InputError(f"{key} = {path!r}: no file is opened because a result names it; {remedy_for(path)}")
        content = found.content
        return content


def _fingerprint_of(path: str) -> Fingerprint:
    """Fingerprint of a file, or of the object in its place."""
    if isinstance(path, Object):
        return fingerprint_of(path.content, path)
    return fingerprint_of_file(path) if os.path.isfile(path) else unknown(path)
