"""Slips in numbers that people make: a decimal comma, commas between thousands, a unit, a bare decimal point."""

from __future__ import annotations

import re

_SLIP = re.compile(r"([-+]?)([\d.,]*\d[\d.,]*)((?:[eE][-+]?\d+)?)\s*([A-Za-zµ]*)")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d+)?")


def meant_number(text: str) -> str | None:
    """Remedy that names the number that a text was probably meant as, in TOML; None if it was meant as none.

    >>> meant_number("0,5")
    'write 0.5, with a decimal point'
    """
    found = _SLIP.fullmatch(text.strip())
    if found is None:
        return None
    sign, digits, exponent, unit = found.groups()
    grouped = _THOUSANDS.fullmatch(digits) is not None
    plain = digits.replace(",", "" if grouped else ".")
    if plain.count(".") > 1:
        return None
    whole, point, fraction = plain.partition(".")
    number = f"{sign}{whole.lstrip('0') or '0'}{point and f'.{fraction or 0}'}{exponent}"
    reasons = ["without commas"] if grouped else ["with a decimal point"] if "," in digits else []
    reasons += ["without a unit, since all quantities are dimensionless"] if unit else []
    return ", ".join([f"write {number}", *reasons])
