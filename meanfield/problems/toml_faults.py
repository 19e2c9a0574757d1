"""Messages about text that is no TOML: the line with a mark below the place, and what was probably meant."""

from __future__ import annotations

import re

from meanfield.ingredients.number_slips import meant_number

WIDTH = 80
"""Largest number of characters of a line that are shown, around the place."""

_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$")
_NUMBER = re.compile(r"= *([-+]?[\d.][^#\[\]{}\"']*?) *(?:[}#]|, *[A-Za-z_]|$)")
_FRACTION = re.compile(r"= *([-+]?[\d.]+) *(?:/ *([\d.]+)|(%))")
_COLON = re.compile(r" *([A-Za-z_]\w*) *: *(\S.*)")
_CHARACTERS = {
    "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb": 'write straight quotes, "...", in place of {}',
    "\u2212\u2013\u2014": "write the minus sign of the keyboard, -, in place of {}",
    "\u00a0\u202f\u2009": "write a plain space in place of the special one",
}
"""What word processors make of characters, and the remedy."""

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
    return f"{reason}; {_remedy(reason, line, line[column - 1 : column])}\n{_marked(line, number, column)}"


def _marked(line: str, number: int, column: int) -> str:
    """Line with its number, and a caret below a column."""
    first = max(0, min(column - 1 - WIDTH // 2, len(line) - WIDTH))
    shown = "".join(c if c.isprintable() else " " for c in line[first : first + WIDTH])
    label = f"  {number} | "
    return f"{label}{shown}\n{' ' * (len(label) - 2)}| {' ' * (column - 1 - first)}^"


def _remedy(reason: str, line: str, character: str) -> str:
    """What was probably meant, or what most faults come from."""
    if "Cannot overwrite" in reason or "twice" in reason:
        return "remove one of the two, or write [[...]] where each is a table of its own, such as [[features]]"
    meant = _meant_character(character) or _meant_fraction(line)
    if meant is not None:
        return meant
    number, word = _NUMBER.search(line), _WORD.search(line)
    meant = meant_number(number[1]) if number else None
    if meant is not None and meant != f"write {number and number[1]}":
        return meant
    if word is not None:
        boolean = word[1].lower() in ("true", "false")
        return f"write {word[1].lower()}" if boolean else f'write "{word[1]}", texts go in double quotes'
    return "correct the line, texts go in double quotes"


def _meant_character(character: str) -> str | None:
    """Remedy for a character that a word processor has put in place of another one."""
    remedies = (remedy for known, remedy in _CHARACTERS.items() if character and character in known)
    return next((remedy.format(character) for remedy in remedies), None)


def _meant_fraction(line: str) -> str | None:
    """Remedy for a fraction, a percentage, or a colon in place of the sign of equality."""
    colon, fraction = _COLON.fullmatch(line), _FRACTION.search(line)
    if colon is not None:
        return f"write {colon[1]} = {colon[2]}, TOML has no colons"
    if fraction is None:
        return None
    try:
        value = float(fraction[1]) / (100.0 if fraction[3] else float(fraction[2]))
    except (ValueError, ZeroDivisionError):
        return None
    return f"write {value:.15g}, TOML does not calculate"
