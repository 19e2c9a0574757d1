"""Parts of a problem whose numbers stand in a file, which the problem file names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import ValidationInfo, field_validator, model_validator

from meanfield.errors import InputError
from meanfield.ingredients.part import Part


def is_trusted(info: ValidationInfo) -> bool:
    """Whether files that are named may be opened: not where a result names them."""
    return bool((info.context or {}).get("trusted", True))


def absolute(path: str, info: ValidationInfo) -> str:
    """Path of a file that may be opened, from the folder of the problem file or the working directory."""
    return str((Path((info.context or {}).get("folder") or "") / path).resolve()) if is_trusted(info) else path


class FilePart(Part):
    """Part with a field `file` or `path`, and a property `atoms` that reads the file."""

    @field_validator("file", "path", check_fields=False)
    @classmethod
    def _find(cls, path: str, info: ValidationInfo) -> str:
        """Make the path absolute, which is relative to the problem file, or in Python to the working directory."""
        return absolute(path, info)

    @model_validator(mode="after")
    def _can_be_read(self, info: ValidationInfo) -> Self:
        """Read the file at once, unless a result names it: that may no longer exist."""
        self.__dict__["_trusted"] = is_trusted(info)
        if is_trusted(info):
            try:
                _ = self.atoms
            except InputError as error:
                raise ValueError(str(error)) from error
        return self

    @property
    def atoms(self) -> Any:
        """Values and their probabilities, from the file."""
        raise NotImplementedError

    def check_trusted(self, key: str, path: str) -> None:
        """Refuse to open a file because a result names it.

        Raises
        ------
        InputError
        """
        if not self.__dict__.get("_trusted", True):
            raise InputError(
                f"{key} = '{path}': no file is opened because a result names it; load the problem file with "
                "meanfield.load_problem and solve that"
            )
