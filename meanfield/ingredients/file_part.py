"""Parts of a problem whose numbers stand in a file, which the problem file names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import ValidationInfo, field_validator, model_validator

from meanfield.errors import InputError
from meanfield.ingredients.part import Part


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
