"""Judge of result files that were damaged, changed by other programs or made up.

Files of every method are in `tests/compatibility`. One with a checksum may not differ in a single byte; one
without, of an older version or of another program, must be refused or be a valid result that every reader takes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import tomli_w
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.comparison import format_comparison
from meanfield.errors import InputError
from meanfield.families.contrastive import FAMILY
from meanfield.families.contrastive.dynamics import describe as describe_dynamics
from meanfield.plotting import plot_branches, plot_comparison, plot_dynamics, plot_portrait
from meanfield.results.older_versions import brought_up_to_date
from meanfield.results.result import Result
from meanfield.results.text import describe
from validation import ROOT
from validation.fuzzing.judge_problems import BrokenError, run_script
from validation.fuzzing.trap import TRAP

COMPATIBILITY = ROOT / "tests" / "compatibility"
RUNS = sorted([*COMPATIBILITY.glob("*-2.nc"), *COMPATIBILITY.glob("*-several_channels-*.nc")])
"""Results of every method, and those of several channels."""

NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1e308, 5e-324, 1.0 + 1e-9, 2.0**63)
ATTRIBUTES: tuple[Any, ...] = ("", "x" * 100_000, "os:system", 1, -1, 2**62, 0.5, np.nan, [1, 2], ["a", "b"], "é\u200b")


def damaged(whole: bytes, random: Random) -> tuple[str, bytes]:
    """A file whose bytes changed on a disk or on its way, and how."""
    spoilt, size, start = bytearray(whole), random.choice([8, 64, 512, 4096]), random.randrange(len(whole))
    kind = random.choice(["bit", "bytes", "zeros", "swapped", "cut", "appended"])
    if kind == "bit":
        spoilt[start] ^= 1 << random.randrange(8)
    elif kind == "bytes":
        for _ in range(random.randint(1, 20)):
            spoilt[random.randrange(len(spoilt))] = random.randrange(256)
    elif kind == "zeros":
        spoilt[start : start + size] = bytes(len(spoilt[start : start + size]))
    elif kind == "swapped":
        other = random.randrange(len(whole) - size)
        block = spoilt[other : other + size]
        spoilt[other : other + size] = spoilt[start : start + size]
        spoilt[start : start + size] = block
    elif kind == "cut":
        del spoilt[start:]
    else:
        spoilt += bytes(size)
    return kind, bytes(spoilt)


def made_up(random: Random) -> tuple[str, str, xr.Dataset]:
    """A method, and a Dataset of it, of an old or the newest version, in which something is wrong, and what."""
    path = random.choice(RUNS)
    dataset = random.choice([xr.load_dataset, meanfield.load])(path)
    change = random.choice(CHANGES)
    return path.stem, change.__name__.strip("_").replace("_", " "), change(dataset, random)


def _number(dataset: xr.Dataset, random: Random) -> xr.Dataset:
    name = random.choice([str(name) for name, v in dataset.variables.items() if v.dtype.kind == "f" and v.size])
    values = np.array(dataset.variables[name].values)
    values.flat[random.randrange(values.size)] = random.choice(NUMBERS)
    return _with(dataset, name, values)


def _kind(dataset: xr.Dataset, random: Random) -> xr.Dataset:
    name = random.choice([str(name) for name, v in dataset.variables.items() if v.dtype.kind in "fi"])
    kind = random.choice(["f4", "i4", "i8", "U8", "u1", "S4"])
    with np.errstate(invalid="ignore"):
        return _with(dataset, name, dataset.variables[name].values.astype(kind))


def _order(dataset: xr.Dataset, random: Random) -> xr.Dataset:
    name = _any(dataset, random)
    values = dataset.variables[name].values
    return _with(dataset, name, np.flip(values) if random.random() < 0.5 else np.roll(values, 1))


def _lost_variable(dataset: xr.Dataset, random: Random) -> xr.Dataset:
    return dataset.drop_vars(_any(dataset, random))


def _other_name(dataset: xr.Dataset, random: Random) -> xr.Dataset:
    name = _any(dataset, random)
    other = random.choice(list(FAMILY.all_variables))
    return dataset if other in dataset.variables else dataset.rename_vars({name: other})


def _part(dataset: xr.Dataset, random: Random) -> xr.Dataset:
    dim = random.choice([str(dim) for dim, size in dataset.sizes.items() if size > 1])
    return dataset.isel({dim: slice(random.randint(0, 1), random.randint(1, 3))})


def _transposed(dataset: xr.Dataset, random: Random) -> xr.Dataset:
    dims = list(dataset.dims)
    random.shuffle(dims)
    return dataset.transpose(*dims)


def _attribute(dataset: xr.Dataset, random: Random) -> xr.Dataset:
    changed = dataset.copy()
    attributes = random.choice([changed, changed, changed[_any(changed, random)]]).attrs
    names = [str(key) for key in attributes] or ["units"]
    name = random.choice([*names, *names, "method", "key", "scale_factor", "units", "_FillValue", "coordinates"])
    attributes.pop(name, None)
    if random.random() < 0.7:
        attributes[name] = random.choice(ATTRIBUTES)
    return changed


def _named(dataset: xr.Dataset, random: Random) -> xr.Dataset:
    """The problem takes its activation or its prior from a module, or its samples from a file."""
    tables = tomllib.loads(dataset.attrs["problem"])
    what = random.choice(["activation", "prior", "samples"])
    if what == "activation":
        tables["model"]["activation"] = f"{TRAP}:mark"
    elif what == "prior":
        tables["prior"] = {"name": f"{TRAP}:mark"}
    else:
        tables["features"][0]["hidden"] = {"law": "empirical", "file": f"{TRAP}.csv"}
    return dataset.assign_attrs(problem=tomli_w.dumps(tables))


def _other_problem(dataset: xr.Dataset, random: Random) -> xr.Dataset:
    text: str = dataset.attrs["problem"]
    other = xr.load_dataset(random.choice(RUNS)).attrs["problem"]
    return dataset.assign_attrs(problem=random.choice([other, text[: random.randrange(len(text))], text + "\nx = 1"]))


CHANGES: tuple[Callable[[xr.Dataset, Random], xr.Dataset], ...] = (
    *(_number, _number, _number, _kind, _order, _lost_variable, _other_name, _part, _transposed),
    *(_attribute, _attribute, _attribute, _other_problem, _named),
)


def _any(dataset: xr.Dataset, random: Random) -> str:
    return random.choice([str(name) for name in dataset.variables])


def _with(dataset: xr.Dataset, name: str, values: Any) -> xr.Dataset:
    variable = dataset.variables[name]
    return dataset.drop_vars(name).assign({name: xr.Variable(variable.dims, values, variable.attrs)})


def judge_damaged(spoilt: bytes, whole: bytes, path: Path) -> str:
    """A file with a checksum whose bytes changed must be refused, unless none did."""
    path.unlink(missing_ok=True)  # HDF5 may still have the last one open, and know files by their inode
    path.write_bytes(spoilt)
    try:
        meanfield.load(path)
    except InputError:
        return "refused"
    if spoilt != whole:
        raise BrokenError("a damaged file was read")
    return "nothing changed"


def judge_made_up(dataset: xr.Dataset, path: Path) -> str:
    """A made-up file is refused, or every reader takes it and it is what was written."""
    try:
        meanfield.save(dataset, path)
    except (OSError, ValueError, TypeError, RuntimeError, OverflowError, AttributeError):
        return "not writable"  # what netCDF cannot hold, it cannot hold in anybody's file
    try:
        loaded = meanfield.load(path)
    except InputError as error:
        if not str(error).startswith(f"{path}: "):
            raise BrokenError(f"the message does not name the file: {error}") from error
        return "refused"
    written = brought_up_to_date(dataset)
    for name in Result.of(loaded).variables:
        if not np.array_equal(loaded[name], written[name], equal_nan=loaded[name].dtype.kind == "f"):
            raise BrokenError(f"'{name}' is not what was written")
    read(loaded)
    return "read"


def read(dataset: xr.Dataset) -> None:
    """Everything that takes a result; what is refused is refused with a message."""
    readers: list[Callable[[], object]] = [lambda: Result.of(dataset).problem]
    method = dataset.attrs["method"]
    if method in ("density", "order_parameters", "particles", "ensemble"):
        readers += [lambda: format_comparison(meanfield.compare(dataset, dataset))]
        readers += [lambda: plot_comparison({"first": dataset, "second": dataset})]
    elif method in ("stationary", "continuation"):
        readers += [lambda: describe(dataset)]
    if method in ("continuation", "fixed_point_branches"):
        readers += [lambda: plot_branches(dataset)]
    elif method == "portrait":
        readers += [lambda: plot_portrait(dataset, Figure().subplots())]
    elif method == "dynamics":
        readers += [lambda: describe_dynamics(dataset), lambda: plot_dynamics(dataset)]
    for reader in readers:
        try:
            reader()
        except InputError as error:
            if not str(error):
                raise BrokenError("refused without a reason") from error


def judge_comparison(path: Path) -> None:
    """The script takes or refuses a file, with an exit code and no traceback."""
    code, message = run_script("compare", path, path, "-o", path.with_name("report.nc"))
    if code not in (0, 2) or "Traceback" in message:
        raise BrokenError(f"compare: exit code {code}: {message[:300]}")
