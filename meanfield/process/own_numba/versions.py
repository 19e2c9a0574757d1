"""Versions of numba whose inner parts this package knows.

Our target derives from classes of numba that are no promise to its users, and that differ between its versions. On any
other version, older or newer than these, numba compiles in its own way: results are the same, and the first ones take
several times as long.
"""

from __future__ import annotations

import os
import re

import numba

LOWEST, HIGHEST = (0, 63), (0, 68)
"""First two numbers of the lowest and the highest version with which the tests were run."""

PLAIN = "MEANFIELD_PLAIN_NUMBA"
"""Environment variable that has numba compile in its own way on every version."""


def is_numba_known() -> bool:
    """Whether the inner parts of numba may be used."""
    numbers = re.match(r"(\d+)\.(\d+)", numba.__version__)
    known = numbers is not None and LOWEST <= (int(numbers[1]), int(numbers[2])) <= HIGHEST
    return known and not os.environ.get(PLAIN)
