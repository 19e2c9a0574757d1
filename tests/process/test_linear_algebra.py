"""Threads of linear algebra, in a context and beside the workers of an ensemble."""

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from meanfield.families.hidden_manifold.particles.simulation import simulate_sgd
from meanfield.families.hidden_manifold.particles.steppers import Plain
from meanfield.process.cores import one_thread
from tests.families.hidden_manifold.particles.problems import make_problem


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
