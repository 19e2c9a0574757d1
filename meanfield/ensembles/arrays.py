"""Where a long run puts what it computes: arrays that fill up, and states from which it can go on.

A method is handed a record and knows no files. This one lives in memory; `meanfield.ensembles.checkpoint` has one that
survives the process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

Array = np.ndarray[Any, np.dtype[Any]]
State = Mapping[str, Array]

DIGEST = 32
"""Bytes of the digest of arrays."""


class Record:
    """Arrays in memory; states are forgotten, because nothing survives that could use them."""

    save_every = math.inf
    """Seconds between two states of a run."""

    def open(self, identity: str) -> AbstractContextManager[None]:
        """Begin, or go on with, the run of this identity: everything that decides its numbers."""
        return nullcontext()

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike = float) -> Array:
        """An array to be filled, NaN (or -1 for whole numbers) where nothing was written yet."""
        return np.full(shape, blank(dtype), dtype)

    def save_state(self, name: str, state: State) -> None:
        """Keep a state under a name; all that was written to the arrays before is kept with it."""

    def load_state(self, name: str) -> State | None:
        """The last state kept under a name, or None."""
        return None

    def forget_state(self, name: str) -> None:
        """Drop the state of a name, if there is one."""

    def digest(self, arrays: Iterable[Array]) -> Array:
        """What `check` knows these values by; a part of a state. Zeros here, where no state comes back."""
        return np.zeros(DIGEST, np.uint8)

    def check(self, arrays: Iterable[Array], digest: Array) -> None:
        """Refuse to go on from values that changed since their digest was taken."""

    @property
    def in_memory(self) -> bool:
        """Whether the arrays take memory of the process."""
        return True


def blank(dtype: DTypeLike) -> float:
    """What stands where nothing was computed."""
    return math.nan if np.issubdtype(dtype, np.floating) else -1
