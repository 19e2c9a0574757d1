"""Comparison of what a page shows with what its code prints: words exactly, numbers to the digits that are shown."""

import math
import re
from decimal import Decimal

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "days": 86400.0, "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}

NUMBER = r"(?<![\w.])[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?(?![\w.]\d)"
DURATION = rf"(?:< *)?{NUMBER} (?:s|min|h|days)\b"
SIZE = rf"{NUMBER} (?:B|kB|MB|GB|TB)\b"
QUANTITY = re.compile(rf"(?P<duration>{DURATION})|(?P<size>{SIZE})|(?P<number>{NUMBER})")
PATTERNS = {"duration": DURATION, "size": SIZE, "number": NUMBER}

BUSY = 30.0
"""Largest ratio of a duration to that on the page: machines differ by ten, and what else they do by three."""

OVERHEAD = 2.0
"""Largest ratio of a size in bytes to that on the page: versions of libraries differ in what they store besides."""

LAST_DIGIT = 1.01
"""Largest difference in units of the last digit shown, which rounding may turn over; 0.01 is for binary fractions."""

ZERO_TO_ROUNDING = 1e-11
"""Numbers below this in size are rounding errors of numbers of order one, and differ between machines."""


def assert_same(expected: str, shown: str) -> None:
    """Compare an output with that of a page, where a line `...` stands for any lines."""
    pieces = re.split(r"^ *\.\.\. *\n", expected, flags=re.MULTILINE)
    pattern = r"\s*" + r"\s*(?:.*\n)*?\s*".join(map(_pattern, pieces)) + r"\s*"
    found = re.fullmatch(pattern, shown)
    assert found, f"the page shows\n{expected}\nand this is\n{shown}"
    quantities = [quantity for piece in pieces for quantity in QUANTITY.finditer(piece)]
    for quantity, here in zip(quantities, found.groups(), strict=True):
        assert _close(quantity, here), f"the page shows {quantity[0]} for {here} in\n{shown}"


def _pattern(piece: str) -> str:
    """Pattern of a piece of an output, with a group for each quantity; runs of white space are all the same."""
    words, at = "", 0
    for quantity in QUANTITY.finditer(piece):
        words += f"{_escaped(piece[at : quantity.start()])}({PATTERNS[str(quantity.lastgroup)]})"
        at = quantity.end()
    return (words + _escaped(piece[at:])).removeprefix(r"\s+").removesuffix(r"\s+")


def _escaped(words: str) -> str:
    return r"\s+".join(map(re.escape, re.split(r"\s+", words)))


def _close(quantity: re.Match[str], here: str) -> bool:
    """Whether two numbers are the same to the digits of the first, or two durations or sizes are roughly the same."""
    on_page = quantity[0]
    if quantity.lastgroup != "number":
        largest = BUSY if quantity.lastgroup == "duration" else OVERHEAD
        return abs(math.log(_in_units(on_page) / _in_units(here))) <= math.log(largest)
    first, second = float(on_page), float(here)
    if "." not in on_page and "e" not in on_page.lower():
        return first == second
    last_digit = 10.0 ** int(Decimal(on_page).as_tuple().exponent)
    return abs(first - second) <= LAST_DIGIT * last_digit or max(abs(first), abs(second)) < ZERO_TO_ROUNDING


def _in_units(quantity: str) -> float:
    """Duration in seconds or size in bytes; at least 0.1, because shorter durations are shown as "< 0.1 s"."""
    number, unit = quantity.removeprefix("<").split()
    return max(float(number) * UNITS[unit], 0.1)
