"""Storage of a long run: its identity, arrays that are filled as it goes on, and states from which it can be resumed.

A method is handed a record and knows no files. This one lives in memory; `meanfield.ensembles.checkpoint` has one that
survives the process. The identity is everything that decides the numbers of a run: an unfinished one goes on only under
the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from meanfield.problems.base import Problem
from meanfield.problems.file import format_problem
from meanfield.results.made_by import MadeBy, changes, from_json, made_by, to_json


class Identity(NamedTuple):
    """Identity of a run.

    Parameters
    ----------
    text : str
        Such as the text of the problem.
    made_by : mapping
        Fingerprints of functions and files that the problem names, and the version of this package.
    """

    text: str
    made_by: MadeBy

    def with_format(self, *lines: str) -> Identity:
        """Identity with lines before its text: names of formats in which a run is stored."""
        return self._replace(text="\n".join([*lines, self.text]))

    def written(self) -> str:
        """Text for a file."""
        return f"{self.text}\n{to_json(self.made_by)}\n"

    def differences(self, written: str) -> list[str] | None:
        """Differences of another run, from the identity in its file; None if it is of another problem.

        Parameters
        ----------
        written : str
            What stands in the file; in those of earlier versions no fingerprints.
        """
        text, _, last = written.removesuffix("\n").rpartition("\n")
        before = from_json(last)
        if (written if before is None else text) != self.text:
            return None
        return changes(before, self.made_by)


def identity_of(problem: Problem) -> Identity:
    """Identity of a run of a problem, as what it names is now."""
    return Identity(format_problem(problem), made_by(problem))


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

    def open_array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike = float) -> Array:
        """Array of the run, filled with NaN (or -1 for whole numbers) as long as nothing else is written."""
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
