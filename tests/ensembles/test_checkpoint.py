"""Folders of unfinished runs: what is in them, and that others, damaged ones and half-deleted ones do no harm."""

import contextlib
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from meanfield.ensembles.arrays import Identity
from meanfield.ensembles.checkpoint import Checkpoint
from meanfield.errors import InputError
from tests.ensembles.ornstein_uhlenbeck import MORE, WithMore, same, simulate, simulation_of

THIS = Identity("this", {})

SMALL = {"dimension": 20, "replicas": 5, "seed": 5}


def test_states_of_blocks_that_are_done_are_dropped(tmp_path):
    record = Checkpoint(tmp_path / "run", save_every=0.0)
    simulate(simulation_of(SMALL), record=record)
    assert not list(record.folder.glob("block-*"))
    assert record.load_state("ensemble")["done"].all()


def test_arrays_begin_blank_and_stay(tmp_path):
    record = Checkpoint(tmp_path / "run")
    with record.open(THIS):
        numbers, whole = record.open_array("numbers", (3, 4)), record.open_array("whole", (2,), np.int64)
        assert np.isnan(numbers).all()
        assert (whole == -1).all()
        numbers[1], whole[0] = 2.0, 7
        record.save_state("state", {"x": np.arange(3)})
    other = Checkpoint(tmp_path / "run")
    with other.open(THIS):
        assert np.array_equal(other.open_array("numbers", (3, 4))[1], np.full(4, 2.0))
        assert other.open_array("whole", (2,), np.int64).tolist() == [7, -1]
        assert other.load_state("state")["x"].tolist() == [0, 1, 2]
        other.forget_state("state")
        assert other.load_state("state") is None
        other.remove()
        assert not other.begun
    assert not other.folder.exists()
    assert numbers[1, 0] == 2.0  # what is in use stays valid


@pytest.mark.parametrize("killed_at", ["x.npy", "ensemble.npz", "over.txt", "lock"])
def test_a_run_whose_folder_was_being_deleted_at_a_kill_begins_anew(killed_at, tmp_path, monkeypatch):
    """What is left of the folder of a run that is over must not go into the next run of that name."""
    record, unlink = Checkpoint(tmp_path / "run", save_every=0.0), Path.unlink
    simulate(simulation_of(SMALL), record=record)

    def until(path, missing_ok=False):
        if path.name == killed_at:
            raise SystemExit
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", until)
    with contextlib.suppress(SystemExit):
        record.remove()
    monkeypatch.undo()
    assert not record.begun
    next_run = simulation_of(SMALL | {"seed": 8, "replicas": 4})
    same(simulate(next_run, record=Checkpoint(tmp_path / "run")), simulate(next_run))


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3.0))
    with pytest.raises(InputError, match=r"holds files that are no unfinished run; name a folder of its own"):
        simulate(simulation_of(SMALL), record=Checkpoint(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]
    assert np.load(tmp_path / "x.npy").tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["x.npy", "ensemble.npz"])
@pytest.mark.parametrize("kept", [0, 10, 0.5])
def test_a_damaged_checkpoint_is_refused(name, kept, tmp_path):
    record = Checkpoint(tmp_path / "run", save_every=0.0)
    simulate(simulation_of(SMALL), record=record)
    whole = (record.folder / name).read_bytes()
    (record.folder / name).write_bytes(whole[: kept if isinstance(kept, int) else int(kept * len(whole))])
    with pytest.raises(InputError, match=rf"{name}: is damaged .*; begin this run anew: --restart"):
        simulate(simulation_of(SMALL), record=Checkpoint(record.folder))


def test_a_disk_that_is_too_full_is_refused_before_weights_are_written(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage(10**6, 10**6 - 10**4, 10**4))
    with pytest.raises(InputError, match=r"keeps .* GiB there, but .* are free; name fewer particles.snapshots"):
        simulate(simulation_of(SMALL | {"replicas": 100}, **MORE), record=Checkpoint(tmp_path / "x"), stepper=WithMore)
    assert not (tmp_path / "x" / "weights.npy").exists()
