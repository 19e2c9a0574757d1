"""Parts of a problem that name functions, ours or a user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationInfo

from meanfield.base import FieldError, Part
from meanfield.errors import InputError
from meanfield.registry import is_address


class NamesFunctions(Part):
    """A part that names functions, ours or a user's own.

    A user's own module is imported for a problem file that somebody gave us, never for one stored in a result. What was
    found is kept with its name, because two problem files may have two modules of one name beside them.
    """

    def look_up(self, key: str, make: Callable[..., Any], info: ValidationInfo) -> None:
        """Find the functions at once if the name is ours or the problem file is trusted."""
        name, folder = getattr(self, key), (info.context or {}).get("folder")
        if is_address(name) and folder is None:
            return
        try:
            self.__dict__["_found"] = self.named, make(*self.named, *([folder] if is_address(name) else []))
        except ValueError as error:
            raise FieldError(key, str(error)) from error

    def found(self, key: str, make: Callable[..., Any]) -> Any:
        """The functions that were found, or will be now."""
        named, functions = self.__dict__.get("_found", (None, None))
        if named == self.named:
            return functions
        try:
            return make(*self.named)
        except ValueError as error:
            raise InputError(f"{key}: {error}") from error

    @property
    def named(self) -> tuple[str, tuple[tuple[str, float], ...]]:
        """Name and parameters."""
        raise NotImplementedError
