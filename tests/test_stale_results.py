"""Unfinished runs and sweeps whose functions or data were changed: refused with what changed, and begun anew if asked.

Each change is made on disk, as between two commands; the numbers that are there already are never mixed with new ones.
"""

import json
import os
import re
import shutil
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

import meanfield
from meanfield.commands.dispatch import run_named
from meanfield.comparison import format_comparison
from meanfield.errors import InputError
from meanfield.problems.known_families import families, find_family
from meanfield.problems.problem_keys import with_value
from meanfield.report import report
from meanfield.results.made_by import made_by, to_json
from meanfield.results.result import Result
from meanfield.results.schema import validate
from meanfield.sweep import run, solve
from tests.sweep.conftest import Inside

OWN = """
import numba
import numpy as np
import scalings_of_others

GAIN = 1.0
TABLE = np.array([1.0, 2.0])


@numba.njit
def helper(x):
    return scalings_of_others.double(x) / 2


def closed(power):
    def smooth(x, shift=0.00):
        return GAIN * TABLE[0] * helper(x + shift) ** power

    return smooth


smooth = closed(2)


def last(dataset):
    return {"q_last": dataset["q"].isel(time=-1)}
"""

PACKAGE = """
import numba

__version__ = "1.0"


@numba.njit
def double(x):
    return 2 * x
"""

PROBLEM = """
[model]
activation = "stale_own:smooth"
learning_rate = 0.05
batch_size = 4
[[features]]
hidden = { law = "empirical", file = "samples.npy" }
initial_overlap = 0.5
[time]
stop = 0.2
outputs = 3
[particles]
dimension = 40
replicas = 3
method = "plain"
"""

SWEEP = """
problem = "problem.toml"
axes = [{ key = "model.learning_rate", values = [0.05, 0.1] }]
methods.particles = ["final", "stale_own:last"]
"""


def edit(file, old, new):
    """Replace a text in a file, which keeps its size and its time stamp if both texts are equally long."""

    def change(folder):
        path = folder / file
        before, text = path.stat(), path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        if len(old) == len(new):
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    return change


def replace_samples(folder):
    path = folder / "samples.npy"
    before = path.stat()
    np.save(path, np.load(path)[::-1] * [1.0, 1.0, 1.5, 1.5])
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


FUNCTION = r"model.activation = 'stale_own:smooth' \([0-9a-f]{8} before and [0-9a-f]{8} now\)"

CHANGES = {
    "helper": (edit("stale_own.py", "double(x) / 2", "double(x) / 3"), FUNCTION),
    "file": (replace_samples, r"features\[0\].hidden.file = '.*samples.npy' \([0-9a-f]{8} before and [0-9a-f]{8} now"),
    "package": (
        # Longer: with equal size and time stamp Python itself would go on with the bytecode of the old version.
        edit("site-packages/scalings_of_others/__init__.py", '"1.0"', '"1.10"'),
        r"smooth' \([0-9a-f]{8} with scalings_of_others 1.0 before and [0-9a-f]{8} with scalings_of_others 1.10 now\)",
    ),
    "meanfield": (
        lambda _: setattr(meanfield, "__version__", "99.0"),
        r"meanfield \(\S+ before and 99\.0\+\w{8} now\)",
    ),
}
"""Changes of what a problem names, and what the refusal says; more are in tests/ingredients/test_fingerprints.py."""


def loaded(folder):
    """The problem as the next command finds it."""
    for name in ("stale_own", "scalings_of_others"):
        sys.modules.pop(name, None)
    return meanfield.load_problem(folder / "problem.toml")


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A folder with a problem, its functions and data, an unfinished run of it, and an unfinished sweep over it."""
    folder = tmp_path_factory.mktemp("begun")
    (folder / "site-packages" / "scalings_of_others").mkdir(parents=True)
    for name, text in {
        "site-packages/scalings_of_others/__init__.py": PACKAGE,
        "stale_own.py": OWN,
        "problem.toml": PROBLEM,
        "sweep.toml": SWEEP,
    }.items():
        (folder / name).write_text(text)
    np.save(folder / "samples.npy", [-2.0, -1.0, 1.0, 2.0])
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder / "site-packages")
        patch.setattr(run, "LocalWorkers", Inside)
        record = meanfield.Checkpoint(folder / "out.checkpoint")
        meanfield.save(meanfield.simulate_sgd(loaded(folder), record=record), folder / "out.nc")
        meanfield.run_sweep(meanfield.load_sweep(folder / "sweep.toml"), folder / "sweep")
    next((folder / "sweep" / "points").iterdir()).unlink()
    return folder


@pytest.fixture
def folder(begun, monkeypatch):
    """That folder, in which all is as it was once the test is over."""
    monkeypatch.syspath_prepend(begun / "site-packages")
    monkeypatch.setattr(meanfield, "__version__", meanfield.__version__)
    monkeypatch.setattr(run, "LocalWorkers", Inside)
    before = contents(begun)
    yield begun
    for path, (content, times) in before.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, ns=times)


def contents(folder):
    """Contents and time stamps of all files."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    return {path: (path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)) for path in files}


