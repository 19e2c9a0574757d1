from pathlib import Path

import pytest

from meanfield.commands.outputs import labelled
from meanfield.errors import InputError


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (["density.nc", "runs/sgd.nc"], ["density", "sgd"]),
        (["runs/a/out.nc", "runs/b/out.nc"], ["a/out", "b/out"]),
        (["a/x/out.nc", "b/x/out.nc", "b/y/out.nc"], ["a/x/out", "b/x/out", "y/out"]),
        (["out.nc", "out.nc4"], ["out.nc", "out.nc4"]),
        (["run.1.nc", "run.2.nc"], ["run.1", "run.2"]),
    ],
)
def test_labels_are_the_shortest_ends_that_tell_files_apart(paths, labels):
    found = labelled([Path(path) for path in paths])
    assert list(found) == labels
    assert [str(path) for path in found.values()] == paths


def test_a_file_is_given_once():
    with pytest.raises(InputError, match=r"a/\.\./out\.nc is named twice"):
        labelled([Path("out.nc"), Path("a/../out.nc")])
