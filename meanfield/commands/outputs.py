"""Files that commands write: checked before anything is computed, and figures after results have been saved.

Comparisons and pages name the files that they read by labels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.cli import DONE, FAILED
from meanfield.errors import InputError
from meanfield.process.atomic_files import check_writable
from meanfield.process.start_up import say, start_up

if TYPE_CHECKING:
    import xarray as xr


def check_outputs(
    read: Sequence[Path],
    results: Sequence[Path] = (),
    figure: Path | None = None,
    animation: Path | None = None,
    page: Path | None = None,
) -> None:
    """Refuse output paths that cannot be written to, have a wrong ending, or are another path of the command as well.

    Parameters
    ----------
    read : sequence of Path
        Files that the command reads.
    figure, animation, page : Path, optional
        What it writes.

    Raises
    ------
    InputError
        If an output cannot be written, is a file that the command reads, is another output, or its ending names no
        format of such a file.
    """
    with start_up():
        from meanfield.results.figure_files import check_animation_path, check_figure_path
        from meanfield.results.files import check_page_path, check_result_path, in_collection
    inputs = {in_collection(path)[0].resolve() for path in read}
    outputs: set[Path] = set()
    for path in filter(None, (*results, figure, animation, page)):
        check_writable(path)
        file = path.resolve()
        if file in inputs:
            raise InputError(f"{path}: is a file that is read, and would be lost; choose another name for the output")
        if file in outputs:
            raise InputError(f"{path}: is the name of two outputs; give each a file of its own")
        outputs.add(file)
    for result in results:
        check_result_path(result)
    if figure is not None:
        check_figure_path(figure)
    if animation is not None:
        check_animation_path(animation)
    if page is not None:
        check_page_path(page)


def write_figures(saved: Path, drawings: Mapping[Path | None, Callable[[Path], object]]) -> tuple[int, str]:
    """Draw figures of a result that is saved; one that cannot be drawn takes nothing else with it.

    Parameters
    ----------
    saved : Path
        File of the result.
    drawings : mapping
        Functions that write a figure to the path that they are given, by that path; None where no figure is asked for.

    Returns
    -------
    code : int
        The exit code.
    written : str
        Line that says what was written.
    """
    written, code = [saved], DONE
    for path, draw in drawings.items():
        if path is None:
            continue
        try:
            draw(path)
            written.append(path)
        except Exception as error:  # whatever goes wrong in a drawing, what was computed is on the disk
            say(f"failed: {path}: cannot be drawn ({type(error).__name__}: {error}); the result is in {saved}")
            code = FAILED
    return code, "wrote " + " and ".join(map(str, written))


def loaded(paths: Sequence[Path]) -> dict[str, xr.Dataset]:
    """Results in files by their labels; those of a collection by their own names, behind that of one of several files.

    Raises
    ------
    InputError
        If a file is named twice, or is no result or collection of them.
    """
    with start_up():
        from meanfield import load, load_collection
        from meanfield.results.collection import by_label
        from meanfield.results.files import groups_in, in_collection
    found: dict[str, xr.Dataset] = {}
    for label, path in labelled(paths).items():
        if path.is_file() and in_collection(path)[1] is None and groups_in(path):
            before = f"{label}/" if len(paths) > 1 else ""
            found |= {f"{before}{name}": each for name, each in by_label(load_collection(path)).items()}
        else:
            found[label] = load(path)
    return found


def labelled(paths: Sequence[Path]) -> dict[str, Path]:
    """Files by the shortest end of their path that tells them apart: `sgd`, or `a/out` where several are called `out`.

    Raises
    ------
    InputError
        If a file is named twice.
    """
    whole = [Path(os.path.abspath(path)) for path in paths]
    for i, path in enumerate(whole):
        if path in whole[:i]:
            raise InputError(f"{paths[i]} is named twice; give each result once")
    bare = [path.with_suffix("") for path in whole]
    parts = [path.parts for path in (bare if len(set(bare)) == len(bare) else whole)]
    return {_shortest(own, parts): path for own, path in zip(parts, paths, strict=True)}


def _shortest(own: tuple[str, ...], parts: Sequence[tuple[str, ...]]) -> str:
    """Shortest end of a path that no other path has."""
    depth = 1
    while sum(other[-depth:] == own[-depth:] for other in parts) > 1:
        depth += 1
    return "/".join(own[-depth:])
