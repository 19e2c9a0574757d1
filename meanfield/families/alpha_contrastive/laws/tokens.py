"""Tokens in places, some of which generators mark (alpha_contrastive.md, section 7)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from meanfield.families.alpha_contrastive.laws.shared import Vector
from meanfield.ingredients.part import FieldError, Part

MOST_TOKENS = 1000
"""Largest number of places, of tokens of a vocabulary, and of generators."""

WILDCARD = -1
"""What stands for any token in a pattern."""

Token = Annotated[int, Field(ge=WILDCARD, lt=MOST_TOKENS)]
Pattern = Annotated[tuple[Token, ...], Field(strict=False, min_length=1, max_length=MOST_TOKENS)]
Count = Annotated[int, Field(ge=1, le=MOST_TOKENS)]


class Tokens(Part):
    """Tokens in places: generators mark some places, other places hold any token."""

    law: Literal["tokens"] = "tokens"
    places: Count = Field(description="K, the number of places, for instance 10")
    vocabulary: Count = Field(description="d, the number of tokens that a place may hold, for instance 20")
    patterns: Annotated[tuple[Pattern, ...], Field(strict=False, min_length=1, max_length=MOST_TOKENS)] | None = Field(
        default=None, description="one row of tokens per generator, -1 for any token, for instance [[0, 1, -1, -1]]"
    )
    generators: Count | None = Field(default=None, description="G, the number of generators that are drawn")
    tokens_per_place: Count | None = Field(default=None, description="P, the number of tokens that drawn patterns use")
    pattern_tokens: Count | None = Field(default=None, description="L, the number of places that a generator marks")
    seed: int | None = Field(default=None, ge=0, lt=2**63, description="seed of the generators that are drawn")
    magnitudes: Vector | None = Field(
        default=None, description="length of the vector of each token, all 1 if nothing is said"
    )
    augmentation: bool = Field(
        default=True, description="whether the second view has other tokens where the generator marks no place"
    )

    @model_validator(mode="after")
    def _patterns_fit(self) -> Tokens:
        drawn = ("generators", "tokens_per_place", "pattern_tokens", "seed")
        given = [key for key in drawn if getattr(self, key) is not None]
        if self.patterns is None:
            for key in drawn:
                if getattr(self, key) is None:
                    raise FieldError(key, "is missing; add it, or give patterns")
            self._check_drawn()
            return self
        if given:
            raise FieldError(given[0], f"is for generators that are drawn; remove {', '.join(given)}, or patterns")
        for g, row in enumerate(self.patterns):
            if len(row) != self.places:
                raise FieldError(
                    "patterns", f"row {g} has {len(row)} tokens, but places = {self.places}; give one each"
                )
            if max(row) >= self.vocabulary:
                raise FieldError(
                    "patterns", f"row {g} has the token {max(row)}, but vocabulary = {self.vocabulary}; count from 0"
                )
        return self

    def _check_drawn(self) -> None:
        for key, most, what in (
            ("tokens_per_place", self.vocabulary, "vocabulary"),
            ("pattern_tokens", self.places, "places"),
        ):
            if getattr(self, key) > most:
                raise FieldError(key, f"= {getattr(self, key)} is more than {what} = {most}; lower it")

    @model_validator(mode="after")
    def _magnitudes_fit(self) -> Tokens:
        if self.magnitudes is not None:
            if len(self.magnitudes) != self.vocabulary:
                raise FieldError(
                    "magnitudes",
                    f"has {len(self.magnitudes)} number(s), but vocabulary = {self.vocabulary}; give one per token",
                )
            if min(self.magnitudes) <= 0:
                raise FieldError("magnitudes", f"has {min(self.magnitudes):g}; lengths are greater than 0")
        return self
