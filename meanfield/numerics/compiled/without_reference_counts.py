"""Compilation without reference counts, of functions that do not own their arrays."""

from __future__ import annotations

from typing import Any

from meanfield.process import own_numba as numba

options: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}


def without_reference_counts(**more: Any) -> Any:
    """`numba.njit` without reference counts, for functions whose arrays belong to the caller and that create none.

    Where tuples of arrays go from function to function in every step, counting references takes ten times as long as
    the arithmetic (56 against 560 ns for a step of the chain). Functions that are called from here must not create
    arrays either: numba would compile them without reference counts, too.
    """
    return numba.njit(**options, **more)