def results(folder):
    return {path: content for path, (content, _) in contents(folder).items() if path.suffix in (".npz", ".npy", ".nc")}


def simulate(folder, **options):
    return meanfield.simulate_sgd(loaded(folder), record=meanfield.Checkpoint(folder / "out.checkpoint", **options))


def sweep(folder, **options):
    loaded(folder)
    return meanfield.run_sweep(meanfield.load_sweep(folder / "sweep.toml"), folder / "sweep", **options)


@pytest.mark.parametrize("work", [simulate, sweep])
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_begun_with_something_else_does_not_go_on(work, change, folder):
    make, what = CHANGES[change]
    make(folder)
    there = results(folder)
    with pytest.raises(InputError, match=f"that other functions, files or versions .*{what}") as refusal:
        work(folder)
    assert "restart" in str(refusal.value)
    assert results(folder) == there


@pytest.mark.parametrize("work", [simulate, sweep])
def test_what_does_not_decide_the_numbers_may_change(work, folder):
    edit("stale_own.py", "GAIN = 1.0", "# the size of it\nGAIN = 1.0")(folder)
    edit("stale_own.py", "import numba\n", "import numba\n\nUNUSED = 3\n")(folder)
    assert work(folder).attrs["status"] == "complete"


@pytest.mark.parametrize("work", [simulate, sweep])
def test_begun_anew_it_has_the_numbers_of_a_first_run(work, folder, tmp_path):
    edit("stale_own.py", "GAIN = 1.0", "GAIN = 1.1")(folder)
    again = work(folder, restart=True)
    for name in ("out.checkpoint", "sweep"):
        (folder / name).rename(tmp_path / name)
    first = work(folder)
    assert again.drop_attrs().identical(first.drop_attrs())
    made_by = json.loads(again.attrs["fingerprints"])
    assert made_by["model.activation"]["sha256"] == loaded(folder).fingerprints()["model.activation"]["sha256"]
    for name in ("out.checkpoint", "sweep"):
        if (folder / name).exists():
            shutil.rmtree(folder / name)
        (tmp_path / name).rename(folder / name)


def test_what_earlier_versions_began_does_not_go_on(folder, tmp_path):
    path = folder / "out.checkpoint" / "run.txt"
    path.write_text(path.read_text().rpartition("\n{")[0])  # all that they wrote there
    with pytest.raises(InputError, match=r"which ones is not known, it is older than .*--restart"):
        simulate(folder)
    for point in (folder / "sweep" / "points").iterdir():
        dataset = meanfield.load(point)
        del dataset.attrs["fingerprints"]
        meanfield.save(dataset, point)
    with pytest.raises(InputError, match=r"which ones is not known, it is older than .*--restart"):
        sweep(folder)


def test_the_same_command_again_is_refused_until_it_says_restart(folder, capsys, monkeypatch):
    command = ["sgd", str(folder / "problem.toml"), "-o", str(folder / "killed.nc")]
    loaded(folder)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("meanfield.ensembles.ensemble._Pace.look", killed)
        assert run_named(command) == 1
    assert "to go on, give the same command again" in capsys.readouterr().err
    edit("stale_own.py", "GAIN = 1.0", "GAIN = 1.1")(folder)
    with pytest.raises(InputError, match=FUNCTION):
        run_named(command)
    assert meanfield.load(folder / "killed.nc").attrs["status"] == "interrupted"
    capsys.readouterr()
    assert run_named([*command, "--restart"]) == 0
    assert "going on" not in capsys.readouterr().err
    found = meanfield.load(folder / "killed.nc", loaded(folder))
    assert found.drop_attrs().identical(meanfield.simulate_sgd(loaded(folder)).drop_attrs())
    assert not (folder / "killed.nc.checkpoint").exists()
    with pytest.raises(InputError, match="--restart: the method 'density' always begins anew; leave it out"):
        run_named(["solve", "density", *command[1:], "--restart"])


@pytest.fixture
def no_curves(monkeypatch):
    """Figures of pages stay empty: what pages say in words is asked for, and figures take most of their time."""
    for name in ("plot_result", "plot_comparison"):
        monkeypatch.setattr(f"meanfield.report.page.{name}", lambda *_, **__: Figure(figsize=(1, 1)))


EDITED = r"model.activation = 'stale_own:smooth' \([0-9a-f]{8} in {} and [0-9a-f]{8} in {}\)"
OLD = r"model.activation = 'stale_own:smooth' \(not known in {} and [0-9a-f]{8} in {}\)"


def words(pattern, *names):
    """Pattern of what differs between two results."""
    return pattern.replace("in {}", "in %s") % names


