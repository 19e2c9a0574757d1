"""Sweeps as a whole: what is kept, in which order it does not matter, and what happens when something goes wrong."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import xarray as xr

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive.dynamics import solve_fixed_points
from meanfield.problems.problem_keys import with_values
from meanfield.sweep import describe, parse_sweep, run, run_sweep, workers
from meanfield.sweep.points import points_of
from meanfield.sweep.store import Store
from tests.example_problems import SMALL
from tests.sweep.sweeps import M2, TAU, bits, make_sweep

SGD = {"particles": ["final"]}
SGD_AXES = [{"key": "particles.dimension", "values": [64, 128]}, TAU]

FIXED_POINTS = "meanfield.families.contrastive.dynamics.solve_fixed_points"
"""Dotted name of the function that the family declares for the method."""


def test_every_point_is_its_problem(inside, tmp_path):
    sweep = make_sweep()
    result = run_sweep(sweep, tmp_path / "out")
    assert result.attrs["status"] == "complete"
    assert set(result["status"].values.flat) == {"complete"}
    for tau in result["learning_rate"].values:
        for m2 in result["second_moment"].values:
            values = {TAU["key"]: float(tau), M2["key"]: float(m2)}
            alone = solve_fixed_points(with_values(sweep.problem, values))
            sizes = np.abs(alone["q"].values[alone["stability"] >= 0, 0])
            here = result.sel(learning_rate=tau, second_moment=m2)
            assert (here["similarity"], here["least_similarity"]) == (sizes.max(), sizes.min())
            assert np.array_equal(here["uninformed_rate"], alone["uninformed_rate"])


def test_the_result_loads_and_says_what_it_is(inside, tmp_path):
    sweep = make_sweep([TAU | {"values": [0.01, 0.1]}], title="two points")
    result = run_sweep(sweep, tmp_path / "out")
    loaded = meanfield.load(tmp_path / "out" / "sweep.nc")
    assert loaded.identical(result)
    with xr.open_dataset(tmp_path / "out" / "sweep.nc") as plain:
        assert plain["similarity"].dims == ("learning_rate",)
        assert plain["similarity"].attrs["long_name"].startswith("largest cosine similarity")
        assert plain["learning_rate"].attrs["key"] == "model.learning_rate"
        assert plain.attrs["title"] == "two points"
    assert parse_sweep(loaded.attrs["sweep"]).model_dump() == sweep.model_dump()
    files = sorted((tmp_path / "out" / "points").iterdir())
    assert len(files) == 2
    alone = meanfield.load(files[0])
    assert alone.attrs["values"] in ('{"model.learning_rate": 0.01}', '{"model.learning_rate": 0.1}')
    assert float(alone["similarity"]) in result["similarity"].values


# Particles are those that could depend on it, by their random numbers; sweeps take all methods alike.
@pytest.mark.parametrize(
    ("method", "what"),
    [
        ("particles", "final"),
        *(pytest.param(*kept, marks=pytest.mark.slow) for kept in (("density", "final"), ("fixed_points", "states"))),
    ],
)
def test_numbers_do_not_depend_on_order_or_company(inside, tmp_path, monkeypatch, method, what):
    kept = {method: [what]}
    whole = run_sweep(make_sweep([TAU, M2], kept), tmp_path / "whole")
    turned = run_sweep(make_sweep([M2, TAU], kept), tmp_path / "turned")
    monkeypatch.setattr(run, "points_of", lambda sweep: points_of(sweep)[::-1])
    backward = run_sweep(make_sweep([TAU, M2], kept), tmp_path / "backward")
    alone = run_sweep(make_sweep([TAU | {"values": [0.3]}, M2], kept), tmp_path / "alone")
    assert bits(backward) == bits(whole)
    assert bits(turned.transpose(*whole.dims)[list(whole)]) == bits(whole)
    assert bits(alone) == bits(whole.sel(learning_rate=[0.3]))


def test_random_streams_are_independent_unless_the_seed_is_a_key(inside, tmp_path):
    points = points_of(make_sweep(SGD_AXES, SGD))
    seeds = [point.problem.particles.seed for point in points]
    assert len(set(seeds)) == len(points)
    other = points_of(make_sweep(SGD_AXES, SGD, problem=SMALL + "seed = 1\n"))
    assert not {point.problem.particles.seed for point in other} & set(seeds)
    chosen = points_of(make_sweep([TAU, {"key": "particles.seed", "values": [3, 4]}], SGD))
    assert [point.problem.particles.seed for point in chosen] == [3, 4] * 3


def test_a_sweep_goes_on_with_what_is_missing(inside, tmp_path):
    sweep, out = make_sweep(SGD_AXES, SGD), tmp_path / "out"
    whole = run_sweep(sweep, out)
    files = sorted((out / "points").iterdir())
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-2000])
    damaged = bytearray(files[2].read_bytes())
    at = damaged.index(np.float64(meanfield.load(files[2])["q_final"].values[0]).tobytes())
    damaged[at] ^= 1
    files[2].write_bytes(damaged)
    times = [path.stat().st_mtime_ns for path in files[3:]]
    again = run_sweep(sweep, out)
    assert bits(again) == bits(whole)
    assert sum(map(len, inside[1].tasks)) == 3
    assert [path.stat().st_mtime_ns for path in files[3:]] == times
    run_sweep(sweep, out)
    assert len(inside) == 2  # nothing was left for a third one


def test_more_values_keep_the_points_that_are_there(inside, tmp_path):
    run_sweep(make_sweep([TAU]), tmp_path / "out")
    longer = run_sweep(make_sweep([TAU | {"values": [0.3, 0.02, 0.01]}]), tmp_path / "out")
    assert sum(map(len, inside[1].tasks)) == 1
    assert bits(longer) == bits(run_sweep(make_sweep([TAU | {"values": [0.3, 0.02, 0.01]}]), tmp_path / "new"))


def test_another_sweep_in_the_folder_is_refused(inside, tmp_path):
    run_sweep(make_sweep([TAU]), tmp_path / "out")
    for other, message in (
        (
            make_sweep([TAU], problem=SMALL.replace("batch_size = 4", "batch_size = 5")),
            "problem.model.batch_size = 4 instead",
        ),
        (
            make_sweep([TAU], {"fixed_points": ["states"]}),
            r"methods.fixed_points = \['similarity', 'growth'\] instead of",
        ),
    ):
        with pytest.raises(InputError, match=f"holds another sweep, with {message}.*--restart"):
            run_sweep(other, tmp_path / "out")
    begun_anew = run_sweep(other, tmp_path / "out", restart=True)
    assert bits(begun_anew) == bits(run_sweep(other, tmp_path / "new"))
    with pytest.raises(InputError, match="restart = 1: give True"):
        run_sweep(other, tmp_path / "out", restart=1)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").touch()
    with pytest.raises(InputError, match="holds other files, and no sweep"):
        run_sweep(make_sweep(), tmp_path / "other")
    with pytest.raises(InputError, match="is a file; give the name of a folder"):
        run_sweep(make_sweep(), tmp_path / "other" / "letter.txt")
    with pytest.raises(InputError, match=r"the output directory .* does not exist"):
        run_sweep(make_sweep(), tmp_path / "none" / "out")


def test_points_that_are_no_problems_are_recorded(inside, tmp_path):
    activations = {"key": "model.activation", "values": ["quadratic", "quadratik", "relu"]}
    result = run_sweep(make_sweep([activations]), tmp_path / "out")
    assert result["activation"].values.tolist() == activations["values"]
    assert result["status"].values[[0, 2]].tolist() == ["complete"] * 2
    assert "unknown name 'quadratik'; did you mean 'quadratic'?" in str(result["status"].values[1])
    assert np.isnan(result["similarity"].values).tolist() == [False, True, False]
    assert "3 points: 2 complete, 1 failed\n  1 failed: model.activation: unknown name" in describe(result)
    with pytest.raises(InputError, match=r"none of the 1 points is a problem; the first: model.activation: unknown"):
        run_sweep(make_sweep([activations | {"values": ["quadratik"]}]), tmp_path / "none")


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        (
            [TAU | {"values": [0.05, "0.1"]}, M2],
            r"axes\[0\]\.values\[1\]: model\.learning_rate = '0\.1': .*without quotes",
        ),
        (
            [{"key": "model.learning_rate", "grid": {"start": -0.1, "stop": 0.3, "points": 5}}],
            r"axes\[0\]\.grid\[0\]: model\.learning_rate = -0\.1: .*\naxes\[0\]\.grid\[1\]: model\.learning_rate = 0",
        ),
        (
            [{"key": ["model.learning_rate", "time.stop"], "values": [[0.1, 1.0], [0.2, "2"]]}],
            r"axes\[0\]\.values\[1\]: time\.stop = '2'",
        ),
        (
            [{"key": "features[0].hidden", "values": [{"law": "laplace", "second_moment": 1.1}, {"law": "laplas"}]}],
            r"axes\[0\]\.values\[1\]: features\[0\]\.hidden\.law = 'laplas': should be one of",
        ),
    ],
)
def test_values_that_a_key_never_takes_are_bad_input(inside, tmp_path, axes, words):
    with pytest.raises(InputError, match=words):
        run_sweep(make_sweep(axes), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_values_that_fit_only_some_other_values_fail_their_points(inside, tmp_path):
    moments = {"key": "features[0].hidden.second_moment", "values": [1.0, 2.0]}
    laws = {"key": "features[0].hidden.fourth_moment", "values": [2.0, 6.0]}
    hidden = 'hidden = { law = "three_point", second_moment = 1.0, fourth_moment = 6.0 }'
    text = "\n".join(hidden if line.startswith("hidden") else line for line in SMALL.splitlines())
    result = run_sweep(make_sweep([moments, laws], problem=text), tmp_path / "out")
    assert (result["status"] == "complete").values.tolist() == [[True, True], [False, True]]


def test_points_at_which_a_method_fails_are_recorded_and_not_tried_again(inside, tmp_path):
    priors = {"key": "prior.name", "values": ["none", "l1"]}
    sweep = make_sweep([priors], {"order_parameters": ["final"], "density": ["final"]})
    result = run_sweep(sweep, tmp_path / "out")
    assert np.isnan(result["order_parameters_q_final"].values).ravel().tolist() == [False, True]
    assert np.isfinite(result["density_q_final"]).all()
    assert str(result["status"].values[1]).startswith(
        "failed: order_parameters: prior.name = 'l1': the order parameters"
    )
    run_sweep(sweep, tmp_path / "out")
    assert len(inside) == 1
    blown = run_sweep(make_sweep([TAU | {"values": [0.05, 1e5]}], {"density": ["final"]}), tmp_path / "blown")
    assert str(blown["status"].values[1]).startswith("failed: density: at t = ")


def test_faults_of_the_machine_are_tried_again(inside, tmp_path, monkeypatch):
    def full(problem):
        if problem.model.learning_rate == 0.05:
            raise MemoryError
        return solve_fixed_points(problem)

    monkeypatch.setattr(FIXED_POINTS, full)
    part = run_sweep(make_sweep([TAU]), tmp_path / "out")
    assert part.attrs["status"] == "interrupted"
    assert part["status"].values.tolist() == ["complete", "failed: fixed_points: MemoryError", "complete"]
    monkeypatch.setattr(FIXED_POINTS, solve_fixed_points)
    assert set(run_sweep(make_sweep([TAU]), tmp_path / "out")["status"].values) == {"complete"}


def test_ctrl_c_keeps_what_is_there(inside, tmp_path, monkeypatch):
    def interrupted(problem):
        if problem.model.learning_rate == 0.05:
            raise KeyboardInterrupt
        return solve_fixed_points(problem)

    monkeypatch.setattr(FIXED_POINTS, interrupted)
    part = run_sweep(make_sweep([TAU]), tmp_path / "out")
    assert part.attrs["status"] == "interrupted"
    assert meanfield.load(tmp_path / "out" / "sweep.nc")["status"].values.tolist()[1:] == ["missing"] * 2
    assert inside[0].ended_early
    assert "missing" in describe(part)


def test_what_has_another_shape_is_recorded(inside, tmp_path):
    outputs = {"key": "time.outputs", "values": [3, 3, 5], "name": "run"}
    with pytest.raises(ValueError, match="comes twice"):
        make_sweep([outputs])
    outputs["values"] = [3, 5]
    result = run_sweep(make_sweep([outputs], {"order_parameters": ["trajectory"]}), tmp_path / "out")
    assert result["status"].values[0] == "complete"
    assert "failed: time has dims {'time': 5}, which are not those of points before" in str(result["status"].values[1])
    stops = {"key": "time.stop", "values": [1.0, 2.0]}
    result = run_sweep(make_sweep([stops], {"order_parameters": ["trajectory"]}), tmp_path / "times")
    assert result["time_at"].values.tolist() == [[0.0, 0.5, 1.0], [0.0, 1.0, 2.0]]
    assert result["q"].dims == ("stop", "time", "feature")


def test_coordinates_of_all_points_stay_coordinates(inside, tmp_path):
    result = run_sweep(make_sweep([TAU], {"density": ["all"]}), tmp_path / "same")
    assert set(result.coords) == {"learning_rate", "time", "feature", "u", "u_weight", "w", "bounds", "w_bnds"}
    assert result["P"].sel(u=0.0, learning_rate=0.05, method="nearest").dims == ("time", "w")
    widths = {"key": "density.half_width", "values": [9.0, 12.0]}
    result = run_sweep(make_sweep([widths], {"density": ["all"]}), tmp_path / "other")
    assert result["w_bnds_at"].dims == ("half_width", "w", "bounds")
    assert "bounds" not in result["w_at"].attrs


@pytest.fixture
def forked(monkeypatch):
    """Real processes, which need not import anything."""
    monkeypatch.setattr(workers, "START_METHOD", "fork")


def own(folder, text):
    """A reduction of a user's own."""
    (folder / "own_reduction.py").write_text(text)
    sweep = make_sweep([TAU], {"fixed_points": ["similarity", "own_reduction:keep"]})
    sweep._folder = folder
    return sweep


