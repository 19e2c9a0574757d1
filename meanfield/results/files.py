"""Files of results: Datasets to netCDF and back, written atomically, with a checksum by which damage is noticed."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import netCDF4
import numpy as np
import xarray as xr

from meanfield.arguments import as_path
from meanfield.errors import InputError
from meanfield.ingredients.nearest import nearest
from meanfield.problems.base import Problem, check_problem
from meanfield.problems.file import format_problem
from meanfield.process.atomic_files import check_writable, write_atomically
from meanfield.process.checksum import append_checksum, verify_checksum
from meanfield.process.interrupts import uninterrupted
from meanfield.process.progress import progress_bar
from meanfield.results import checks
from meanfield.results.collection import by_label, collect
from meanfield.results.made_by import differences, made_by
from meanfield.results.older_versions import brought_up_to_date
from meanfield.results.result import Result, check_dataset

COMPRESSED_FROM = 10_000
"""Least number of values of a variable that is compressed."""

WRITTEN_IN_PIECES = 1 << 22
"""Least number of values of a variable that is written piece by piece."""

CHUNK = 1 << 18
"""Largest number of values of a chunk, which is compressed, and read again, at once."""

UNREADABLE = (OSError, ValueError, RuntimeError, AttributeError, TypeError, KeyError, IndexError, OverflowError)
"""Exceptions of netCDF for files of other formats, and of xarray for attributes to which CF conventions give a
meaning."""


ENDING = ".nc"
"""Ending of the name of every result, by which people and programs know what it is."""


def check_result_path(path: Path) -> None:
    """Refuse the path of a result before anything is computed.

    Raises
    ------
    InputError
        If the path cannot be written to, has not the ending of results, or has letters that netCDF takes in no name.
    """
    check_writable(path)
    _check_letters(path)
    if path.suffix != ENDING:
        raise InputError(f"{path}: a result is a netCDF file; give it the ending {ENDING}")


def check_page_path(path: str | Path) -> None:
    """Refuse the path of a page with an `InputError` before anything is computed, if its ending is not that of HTML."""
    if Path(path).suffix not in (".html", ".htm"):
        raise InputError(f"{path}: a report is a page of HTML; give it the ending .html or .htm")


def _check_letters(path: Path) -> None:
    """Refuse a path that cannot be given to netCDF in the encoding of file names."""
    encoding = sys.getfilesystemencoding()
    try:
        os.path.abspath(path).encode(encoding)
    except UnicodeEncodeError as error:
        raise InputError(
            f"{os.path.abspath(path)!a}: has letters that are none of {encoding}, in which netCDF is given names here; "
            "give the file and its folders plain names, or set the environment variable PYTHONUTF8=1"
        ) from error


def save(dataset: xr.Dataset | xr.DataTree, path: str | Path) -> None:
    """Write a Dataset to a netCDF file with a checksum: to a temporary file beside it, which is then renamed.

    Parameters
    ----------
    dataset : xarray.Dataset or DataTree
        A result of any method, or a comparison; or several in what `meanfield.collect` returns, each in a group.
    path : str or Path
        The file; an existing one is replaced.

    Raises
    ------
    InputError
        If the path is none that can be written to or has not the ending .nc, or the Dataset holds what netCDF cannot.
    OSError
        If writing fails, as it does when the disk is full; what was there before is intact.
    """
    path = as_path(path, "path", "give the path of the file to write, such as 'out.nc', after the Dataset")
    if isinstance(dataset, xr.DataTree):
        held: dict[str | None, xr.Dataset] = dict(by_label(collect(dataset)).items())
    else:
        check_dataset(dataset)
        held = {None: dataset}
    check_result_path(path)

    def write(part: str) -> None:
        try:
            for number, (group, each) in enumerate(held.items()):
                _write(brought_up_to_date(each), part, group, "a" if number else "w")
        except (TypeError, ValueError) as error:  # of a variable or an attribute that a user has added
            raise InputError(
                f"{path}: netCDF cannot hold this Dataset ({error}); remove it, or make it numbers or text"
            ) from error
        except RuntimeError as error:  # all that netCDF says of a full disk is "HDF error"
            os.truncate(part, 0)  # HDF5 keeps the file open, and its room on the disk, until the process ends
            raise OSError(str(error)) from error
        append_checksum(part)

    write_atomically(path, write)


def _write(dataset: xr.Dataset, part: str, group: str | None, mode: Literal["w", "a"]) -> None:
    """Write a Dataset to a file, or to a group of it."""
    large = [str(name) for name, variable in dataset.variables.items() if variable.size >= WRITTEN_IN_PIECES]
    encoding = {str(name): _encoding(dataset, str(name)) for name in dataset.variables if name not in large}
    with uninterrupted():  # xarray's locks
        dataset.drop_vars(large).to_netcdf(part, mode, group=group, engine="netcdf4", encoding=encoding)
    if large:
        _append({name: dataset[name] for name in large}, part, group)


def _encoding(dataset: xr.Dataset, name: str) -> dict[str, Any]:
    """Compression of long variables, and no value for gaps in coordinates, which have none by the CF conventions."""
    variable = dataset.variables[name]
    without_gaps = {"_FillValue": None} if name in dataset.coords else {}
    return without_gaps | (_compression(variable.shape) if variable.size >= COMPRESSED_FROM else {})


def _append(variables: Mapping[str, xr.DataArray], part: str, group: str | None) -> None:
    """Write large variables piece by piece, with a bar, because compressing them takes long."""
    pieces = {name: _pieces(variable.shape) for name, variable in variables.items()}
    with (
        netCDF4.Dataset(part, "a") as root,
        progress_bar(sum(map(len, pieces.values())), "saving", "piece") as bar,
    ):
        file = root if group is None else root[group]
        for name, variable in variables.items():
            for dim, size in variable.sizes.items():
                if dim not in file.dimensions:
                    file.createDimension(str(dim), size)
            options = _compression(variable.shape) | ({"fill_value": math.nan} if variable.dtype.kind == "f" else {})
            target = file.createVariable(name, variable.dtype, tuple(map(str, variable.dims)), **options)
            target.setncatts(variable.attrs)
            beside = [str(key) for key in variable.coords if key not in variable.dims]
            if beside:
                target.setncattr("coordinates", " ".join(beside))
            for piece in pieces[name]:
                target[piece] = variable.values[piece]
                bar.update()


def _pieces(shape: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Indices of the pieces of a variable: entries of leading dims that have single ones in a chunk, else chunks."""
    chunks = _chunks(shape)
    leading = next((axis for axis, size in enumerate(chunks) if size > 1), len(chunks))
    if leading == 0:
        return [(slice(start, start + chunks[0]),) for start in range(0, shape[0], chunks[0])]
    return list(np.ndindex(*shape[:leading]))


