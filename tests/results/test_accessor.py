"""`dataset.meanfield`, whether xarray or we opened the file, and whoever was imported first."""

import subprocess
import sys

import pytest
import xarray as xr

import meanfield
from tests.example_problems import make_problem

PROBLEM = make_problem("particles.method = 'chain'", "particles.replicas = 8", "time.outputs = 3", "time.stop = 2.0")


@pytest.fixture(scope="module")
def limit():
    return meanfield.solve_order_parameters(PROBLEM)


def test_a_result_has_its_problem_figure_verdict_and_sources_at_hand(limit):
    found = limit.meanfield
    assert isinstance(found, meanfield.ResultAccessor)
    assert found.problem == PROBLEM
    assert found.verdict(meanfield.simulate_sgd(PROBLEM)) == "AGREES"
    assert found.cite() == meanfield.cite(limit)
    assert found.plot().get_suptitle() == "test"


def test_pages_are_written(limit, tmp_path):
    limit.meanfield.report(tmp_path / "report.html")
    limit.meanfield.explore(tmp_path / "explore.html")
    assert all("<html" in (tmp_path / name).read_text() for name in ("report.html", "explore.html"))


def test_what_is_no_result_is_refused_when_something_is_asked():
    nothing = xr.Dataset().meanfield
    for use in (nothing.plot, nothing.cite, lambda: nothing.problem, lambda: nothing.verdict(xr.Dataset())):
        with pytest.raises(meanfield.InputError, match=r"no result of meanfield|not a result of meanfield"):
            use()


USES = {
    "ours first": "import meanfield; import xarray",
    "theirs first": "import xarray; import meanfield",
    "a part of theirs": "import meanfield; from xarray.core import dataset; import xarray",
}


# The last one needs both parts of what is done at imports; theirs comes first at the head of this file, too.
@pytest.mark.parametrize(
    "imports",
    [pytest.param(code, id=name, marks=[pytest.mark.slow] * name.endswith("first")) for name, code in USES.items()],
)
def test_plain_xarray_has_it_whoever_comes_first(imports, limit, tmp_path):
    meanfield.save(limit, tmp_path / "run.nc")
    code = f"""
{imports}
import sys
import importlib.resources
assert not any("after_import" in type(each).__module__ for each in sys.meta_path)
assert "after_import" not in type(xarray.__loader__).__module__
assert "after_import" not in type(xarray.__spec__.loader).__module__
assert importlib.resources.files("xarray").joinpath("__init__.py").is_file()
print(xarray.open_dataset({str(tmp_path / "run.nc")!r}).meanfield.problem.title)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "test\n"), done.stderr


def test_nothing_heavy_is_imported_before_it_is_used():
    code = "import meanfield, sys; print({'xarray', 'numpy', 'scipy', 'numba', 'pydantic'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
