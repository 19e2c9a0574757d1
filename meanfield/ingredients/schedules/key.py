"""Keys of a problem that hold a number, or a schedule of such numbers."""

from __future__ import annotations

from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from meanfield.ingredients.nearest import nearest
from meanfield.ingredients.part import FieldError
from meanfield.ingredients.schedules.sampling import is_function, schedule_of
from meanfield.ingredients.schedules.shapes import SHAPES, Schedule
from meanfield.ingredients.schedules.tables import FileTable, Function, Table

KINDS: dict[str, type[Schedule]] = {"times": Table, "file": FileTable, "function": Function}
"""Schedules without a shape by the key that tells them."""


class OrSchedule:
    """Mark of a number, in the annotation of a key, that a schedule may stand there, whose values have its bounds.

    Code sees the number that the annotation says: solvers are given problems at one time (`meanfield.at_time`), or ask
    for schedules by themselves and say so in the declaration of their method.

    Parameters
    ----------
    may_vanish : bool
        Whether a number that is above 0 may be 0 at some times, as a learning rate that begins there.
    """

    models = (*KINDS.values(), *SHAPES.values())

    def __init__(self, may_vanish: bool = True) -> None:
        self._may_vanish = may_vanish

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Schema of the number, or of any schedule."""
        number = handler(source)
        bounds = {name: number[name] for name in ("gt", "ge", "lt", "le") if name in number}  # type: ignore[literal-required]
        if self._may_vanish and bounds.get("gt") == 0.0:
            bounds["ge"] = bounds.pop("gt")
        if number["type"] == "int":
            bounds["whole"] = 1

        def with_bounds(found: Any) -> Any:
            if isinstance(found, Schedule):
                found.__dict__["_bounds"] = bounds
            return found

        choices = {model.__name__: handler.generate_schema(model) for model in self.models} | {"number": number}
        either = core_schema.tagged_union_schema(choices, discriminator=_kind_of)
        return core_schema.no_info_after_validator_function(
            with_bounds,
            core_schema.no_info_before_validator_function(_as_table, either),
            serialization=core_schema.plain_serializer_function_ser_schema(_plain),
        )


def _as_table(given: Any) -> Any:
    """Table of a schedule for a function, or for a text that names one or a file; a table that is none is refused."""
    if is_function(given):
        return schedule_of(given)
    if isinstance(given, str) and ":" in given:
        return {"function": given}
    if isinstance(given, str) and given.endswith(".csv"):
        return {"file": given}
    if isinstance(given, dict) and not {"schedule", *KINDS} & given.keys():
        raise ValueError(
            f"= {given!r:.60}: a schedule has times and values, a file, a function, or schedule = one of "
            f"{', '.join(SHAPES)}; add one of these, or give a number"
        )
    shape = given.get("schedule") if isinstance(given, dict) else None
    if shape is not None and (not isinstance(shape, str) or shape not in SHAPES):
        raise FieldError("schedule", f"= {shape!r:.60}: unknown; {nearest(str(shape), list(SHAPES))}")
    return given


def _kind_of(given: Any) -> str:
    """Name of the class of a schedule, or `number` for anything else."""
    if isinstance(given, Schedule):
        return type(given).__name__
    if not isinstance(given, dict):
        return "number"
    if "schedule" in given:
        return SHAPES[given["schedule"]].__name__
    return next(model.__name__ for key, model in KINDS.items() if key in given)


def _plain(value: Any) -> Any:
    """Number, or the keys of a schedule as a file has them."""
    return value.model_dump(mode="json", exclude_none=True) if isinstance(value, Schedule) else value
