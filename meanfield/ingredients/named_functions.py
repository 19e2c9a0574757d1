"""Parts of a problem that find something outside of its text, functions or the numbers of a file, and keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Self

from pydantic import ModelWrapValidatorHandler, ValidationInfo, model_validator

from meanfield.errors import InputError
from meanfield.ingredients.fingerprints import Fingerprint, fingerprint_of, unknown
from meanfield.ingredients.objects import REBUILT, given_at, is_of_object, restored, texts_in, with_texts
from meanfield.ingredients.part import FieldError, Part
from meanfield.ingredients.user_functions import is_address


class Missing(Enum):
    """Why something is not at hand."""

    SENT = "another process has found it, and sent us the problem"
    REFUSED = "a result alone names it"


@dataclass(frozen=True, eq=False)
class Found:
    """Functions or arrays that a problem has found, and keeps although the module or the file may change later.

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


def remedy_for(text: str) -> str:
    """What to do about a text that a result alone names."""
    return REBUILT if is_of_object(text) else "load the problem file with meanfield.load_problem and solve that"


class NamesOutside(Part):
    """Part that names something outside of its text, or is given it as an object of Python, and keeps what it is."""

    @classmethod
    def outside(cls) -> tuple[str, ...]:
        """Keys that name it; the first is that of an object in place of the table."""
        raise NotImplementedError

    @model_validator(mode="wrap")
    @classmethod
    def _take_objects(cls, data: Any, validate: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Let texts stand for objects while they are validated, which makes plain texts of all."""
        keys = cls.outside()
        if not isinstance(data, dict):
            given = with_texts(data)
            data = {keys[0]: given} if isinstance(given, str) and not isinstance(data, str) else data
        if not isinstance(data, dict):
            return validate(data)
        data = {key: with_texts(value) if key in keys else value for key, value in data.items()}
        try:
            named = {text for key in keys for text in texts_in(data.get(key)) if is_of_object(text)}
            trusted = (info.context or {}).get("trusted", True)
            objects = {str(text): given for text in named if trusted and (given := given_at(text))}
        except ValueError as error:
            raise FieldError(keys[0], str(error)) from error
        made = validate(data)
        if objects:
            made.__dict__.update({key: restored(made.__dict__[key], objects) for key in keys if key in made.__dict__})
        return made

    @model_validator(mode="after")
    def _is_there(self, info: ValidationInfo) -> Self:
        self.look_up(info)
        return self

    def look_up(self, info: ValidationInfo) -> None:
        """Find it at once, unless a result names it: that may no longer exist.

        Raises
        ------
        ValueError
            If it is not there.
        """
        raise NotImplementedError

    @property
    def asked(self) -> Any:
        """Keys that decide what is found."""
        raise NotImplementedError

    @property
    def kept(self) -> Found | None:
        """Finding for the keys as they are, if it is at hand."""
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


class NamesFunctions(NamesOutside):
    """Part of a problem that names functions, of the library or of a user.

    A user's own module is imported for a problem file that somebody gave us, never for one stored in a result. What was
    found is kept with its name, because two problem files may have two modules of one name beside them, and because a
    module may change while a problem is being solved.
    """

    function_key: ClassVar[str]
    """Key that names the functions, as messages call it, such as `prior.name`."""

    parameters_key: ClassVar[str] = ""
    """Key of the same table with the numbers that they take, if they take any."""

    make: ClassVar[Any]
    """Function of a name, its parameters and perhaps a folder that returns them, or raises `ValueError`."""

    @property
    def _key(self) -> str:
        return self.outside()[0]

    @classmethod
    def outside(cls) -> tuple[str, ...]:
        """See `NamesOutside.outside`."""
        return (cls.function_key.rpartition(".")[2],)

    def look_up(self, info: ValidationInfo) -> None:
        """See `NamesOutside.look_up`; functions of the library are found in any case."""
        context = info.context or {}
        name, folder = self.named[0], context.get("folder")
        if is_address(name) and not context.get("trusted", True):
            self.keep(Missing.REFUSED, {self._key: unknown(name)})
            return
        if self.take_kept(info):
            return
        try:
            self._make(*([folder] if folder and is_address(name) else []))
        except ValueError as error:
            raise FieldError(self._key, str(error)) from error

    def _make(self, *folder: Any) -> Found:
        made, name = self.make(*self.named, *folder), self.named[0]
        return self.keep(made, {self._key: fingerprint_of(made, name)} if is_address(name) else {})

    def found(self) -> Any:
        """Functions that the name stands for; they are found now if they were not before.

        Raises
        ------
        InputError
            If they are a user's own and cannot be imported.
        """
        if not self.at_hand:
            raise InputError(
                f"{self.function_key} = '{self.named[0]}': no module is imported because a result names it; "
                f"{remedy_for(self.named[0])}"
            )
        try:
            return (self.kept or self._make()).content
        except ValueError as error:
            raise InputError(f"{self.function_key}: {error}") from error

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
        parameters = getattr(self, self.parameters_key) if self.parameters_key else {}
        return getattr(self, self._key), tuple(sorted(parameters.items()))

    @property
    def in_words(self) -> str:
        """Name and parameters of the functions, such as `leaky_relu, slope = 0.1`."""
        name, parameters = self.named
        return ", ".join([name, *(f"{key} = {value:g}" for key, value in parameters)])
