"""Checks of output paths before anything is computed: they can be written to, and nothing that is needed is lost."""

from __future__ import annotations

import stat
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
        If an output cannot be written, is a device or pipe, a file that the command reads, or another output.
    """
    inputs = {path.resolve() for path in read}
    outputs: set[Path] = set()
    for path in written:
        _check_place(path)
        check_writable(path)
        file = path.resolve()
        if file in inputs:
            raise InputError(f"{path}: is a file that is read, and would be lost; choose another name for the output")
        if file in outputs:
            raise InputError(f"{path}: is the name of two outputs; give each a file of its own")
        outputs.add(file)


def _check_place(path: Path) -> None:
    """Refuse names that the file system does not take, and what a file would replace, such as /dev/null."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another name for the output") from error
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{path}: is a device or a pipe, which a file would replace; choose another name")
