"""Empirical laws of hidden variables, from a file of samples: every sample is as likely as any other."""

from __future__ import annotations

import csv
import math
import os
import re
from functools import lru_cache, partial
from pathlib import Path
from tokenize import TokenError
from typing import Annotated, Any, Literal
from zipfile import BadZipFile

import numpy as np
from pydantic import Field

from meanfield.errors import InputError
from meanfield.ingredients.file_part import FilePart
from meanfield.ingredients.laws.base import LARGEST, AtomicPart
from meanfield.ingredients.nearest import meant_number, nearest
from meanfield.ingredients.objects import Object
from meanfield.process.checksum import verify_checksum
from meanfield.process.text_files import read_utf8
from meanfield.typing import FloatArray

_WHOLE = re.compile(r"[-+]?\d+")

Column = Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1, max_length=1000)]
"""Number of a column, from 0, or its name in the first line of a *.csv file."""


class _Samples(FilePart, AtomicPart):
    """Samples in a file, and the columns that are used."""

    law: Literal["empirical"] = "empirical"
    file: str = Field(
        min_length=1,
        max_length=1000,
        description="a file of samples, *.npy, *.csv (columns between commas, semicolons or tabs, with or without a "
        "line of names) or *.nc; relative to the problem file",
    )
    variable: str | None = Field(default=None, description="name of the variable in a *.nc file")
    standardise: bool = Field(default=False, description="whether to shift and scale the samples to mean 0, variance 1")

    @property
    def selected(self) -> list[Column]:
        """Columns of the file that are used."""
        raise NotImplementedError

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """See `AtomicPart.atoms`: distinct samples with their frequencies.

        Raises
        ------
        InputError
            If the file cannot be read, holds anything but finite numbers, or lacks a column.
        """
        which = self.file, self.variable, tuple(self.selected), self.standardise
        return self.read_once("file", lambda sha256: _distinct_samples(sha256, *which))


class Empirical(_Samples):
    """c is one of the samples in one column of a file."""

    column: Column = Field(
        default=0, description="which column of the samples to take: its number from 0, or its name in a *.csv file"
    )

    @property
    def selected(self) -> list[Column]:
        """See `_Samples.selected`."""
        return [self.column]


class JointEmpirical(_Samples):
    """The vector c is one of the samples in a file, one column of which belongs to each feature."""

    columns: Annotated[tuple[Column, ...], Field(strict=False, min_length=1)] = Field(
        description="which columns of the samples belong to the features, in order: numbers from 0, or names"
    )

    @property
    def dimension(self) -> int:
        """See `HiddenPart.dimension`."""
        return len(self.columns)

    @property
    def selected(self) -> list[Column]:
        """See `_Samples.selected`."""
        return list(self.columns)


@lru_cache(maxsize=16)
def _distinct_samples(
    sha256: tuple[str, ...], path: str, variable: str | None, columns: tuple[Column, ...], standardise: bool
) -> tuple[FloatArray, FloatArray]:
    """Distinct samples and their frequencies, which problems share as long as no byte of the file changes."""
    values = read_samples(path, variable, columns)
    if standardise:
        if np.any(np.ptp(values, axis=0) == 0):
            raise InputError(f"{path}: samples that are all equal cannot be standardised; remove standardise")
        with np.errstate(over="ignore", invalid="ignore"):
            mean, deviation = values.mean(axis=0), values.std(axis=0)
        if not np.all(np.isfinite(deviation)):
            raise InputError(
                f"{path}: samples whose variance is beyond all numbers cannot be standardised; rescale them"
            )
        values = (values - mean) / deviation
    if not np.all(np.abs(values) <= LARGEST):
        raise InputError(f"{path}: holds samples beyond {LARGEST:g}; set standardise = true, or rescale them")
    if np.any(np.all(values == 0, axis=0)):
        raise InputError(f"{path}: all samples are 0, so there is no feature; give other samples")
    values, counts = np.unique(values, axis=0, return_counts=True)
    return values, counts / counts.sum()


def read_samples(source: str, variable: str | None, columns: tuple[Column, ...] | None = None) -> FloatArray:
    """Numbers from a file, or of an array in its place, shape (samples, columns).

    Parameters
    ----------
    source : str
        Path of the file, or `meanfield.ingredients.objects.Object`.
    variable : str or None
        Name of the variable in a *.nc file.
    columns : tuple of int or str, optional
        Columns that are taken, in order; others may hold anything in a *.csv file. By default all are.

    Raises
    ------
    InputError
        If the file is missing, of another kind, lacks a column, or holds anything but finite numbers.
    """
    path = Path(source)
    readers = {".npy": _read_npy, ".csv": _read_csv, ".nc": _read_netcdf}
    reader = readers.get(path.suffix.lower())
    if isinstance(source, Object):
        reader = partial(_of_object, source.content)
    elif reader is None:
        raise InputError(f"{path}: samples are read from {', '.join(readers)} files; convert the file")
    if (variable is not None) != (path.suffix.lower() == ".nc"):
        raise InputError(f"{path}: `variable` names the samples in a .nc file, and belongs to no other; correct it")
    # `os.path.isfile` is false, where `Path.is_file` raises, for names that no file can have
    if not isinstance(source, Object) and not os.path.isfile(path):
        raise InputError(f"{path}: no such file of samples; correct `file`, which is relative to the problem file")
    try:
        found, names = reader(path, variable, columns)
        values = np.asarray(found)
    except (OSError, ValueError, EOFError, BadZipFile, TokenError, MemoryError, csv.Error) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path}: cannot be read as samples ({reason}); give numbers, one sample per row") from error
    if values.dtype.kind not in "fiu" or values.ndim not in (1, 2) or values.size == 0:
        raise InputError(
            f"{path}: holds {values.dtype} of shape {values.shape}; give real numbers of shape (samples,) or "
            "(samples, columns)"
        )
    values = values.astype(float).reshape(len(values), -1)
    if columns is not None:
        values = values[:, [_place(column, names, values.shape[1], path) for column in columns]]
    if not np.all(np.isfinite(values)):
        row = int(np.argmin(np.all(np.isfinite(values), axis=1)))
        raise InputError(f"{path}: sample {row} is not finite; remove or replace it")
    return values


