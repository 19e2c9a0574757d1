"""Cores that are granted, not those that there are."""

import os

import pytest

from meanfield.process import cores
from meanfield.process.cores import available_cores

needs_affinity = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinity to cores, as in Linux")


@pytest.fixture
def one_core():
    """This thread on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@needs_affinity
def test_cores_are_those_of_the_affinity(one_core):
    assert available_cores() == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("max 100000\n", 8), ("150000 100000\n", 2), ("50000 100000\n", 1), ("1600000 100000\n", 8), ("", 8)],
)
def test_cores_are_at_most_what_the_quota_is_worth(monkeypatch, tmp_path, text, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.setattr(cores, "QUOTA", tmp_path / "cpu.max")
    (tmp_path / "cpu.max").write_text(text)
    assert available_cores() == expected


def test_cores_without_affinity_and_quota_are_those_of_the_machine(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(cores, "QUOTA", tmp_path / "none")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert available_cores() == 3
