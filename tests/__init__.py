"""Tests, in folders that mirror the library."""

from pathlib import Path

import meanfield

ROOT = Path(__file__).parents[1]
"""Root folder of the checkout."""

PACKAGE = Path(meanfield.__file__).parent
"""Folder of the library that is tested, which is none of the checkout where it is installed."""
