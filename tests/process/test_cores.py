"""Cores that a process may use."""

import os

import pytest

from meanfield.process.cores import available_cores


def test_there_is_a_core():
    assert 1 <= available_cores() <= os.cpu_count()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system grants all cores to every process")
def test_cores_that_are_not_granted_do_not_count():
    granted = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(granted)})
        assert available_cores() == 1
    finally:
        os.sched_setaffinity(0, granted)
    assert available_cores() == len(granted)
