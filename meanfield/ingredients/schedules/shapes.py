"""Schedules: what all have, which is checked against the bounds of their key, and those of a known shape.

Time is t = k/N, as everywhere, and the values have the units of the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, NoReturn

import numpy as np
from pydantic import Field

from meanfield.errors import InputError
from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.typing import FloatArray

CHECKED_TIMES = 1000
"""Number of evenly spaced times, besides corners and their surroundings, at which a schedule must be in range."""


class Schedule(Part):
    """Number that changes in time, which stands in a problem where a number may.

    Arithmetic with it raises `InputError`: a function that takes a number would silently take one of many.

    Examples
    --------
    >>> import math, meanfield, numpy as np
    >>> problem = meanfield.load_problem("data/problems/sparse_prior.toml")
    >>> problem = meanfield.with_value(problem, "model.learning_rate", lambda t: 0.05 * math.exp(-t) if t < 3 else 0.01)
    >>> rate = problem.model.learning_rate
    >>> isinstance(rate, meanfield.Schedule), rate.values_at(np.array([2.0, 3.0])).round(6).tolist()
    (True, [0.006767, 0.01])
    """

    def values_at(self, times: FloatArray) -> FloatArray:
        """Values at some times, of the shape of the times; where it jumps those from the jump on."""
        raise NotImplementedError

    @property
    def corners(self) -> tuple[float, ...]:
        """Times at which it jumps or bends, increasing."""
        return ()

    @property
    def in_steps(self) -> bool:
        """Whether nothing changes between corners."""
        return False

    @property
    def in_words(self) -> str:
        """What it does, in words."""
        raise NotImplementedError

    def value_at(self, time: float) -> float:
        """Value at one time, a whole number where the key takes nothing else."""
        value = float(self.values_at(np.array(time)))
        return int(value) if "whole" in self.bounds and value.is_integer() else value

    def check(self, key: str, stop: float) -> None:
        """Refuse values that are not finite, or that the key does not allow, before the end of a run.

        Raises
        ------
        ValueError
            With the first time at which there is one.
        """
        times = self.looked_at(0.0, stop)
        with np.errstate(over="ignore"):
            self.check_values(key, times, self.values_at(times))

    def extremes(self, start: float, stop: float) -> tuple[float, float]:
        """Times before the end of a stretch at which the value is smallest and largest."""
        times = np.append(self.looked_at(start, stop)[:-1], np.nextafter(stop, start))
        values = self.values_at(times)
        return float(times[values.argmin()]), float(times[values.argmax()])

    def looked_at(self, start: float, stop: float) -> FloatArray:
        """Evenly spaced times, corners, and times just before them."""
        corners = np.array([time for time in self.corners if start <= time <= stop])
        before = corners[corners > start] * (1.0 - 1e-12)
        return np.unique([*np.linspace(start, stop, CHECKED_TIMES), *corners, *before])

    def check_values(self, key: str, times: FloatArray, values: FloatArray) -> None:
        """Refuse values that are not finite, or that the key does not allow.

        Raises
        ------
        ValueError
            With the first time at which there is one.
        """
        for words, allowed in (("finite", np.isfinite(values)), *_allowed(self.bounds, values)):
            if not allowed.all():
                first = int(np.argmin(allowed))
                raise ValueError(
                    f"{key}: is {values[first]:.6g} at t = {times[first]:.6g} of its schedule, and must be {words} "
                    "until time.stop; correct it"
                )

    @property
    def bounds(self) -> dict[str, float]:
        """Bounds of the key that holds it, as pydantic calls them; `whole`, where it takes whole numbers alone."""
        found: dict[str, float] = self.__dict__.get("_bounds", {})
        return found

    def narrow(self, **bounds: float) -> None:
        """Add bounds that other keys make."""
        self.__dict__["_bounds"] = self.bounds | bounds

    def _refuse(self, *_: object) -> NoReturn:
        raise InputError(
            "a number of the problem changes in time, by a schedule, and this function takes numbers that do not; give "
            "it meanfield.at_time(problem, t), the problem with the numbers of one time"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __float__ = __neg__ = __format__ = _refuse  # type: ignore[assignment]


def in_words_of(value: float | Schedule) -> str:
    """A number, or what its schedule does, in words."""
    if isinstance(value, Schedule):
        return value.in_words
    return f"{value}" if isinstance(value, int) else f"{value:g}"


def values_of(value: float | Schedule, times: FloatArray) -> FloatArray:
    """A number, or the values of its schedule, at some times."""
    return value.values_at(times) if isinstance(value, Schedule) else np.full(times.shape, float(value))


def least_and_largest(value: float | Schedule, start: float, stop: float) -> tuple[float, float]:
    """Smallest and largest value of a schedule before the end of a stretch; of a number that twice."""
    if not isinstance(value, Schedule):
        return value, value
    least, largest = (value.value_at(time) for time in value.extremes(start, stop))
    return least, largest


_WITHIN: dict[str, tuple[str, Callable[[FloatArray, float], Any]]] = {
    "gt": ("above", np.greater),
    "ge": ("at least", np.greater_equal),
    "lt": ("below", np.less),
    "le": ("at most", np.less_equal),
}
"""Bounds in words, and what they let through."""


def _allowed(bounds: dict[str, float], values: FloatArray) -> Iterator[tuple[str, Any]]:
    """Which values are within each bound, with the bound in words."""
    for name, bound in bounds.items():
        if name == "whole":
            yield "a whole number, as of interpolation = 'step',", values == np.rint(values)
        else:
            words, within = _WITHIN[name]
            yield f"{words} {bound:.15g}", within(values, bound)


Duration = Annotated[float, Field(gt=0, le=1e12)]


class Linear(Schedule):
    """Line from one value to another."""

    schedule: Literal["linear"] = "linear"
    start: float = Field(description="value at t = 0")
    end: float = Field(description="value from the end of the duration on")
    duration: Duration = Field(description="time that it takes")

    def values_at(self, times: FloatArray) -> FloatArray:
        """See `Schedule.values_at`."""
        return self.start + (self.end - self.start) * self._passed(times)

    def _passed(self, times: FloatArray) -> FloatArray:
        """Share of the duration that has passed."""
        return np.clip(np.asarray(times, dtype=float) / self.duration, 0.0, 1.0)

    @property
    def corners(self) -> tuple[float, ...]:
        """See `Schedule.corners`."""
        return (self.duration,)

    @property
    def in_words(self) -> str:
        """See `Schedule.in_words`."""
        return f"{self.schedule} from {self.start:g} to {self.end:g} at t = {self.duration:g}"


class Cosine(Linear):
    """Half a wave of a cosine from one value to another."""

    schedule: Literal["cosine"] = "cosine"  # type: ignore[assignment]

    def values_at(self, times: FloatArray) -> FloatArray:
        """See `Schedule.values_at`."""
        return self.end + 0.5 * (self.start - self.end) * (1.0 + np.cos(np.pi * self._passed(times)))


class WarmupCosine(Schedule):
    """Line up to a peak, and from there half a wave of a cosine down."""

    schedule: Literal["warmup_cosine"] = "warmup_cosine"
    start: float = Field(default=0.0, description="value at t = 0")
    peak: float = Field(description="value at the end of the warm-up")
    warmup: Duration = Field(description="time of the warm-up")
    end: float = Field(default=0.0, description="value from the end of the duration on")
    duration: Duration = Field(description="time that all of it takes, the warm-up included")

    @after_fields
    def _warmup_ends_first(self) -> None:
        if self.warmup >= self.duration:
            raise FieldError("warmup", f"is {self.warmup:g}; let it end before the duration, {self.duration:g}")

    def values_at(self, times: FloatArray) -> FloatArray:
        """See `Schedule.values_at`."""
        t = np.asarray(times, dtype=float)
        rising = self.start + (self.peak - self.start) * t / self.warmup
        passed = np.clip((t - self.warmup) / (self.duration - self.warmup), 0.0, 1.0)
        falling = self.end + 0.5 * (self.peak - self.end) * (1.0 + np.cos(np.pi * passed))
        return np.where(t < self.warmup, rising, falling)

    @property
    def corners(self) -> tuple[float, ...]:
        """See `Schedule.corners`."""
        return (self.warmup, self.duration)

    @property
    def in_words(self) -> str:
        """See `Schedule.in_words`."""
        return (
            f"from {self.start:g} up to {self.peak:g} at t = {self.warmup:g}, then along a cosine to {self.end:g} at "
            f"t = {self.duration:g}"
        )


class Power(Schedule):
    """Power law start (1 + t/scale)^(-exponent)."""

    schedule: Literal["power"] = "power"
    start: float = Field(description="value at t = 0")
    exponent: float = Field(ge=-100, le=100, description="exponent of the decay, for instance 0.5")
    scale: Duration = Field(default=1.0, description="time from which on it falls like a power of t")

    def values_at(self, times: FloatArray) -> FloatArray:
        """See `Schedule.values_at`."""
        return self.start * (1.0 + np.asarray(times, dtype=float) / self.scale) ** -self.exponent

    @property
    def in_words(self) -> str:
        """See `Schedule.in_words`."""
        return f"{self.start:g} (1 + t/{self.scale:g})^{-self.exponent:g}"


class Exponential(Schedule):
    """Exponential decay start exp(-rate t)."""

    schedule: Literal["exponential"] = "exponential"
    start: float = Field(description="value at t = 0")
    rate: float = Field(ge=-1e6, le=1e6, description="rate of the decay, for instance 0.1")

    def values_at(self, times: FloatArray) -> FloatArray:
        """See `Schedule.values_at`."""
        return self.start * np.exp(-self.rate * np.asarray(times, dtype=float))

    @property
    def in_words(self) -> str:
        """See `Schedule.in_words`."""
        return f"{self.start:g} exp({-self.rate:g} t)"


class Steps(Schedule):
    """Value that is multiplied by a factor each time that a period has passed."""

    schedule: Literal["step"] = "step"
    start: float = Field(description="value at t = 0")
    factor: float = Field(gt=0, le=100, description="factor of each step, for instance 0.5")
    every: Duration = Field(description="time from one step to the next")
    steps: int = Field(ge=1, le=1000, description="number of steps; after the last one the value stays")

    def values_at(self, times: FloatArray) -> FloatArray:
        """See `Schedule.values_at`."""
        taken = np.searchsorted(np.array(self.corners), np.asarray(times, dtype=float), side="right")
        return np.asarray(self.start * self.factor**taken)

    @property
    def corners(self) -> tuple[float, ...]:
        """See `Schedule.corners`."""
        return tuple(self.every * k for k in range(1, self.steps + 1))

    @property
    def in_steps(self) -> bool:
        """See `Schedule.in_steps`."""
        return True

    @property
    def in_words(self) -> str:
        """See `Schedule.in_words`."""
        return f"{self.start:g}, times {self.factor:g} at each of {self.steps} steps, every {self.every:g}"


SHAPES: dict[str, type[Schedule]] = {
    "linear": Linear,
    "cosine": Cosine,
    "warmup_cosine": WarmupCosine,
    "power": Power,
    "exponential": Exponential,
    "step": Steps,
}
"""Schedules by the name that `schedule` gives them in problem files."""
