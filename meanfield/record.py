"""Where a long run puts what it computes: arrays that fill up, and states from which it can go on.

A method is handed a record and knows no files. This one lives in memory; `meanfield.checkpoint` has one that survives
the process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

State = Mapping[str, np.ndarray[Any, np.dtype[Any]]]


class Record:
    """Arrays in memory; states are forgotten, because nothing survives that could use them."""

    save_every = math.inf
    """Seconds between two states of a run."""

    def open(self, identity: str) -> AbstractContextManager[None]:
        """Begin, or go on with, the run of this identity: everything that decides its numbers."""
        return nullcontext()

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike = float) -> np.ndarray[Any, np.dtype[Any]]:
        """An array to be filled, NaN (or -1 for whole numbers) where nothing was written yet."""
        return np.full(shape, blank(dtype), dtype)

    def save_state(self, name: str, state: State) -> None:
        """Keep a state under a name; all that was written to the arrays before is kept with it."""

    def load_state(self, name: str) -> State | None:
        """The last state kept under a name, or None."""
        return None

    def forget_state(self, name: str) -> None:
        """Drop the state of a name, if there is one."""

    @property
    def in_memory(self) -> bool:
        """Whether the arrays take memory of the process."""
        return True


def blank(dtype: DTypeLike) -> float:
    """What stands where nothing was computed."""
    return math.nan if np.issubdtype(dtype, np.floating) else -1
