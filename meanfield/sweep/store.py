"""Folder of a sweep: `sweep.toml` defines it, `points` has a file for each point, `sweep.nc` is all of them merged.

The file of a point is a sweep of no axes: it loads like any other result. Files are renamed into place but not flushed
to the disk, which would take longer than many points do. They have a checksum: one that a crash of the machine left
incomplete is noticed, and its point is computed again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import xarray as xr

from meanfield.errors import InputError
from meanfield.problems.file import parse_toml
from meanfield.problems.kind import STATUS
from meanfield.process.atomic_files import check_writable, delete_abandoned, write_atomically
from meanfield.process.checksum import append_checksum, verify_checksum
from meanfield.process.locking import LOCK
from meanfield.results.files import check_result_path
from meanfield.results.made_by import FINGERPRINTS, RESTART, from_json, to_json
from meanfield.results.schema import attributes_of
from meanfield.sweep.definition import Sweep, format_sweep
from meanfield.sweep.points import Point
from meanfield.sweep.reductions import Variables
from meanfield.sweep.solve import Outcome


class Store:
    """Files of one sweep in a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.merged = self.folder / "sweep.nc"
        self._points = self.folder / "points"

    def check(self, sweep: Sweep, restart: bool) -> None:
        """Refuse folders that cannot hold the sweep, before anything is written; that of another if it begins anew.

        Raises
        ------
        InputError
            If it cannot be created or written to, or holds something else.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder}: is a file; give the name of a folder for the sweep")
        if not self.folder.is_dir():
            check_writable(self.folder)
        elif self._definition.is_file():
            check_writable(self._definition)
            check_result_path(self.merged)
            if not restart:
                self._check_same(sweep)
        elif any(entry.name != LOCK and not entry.name.startswith(".") for entry in self.folder.iterdir()):
            raise InputError(f"{self.folder}: holds other files, and no sweep; give a new or an empty folder")

    def open(self, sweep: Sweep) -> None:
        """Make the folder, and write the definition of the sweep to it."""
        # The definition comes first: a folder with anything else in it and without one is taken for somebody else's.
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._definition, lambda part: Path(part).write_text(format_sweep(sweep), encoding="utf-8"))
        self._points.mkdir(exist_ok=True)
        delete_abandoned(self._points)

    def clear(self) -> None:
        """Forget all points, the merged ones first."""
        self.merged.unlink(missing_ok=True)
        for path in self._points.glob("*.nc"):
            path.unlink()

    @property
    def _definition(self) -> Path:
        return self.folder / "sweep.toml"

    def _check_same(self, sweep: Sweep) -> None:
        try:
            there = parse_toml(self._definition.read_text(encoding="utf-8"))
        except (InputError, UnicodeDecodeError) as error:
            raise InputError(f"{self._definition}: {error}; give another folder") from error
        here = parse_toml(format_sweep(sweep))
        for part in ("problem", "methods"):  # axes may change, and points that stay are kept
            difference = _difference(there.get(part), here[part], part)
            if difference is not None:
                raise InputError(
                    f"{self.folder}: holds another sweep, with {difference[0]} = {difference[1]} instead of "
                    f"{difference[2]}; give another folder, or the sweep file that began this one, or begin anew: "
                    f"{RESTART}"
                )

    def path(self, point: Point) -> Path:
        """Path of the file of a point."""
        return self._points / f"{point.name}.nc"

    def write(self, point: Point, outcome: Outcome, sweep: Sweep) -> None:
        """Write the outcome of a point."""
        problem = point.problem or sweep.problem
        attributes = attributes_of(problem, "sweep", outcome.status, outcome.provenance)
        attributes |= {"title": sweep.title or problem.title, "values": json.dumps(point.values)}
        attributes |= {} if outcome.made_by is None else {FINGERPRINTS: to_json(outcome.made_by)}
        status = xr.Variable((), np.array(outcome.status), STATUS.attributes)
        variables = outcome.variables | {"status": status}
        write_atomically(self.path(point), lambda part: _write(part, variables, attributes), flush=False)

    def read(self, point: Point) -> Outcome | None:
        """Outcome of a point, or None where it is not known."""
        path = self.path(point)
        if not path.is_file():
            return None
        try:
            return _read(path, point.name) if verify_checksum(path) else None
        except InputError:
            return None


def _difference(there: Any, here: Any, key: str) -> tuple[str, Any, Any] | None:
    """First key below `key` under which two sets of plain data differ, and both values."""
    if isinstance(there, dict) and isinstance(here, dict):
        if key == "problem":
            there, here = ({name: value for name, value in data.items() if name != "title"} for data in (there, here))
        for name in sorted(there.keys() | here.keys()):
            found = _difference(there.get(name, "nothing"), here.get(name, "nothing"), f"{key}.{name}")
            if found is not None:
                return found
        return None
    return None if there == here else (key, there, here)


def _write(part: str, variables: Variables, attributes: dict[str, Any]) -> None:
    """Write a Dataset like `Dataset.to_netcdf`, in a fifth of its time."""
    with _disk_errors(), netCDF4.Dataset(part, "w") as file:
        file.setncatts(attributes)
        for variable in variables.values():
            for dim, size in variable.sizes.items():
                if dim not in file.dimensions:
                    file.createDimension(str(dim), size)
        for name, variable in variables.items():
            words = variable.dtype.kind in "UO"
            options: Any = {} if words else {"fill_value": np.nan}
            kind: Any = str if words else float
            target = file.createVariable(name, kind, tuple(map(str, variable.dims)), **options)
            target.setncatts(variable.attrs)
            target[...] = variable.values.astype(object) if words else variable.values
    append_checksum(part)


@contextmanager
def _disk_errors() -> Iterator[None]:
    """Context in which errors of a full disk, of which netCDF says "HDF error", become an `OSError`."""
    try:
        yield
    except RuntimeError as error:
        raise OSError(str(error)) from error


def _read(path: Path, name: str) -> Outcome:
    """Outcome of a point, from an undamaged file."""
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        variables = {}
        for key, source in file.variables.items():
            if key != "status":
                attributes = {word: source.getncattr(word) for word in source.ncattrs() if word != "_FillValue"}
                values = source[...]
                words = source.dtype is str
                variables[key] = xr.Variable(source.dimensions, values.astype(str) if words else values, attributes)
        texts = {word: file.getncattr(word) for word in file.ncattrs()}
        made_by = from_json(texts.get(FINGERPRINTS))
        return Outcome(name, str(texts["status"]), variables, str(texts["provenance"]), made_by)