@pytest.mark.usefixtures("no_curves")
def test_who_puts_results_together_learns_that_their_functions_differ(folder):
    first = meanfield.load(folder / "out.nc", loaded(folder))
    edit("stale_own.py", "GAIN = 1.0", "GAIN = 1.1")(folder)
    with pytest.warns(UserWarning, match=f"holds a result of other .* of {words(EDITED, 'the file', 'the problem')}"):
        meanfield.load(folder / "out.nc", loaded(folder))
    second = first.assign_attrs(fingerprints=to_json(made_by(loaded(folder))))
    comparison = meanfield.compare(first, second, labels=["a", "b"])
    text = format_comparison(comparison).replace("\n ", "")
    assert re.search(f"They come from different versions of {words(EDITED, 'a', 'b')}: solve both again", text)
    assert "fingerprints" not in comparison.attrs or '"sha256": ""' in comparison.attrs["fingerprints"]
    page = report({"a": first, "b": second}).replace("&#39;", "'")
    assert re.search(f"different versions of {words(EDITED, 'a', 'b')}", page)
    states = first.assign_attrs(status="failed: at the end")
    page = report({"a": second, "states": states}).replace("&#39;", "'")
    assert re.search(f"a and states: They come from different versions of {words(EDITED, 'a', 'states')}", page)


@pytest.mark.usefixtures("no_curves")
def test_a_result_of_an_earlier_version_says_that_what_made_it_is_not_known(folder):
    first = meanfield.load(folder / "out.nc")
    old = first.assign_attrs()
    del old.attrs["fingerprints"]
    meanfield.save(old, folder / "old.nc")
    with pytest.warns(UserWarning, match=words(OLD, "the file", "the problem")):
        assert meanfield.load(folder / "old.nc", loaded(folder)).identical(old)
    text = format_comparison(meanfield.compare(old, first, labels=["a", "b"])).replace("\n ", "")
    assert re.search(f"It is not known whether they come from one version of {words(OLD, 'a', 'b')}", text)
    assert "it is not known what this was" in report({"a": old})
    with pytest.warns(UserWarning, match="holds a result of another problem") as warned:
        meanfield.load(folder / "old.nc", with_value(loaded(folder), "model.learning_rate", 0.1))
    assert warned[0].filename == __file__  # of the line that calls, not of one of ours
    old.attrs["fingerprints"] = '{"prior.name": 3}'
    with pytest.raises(InputError, match="the attribute 'fingerprints' holds no fingerprints"):
        validate(Result.of(old))


def test_a_sweep_whose_functions_change_while_it_runs_does_not_keep_what_workers_found(folder, monkeypatch, tmp_path):
    solve_points = run.solve_points

    def edited(work, problems):
        edit("stale_own.py", "GAIN = 1.0", "GAIN = 1.1")(folder)
        try:
            return solve_points(work, problems)
        finally:
            edit("stale_own.py", "GAIN = 1.1", "GAIN = 1.0")(folder)

    monkeypatch.setattr(run, "solve_points", edited)
    loaded(folder)
    part = meanfield.run_sweep(meanfield.load_sweep(folder / "sweep.toml"), tmp_path / "sweep")
    assert part.attrs["status"] == "interrupted"
    words = (
        r"failed: its worker has other functions, files or versions: .*smooth' \([0-9a-f]{8} here and [0-9a-f]{8} there"
    )
    assert all(re.match(words, status) for status in part["status"].values)
    assert not list((tmp_path / "sweep" / "points").iterdir())


def test_a_reduction_that_is_edited_while_a_point_is_solved_is_not_taken(folder, monkeypatch, tmp_path):
    """The numbers of a point are those of the function whose fingerprint it keeps."""
    made, change = solve._solve, edit("stale_own.py", "isel(time=-1)", "isel(time=-2)")

    def edited(problem, method):
        found = made(problem, method)
        monkeypatch.setattr(solve, "_solve", made)
        change(folder)
        return found

    monkeypatch.setattr(solve, "_solve", edited)
    loaded(folder)
    part = meanfield.run_sweep(meanfield.load_sweep(folder / "sweep.toml"), tmp_path / "sweep").isel(learning_rate=0)
    assert part["status"] == "complete"
    assert np.allclose(part["q_last"].mean("replica"), part["q_final"], rtol=1e-14)  # rounding


@pytest.mark.parametrize("name", [family.name for family in families()])
def test_runs_of_every_family_go_on_with_their_own_version_only(name, tmp_path, monkeypatch):
    for part in find_family(name).parts:
        example = meanfield.load_problem(part.example_path)
        for method in (method for method, declared in part.methods.items() if declared.resumes):
            folder = tmp_path / f"{part.title} {method}"
            meanfield.solve(example, method, record=meanfield.Checkpoint(folder))
            with monkeypatch.context() as patch:
                patch.setattr(meanfield, "__version__", "99.0")
                with pytest.raises(InputError, match=CHANGES["meanfield"][1]):
                    meanfield.solve(example, method, record=meanfield.Checkpoint(folder))
