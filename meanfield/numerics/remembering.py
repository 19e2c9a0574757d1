"""Cache of the results of slow functions, and of their refusals, which take as long."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

from meanfield.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")


def remembered(most: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator like `functools.lru_cache`, `cache_clear` included, that keeps an `InputError` of the function, too.

    Parameters
    ----------
    most : int
        Largest number of calls whose outcomes are kept.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        def attempt(*args: P.args, **kwargs: P.kwargs) -> R | InputError:
            try:
                return function(*args, **kwargs)
            except InputError as error:
                return InputError(*error.args)  # without the frames of the call, which hold its arrays

        outcome = lru_cache(maxsize=most)(attempt)

        @wraps(function)
        def recalled(*args: P.args, **kwargs: P.kwargs) -> R:
            found = outcome(*args, **kwargs)  # type: ignore[arg-type]  # lru_cache takes what can be hashed
            if isinstance(found, InputError):
                raise InputError(*found.args)
            return found

        vars(recalled)["cache_clear"] = outcome.cache_clear
        return recalled

    return decorate
