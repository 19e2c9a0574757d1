"""Checks of output paths before anything is computed: they can be written to, and nothing that is needed is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from meanfield.errors import InputError
from meanfield.process.atomic_files import check_writable


def check_outputs(written: Sequence[Path], read: Sequence[Path]) -> None:
    """Refuse output paths that cannot be written to, or whose file another path of the command names as well.

    Parameters
    ----------
    written, read : sequence of Path
        Files that the command writes and those that it reads.

    Raises
    ------
    InputError
        If an output cannot be written, is a file that the command reads, or is another output.
    """
    inputs = {path.resolve() for path in read}
    outputs: set[Path] = set()
    for path in written:
        check_writable(path)
        file = path.resolve()
        if file in inputs:
            raise InputError(f"{path}: is a file that is read, and would be lost; choose another name for the output")
        if file in outputs:
            raise InputError(f"{path}: is the name of two outputs; give each a file of its own")
        outputs.add(file)
