"""Numbers, vectors and matrices of problem files, and checks of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from meanfield.ingredients.part import FieldError

MOST_ENTRIES = 1000
"""Largest number of elements of a list."""

Number = Annotated[float, Field(ge=-1e6, le=1e6)]
Vector = Annotated[tuple[Number, ...], Field(strict=False, min_length=1, max_length=MOST_ENTRIES)]
Matrix = Annotated[tuple[Vector, ...], Field(strict=False, min_length=1, max_length=MOST_ENTRIES)]
Probability = Annotated[float, Field(gt=0, le=1)]
Probabilities = Annotated[tuple[Probability, ...], Field(strict=False, min_length=1, max_length=MOST_ENTRIES)]


def check_sum(probabilities: tuple[float, ...]) -> None:
    """Refuse probabilities that do not add up to 1.

    Raises
    ------
    FieldError
    """
    total = sum(probabilities)
    if abs(total - 1.0) > 1e-9:  # rounding
        raise FieldError("probabilities", f"add up to {total:.9g}, not to 1; correct or normalise them")


def check_rows(key: str, rows: tuple[tuple[float, ...], ...], least: int) -> None:
    """Refuse rows of different lengths, or of fewer than `least` numbers.

    Raises
    ------
    FieldError
    """
    for k, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise FieldError(
                key,
                f"row {k} has {len(row)} number(s), and row 0 has {len(rows[0])}; give rows of the same length",
            )
    if len(rows[0]) < least:
        raise FieldError(key, f"rows have {len(rows[0])} number(s); give {least} or more")
