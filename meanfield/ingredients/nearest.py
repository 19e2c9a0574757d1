"""Suggestions for misspelt words: the closest known one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """Suggestion of the known word closest to `word`, or the list of all known words."""
    words = list(known)
    folded = {other.casefold(): other for other in reversed(words)}
    close = get_close_matches(word.casefold(), folded, n=1, cutoff=0.5)
    return f"did you mean '{folded[close[0]]}'?" if close else f"known: {', '.join(sorted(words))}"