def test_reductions_of_a_user(forked, tmp_path):
    text = "import xarray as xr\ndef keep(dataset):\n    return {'largest': abs(dataset['q']).max('state')}\n"
    result = run_sweep(own(tmp_path, text), tmp_path / "out", workers=2)
    assert set(result["status"].values) == {"complete"}
    assert result["largest"].dims == ("learning_rate", "feature")
    assert (result["largest"] >= result["similarity"]).all()
    assert list(result["largest"].attrs) == ["long_name"]


def test_a_killed_worker_does_not_end_the_sweep(forked, tmp_path):
    text = f"""
import os, signal
from pathlib import Path
def keep(dataset):
    tau = dataset.attrs["learning_rate"]
    first = Path({str(tmp_path)!r}) / "killed"
    if tau == 0.3 or tau == 0.01 and not first.exists():
        first.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {{}}
"""
    result = run_sweep(own(tmp_path, text), tmp_path / "out", workers=2)
    assert result["status"].values[:2].tolist() == ["complete"] * 2
    assert str(result["status"].values[2]).startswith("failed: its worker process died, every time")
    assert result.attrs["status"] == "failed: 1 of 3 points; the variable 'status' says why"


def test_kill_of_the_whole_sweep(forked, inside, tmp_path, monkeypatch):
    sweep, out = make_sweep([TAU | {"values": np.linspace(0.01, 0.3, 5).tolist()}]), tmp_path / "out"
    whole = run_sweep(sweep, tmp_path / "whole")
    monkeypatch.setattr(run, "LocalWorkers", workers.LocalWorkers)
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(Store, "write", killing_after(3, tmp_path / "orphans"))
        try:
            run_sweep(sweep, out, workers=2)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert len(list(out.glob("points/*.nc"))) == 3
    assert not (out / "sweep.nc").exists()
    orphans = [int(pid) for pid in (tmp_path / "orphans").read_text().split()]
    deadline = time.monotonic() + 60
    while any(map(psutil.pid_exists, orphans)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(orphans) == 2
    assert not any(map(psutil.pid_exists, orphans))
    assert bits(run_sweep(sweep, out, workers=2)) == bits(whole)


def killing_after(count, orphans, write=Store.write):
    """In place of `Store.write`: the process ends with a point, whatever it has begun."""
    written = []

    def write_and_kill(self, *arguments):
        write(self, *arguments)
        written.append(arguments)
        if len(written) == count:
            orphans.write_text(" ".join(str(process.pid) for process in psutil.Process().children()))
            os.kill(os.getpid(), signal.SIGKILL)

    return write_and_kill


def test_a_kill_at_any_moment_of_the_start_leaves_a_folder_to_go_on_with(tmp_path, monkeypatch):
    """The definition is written before there is anything else."""
    sweep = make_sweep([TAU])
    made = []
    mkdir, replace = Path.mkdir, os.replace
    monkeypatch.setattr(Path, "mkdir", lambda path, *a, **k: (made.append(path.name), mkdir(path, *a, **k))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (made.append(Path(b).name), replace(a, b))[1])
    Store(tmp_path / "out").open(sweep)
    shown = [name for name in made if name in ("sweep.toml", "points")]
    assert shown == ["sweep.toml", "points"]


IN_TIME = """
problem = "in_time.toml"
[[axes]]
key = "model.learning_rate.peak"
values = [0.1, 0.2]
[[axes]]
key = "phases[1].stop"
values = [0.5, 0.75]
[methods]
order_parameters = ["final"]
"""


def test_numbers_of_schedules_and_ends_of_phases_vary_like_others(inside, tmp_path):
    rate = '{ schedule = "warmup_cosine", peak = 0.3, warmup = 0.3, duration = 0.9 }'
    steps = (
        "[[phases]]\nstop = 0.25\n[[phases]]\nstop = 0.5\nset = { 'model.batch_size' = 2 }\n[[phases]]\nstop = 1.0\n"
    )
    (tmp_path / "in_time.toml").write_text(
        SMALL.replace("learning_rate = 0.05", f"learning_rate = {rate}")
        + steps
        + "set = { 'features[0].hidden.second_moment' = 0.9 }\n"
    )
    (tmp_path / "sweep.toml").write_text(IN_TIME)
    result = run_sweep(meanfield.load_sweep(tmp_path / "sweep.toml"), tmp_path / "out")
    assert set(result["status"].values.flat) == {"complete"}
    assert result["q_final"].dims[:2] == ("peak", "stop")
    assert len(set(result["q_final"].values.ravel())) == 4
    problem = meanfield.load_problem(tmp_path / "in_time.toml")
    values = {"model.learning_rate.peak": 0.2, "phases[1].stop": 0.75}
    alone = meanfield.solve_order_parameters(with_values(problem, values))["q"].values[-1]
    assert np.array_equal(result["q_final"].sel(peak=0.2, stop=0.75).values, alone)
