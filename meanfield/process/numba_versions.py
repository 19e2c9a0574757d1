"""Versions of numba whose inner parts this package knows.

Faster compilation changes parts of numba that are no promise to its users, and that differ between its versions. On any
other version, older or newer than these, numba compiles in its own way: results are the same, and the first ones take
several times as long.
"""

from __future__ import annotations

import re

LOWEST, HIGHEST = (0, 63), (0, 68)
"""First two numbers of the lowest and the highest version with which the tests were run."""


def is_numba_known() -> bool:
    """Whether the inner parts of numba may be changed."""
    import numba  # late: this module is imported before it

    numbers = re.match(r"(\d+)\.(\d+)", numba.__version__)
    return numbers is not None and LOWEST <= (int(numbers[1]), int(numbers[2])) <= HIGHEST
