"""The contract of `meanfield.testing`, for every family of the package; families written elsewhere run the same."""

import sys

import pytest
import xarray as xr

import meanfield
from meanfield.errors import InputError
from meanfield.extend import checks_of
from meanfield.problems.family import resolve
from meanfield.problems.known_families import families
from meanfield.results import figure_files

DRAWN = ("density", "particles", "order_parameters", "stationary", "dynamics")

SLOW = {f"contrastive-check_figure[{name}]" for name in DRAWN} | {
    "contrastive-check_start[density]",
    "contrastive-check_sweep[dynamics]",
    "hidden_manifold-check_sweep[fixed_points]",
    "update_rule-check_sweep[fixed_points]",
    "update_rule-check_sweep[stationary]",
    "latent_tree-check_sweep[stationary]",
    *(f"{family}-check_verdicts" for family in ("alpha_contrastive", "latent_tree", "update_rule")),
    *(f"{family}-check_comparison" for family in ("alpha_contrastive", "update_rule")),
    *(f"{family}-check_phases[particles]" for family in ("alpha_contrastive", "latent_tree", "update_rule")),
    "update_rule-check_phases[order_parameters]",
    "update_rule-check_repetition[stationary]",
    "latent_tree-check_repetition[stationary]",
    "latent_tree-check_interruption[stationary]",
    "alpha_contrastive-check_sweep[particles]",
    "update_rule-check_sweep[density]",
    "alpha_contrastive-check_sweep[density]",
    "alpha_contrastive-check_phases[density]",
    "alpha_contrastive-check_schedules[population]",
    "hidden_manifold-check_phases[particles]",
}
"""Checks of half a second or more. Other tests draw these results, in tests/plotting/test_results.py and
tests/test_scripts.py; phases and schedules of these are in test_phases.py and test_in_time.py of the families, and for
trees in the check of arrays; verdicts and comparisons are in test_verdicts.py and test_population.py of filters,
test_verdicts.py of trees, and test_initial_state.py and test_several_students.py of update rules; what the check itself
does is tried on other methods and families."""


def named(check, name):
    return pytest.param(check, id=name, marks=pytest.mark.slow if name in SLOW else ())


CHECKS = [
    named(check, "-".join([family.name, *law, name]))
    for family in families()
    for law, part in zip([(), *((law,) for law in family.laws if family.laws[law])], family.parts, strict=True)
    for name, check in checks_of(part)
]


def test_slow_checks_exist():
    assert {check.id for check in CHECKS} >= SLOW


@pytest.fixture(autouse=True)
def usual_resolution(monkeypatch, plain_figures):
    """Files of figures have the resolution in which they are laid out, so that no text is measured twice."""
    monkeypatch.setattr(figure_files, "RESOLUTION", 100)


@pytest.mark.parametrize("check", CHECKS)
def test_contract(check):
    check()


@pytest.mark.parametrize(
    ("part", "method"),
    [
        pytest.param(part, method, id=f"{part.example}-{name}")
        for family in families()
        for part in family.parts
        for name, method in part.methods.items()
        if method.check
    ],
)
def test_solvers_refuse_what_checks_do(part, method, monkeypatch):
    """`meanfield.solve` leaves that to them: a check that refuses everything is asked under every name that it has."""
    check, solve = resolve(method.check), resolve(method.solve)

    def refuse(*_, **__):
        raise InputError("refused by the check")

    for module in [each for name, each in sys.modules.items() if name.startswith("meanfield.")]:
        for name in [name for name, value in vars(module).items() if value is check]:
            monkeypatch.setattr(module, name, refuse)
    with pytest.raises(InputError, match="refused by the check"):
        solve(meanfield.load_problem(part.example_path))


@pytest.mark.parametrize(
    "part", [pytest.param(part, id=part.example) for family in families() for part in family.parts]
)
def test_results_do_not_depend_on_output_times(part):
    """A method without chance ends where it does with other output times, which may be even in their logarithms."""
    problem = meanfield.load_problem(part.example_path)
    names = set(part.methods) & {"density", "order_parameters", "population"}
    logarithmic = {"time.spacing": "log", "time.outputs": 4}
    for name in names:
        ends = [meanfield.solve(p, name).isel(time=-1) for p in (problem, meanfield.with_values(problem, logarithmic))]
        for quantity in {*part.compared} & {*ends[0]}:
            # Steps end at output times, so that ends differ by errors of steps: 1e-6 is the loosest tolerance there.
            xr.testing.assert_allclose(
                ends[0][quantity].drop_vars("time"), ends[1][quantity].drop_vars("time"), atol=1e-6
            )
