"""Files that earlier versions wrote still load and can be compared; `tests/compatibility/NAME-VERSION.nc`."""

from pathlib import Path

import pytest

import meanfield

FILES = sorted((Path(__file__).parent / "compatibility").glob("*.nc"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_old_files_load(path):
    dataset = meanfield.load(path)
    assert dataset.attrs["schema_version"] == int(path.stem.rpartition("-")[2])
    assert dataset["q"].dims[-2:] == ("time", "feature")
    assert dataset["q"].values[..., 0, 0] == pytest.approx(0.5, abs=2e-4)  # the start; 40 cells put it 1e-4 off


def test_old_files_can_be_compared_with_each_other():
    report = meanfield.compare(*map(meanfield.load, FILES), labels=[path.stem for path in FILES])
    assert report.sizes["pair"] == 3
    assert report["W1"].notnull().any()
