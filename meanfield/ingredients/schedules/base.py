"""What all schedules have: values at times, corners, and a check of both against the bounds of their key.

Time is t = k/N, as everywhere, and the values have the units of the key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from meanfield.errors import InputError
from meanfield.ingredients.part import Part
from meanfield.typing import FloatArray

CHECKED_TIMES = 1000
"""Number of evenly spaced times, besides corners and their surroundings, at which a schedule must be in range."""


class Schedule(Part):
    """Number that changes in time.

    Arithmetic with it raises `InputError`: a function that takes a number would silently take one of many.
    """

    def values_at(self, times: FloatArray) -> FloatArray:
        """Values at some times, of the shape of the times; where it jumps those from the jump on."""
        raise NotImplementedError

    @property
    def corners(self) -> tuple[float, ...]:
        """Times at which it jumps or bends, increasing."""
        return ()

    @property
    def in_words(self) -> str:
        """What it does, in words."""
        raise NotImplementedError

    def check(self, key: str, stop: float) -> None:
        """Refuse values that are not finite, or that the key does not allow, before the end of a run.

        Raises
        ------
        ValueError
            With the first time at which there is one.
        """
        corners = np.array([time for time in self.corners if time <= stop])
        times = np.unique([*np.linspace(0.0, stop, CHECKED_TIMES), *corners, *corners * (1.0 - 1e-12)])
        with np.errstate(over="ignore"):
            values = self.values_at(times)
        for words, allowed in (("finite", np.isfinite(values)), *_allowed(self.bounds, values)):
            if not allowed.all():
                first = int(np.argmin(allowed))
                raise ValueError(
                    f"{key}: is {values[first]:.6g} at t = {times[first]:.6g} of its schedule, and must be {words} "
                    "until time.stop; correct it"
                )

    @property
    def bounds(self) -> dict[str, float]:
        """Bounds of the key that holds it, as pydantic calls them."""
        found: dict[str, float] = self.__dict__.get("_bounds", {})
        return found

    def _refuse(self, *_: object) -> NoReturn:
        raise InputError(
            "a number of the problem changes in time, by a schedule, and this function takes numbers that do not; give "
            "it meanfield.at_time(problem, t), the problem with the numbers of one time"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __float__ = __neg__ = __format__ = _refuse  # type: ignore[assignment]


def _allowed(bounds: dict[str, float], values: FloatArray) -> Iterator[tuple[str, Any]]:
    """Which values are within each bound, with the bound in words."""
    for name, bound in bounds.items():  # a rate that is positive may begin with 0
        words, within = ("at least", values >= bound) if name in ("gt", "ge") else ("at most", values <= bound)
        yield f"{words} {bound:.15g}", within
