"""A result that was damaged on a disk or on its way is refused before its numbers, or HDF5's bookkeeping, are read."""

import netCDF4
import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.errors import InputError
from meanfield.problems.file import parse_problem
from meanfield.process import checksum
from tests.example_problems import SMALL


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.nc"
    meanfield.save(meanfield.solve_order_parameters(parse_problem(SMALL)), path)
    return path


@pytest.fixture
def run(written, tmp_path):
    path = tmp_path / "run.nc"
    path.write_bytes(written.read_bytes())
    return path


def test_any_flipped_bit_is_noticed(run):
    whole = run.read_bytes()
    rng = np.random.default_rng(0)
    for position in [*rng.integers(len(whole), size=100), len(whole) - 1, len(whole) - checksum.LENGTH]:
        spoilt = bytearray(whole)
        spoilt[position] ^= 1 << int(rng.integers(8))
        run.write_bytes(spoilt)
        with pytest.raises(InputError, match="is damaged"):
            meanfield.load(run)


@pytest.mark.parametrize("lost", [1, checksum.LENGTH, checksum.LENGTH + 1, 5000])
def test_a_lost_end_is_noticed(run, lost):
    run.write_bytes(run.read_bytes()[:-lost])
    with pytest.raises(InputError, match=r"is damaged|cannot be read as netCDF"):
        meanfield.load(run)


def test_files_shorter_than_a_checksum_have_none(tmp_path):
    (tmp_path / "short").write_bytes(b"x")
    assert not checksum.verify_checksum(tmp_path / "short")
    checksum.append_checksum(tmp_path / "short")
    assert checksum.verify_checksum(tmp_path / "short")


def test_other_software_reads_files_with_a_checksum(run):
    with netCDF4.Dataset(run) as file:
        q = file["q"][:]
    assert np.array_equal(q, meanfield.load(run)["q"])
    assert xr.load_dataset(run).identical(meanfield.load(run))


@pytest.mark.parametrize("larger", [0, 10_000])
def test_a_file_that_was_changed_in_place_is_refused_until_it_is_saved_again(run, larger):
    with netCDF4.Dataset(run, "a") as file:
        file["q"][1] = 0.25
        file.comment = "x" * larger
    with pytest.raises(InputError, match=r"is damaged, or was written by another program.*meanfield.save\(xarray"):
        meanfield.load(run)
    meanfield.save(xr.load_dataset(run), run)
    assert meanfield.load(run)["q"].values[1] == 0.25


def test_a_file_that_xarray_wrote_is_refused_until_it_is_saved_again(run, tmp_path):
    part = meanfield.load(run).isel(time=slice(2))
    part.to_netcdf(tmp_path / "part.nc")
    with pytest.raises(InputError, match="was written by another program"):
        meanfield.load(tmp_path / "part.nc")
    meanfield.save(xr.load_dataset(tmp_path / "part.nc"), tmp_path / "part.nc")
    assert meanfield.load(tmp_path / "part.nc").identical(part)
