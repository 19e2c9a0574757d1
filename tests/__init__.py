"""Tests, in folders that mirror the library."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
"""Root folder of the checkout."""
