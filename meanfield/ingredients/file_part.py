"""Parts of a problem whose numbers stand in a file, which the problem file names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import ValidationInfo, field_validator, model_validator

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import Fingerprint, fingerprint_of_file, unknown
from meanfield.ingredients.found import Found
from meanfield.ingredients.part import Part

T = TypeVar("T")


class FilePart(Part):
    """Part with a field `file` or `path`, and a property `atoms` that reads the file."""

    @field_validator("file", "path", check_fields=False)
    @classmethod
    def _find(cls, path: str, info: ValidationInfo) -> str:
        """Make the path absolute where the folder of the problem file is known."""
        folder = (info.context or {}).get("folder")
        return path if folder is None else str((Path(folder) / path).resolve())

    @model_validator(mode="after")
    def _can_be_read(self, info: ValidationInfo) -> Self:
        """Read the file at once for a problem file; one named in a result may no longer exist."""
        context = info.context or {}
        self.__dict__["_trusted"] = context.get("trusted", True)
        if context.get("folder") is not None:
            try:
                _ = self.atoms
            except InputError as error:
                raise ValueError(str(error)) from error
        return self

    @property
    def atoms(self) -> Any:
        """Values and their probabilities, from the file."""
        raise NotImplementedError

    @property
    def paths(self) -> dict[str, str]:
        """Paths of the files by the keys that name them."""
        return {key: getattr(self, key) for key in ("file", "path") if key in type(self).model_fields}

    @property
    def asked(self) -> Any:
        """Keys that decide what is read."""
        return {name: getattr(self, name) for name in type(self).model_fields}

    def named_outside(self) -> dict[str, Fingerprint]:
        """See `Part.named_outside`: the files; unknown where they were not opened."""
        if not self.__dict__.get("_trusted", True):
            return {key: unknown(path) for key, path in self.paths.items()}
        _ = self.atoms
        return dict(self.__dict__["_found"].fingerprints)

    def read_once(self, key: str, read: Callable[[tuple[str, ...]], T]) -> T:
        """What stands in the files: it is read once, and stays what it was although a file may change later.

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
        if not self.__dict__.get("_trusted", True):
            raise InputError(
                f"{key} = {next(iter(self.paths.values()))!r}: no file is opened because a result names it; load the "
                "problem file with meanfield.load_problem and solve that"
            )
        found = self.__dict__.get("_found")
        if found is None or found.asked != self.asked:
            known: Mapping[str, Fingerprint] = {
                key: fingerprint_of_file(path) if os.path.isfile(path) else unknown(path)
                for key, path in self.paths.items()
            }
            content = read(tuple(each["sha256"] for each in known.values()))
            found = self.__dict__["_found"] = Found(self.asked, content, known)
        content: T = found.content
        return content
