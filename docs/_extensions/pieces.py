"""Pieces of Markdown that generated pages consist of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\*_<>|\[\]$~])")


def plain(text: str) -> str:
    """Text of a docstring or description: words between backticks are code, nothing else has a meaning."""
    pieces = " ".join(text.split()).split("`")
    words = [code(piece) if index % 2 else _SPECIAL.sub(r"\\\1", piece) for index, piece in enumerate(pieces)]
    return "".join(words).replace("+-", "±")


def code(text: object) -> str:
    """Text as it is typed, in a table as elsewhere."""
    return "`" + str(text).replace("|", r"\|") + "`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def first_sentence(text: str) -> str:
    """What a docstring says first."""
    return re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0]
