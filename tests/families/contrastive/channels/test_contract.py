"""The example of two channels goes through everything that is done to a problem and its results, as families do."""

from dataclasses import replace

import pytest

import meanfield
from meanfield.comparison import format_comparison
from meanfield.families.contrastive import FAMILY
from meanfield.problems.problem_keys import with_value
from meanfield.results.checks import check as check_dataset
from meanfield.results.result import Result
from meanfield.testing import in_time, methods
from meanfield.testing.methods import Example
from tests import ROOT

pytestmark = pytest.mark.usefixtures("plain_figures")

SMALL = {"time.stop": 1.0, "time.outputs": 3, "particles.replicas": 3, "particles.dimension": 200}


class TwoChannels(Example):
    """The example of two channels, solved by the methods that know several."""

    def __init__(self, *names, record="replicas", **others):
        super().__init__(replace(FAMILY, methods={name: FAMILY.methods[name] for name in names}))
        problem = meanfield.load_problem(ROOT / "data" / "problems" / "two_channels.toml")
        for key, value in (SMALL | {"particles.record": record} | others).items():
            problem = with_value(problem, key, value)
        self.__dict__["problem"] = problem


@pytest.mark.parametrize(
    "example",
    [TwoChannels("order_parameters", "particles"), TwoChannels("particles", record="statistics")],
    ids=["replicas", "statistics"],
)
def test_everything_is_done_with_two_channels(example, tmp_path):
    methods.check_report(example, tmp_path)
    for check in (
        methods.check_result,
        methods.check_file,
        methods.check_conventions,
        methods.check_tables,
        methods.check_figure,
        methods.check_sweep,
        in_time.check_schedules,
        in_time.check_phases,
    ):
        for method in example.family.methods:
            check(example, method, tmp_path)
    if "order_parameters" in example.family.methods:
        methods.check_comparison(example, tmp_path)


def check_density(example, folder):
    """All that is done with a density, but for tables, and for figures of comparisons, which are drawn elsewhere."""
    methods.check_report(example, folder)
    for check in (
        methods.check_result,
        methods.check_repetition,
        methods.check_file,
        methods.check_conventions,
        methods.check_figure,
        methods.check_interruption,
        in_time.check_schedules,
        in_time.check_phases,
    ):
        check(example, "density", folder)
    comparison = meanfield.compare(example.result("density"), example.result("particles"))
    check_dataset(Result.of(comparison))
    assert str(comparison["reason"].values[0])
    meanfield.save(comparison, folder / "comparison.nc")
    assert format_comparison(meanfield.load(folder / "comparison.nc"))


@pytest.mark.slow  # everything is done with other methods above
def test_everything_is_done_with_the_density_on_cells(tmp_path):
    signs = {f"features[{k}].coordinate": {"law": "rademacher"} for k in (0, 1)}
    prior = {"prior": {"name": "l1", "strength": 2.0}, "density.tolerance": 1e-2}
    example = TwoChannels("density", "particles", **signs, **prior, **{"particles.snapshots": (0.3,), "time.stop": 0.3})
    check_density(example, tmp_path)
    methods.check_tables(example, "density", tmp_path)


@pytest.mark.slow  # cells go through the same checks, and particles through those of their numbers in test_particles.py
def test_everything_is_done_with_particles_of_the_limit(tmp_path):
    few = {"density": {"scheme": "particles", "tolerance": 1e-2}, "particles.snapshots": (1.0,)}
    example = TwoChannels("density", "particles", **few)
    check_density(example, tmp_path)
