"""Progress bars: shown on a terminal for work of more than a second, silent elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tqdm import tqdm

MANY = 1e5
"""Larger numbers are shown with k, M, G."""

_HIDDEN = ContextVar("_HIDDEN", default=False)


def progress_bar(total: float, label: str, unit: str = "output", done: int = 0) -> tqdm[None]:
    """A bar on standard error that appears after a second, and only on a terminal.

    Parameters
    ----------
    total : float
    label, unit : str
    done : int
        Where it begins.
    """
    hidden = _HIDDEN.get() or None
    scaled = total >= MANY
    return tqdm(
        total=total, desc=label, unit=unit, delay=1.0, disable=hidden, leave=False, unit_scale=scaled, initial=done
    )


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """No bars meanwhile in this thread: where many problems are solved at once, one bar counts them all."""
    token = _HIDDEN.set(True)
    try:
        yield
    finally:
        _HIDDEN.reset(token)