def _compression(shape: tuple[int, ...]) -> dict[str, Any]:
    return {"zlib": True, "complevel": 1, "shuffle": True, "chunksizes": _chunks(shape)}


def _chunks(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes of chunks: whole trailing dims as far as they fit, a part of the next one, single entries before it."""
    chunks, left = [], CHUNK
    for size in reversed(shape):
        chunks.append(max(1, min(size, left)))
        left //= chunks[-1]
    return tuple(reversed(chunks))


def load(path: str | Path, problem: Problem | None = None) -> xr.Dataset:
    """Read a result into memory, close the file, and check its checksum and its contents.

    Parameters
    ----------
    path : str or Path
    problem : Problem, optional
        What the result is taken for. There is a warning if it is one of another problem, or if other functions or files
        made it than those that the problem names now, or if that is not known.

    Raises
    ------
    InputError
        If the file is missing, is damaged, cannot be read as netCDF or is no result of ours.

    Notes
    -----
    A file that another program wrote is not taken for ours. To take it as it is, read it with `xarray.load_dataset` and
    `save` it.
    """
    path = as_path(path, "path", "give the path of a result, which a solver or meanfield.save wrote")
    file, group = in_collection(path)
    has_checksum, held = _verified(file), groups_in(file)
    if group is not None and group not in held:
        raise InputError(f"{path}: {file} holds no result of that name; {nearest(group, held)}")
    if group is None and held:
        raise InputError(
            f"{path}: holds {len(held)} results ({', '.join(held)}); name one of them, as in {path}/{held[0]}, or call "
            "meanfield.load_collection for all"
        )
    result = _read(path, file, group, has_checksum)
    if problem is not None:
        _warn_of_another(result, problem, path)
    return result.dataset


def load_collection(path: str | Path) -> xr.DataTree:
    """Read all results of a file that holds several into memory, and check them as `load` does.

    Parameters
    ----------
    path : str or Path
        A file that `meanfield.save` wrote of what `meanfield.collect` returned. Of a file with a single result the
        collection has one node.

    Raises
    ------
    InputError
        If the file is missing or damaged, or holds anything but results of ours.
    """
    path = as_path(path, "path", "give the path of a collection, which meanfield.save wrote")
    has_checksum, held = _verified(path), groups_in(path)
    if not held:
        return collect(_read(path, path, None, has_checksum).dataset)
    return collect(*(_read(path / name, path, name, has_checksum).dataset for name in held), labels=held)


def in_collection(path: Path) -> tuple[Path, str | None]:
    """File and group of a path that goes on within a file, as in `all.nc/density`; a file itself has no group."""
    within = path.parent.suffix == ENDING and path.parent.is_file()
    return (path.parent, path.name) if within else (path, None)


def groups_in(path: Path) -> list[str]:
    """Names of the results that a file holds in groups, none where it is a result itself.

    Raises
    ------
    InputError
        If it cannot be read as netCDF.
    """
    try:
        with netCDF4.Dataset(os.fspath(path)) as file:
            return list(file.groups)
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}: cannot be read as netCDF ({error}); give a file written by a solver")


def _verified(path: Path) -> bool:
    """Check that there is a file with the bytes that were written, and return whether it has a checksum."""
    _check_letters(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file; run a solver with -o {path} first")
    return verify_checksum(path)


def _read(path: Path, file: Path, group: str | None, has_checksum: bool) -> Result:
    """Read a result from a file or a group of it, and check its contents; see `load`."""
    try:
        with uninterrupted(), xr.open_dataset(file, engine="netcdf4", group=group) as opened:  # xarray's locks
            dataset = opened.load()
    except UNREADABLE as error:
        raise _unreadable(path, error) from error
    version = dataset.attrs.get("schema_version", 0)
    try:
        result = Result.of(brought_up_to_date(dataset))
        checks.check(result)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if not has_checksum and version >= 3:  # the first version whose files end in one
        raise InputError(
            f"{path}: is damaged, or was written by another program: it lacks the checksum at the end of every result "
            "that meanfield saved; run the solver again, or, to take the file as it is, "
            f"meanfield.save(xarray.load_dataset('{path}'), '{path}')"
        )
    return result


def _warn_of_another(result: Result, problem: Problem, path: Path) -> None:
    """Warn where a result is not what a problem gives now."""
    check_problem(problem)
    if format_problem(result.problem) != format_problem(problem):
        found = "another problem"
    else:
        names = "the file", "the problem"
        others = [change.words for change in differences(result.made_by, made_by(problem), names)]
        found = f"other or unknown versions of {'; '.join(others)}" if others else ""
    if found:
        text = f"{path}: holds a result of {found}; solve the problem again for one of what there is now"
        warnings.warn(text, stacklevel=4)  # of the caller of `meanfield.load`
