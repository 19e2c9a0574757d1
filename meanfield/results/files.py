"""Files of results: Datasets to netCDF and back, written atomically, with a checksum by which damage is noticed.

Results that obey an older version of the schema are converted when they are loaded. Versions of the schema:

2: results of SGD may lack weights, and may be statistics of an ensemble. 3: files have a checksum. 4: the attribute
`family`, and numbers of the problem such as `dimension` as attributes. 5: coordinates of what people select by, edges
of cells as bounds of each cell, and no units where there are none. 6: a coordinate of every dim, `P_sum` and
`P_difference` in place of `P_diagonal`, and joint densities of two channels in results of their own. 7: eigenvalues of
a spectrum are along a dim `rho`, which was `node`.
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import xarray as xr

from meanfield.arguments import as_path
from meanfield.errors import InputError
from meanfield.problems.base import Problem, check_problem
from meanfield.problems.file import format_problem
from meanfield.problems.known_families import DEFAULT
from meanfield.process.atomic_files import check_writable, write_atomically
from meanfield.process.checksum import append_checksum, verify_checksum
from meanfield.process.interrupts import uninterrupted
from meanfield.process.progress import progress_bar
from meanfield.results import checks
from meanfield.results.made_by import differences, made_by
from meanfield.results.result import Result, check_dataset
from meanfield.results.schema import SCHEMA_VERSION, WITHOUT_CONVENTIONS, with_coordinates

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


def save(dataset: xr.Dataset, path: str | Path) -> None:
    """Write a Dataset to a netCDF file with a checksum: to a temporary file beside it, which is then renamed.

    Parameters
    ----------
    dataset : xarray.Dataset
        A result of any method, or a comparison.
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
    check_dataset(dataset)
    check_result_path(path)
    dataset = brought_up_to_date(dataset)
    large = [str(name) for name, variable in dataset.variables.items() if variable.size >= WRITTEN_IN_PIECES]
    encoding = {str(name): _encoding(dataset, str(name)) for name in dataset.variables if name not in large}

    def write(part: str) -> None:
        try:
            with uninterrupted():  # xarray's locks
                dataset.drop_vars(large).to_netcdf(part, engine="netcdf4", encoding=encoding)
            if large:
                _append({name: dataset[name] for name in large}, part)
        except (TypeError, ValueError) as error:  # of a variable or an attribute that a user has added
            raise InputError(
                f"{path}: netCDF cannot hold this Dataset ({error}); remove it, or make it numbers or text"
            ) from error
        except RuntimeError as error:  # all that netCDF says of a full disk is "HDF error"
            os.truncate(part, 0)  # HDF5 keeps the file open, and its room on the disk, until the process ends
            raise OSError(str(error)) from error
        append_checksum(part)

    write_atomically(path, write)


def _encoding(dataset: xr.Dataset, name: str) -> dict[str, Any]:
    """Compression of long variables, and no value for gaps in coordinates, which have none by the CF conventions."""
    variable = dataset.variables[name]
    without_gaps = {"_FillValue": None} if name in dataset.coords else {}
    return without_gaps | (_compression(variable.shape) if variable.size >= COMPRESSED_FROM else {})


def _append(variables: Mapping[str, xr.DataArray], part: str) -> None:
    """Write large variables piece by piece, with a bar, because compressing them takes long."""
    pieces = {name: _pieces(variable.shape) for name, variable in variables.items()}
    with (
        netCDF4.Dataset(part, "a") as file,
        progress_bar(sum(map(len, pieces.values())), "saving", "piece") as bar,
    ):
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
    _check_letters(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file; run a solver with -o {path} first")
    has_checksum = verify_checksum(path)
    try:
        with uninterrupted(), xr.open_dataset(path, engine="netcdf4") as file:  # xarray's locks
            dataset = file.load()
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read as netCDF ({error}); give a file written by a solver") from error
    version = dataset.attrs.get("schema_version", 0)
    try:
        dataset = brought_up_to_date(dataset)
        result = Result.of(dataset)
        checks.check(result)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if not has_checksum and version >= 3:  # the first version whose files end in one
        raise InputError(
            f"{path}: is damaged, or was written by another program: it lacks the checksum at the end of every result "
            "that meanfield saved; run the solver again, or, to take the file as it is, "
            f"meanfield.save(xarray.load_dataset('{path}'), '{path}')"
        )
    if problem is not None:
        _warn_of_another(result, problem, path)
    return dataset


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


def brought_up_to_date(dataset: xr.Dataset) -> xr.Dataset:
    """Dataset converted to the newest version of the schema if it obeys an older one; others as they are.

    Raises
    ------
    InputError
        If it says that it obeys an older one, and does not.
    """
    check_dataset(dataset)
    version = dataset.attrs.get("schema_version")
    if not isinstance(version, Integral) or not 1 <= int(version) < SCHEMA_VERSION:
        return dataset
    try:
        result = Result.of(dataset)
        problem = result.problem
    except InputError:  # it is no result, which whoever loads it will be told
        return dataset
    named: dict[str, Any] = {"family": DEFAULT} | problem.labels
    dataset = _without_units(dataset)
    dataset = dataset.assign_attrs(named | dataset.attrs | {"schema_version": SCHEMA_VERSION})
    if result.method == "sweep":
        return dataset
    try:
        dataset = _with_eigenvalues(_with_sum_and_difference(_with_bounds(dataset)))
        dataset = with_coordinates(dataset, problem)
    except ValueError as error:  # xarray's, of dims that are not what they were in any version
        raise InputError(f"is no result of schema version {version}: {error}; run the solver again") from error
    labels = [name for name in result.part(dataset).variables if result.family.all_variables[name].label]
    return dataset.drop_vars(labels) if "parameter" in dataset else dataset  # the number that varies may be one of them


def _without_units(dataset: xr.Dataset) -> xr.Dataset:
    """Dataset without the units "1" that its numbers had up to version 4, and without a claim that CF is followed."""
    dataset = dataset.copy()
    for variable in dataset.variables.values():
        if variable.attrs.get("units") == "1":
            del variable.attrs["units"]
    if dataset.attrs["method"] in WITHOUT_CONVENTIONS:
        dataset.attrs.pop("Conventions", None)
    return dataset


def _with_bounds(dataset: xr.Dataset) -> xr.Dataset:
    """Dataset with two edges for each cell, in place of the edges of all cells along a dim of their own."""
    edges = dataset["w_edge"].values if "w_edge" in dataset else np.empty(0)
    if edges.shape != (dataset.sizes.get("w", 0) + 1,):
        return dataset
    bounds = xr.Variable(("w", "bounds"), np.stack([edges[:-1], edges[1:]], axis=1))
    return dataset.drop_vars("w_edge").assign_coords(w_bnds=bounds)


def _with_sum_and_difference(dataset: xr.Dataset) -> xr.Dataset:
    """Dataset with a law of its own for each combination of two weights, in place of both along a dim."""
    if "P_diagonal" not in dataset or dataset.sizes["diagonal"] != 2:
        return dataset
    laws = {name: dataset["P_diagonal"].isel(diagonal=k) for k, name in enumerate(("P_sum", "P_difference"))}
    return dataset.drop_vars("P_diagonal").assign(laws)


def _with_eigenvalues(dataset: xr.Dataset) -> xr.Dataset:
    """Dataset in which the eigenvalues of a spectrum have a dim of their own, in place of one for nodes of any kind."""
    if "rho" not in dataset.variables or dataset["rho"].dims != ("node",):
        return dataset
    return dataset.drop_vars("node", errors="ignore").swap_dims(node="rho")
