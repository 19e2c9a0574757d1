"""Base class of all parts of a problem: frozen, strict, and with suggestions for misspelt keys."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

from meanfield.ingredients.nearest import nearest


class FieldError(ValueError):
    """Error of a check of several keys that lays the fault on one of them."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


class NamedNumbers(dict[str, float]):
    """Immutable mapping of names to numbers, which can be part of a hashable value."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


Parameters = Annotated[dict[str, float], AfterValidator(NamedNumbers)]


class Part(BaseModel):
    """Frozen part of a problem that takes only the keys it knows, each of exactly its type."""

    keys_besides: ClassVar[tuple[str, ...]] = ()
    """Keys of the table of a part that are read before it is validated."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _reject_unknown_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            known = list(cls.model_fields)
            for key in data:
                if key not in known:
                    raise ValueError(f"unknown key '{key}'; {nearest(key, [*known, *cls.keys_besides])}")
        return data
