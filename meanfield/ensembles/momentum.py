"""Momentum of SGD in any family: a step repeats a share of the one before.

A share mu that is fixed makes steps 1/(1 - mu) as long in the limit. With a rate b the share is 1 - b dt, where a step
takes the time dt, and what a batch moves is b dt as long. Such a velocity p lasts as long as learning takes,

    dp/dt = b (f(w) - p),    dw/dt = p

where dw/dt = f(w) without momentum. It has the noise of batches, and weights have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from meanfield.errors import InputError
from meanfield.ingredients.part import Part, after_fields
from meanfield.ingredients.schedules.shapes import Schedule, in_words_of

MomentumRate = Annotated[
    float | None,
    Field(
        gt=0,
        le=1e6,
        description="b, in place of momentum: the next step repeats the share 1 - b dt of a step, which is b dt as "
        "long, where dt is the time that it takes; for instance 2.0",
    ),
]
"""Key of problems whose velocities may last."""


class HasMomentum(Part):
    """Part of a problem with the keys `momentum` and `momentum_rate`."""

    omitted: ClassVar[Mapping[str, Any]] = {}
    """Later keys that are not written where they have these values: tables without them are what they were."""

    if TYPE_CHECKING:
        momentum: Any
        momentum_rate: MomentumRate

    @model_serializer(mode="wrap")
    def _omit_later_keys(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = write(self)
        return {key: value for key, value in data.items() if key not in self.omitted or self.omitted[key] != value}

    @after_fields
    def _momentum_is_said_once(self) -> None:
        if self.momentum_rate is not None and (isinstance(self.momentum, Schedule) or self.momentum > 0.0):
            raise ValueError(
                f"momentum_rate = {self.momentum_rate:g} with momentum = {in_words_of(self.momentum)}: steps have one "
                "velocity; remove either"
            )

    @property
    def remembers(self) -> str:
        """Key and value of a momentum by which a step depends on the one before; empty without."""
        if self.momentum_rate is not None:
            return f"momentum_rate = {self.momentum_rate:g}"
        return f"momentum = {self.momentum:g}" if self.momentum > 0.0 else ""

    def shares(self, steps_per_time: float) -> tuple[float, float]:
        """Factors of a step and of the velocity before it, with so many steps in a unit of time."""
        if self.momentum_rate is None:
            return 1.0, self.momentum
        return self.momentum_rate / steps_per_time, 1.0 - self.momentum_rate / steps_per_time

    def velocity(self, before: Any, change: Any) -> Any:
        """Velocity of a step that takes the time `learning_rate`, from the one before and what its batch changes."""
        share, kept = self.shares(1.0 / self.learning_rate)  # type: ignore[attr-defined]
        return kept * before + share * change


def momentum_in_words(training: HasMomentum, rates: str) -> str:
    """What `explain` says of momentum; `rates` are the names of learning rates."""
    if training.momentum_rate is not None:
        b = f"{training.momentum_rate:g}"
        return f"; momentum 1 - b dt, b = {b}, in steps of b dt: dp/dt = b (f - p), dw/dt = p where dw/dt = f without"
    if not isinstance(training.momentum, Schedule) and training.momentum == 0.0:
        return ""
    return f"; momentum mu = {in_words_of(training.momentum)}, in the limit {rates}/(1 - mu)"


def check_no_velocity(training: HasMomentum, known: str, table: str = "training") -> None:
    """Refuse a velocity that lasts where a method knows weights alone; `known` are methods that follow it."""
    if training.momentum_rate is not None:
        raise InputError(
            f"{table}.momentum_rate = {training.momentum_rate:g}: weights have a velocity that lasts, which only "
            f"{known} follow; use these, or remove it (a fixed share is {table}.momentum)"
        )
