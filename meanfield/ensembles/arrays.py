"""Storage of a long run: arrays that are filled as it goes on, and states from which it can be resumed.

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

from meanfield.ensembles.identity import Identity

Array = np.ndarray[Any, np.dtype[Any]]
State = Mapping[str, Array]

DIGEST = 32
"""Number of bytes of the digest of arrays."""


class Record:
    """Storage of a run in memory; states are forgotten, because nothing survives that could use them."""

    save_every = math.inf
    """Seconds between two states of a run."""

    def open(self, identity: Identity) -> AbstractContextManager[None]:
        """Begin or resume the run with this identity, which holds everything that decides its numbers."""
        return nullcontext()

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike = float) -> Array:
        """New array, filled with NaN (or -1 for whole numbers) as long as nothing else is written."""
        return np.full(shape, blank(dtype), dtype)

    def save_state(self, name: str, state: State) -> None:
        """Save a state under a name, together with all that was written to the arrays before."""

    def load_state(self, name: str) -> State | None:
        """Latest saved state of a name, or None."""
        return None

    def forget_state(self, name: str) -> None:
        """Delete the state of a name, if there is one."""

    def digest(self, arrays: Iterable[Array]) -> Array:
        """Digest of values, which `check` compares; a part of a state. Zeros here, where no state comes back."""
        return np.zeros(DIGEST, np.uint8)

    def check(self, arrays: Iterable[Array], digest: Array) -> None:
        """Refuse to resume from values that changed since their digest was taken."""

    @property
    def in_memory(self) -> bool:
        """Whether the arrays take memory of the process."""
        return True


def blank(dtype: DTypeLike) -> float:
    """Value of array elements that were not computed."""
    return math.nan if np.issubdtype(dtype, np.floating) else -1
