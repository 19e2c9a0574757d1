"""Rows of a study that takes hours: done side by side, kept in files as they end, and in parts that can be joined."""

from __future__ import annotations

import json
import signal
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from meanfield.errors import InputError
from meanfield.process.cores import available_cores

Row = dict[str, Any]
"""Numbers of a task by their names."""


def rows_of(path: Path) -> dict[str, Row]:
    """Rows of a file by the names of their tasks; a last line that was cut off is none.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        return dict(json.loads(line) for line in lines if line.endswith("\n"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as rows ({error}); give files that --rows wrote") from error


def line_of(item: tuple[str, Row]) -> str:
    """Line of a file of rows."""
    return json.dumps(item) + "\n"


def _begin() -> None:
    """Leave Ctrl-C to the process that writes rows: no row is that of a run that was interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def measure(do: Callable[[str], Row], tasks: Sequence[str], files: Sequence[Path]) -> dict[str, Row]:
    """Rows of tasks, side by side; those of files are known, and others are appended to the first one as they end.

    Parameters
    ----------
    do : callable
        From a task to its row; a function of a module.
    tasks : sequence of str
    files : sequence of Path
        Of rows; the first one need not be there.

    Raises
    ------
    InputError
        If a file cannot be read.
    """
    known: dict[str, Row] = {}
    for path in files:
        known |= rows_of(path) if path.exists() or path is not files[0] else {}
    rows = {task: known[task] for task in tasks if task in known}
    files[0].parent.mkdir(parents=True, exist_ok=True)
    files[0].write_text("".join(map(line_of, known.items())), encoding="utf-8")
    with (
        files[0].open("a", encoding="utf-8") as file,
        ProcessPoolExecutor(available_cores(), initializer=_begin) as pool,
    ):
        waiting = {pool.submit(do, task): task for task in tasks if task not in known}
        try:
            for future in as_completed(waiting):
                task = waiting[future]
                rows[task] = future.result()
                file.write(line_of((task, rows[task])))
                file.flush()
                print(f"{task}:", rows[task], flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return rows


def part_of(text: str) -> slice:
    """The type of an argument such as `2/3`, the second of three parts."""
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise ArgumentTypeError(f"'{text}' is no part; give one such as 2/3, the second of three")
    return slice(int(number) - 1, None, int(parts))
