"""Retry: a computation that judges its own result is repeated with better settings until the result is good enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Settings = TypeVar("Settings")
Result = TypeVar("Result")


def retry(
    attempt: Callable[[Settings], Result], settings: Settings, better: Callable[[Settings, Result], Settings | None]
) -> Result:
    """Result of the first attempt whose settings cannot be improved, or need not be.

    Parameters
    ----------
    attempt : callable
        settings -> result. What makes an attempt fail belongs to its result, so that `better` can answer to it.
    settings : object
        Settings of the first attempt.
    better : callable
        (settings, result) -> settings of the next attempt; None, or the same settings again, where there is to be none.

    Returns
    -------
    object
        The last result.
    """
    while True:
        result = attempt(settings)
        following = better(settings, result)
        if following is None or following == settings:
            return result
        settings = following
