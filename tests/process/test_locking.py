import os

import pytest

from meanfield.errors import InputError
from meanfield.process import locking
from meanfield.process.locking import Answer, FolderLock


def test_a_folder_has_one_holder_and_is_gone_after_it(tmp_path):
    first, second = FolderLock(tmp_path / "x"), FolderLock(tmp_path / "x")
    assert first.take() is Answer.OURS
    assert second.take() is Answer.TAKEN
    first.let_go()
    assert not first.folder.exists()
    assert second.take() is Answer.OURS
    (second.folder / "result").touch()
    second.let_go()
    assert sorted(os.listdir(second.folder)) == ["lock", "result"]


def test_holding_it_once_more_is_free_and_others_are_told_who_has_it(tmp_path):
    lock = FolderLock(tmp_path / "x")
    with lock, lock:
        pass
    with lock:
        with lock:
            pass
        with pytest.raises(InputError, match=rf"x: is in use by process {os.getpid()} on .*; wait until that"):
            FolderLock(tmp_path / "x").__enter__()
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_process_that_ends_is_free(tmp_path):
    child = os.fork()
    if not child:
        FolderLock(tmp_path / "x").take()
        os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / "x" / "lock").exists()
    assert FolderLock(tmp_path / "x").take() is Answer.OURS


def test_a_folder_that_is_deleted_while_it_is_taken_is_made_anew(tmp_path, monkeypatch):
    first, second, locked = FolderLock(tmp_path / "x"), FolderLock(tmp_path / "x"), locking._lock
    first.take()

    def deleted_before(file):
        monkeypatch.undo()
        first.let_go()
        return locked(file)

    monkeypatch.setattr(locking, "_lock", deleted_before)
    assert second.take() is Answer.OURS
    assert FolderLock(tmp_path / "x").take() is Answer.TAKEN


def test_a_file_system_without_locks_is_noticed(tmp_path, monkeypatch):
    def refuse(file, how):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(locking.fcntl, "flock", refuse)
    assert FolderLock(tmp_path / "x").take() is Answer.UNKNOWN
    with FolderLock(tmp_path / "y"):
        pass
    monkeypatch.setattr(locking, "fcntl", None)
    assert FolderLock(tmp_path / "x").take() is Answer.UNKNOWN


def test_what_is_in_a_folder_is_deleted_but_for_the_lock(tmp_path):
    lock = FolderLock(tmp_path / "x")
    with lock:
        (lock.folder / "file").touch()
        (lock.folder / "inner").mkdir()
        (lock.folder / "inner" / "file").touch()
        lock.empty()
        assert os.listdir(lock.folder) == ["lock"]
