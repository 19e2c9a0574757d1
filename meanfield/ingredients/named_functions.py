"""Parts of a problem that name functions, of the library or of a user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationInfo

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import fingerprint_of, unknown
from meanfield.ingredients.found import Found, Missing, NamesOutside
from meanfield.ingredients.part import FieldError
from meanfield.ingredients.user_functions import is_address


class NamesFunctions(NamesOutside):
    """Part of a problem that names functions, of the library or of a user.

    A user's own module is imported for a problem file that somebody gave us, never for one stored in a result. What was
    found is kept with its name, because two problem files may have two modules of one name beside them, and because a
    module may change while a problem is being solved.
    """

    def look_up(self, key: str, make: Callable[..., Any], info: ValidationInfo) -> None:
        """Find the functions at once if they are those of the library or the problem is trusted."""
        context = info.context or {}
        name, folder = getattr(self, key), context.get("folder")
        if is_address(name) and not context.get("trusted", True):
            self.keep(Missing.REFUSED, {key: unknown(name)})
            return
        if self.take_kept(info):
            return
        try:
            self._make(key, make, *([folder] if folder and is_address(name) else []))
        except ValueError as error:
            raise FieldError(key, str(error)) from error

    def _make(self, key: str, make: Callable[..., Any], *folder: Any) -> Found:
        made, name = make(*self.named, *folder), self.named[0]
        return self.keep(made, {key: fingerprint_of(made, name)} if is_address(name) else {})

    def found(self, key: str, make: Callable[..., Any]) -> Any:
        """Functions that the name stands for; they are found now if they were not before."""
        if not self.at_hand:
            raise InputError(
                f"{key} = '{self.named[0]}': no module is imported because a result names it; load the problem file "
                "with meanfield.load_problem and solve that"
            )
        try:
            return (self.kept or self._make(key.rpartition(".")[2], make)).content
        except ValueError as error:
            raise InputError(f"{key}: {error}") from error

    @property
    def at_hand(self) -> bool:
        """Whether the functions can be called: those of a user that a result alone names cannot."""
        return self.kept is None or self.kept.content is not Missing.REFUSED

    @property
    def asked(self) -> Any:
        """See `NamesOutside.asked`."""
        return self.named

    @property
    def named(self) -> tuple[str, tuple[tuple[str, float], ...]]:
        """Name and parameters of the functions."""
        raise NotImplementedError
