"""Functions of others compile, are kept, and run as they do without this package, whatever comes first."""

import json
import os
import subprocess
import sys

import pytest

from tests import ROOT

EXPECTED = [118.0 - 7.0, ["negative", -1.0], 5.5, [0.0, 1.0, 4.0, 9.0], 6.0, 4.0 + 1.0 + 2**0.5 + 3**0.5]
EXPECTED += [8.0, 6.0, 3.0, 3.0, 4.0, 50.0]
"""What they give: sums and products by hand."""

KEPT = 7
"""Number of functions that Python calls and that are kept."""


def in_a_process(folder, *command):
    """What a new process prints that calls them, and perhaps ours."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    given, hits = json.loads(done.stdout)
    for values in given:
        assert [pytest.approx(value) if isinstance(value, float) else value for value in values] == EXPECTED
    return given, hits


def in_order(folder, order):
    return in_a_process(folder, str(ROOT / "tests/process/own_numba/others.py"), str(folder), order)


# Two seconds for each process, which compiles functions of all sorts. Calls of ours and of others are in
# test_functions.py, the code of others on disk that holds ours in tests/numerics/compiled/test_separate_calls.py, and
# what numba is after ours were compiled in test_nothing_replaced.py.
@pytest.mark.slow
@pytest.mark.parametrize(
    "orders",
    [
        pytest.param(["mt", "t", "tmt"], id="with first"),
        pytest.param(["t", "mt", "t"], id="without first"),
        pytest.param(["mtmt", "t", "tmt"], id="with first, again"),
    ],
)
def test_code_on_disk_serves_processes_with_and_without_this_package(tmp_path, orders):
    (first, none), *later = [in_order(tmp_path, order) for order in orders]
    assert none == 0
    for given, hits in later:
        assert hits >= KEPT
        assert all(values == first[0] for values in given)


WORKERS = {
    "fork": "multiprocessing.get_context('fork').Pool(1).apply(run, ({folder!r}, 't'))",
    "spawn": "multiprocessing.get_context('spawn').Pool(1).apply(run, ({folder!r}, 't'))",
    "dask": "distributed.Client(processes=True, n_workers=1, threads_per_worker=1, dashboard_address=None)"
    ".submit(run, {folder!r}, 'tmt').result()",
}
"""Expressions that start a worker, in a process in which this package has compiled something."""

STARTS = """
import json, multiprocessing
from tests.process.own_numba.others import ours, run
if {distributed}:
    import distributed
ours()
print(json.dumps({expression}), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", WORKERS)
def test_code_on_disk_serves_workers_and_those_who_start_them(tmp_path, kind):
    if kind == "fork" and not hasattr(os, "fork"):
        pytest.skip("needs processes that are forked")
    expression = WORKERS[kind].format(folder=str(tmp_path))
    script = STARTS.format(expression=expression, distributed=kind == "dask")
    first, _ = in_a_process(tmp_path, "-c", script)
    given, hits = in_order(tmp_path, "t")
    assert hits >= KEPT
    assert given[0] == first[0]
    assert in_a_process(tmp_path, "-c", script)[1] >= KEPT


NEIGHBOURS = """
import json
{imports}
import numpy as np
from pynndescent import NNDescent

points = np.random.default_rng(1).standard_normal((500, 5)).astype(np.float32)
found, distances = NNDescent(points, n_neighbors=5, random_state=1, n_jobs=1).neighbor_graph
print(json.dumps([found.tolist(), distances.tolist()]))
"""


@pytest.mark.slow
def test_a_published_package_runs_with_and_without_this_one(tmp_path):
    """pynndescent keeps a hundred functions and generated classes."""
    pytest.importorskip("pynndescent")
    ours = "from tests.process.own_numba.others import ours; ours()"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    printed = []
    for imports in (ours, "", ours):
        command = [sys.executable, "-c", NEIGHBOURS.format(imports=imports)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        printed.append(json.loads(done.stdout))
    assert printed[1:] == printed[:-1]
