"""Cores that are granted, not those that there are, and threads of linear algebra beside those of an ensemble."""

import os

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from meanfield.families.hidden_manifold.particles.simulation import simulate_sgd
from meanfield.families.hidden_manifold.particles.steppers import Plain
from meanfield.process import cores
from meanfield.process.cores import available_cores, one_thread
from tests.families.hidden_manifold.particles.problems import make_problem

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


def threads():
    np.linalg.eigvalsh(np.eye(2))  # for which NumPy loads its library
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_linear_algebra_takes_one_thread_and_then_as_many_as_before():
    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        with one_thread():
            assert threads() == {1}
        assert threads() == {2}


def test_workers_of_an_ensemble_have_none_of_their_own(monkeypatch):
    found, advance = [], Plain.advance
    monkeypatch.setattr(Plain, "advance", lambda self, *steps: (found.append(threads()), advance(self, *steps)))
    with threadpool_limits(2, user_api="blas"):
        simulate_sgd(make_problem("particles.dimension = 20"), workers=1)
        assert threads() == {2}
    assert found
    assert all(some == {1} for some in found)