Read = tuple[FloatArray, list[str]]
"""Numbers in a file, and the names of its columns, if it has some."""


def _place(column: Column, names: list[str], width: int, path: Path) -> int:
    """Index of a column; names of the file are without spaces around them.

    Raises
    ------
    InputError
        If there is none.
    """
    if isinstance(column, str):
        if names.count(column) == 1:
            return names.index(column)
        if column in names:
            raise InputError(f"column '{column}': {path} has several of that name; give its number, counted from 0")
        hint = nearest(column, names) if names else "it has no line of names; give a number, counted from 0"
        raise InputError(f"column '{column}': {path} has none of that name; {hint}")
    if column >= width:
        raise InputError(f"column {column}: {path} has {width} column(s), counted from 0; name others")
    return column


def _of_object(content: Any, path: Path, variable: str | None, columns: tuple[Column, ...] | None) -> Read:
    return np.asarray(content), []


def _read_npy(path: Path, variable: str | None, columns: tuple[Column, ...] | None) -> Read:
    return np.asarray(np.load(path, allow_pickle=False)), []


def _read_csv(path: Path, variable: str | None, columns: tuple[Column, ...] | None) -> Read:
    lines = [line for line in read_utf8(path).splitlines() if line.strip()]
    separator = next((mark for mark in "\t;," if lines and mark in lines[0]), ",")  # other commas would be decimal
    rows = [*csv.reader(lines, delimiter=separator, skipinitialspace=True)]
    names: list[str] = []
    if rows and not any(map(_is_number, rows[0])):
        names, lines = [name.strip() for name in rows.pop(0)], lines[1:]
    if not rows:
        raise ValueError("no rows")
    width = len(rows[0])
    if separator == "," and _has_decimal_commas(rows, names):
        raise ValueError(f"the commas in the line '{lines[0][:60]}' seem to be decimal ones; write decimal points")
    if uneven := [line for row, line in zip(rows, lines, strict=True) if len(row) != width]:
        raise ValueError(f"not as many columns in the line '{uneven[0][:60]}' as in the first one, {width}")
    values = np.full((len(rows), width), math.nan)
    for place in range(width):
        if columns is None or place in columns or (place < len(names) and names[place] in columns):
            values[:, place] = [_number(row[place], line) for row, line in zip(rows, lines, strict=True)]
    return values, names


def _number(word: str, line: str) -> float:
    try:
        return float(word)
    except ValueError:
        meant = meant_number(word)
        remedy = f"; {meant}" if meant else "; put commas, semicolons or tabs between columns" if _is_row(word) else ""
        raise ValueError(f"'{word[:30]}' in the line '{line[:60]}' is no number{remedy}") from None


def _is_row(word: str) -> bool:
    """Whether a word is several numbers with nothing but spaces between them."""
    return len(word.split()) > 1 and all(map(_is_number, word.split()))


def _has_decimal_commas(rows: list[list[str]], names: list[str]) -> bool:
    """Whether commas stand within numbers, and not between them, which would be read as others without a word.

    Columns of whole numbers in pairs may be either. Decimal commas are likely where there are half as many names, lines
    without a fraction, zeros that begin a second number, or a first one of -0, which nobody writes otherwise.
    """
    words = [word.strip() for row in rows for word in row]
    pairs = [row for row in rows if len(row) % 2 == 0]
    if not pairs or not all(_WHOLE.fullmatch(word) for word in words):
        return False
    fractions = [word.strip() for row in pairs for word in row[1::2]]
    if not all(map(str.isdigit, fractions)):
        return False
    fewer_names = 2 * len(names) == len(pairs[0])
    leading = any(word.startswith("0") and len(word) > 1 for word in fractions)
    return fewer_names or len(pairs) < len(rows) or leading or "-0" in words


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _read_netcdf(path: Path, variable: str | None, columns: tuple[Column, ...] | None) -> Read:
    import xarray as xr

    verify_checksum(path)
    with xr.open_dataset(path) as dataset:
        if variable not in dataset.data_vars:
            raise ValueError(f"no variable '{variable}', but {', '.join(map(str, dataset.data_vars))}")
        return np.asarray(dataset[variable].values), []
