"""The table `[tree]`: shape of a tree of latents, the laws of its edges, and the inputs that leaves are."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from meanfield.families.latent_tree.settings import MOST_LEVELS, Number
from meanfield.families.latent_tree.shape import Shape
from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.typing import FloatArray

MOST_LEAVES = 1 << 16
"""Largest number of leaves of a tree."""

Polarity = Annotated[float, Field(ge=-1, le=1)]


Probability = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=64)]
Several = Annotated[int, Field(ge=2, le=64)]

Numbers = Annotated[tuple[Number, ...], Field(strict=False, min_length=1, max_length=64)]
Vectors = Annotated[tuple[Numbers, ...], Field(strict=False, min_length=1, max_length=64)]
Probabilities = Annotated[tuple[Probability, ...], Field(strict=False, min_length=1, max_length=64)]
Counts = Annotated[tuple[Count, ...], Field(strict=False, min_length=1, max_length=MOST_LEVELS)]
ValuesByLevel = Annotated[tuple[Several, ...], Field(strict=False, min_length=2, max_length=MOST_LEVELS + 1)]
Edges = Annotated[tuple[Polarity, ...], Field(strict=False, min_length=1, max_length=MOST_LEAVES)]
Polarities = Annotated[tuple[Edges, ...], Field(strict=False, min_length=1, max_length=MOST_LEVELS)]
Matrix = Annotated[tuple[Probabilities, ...], Field(strict=False, min_length=1, max_length=64)]
Matrices = Annotated[tuple[Matrix, ...], Field(strict=False, min_length=1, max_length=MOST_LEAVES)]
MatricesByLevel = Annotated[tuple[Matrices, ...], Field(strict=False, min_length=1, max_length=MOST_LEVELS)]


class DrawnEdges(Part):
    """Strengths of edges that are drawn."""

    low: float = Field(ge=0, le=1, description="least size of a polarity or a strength, for instance 0.7")
    high: float = Field(default=1.0, ge=0, le=1, description="largest size of it")
    seed: int = Field(default=0, ge=0, description="seed of the draw, a whole number >= 0")

    @after_fields
    def _is_in_order(self) -> None:
        if self.low > self.high:
            raise FieldError("low", f"is {self.low:g}, above high = {self.high:g}; exchange them")


class PolarityLaw(DrawnEdges):
    """Polarities that are drawn."""

    law: Literal["uniform"] = Field(description="law of their sizes")
    random_sign: bool = Field(default=False, description="whether signs are drawn, or all are positive")


class RegularLaw(DrawnEdges):
    """Transitions 11^T/m + C with random C whose rows and columns add up to 0; with strength 1 one is impossible."""

    law: Literal["regular"] = Field(description="'regular', those whose rows and columns are even on average")

    def draw(self, rng: np.random.Generator, edges: int, above: int, below: int) -> FloatArray:
        """Matrices of so many edges between latents of so many values, shape (edges, above, below)."""
        C = rng.standard_normal((edges, above, below))
        C -= C.mean(axis=1, keepdims=True)
        C -= C.mean(axis=2, keepdims=True)
        C /= -below * C.min(axis=(1, 2), keepdims=True)
        return np.asarray(np.maximum(1.0 / below + rng.uniform(self.low, self.high, (edges, 1, 1)) * C, 0.0))


def _kind(value: Any) -> str:
    return "drawn" if isinstance(value, dict | DrawnEdges) else "given"


def _kind_of_leaves(value: Any) -> str:
    if isinstance(value, str):
        return "name"
    return "rows" if isinstance(value, list | tuple) and value and isinstance(value[0], list | tuple) else "numbers"


class Tree(Part):
    """Tree of latents that generates the inputs."""

    depth: int = Field(ge=1, le=MOST_LEVELS, description="L: the root is at level L, the leaves are at level 0")
    children: Count | Counts = Field(
        default=2, description="children of every latent, or a list of them by level, from the root down"
    )
    values: Several | ValuesByLevel = Field(
        default=2,
        description="number of values of every latent and leaf, or a list of it by level, from the root down to the "
        "leaves",
    )
    root: Probabilities = Field(
        default=(0.5, 0.5),
        description="probabilities of the values of the root, for instance [0.5, 0.5]; the same for all by default",
    )
    # None where transitions are given in their place.
    polarity: (
        Annotated[Annotated[PolarityLaw, Tag("drawn")] | Annotated[Polarities, Tag("given")], Discriminator(_kind)]
        | None
    ) = Field(
        default=None,
        description="rho of each edge, from -1 to 1: a child has the value of its parent with probability "
        "(1 + (m - 1) rho)/m, m the number of values, each other one with (1 - rho)/m; a list per level, from the "
        "edges below the root down, or a law",
    )
    transitions: (
        Annotated[Annotated[RegularLaw, Tag("drawn")] | Annotated[MatricesByLevel, Tag("given")], Discriminator(_kind)]
        | None
    ) = Field(
        default=None,
        description="in place of polarity: a matrix P(value of the child|value of its parent) for each edge, with a "
        "row for each value of the parent; lists per level, from the edges below the root down, of one matrix for all "
        "edges or one for each; or a law",
    )
    leaves: Annotated[
        Annotated[Literal["one_hot"], Tag("name")]
        | Annotated[Numbers, Tag("numbers")]
        | Annotated[Vectors, Tag("rows")],
        Discriminator(_kind_of_leaves),
    ] = Field(
        default=(0.0, 1.0),
        description="inputs for the values of a leaf, [0.0, 1.0] or [-1.0, 1.0], or a list of several inputs for each; "
        "or 'one_hot', an input for each value, which is 1 where the leaf has it, else 0, and the default for more "
        "than two values",
    )

    @model_validator(mode="before")
    @classmethod
    def _more_values_have_their_defaults(cls, data: Any) -> Any:
        given: Any = data.get("values", 2) if isinstance(data, dict) else 2
        top, bottom = (given[0], given[-1]) if isinstance(given, list | tuple) and given else (given, given)
        if not isinstance(data, dict) or not all(isinstance(m, int | float) and 2 <= m <= 64 for m in (top, bottom)):
            return data
        root = {"root": (1.0 / top,) * int(top)} if top != 2 else {}
        return root | ({"leaves": "one_hot"} if bottom != 2 else {}) | data

    @after_fields
    def _sizes_fit(self) -> None:
        if isinstance(self.children, tuple) and len(self.children) != self.depth:
            raise FieldError(
                "children", f"has {len(self.children)} number(s), but depth = {self.depth}; give one for each level"
            )
        if isinstance(self.values, tuple) and len(self.values) != self.depth + 1:
            raise FieldError(
                "values",
                f"has {len(self.values)} number(s), but depth = {self.depth}; give {self.depth + 1}, one for each "
                "level from the root to the leaves",
            )
        if self.latents[0] > MOST_LEAVES:
            raise FieldError(
                "depth",
                f"{self.depth} gives {self.latents[0]:,} leaves, at most {MOST_LEAVES:,} fit; lower it, or children",
            )

    @after_fields
    def _laws_fit(self) -> None:
        top, bottom = self.values_at[-1], self.values_at[0]
        if len(self.root) != top or abs(sum(self.root) - 1.0) > 1e-9:  # rounding
            raise FieldError(
                "root",
                f"{list(self.root)} adds up to {sum(self.root):.9g}; the root has {_values(top)}: give {_word(top)} "
                "probabilities that add up to 1, or set tree.values",
            )
        if min(self.root) <= 0.0:
            raise FieldError("root", f"{list(self.root)} never varies; give {_word(top)} probabilities above 0")
        self._check_leaves(bottom)
        if (self.polarity is None) == (self.transitions is None):
            if self.polarity is None:
                raise FieldError("polarity", "is missing; add it, or transitions")
            raise FieldError("transitions", "is given beside polarity, which says the same; remove one of them")
        if isinstance(self.polarity, PolarityLaw):
            self._check_drawn(self.polarity)
        elif self.polarity is not None:
            self._check_polarities(self.polarity)
        if self.polarity is not None and len(set(self.values_at)) > 1:
            raise FieldError(
                "polarity",
                "is for latents with the same number of values; give transitions in its place, or one number of values",
            )
        if isinstance(self.transitions, tuple):
            self._check_transitions(self.transitions)

    def _check_leaves(self, count: int) -> None:
        if self.leaves == "one_hot":
            return
        if not len(self.leaves) == len(set(self.leaves)) == count:
            example = [k / (count - 1) for k in range(count)] if count < 4 else list(range(count))
            others = "" if count == 2 else ", or 'one_hot'"
            raise FieldError(
                "leaves",
                f"{_listed(self.leaves)}: give {_word(count)} different numbers, for instance {example}{others}",
            )
        if len({len(row) for row in self.leaves if isinstance(row, tuple)}) > 1:
            raise FieldError("leaves", f"{_listed(self.leaves)}: give as many inputs for each value")

    def _check_drawn(self, law: PolarityLaw) -> None:
        least = 1.0 / (max(self.values_at) - 1)
        if law.random_sign and law.high > least:
            raise FieldError(
                "polarity",
                f"high = {law.high:g} with random_sign = true: with {_values(max(self.values_at))} polarities go from "
                f"{-least:.6g} to 1; lower high to {least:.6g}, or set random_sign to false",
            )

    def _check_polarities(self, given: tuple[tuple[float, ...], ...]) -> None:
        least = -1.0 / (max(self.values_at) - 1)
        self._check_rows("polarity", given, "number(s)")
        if min(map(min, given)) < least - 1e-12:  # rounding
            raise FieldError(
                "polarity",
                f"{min(map(min, given)):g}: with {_values(max(self.values_at))} it is {least:.6g} or more; raise it",
            )

    def _check_transitions(self, given: tuple[tuple[Any, ...], ...]) -> None:
        self._check_rows("transitions", given, "matrix(es)", or_one=True)
        for number, matrices in enumerate(given):
            above, below = self.values_at[self.depth - number], self.values_at[self.depth - 1 - number]
            for k, rows in enumerate(matrices):
                if len(rows) != above or any(len(row) != below or abs(sum(row) - 1.0) > 1e-9 for row in rows):
                    raise FieldError(  # 1e-9 for rounding
                        "transitions",
                        f"its matrix [{number}][{k}] is {[list(row) for row in rows]}; give {above} rows, one for each "
                        f"value of the parent, of {below} probabilities of the child that add up to 1",
                    )

    def _check_rows(self, key: str, given: tuple[Any, ...], what: str, or_one: bool = False) -> None:
        if len(given) != self.depth:
            raise FieldError(
                key, f"has {len(given)} list(s), but depth = {self.depth}; give one for each level of edges"
            )
        for number, row in enumerate(given):
            wanted = self.latents[self.depth - 1 - number]
            if len(row) != wanted and not (or_one and len(row) == 1):
                raise FieldError(
                    key,
                    f"its list [{number}] has {len(row)} {what}, but there are {wanted} edges "
                    f"{_place(number, self.depth)}; give one for each, from left to right",
                )

    @property
    def branching(self) -> tuple[int, ...]:
        """Children of a latent at level 1, 2, ..., L."""
        children = self.children if isinstance(self.children, tuple) else (self.children,) * self.depth
        return tuple(reversed(children))

    @property
    def latents(self) -> tuple[int, ...]:
        """Number of latents at levels 0, 1, ..., L."""
        return Shape(self.branching, 1).latents

    @property
    def values_at(self) -> tuple[int, ...]:
        """Number of values of a latent at levels 0, 1, ..., L."""
        values = self.values if isinstance(self.values, tuple) else (self.values,) * (self.depth + 1)
        return tuple(reversed(values))

    @property
    def is_symmetric_binary(self) -> bool:
        """Whether all latents are binary, polarities say all of their edges, and leaves are numbers."""
        return set(self.values_at) == {2} and self.polarity is not None and self.inputs.shape[1] == 1

    @property
    def inputs(self) -> FloatArray:
        """Inputs for the values of a leaf, shape (values, inputs)."""
        return (
            np.eye(self.values_at[0])
            if self.leaves == "one_hot"
            else np.array(self.leaves).reshape(len(self.leaves), -1)
        )

    @cached_property
    def polarities(self) -> tuple[FloatArray, ...]:
        """Polarity of the edge above each latent at levels 0, 1, ..., L - 1, where they are said by polarities."""
        if not isinstance(self.polarity, PolarityLaw):
            assert self.polarity is not None
            return tuple(np.array(row, dtype=float) for row in reversed(self.polarity))
        law = self.polarity
        rng = np.random.default_rng(self.polarity.seed)
        rows = []
        for count in reversed(self.latents[:-1]):  # from the root down
            size = rng.uniform(law.low, law.high, count)
            sign = rng.choice([-1.0, 1.0], count)
            rows.append(size * sign if law.random_sign else size)
        return tuple(reversed(rows))

    @cached_property
    def edges(self) -> tuple[FloatArray, ...]:
        """P(value|value of the parent) of each latent at levels 0, 1, ..., L - 1, shape (latents, parent's, own)."""
        if self.polarity is not None:
            same = np.eye(self.values_at[0], dtype=bool)
            m = len(same)
            rows = [rho[:, None, None] for rho in self.polarities]
            return tuple(np.where(same, (1.0 + (m - 1) * rho) / m, (1.0 - rho) / m) for rho in rows)
        found, law = [], self.transitions
        rng = np.random.default_rng(law.seed if isinstance(law, RegularLaw) else 0)
        for level in reversed(range(self.depth)):
            shape = (self.latents[level], self.values_at[level + 1], self.values_at[level])
            if isinstance(law, RegularLaw):
                found.append(law.draw(rng, *shape))
            else:
                given = cast("Any", law)[self.depth - 1 - level]
                found.append(np.broadcast_to(np.array(given, dtype=float), shape))
        return tuple(reversed(found))


def _listed(leaves: tuple[Any, ...]) -> list[Any]:
    return [list(row) if isinstance(row, tuple) else row for row in leaves]


def _place(number: int, depth: int) -> str:
    if number == depth - 1:
        return "above the leaves"
    return "below the root" if number == 0 else f"above level {depth - 1 - number}"


def _values(count: int) -> str:
    return f"{_word(count)} values"


def _word(count: int) -> str:
    return "two" if count == 2 else str(count)
