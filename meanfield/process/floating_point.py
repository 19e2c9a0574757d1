"""Floating-point exceptions of NumPy within the library, whatever the program around it does with its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def own_errstate() -> np.errstate:
    """Context and decorator of public functions: NumPy's default, in which an underflow to zero is none.

    A program that raises on all of them, by `np.errstate(all="raise")`, would end in one that is harmless here.
    """
    import numpy as np  # late: help in the terminal does not wait for it

    return np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
