"""Tables of the keys of a file as Markdown, with links from keys to the tables that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pieces import code, plain, table

from meanfield.ingredients.part import Part
from meanfield.problems.base import Problem
from meanfield.problems.key_tables import Table, Words, keys_of, tables_of

PAGES = {Problem: "problem-file.md"}
"""Models with a page of their own."""


@dataclass(frozen=True)
class Place(Words):
    """Where tables of keys stand on a page.

    Parameters
    ----------
    heading : str
        The marks of headings, for instance "##".
    anchors : str
        How names of anchors begin, which differs from file to file and from family to family.
    """

    heading: str = "##"
    anchors: str = "table"

    def anchor(self, key: str) -> str:
        """Where the section of a table begins."""
        return f"{self.anchors}-{key.replace('.', '-')}"

    def literal(self, value: Any) -> str:
        """Value as a file has it, as code."""
        return code(super().literal(value))

    def tables(self, word: str, part: type[Part], key: str) -> str:
        """Link to the tables under a key."""
        return f"[{word}]({PAGES.get(part, f'#{self.anchor(key)}')})"


def all_keys(model: type[Part], place: Place, others: Sequence[Sequence[str]] = ()) -> str:
    """All tables of a file with their keys, the outer ones first, then laws that tables name.

    `others` are rows of keys at the top that are no fields of the model.
    """
    top = [f"{place.heading} Keys at the top", keys(model, "", place, others)]
    return "\n\n".join([*top, *(section(each, place) for each in tables_of(model))])


def section(each: Table, place: Place) -> str:
    """Section of a table with its keys, of a law of one, or the beginning of those of its laws."""
    said = plain(each.meaning)
    anchor = f"({place.anchor(each.key)})=\n{place.heading}"
    if each.part is None:
        return f"{anchor} Laws of {code(each.key)}\n\n{said[0].upper()}{said[1:]}"
    head = f"{place.heading}# {code(each.law)}" if each.law else f"{anchor} {code(each.heading)}"
    several = len(each.part.model_fields) > bool(each.law)
    return "\n\n".join([head, said, *([keys(each.part, each.path, place)] if several else [])])


def keys(model: type[Part], path: str, place: Place, others: Sequence[Sequence[str]] = ()) -> str:
    """The table of a model's keys."""
    rows = [
        [code(name), kind.replace("<\u00a0", "\\<\u00a0").replace(">\u00a0", "\\>\u00a0"), default, plain(meaning)]
        for name, kind, default, meaning in keys_of(model, path, place)
    ]
    return table(["key", "type and range", "default", "meaning"], [*others, *rows])
