"""Progress bars: shown on a terminal for work of more than a second, silent elsewhere."""

from __future__ import annotations

from tqdm import tqdm

MANY = 1e5
"""Larger numbers are shown with k, M, G."""


def progress_bar(total: float, label: str, unit: str = "output") -> tqdm[None]:
    """A bar on standard error that appears after a second, and only on a terminal."""
    return tqdm(total=total, desc=label, unit=unit, delay=1.0, disable=None, leave=False, unit_scale=total >= MANY)
