"""Messages about text that is no TOML: the line with a mark below the place, and what was probably meant."""

from __future__ import annotations

import re

from meanfield.ingredients.number_slips import meant_number

WIDTH = 80
"""Largest number of characters of a line that are shown, around the place."""

_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$")
_NUMBER = re.compile(r"= *([-+]?[\d.][^#\[\]{}\"']*?) *(?:[}#]|, *[A-Za-z_]|$)")
_WORD = re.compile(r"= *(?!(?:true|false|inf|nan)\b)([A-Za-z_][\w.:-]*) *(?:[},#]|$)")


def described(error: ValueError, text: str) -> str:
    """Message of `tomllib` about a text, with the line of the fault and a remedy."""
    reason, lines = str(error), text.splitlines()
    place = _PLACE.search(reason)
    if place is not None:
        number, column = int(place[1]), int(place[2])
    elif reason.endswith("(at end of document)") and lines:
        number, column = len(lines), len(lines[-1]) + 1
    else:  # a whole number of thousands of digits
        return f"{reason}; correct the line"
    line = lines[number - 1] if number <= len(lines) else ""
    return f"{reason}; {_remedy(reason, line)}\n{_marked(line, number, column)}"


def _marked(line: str, number: int, column: int) -> str:
    """Line with its number, and a caret below a column."""
    first = max(0, min(column - 1 - WIDTH // 2, len(line) - WIDTH))
    shown = "".join(c if c.isprintable() else " " for c in line[first : first + WIDTH])
    label = f"  {number} | "
    return f"{label}{shown}\n{' ' * (len(label) - 2)}| {' ' * (column - 1 - first)}^"


def _remedy(reason: str, line: str) -> str:
    """What was probably meant, or what most faults come from."""
    if "Cannot overwrite" in reason or "twice" in reason:
        return "remove one of the two, or write [[...]] where each is a table of its own, such as [[features]]"
    number, word = _NUMBER.search(line), _WORD.search(line)
    meant = meant_number(number[1]) if number else None
    if meant is not None and meant != f"write {number and number[1]}":
        return meant
    if word is not None:
        boolean = word[1].lower() in ("true", "false")
        return f"write {word[1].lower()}" if boolean else f'write "{word[1]}", texts go in double quotes'
    return "correct the line, texts go in double quotes"
