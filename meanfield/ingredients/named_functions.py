"""Parts of a problem that name functions, of the library or of a user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationInfo

from meanfield.errors import InputError
from meanfield.ingredients.part import FieldError, Part
from meanfield.ingredients.user_functions import is_address

NOT_IMPORTED = "not imported"
"""Placeholder for the functions of a user that a result names, which are not imported."""


class NamesFunctions(Part):
    """Part of a problem that names functions, of the library or of a user.

    A user's own module is imported for a problem file that somebody gave us, never for one stored in a result. What was
    found is kept with its name, because two problem files may have two modules of one name beside them.
    """

    def look_up(self, key: str, make: Callable[..., Any], info: ValidationInfo) -> None:
        """Find the functions at once if they are those of the library or the problem is trusted."""
        context = info.context or {}
        name, folder = getattr(self, key), context.get("folder")
        if is_address(name) and not context.get("trusted", True):
            self.__dict__["_found"] = self.named, NOT_IMPORTED
            return
        try:
            self.__dict__["_found"] = self.named, make(*self.named, *([folder] if folder and is_address(name) else []))
        except ValueError as error:
            raise FieldError(key, str(error)) from error

    def found(self, key: str, make: Callable[..., Any]) -> Any:
        """Functions that the name stands for; they are found now if they were not before."""
        named, functions = self.__dict__.get("_found", (None, None))
        if not self.at_hand:
            raise InputError(
                f"{key} = '{self.named[0]}': no module is imported because a result names it; load the problem file "
                "with meanfield.load_problem and solve that"
            )
        if named == self.named:
            return functions
        try:
            return make(*self.named)
        except ValueError as error:
            raise InputError(f"{key}: {error}") from error

    @property
    def at_hand(self) -> bool:
        """Whether the functions can be called: those of a user that a result alone names cannot."""
        _, functions = self.__dict__.get("_found", (None, None))
        return functions is not NOT_IMPORTED or not is_address(self.named[0])

    @property
    def named(self) -> tuple[str, tuple[tuple[str, float], ...]]:
        """Name and parameters of the functions."""
        raise NotImplementedError
