"""Tokens in places, some of which generators mark (alpha_contrastive.md, section 7)."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from meanfield.families.alpha_contrastive.laws.shared import Vector
from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.typing import BoolArray, FloatArray, IntArray

MOST_TOKENS = 1000
"""Largest number of places, of tokens of a vocabulary, and of generators."""

WILDCARD = -1
"""Stands for any token in a pattern."""

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
    non_uniformity: float | None = Field(
        default=None,
        ge=1e-3,
        le=1e3,
        description="zeta, in place of magnitudes: 1/zeta for the first half of the tokens, zeta for the others",
    )
    augmentation: bool = Field(
        default=True, description="whether the second view has other tokens where the generator marks no place"
    )

    @after_fields
    def _patterns_fit(self) -> None:
        drawn = ("generators", "tokens_per_place", "pattern_tokens", "seed")
        given = [key for key in drawn if getattr(self, key) is not None]
        if self.patterns is None:
            for key in drawn:
                if getattr(self, key) is None:
                    raise FieldError(key, "is missing; add it, or give patterns")
            self._check_drawn()
            return
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

    def _check_drawn(self) -> None:
        for key, most, what in (
            ("tokens_per_place", self.vocabulary, "vocabulary"),
            ("pattern_tokens", self.places, "places"),
        ):
            if getattr(self, key) > most:
                raise FieldError(key, f"= {getattr(self, key)} is more than {what} = {most}; lower it")

    @after_fields
    def _magnitudes_fit(self) -> None:
        if self.magnitudes is not None:
            if self.non_uniformity is not None:
                raise FieldError("non_uniformity", "stands for magnitudes; remove one of the two")
            if len(self.magnitudes) != self.vocabulary:
                raise FieldError(
                    "magnitudes",
                    f"has {len(self.magnitudes)} number(s), but vocabulary = {self.vocabulary}; give one per token",
                )
            if min(self.magnitudes) <= 0:
                raise FieldError("magnitudes", f"has {min(self.magnitudes):g}; lengths are greater than 0")

    @property
    def rows(self) -> IntArray:
        """Tokens that generators mark, `WILDCARD` elsewhere, shape (generators, places).

        Drawn generators choose places without repetition, and at each one of the `tokens_per_place` tokens that were
        drawn for it.
        """
        if self.patterns is not None:
            return np.array(self.patterns, dtype=np.int64)
        assert self.generators is not None
        assert self.tokens_per_place is not None
        assert self.pattern_tokens is not None
        rng = np.random.default_rng(self.seed)
        used = np.array([rng.permutation(self.vocabulary)[: self.tokens_per_place] for _ in range(self.places)])
        rows = np.full((self.generators, self.places), WILDCARD, dtype=np.int64)
        for row in rows:
            marked = rng.permutation(self.places)[: self.pattern_tokens]
            row[marked] = used[marked, rng.integers(self.tokens_per_place, size=len(marked))]
        return rows

    @property
    def lengths(self) -> FloatArray:
        """Length of the vector of each token, shape (vocabulary,)."""
        if self.magnitudes is not None:
            return np.array(self.magnitudes, dtype=float)
        zeta = self.non_uniformity or 1.0
        return np.where(np.arange(self.vocabulary) < self.vocabulary // 2, 1.0 / zeta, zeta)

    @property
    def marked(self) -> BoolArray:
        """Whether some generator marks a place with a token, shape (places, vocabulary)."""
        rows = self.rows
        return np.array([np.isin(np.arange(self.vocabulary), column) for column in rows.T])
