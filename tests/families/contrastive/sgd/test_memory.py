"""The predicted memory of an ensemble against what NumPy is seen to take, and its refusal."""

import tracemalloc

import pytest

import meanfield
from meanfield.ensembles.checkpoint import Checkpoint
from meanfield.ensembles.simulation import predicted_memory
from meanfield.families.contrastive.sgd.simulation import simulation_of
from tests.example_problems import feature, features, make_problem

SHORT = "time = { stop = 8e-5, outputs = 5 }"
TWO = features(feature(0.3), feature(0.4))
CASES = {
    "plain": ("particles = { method = 'plain', dimension = 100000 }",),
    "projected": ("particles = { method = 'projected', dimension = 100000 }",),
    "two features, no weights": ("particles = { method = 'projected', dimension = 100000, snapshots = [] }", TWO),
    "l1, single": (
        "particles = { method = 'projected', dimension = 100000, snapshot_precision = 'single' }",
        'prior = { name = "l1" }',
    ),
    "chain": ("particles = { method = 'chain', replicas = 30000 }", "time.outputs = 41"),
    "statistics": ("particles = { method = 'chain', replicas = 30000, record = 'statistics' }", "time.outputs = 41"),
}


def peak_of(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("case", "files"),
    [
        # three cases with files by default, and three without
        pytest.param(case, files, marks=() if files == bool(i % 2) else pytest.mark.slow)
        for i, case in enumerate(CASES)
        for files in (False, True)
    ],
)
def test_prediction_is_close_and_not_below(case, files, tmp_path):
    problem = make_problem(SHORT, *CASES[case])
    predicted = predicted_memory(simulation_of(problem), 1, not files)
    small = "particles = { dimension = 8, replicas = 2 }"
    meanfield.simulate_sgd(make_problem(SHORT, *CASES[case], small, "time.stop = 1.0"))  # compiles
    record = Checkpoint(tmp_path / "run") if files else None
    peak = peak_of(lambda: meanfield.simulate_sgd(problem, workers=1, record=record))
    assert predicted > 0.95 * (peak - 2**20)  # 1 MiB for what is not counted: indices, problem, Dataset
    assert predicted < 2 * peak + 2**20  # the peaks of start and of steps need not coincide; buffers of compiled code
