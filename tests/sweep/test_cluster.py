"""Sweeps on a Dask cluster of real processes on loopback, some of which are killed."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.sweep import run_sweep
from meanfield.sweep.store import Store
from tests import ROOT
from tests.sweep.sweeps import TAU, bits, make_sweep

POINTS = TAU | {"values": np.linspace(0.01, 0.3, 16).round(3).tolist()}


SWEEP = make_sweep([POINTS], {"fixed_points": ["similarity"], "particles": ["final"]})


@pytest.fixture
def here(inside, tmp_path):
    """Its result on this machine; a cluster that is forked later has no code to load."""
    return run_sweep(SWEEP, tmp_path / "here")


def test_numbers_of_a_cluster_are_those_of_this_machine_though_a_worker_is_killed(here, cluster, tmp_path, monkeypatch):
    address, _, *workers = cluster
    write, written = Store.write, []

    def write_and_kill(self, *arguments):
        write(self, *arguments)
        written.append(arguments)
        if len(written) == 5:
            os.kill(workers[0].pid, signal.SIGKILL)

    monkeypatch.setattr(Store, "write", write_and_kill)
    there = run_sweep(SWEEP, tmp_path / "there", scheduler=address)
    workers[0].join(timeout=60)
    assert (workers[0].exitcode, workers[1].exitcode) == (-signal.SIGKILL, None)
    assert set(there["status"].values) == {"complete"}
    assert bits(there) == bits(here)


def test_a_scheduler_that_is_killed_is_one_line(cluster, tmp_path, monkeypatch, caplog):
    address, scheduler, *_ = cluster
    write = Store.write

    def write_and_kill(self, *arguments):
        write(self, *arguments)
        scheduler.kill()

    monkeypatch.setattr(Store, "write", write_and_kill)
    with pytest.raises(OSError, match="the scheduler gave up our tasks, or is gone"):
        run_sweep(make_sweep([POINTS], {"particles": ["final"]}), tmp_path / "out", scheduler=address)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_no_scheduler(tmp_path, monkeypatch):
    monkeypatch.setattr(meanfield.sweep.workers, "CONNECT_SECONDS", 0.2)
    for address in ("tcp://127.0.0.1:1", "nowhere at all", "tcp://[::1"):
        with pytest.raises(InputError, match="no Dask scheduler answers at"):
            run_sweep(make_sweep(), tmp_path / "out", scheduler=address)
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="give one of the two"):
        run_sweep(make_sweep(), tmp_path / "out", workers=2, scheduler="tcp://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"a cluster needs Dask: pip install 'meanfield-dynamics\[cluster\]'"):
        run_sweep(make_sweep(), tmp_path / "out", scheduler="tcp://127.0.0.1:1")


KILLER = """
import os, signal
from tests import ROOT
def keep(dataset):
    if dataset.attrs["learning_rate"] == 0.05:
        os.kill(os.getpid(), signal.SIGKILL)
    return {}
"""


@pytest.mark.slow
def test_a_cluster_as_people_start_it_and_a_point_that_kills_its_workers(tmp_path, inside, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "killer.py").write_text(KILLER)
    dask = str(Path(sys.executable).parent / "dask")
    file = tmp_path / "scheduler.json"
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    common = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
    scheduler = subprocess.Popen([dask, "scheduler", "--port", "0", *common], env=here)
    options = [*common, "--nthreads", "1", "--nworkers", "2", "--local-directory", str(tmp_path)]
    workers = subprocess.Popen([dask, "worker", *options], cwd=tmp_path, env=here)
    try:
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        sweep = make_sweep([TAU], {"fixed_points": ["similarity", "killer:keep"]})
        result = run_sweep(sweep, tmp_path / "out", scheduler=address)
        assert result["status"].values[[0, 2]].tolist() == ["complete"] * 2
        assert str(result["status"].values[1]).startswith("failed: its worker process died, every time")
        plain = make_sweep([POINTS])
        there = run_sweep(plain, tmp_path / "there", scheduler=address)
        assert bits(there) == bits(run_sweep(plain, tmp_path / "here"))
    finally:
        for process in (workers, scheduler):
            process.terminate()
            process.wait(timeout=60)
