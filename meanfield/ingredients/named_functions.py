"""Parts of a problem that name functions, of the library or of a user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationInfo

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import Fingerprint, fingerprint_of, unknown
from meanfield.ingredients.found import Found
from meanfield.ingredients.part import FieldError, Part
from meanfield.ingredients.user_functions import is_address

NOT_IMPORTED = "not imported"
"""Placeholder for the functions of a user that a result names, which are not imported."""


class NamesFunctions(Part):
    """Part of a problem that names functions, of the library or of a user.

    A user's own module is imported for a problem file that somebody gave us, never for one stored in a result. What was
    found is kept with its name, because two problem files may have two modules of one name beside them, and because a
    module may change while a problem is being solved.
    """

    def look_up(self, key: str, make: Callable[..., Any], info: ValidationInfo) -> None:
        """Find the functions at once if they are those of the library or the problem file is trusted."""
        context = info.context or {}
        name, folder = getattr(self, key), context.get("folder")
        self.__dict__["_maker"] = key, make
        if is_address(name) and folder is None:
            if not context.get("trusted", True):
                self.__dict__["_found"] = Found(self.named, NOT_IMPORTED, {key: unknown(name)})
            return
        try:
            self._make(key, make, *([folder] if is_address(name) else []))
        except ValueError as error:
            raise FieldError(key, str(error)) from error

    def _make(self, key: str, make: Callable[..., Any], *folder: Any) -> Found:
        """Find the functions, and keep them."""
        made, name = make(*self.named, *folder), self.named[0]
        fingerprints = {key: fingerprint_of(made, name)} if is_address(name) else {}
        found = self.__dict__["_found"] = Found(self.named, made, fingerprints)
        return found

    def found(self, key: str, make: Callable[..., Any]) -> Any:
        """Functions that the name stands for; they are found now if they were not before."""
        found = self.__dict__.get("_found")
        if not self.at_hand:
            raise InputError(
                f"{key} = '{found.asked[0]}': no module is imported because a result names it; load the problem file "
                "with meanfield.load_problem and solve that"
            )
        if found is not None and found.asked == self.named:
            return found.content
        try:
            return self._make(key.rpartition(".")[2], make).content
        except ValueError as error:
            raise InputError(f"{key}: {error}") from error

    def named_outside(self) -> dict[str, Fingerprint]:
        """See `Part.named_outside`: the functions, if they are a user's own; unknown where they were not imported."""
        if not is_address(self.named[0]):
            return {}
        if self.at_hand:
            self.found(*self.__dict__["_maker"])
        return dict(self.__dict__["_found"].fingerprints)

    @property
    def at_hand(self) -> bool:
        """Whether the functions can be called: those of a user that a result alone names cannot."""
        found = self.__dict__.get("_found")
        return found is None or found.content is not NOT_IMPORTED or not is_address(self.named[0])

    @property
    def named(self) -> tuple[str, tuple[tuple[str, float], ...]]:
        """Name and parameters of the functions."""
        raise NotImplementedError
