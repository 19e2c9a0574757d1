"""Problem files and sweep files to begin with, in the folders of their families."""

from __future__ import annotations

import re
from pathlib import Path

from meanfield.errors import InputError
from meanfield.ingredients.nearest import nearest

FAMILIES = Path(__file__).parents[1] / "families"
"""Folder of the families, each of which has its examples in `examples/problems` and `examples/sweeps`."""

RELATIVE = re.compile(r'"(\.\./[^"]+)"')
"""Pattern of the names of other files in an example, which are relative to its own folder."""


def example_files() -> dict[str, Path]:
    """Files of all examples by name."""
    return {path.stem: path for path in sorted(FAMILIES.glob("*/examples/*/*.toml"))}


def example_file(name: str) -> Path:
    """File of an example.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    files = example_files()
    if name not in files:
        raise InputError(f"unknown example '{name}'; {nearest(name, files)}; meanfield example lists all")
    return files[name]


def text_of(path: Path) -> str:
    """Text of an example for use anywhere on this machine: other files are named by their absolute paths."""

    def absolute(found: re.Match[str]) -> str:
        return f'"{(path.parent / found[1]).resolve().as_posix()}"'

    return RELATIVE.sub(absolute, path.read_text(encoding="utf-8"))
