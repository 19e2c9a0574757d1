"""The figure of results whose family declares none."""

import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.plotting.results import plot_plain
from meanfield.problems.file import parse_problem
from tests.example_problems import SMALL


def test_variables_in_time_are_drawn_but_not_those_with_many_curves(results):
    panels = plot_plain(results["density"]).axes
    drawn = [axes.get_ylabel() for axes in panels]
    assert {"q", "r", "mass", "norm", "g", "Lambda"} <= set(drawn)
    assert "P" not in drawn
    assert all(axes.get_xlabel() and axes.get_title() for axes in panels)


def test_states_are_dots():
    states = meanfield.find_stationary_states(parse_problem(SMALL))
    axes = plot_plain(states).axes[0]
    assert axes.lines[0].get_linestyle() == "None"
    assert axes.get_xlabel() == "state"


def test_a_result_in_which_nothing_varies_is_refused(results):
    density = results["density"]
    with pytest.raises(InputError, match="varies along 'time'"):
        plot_plain(density.drop_vars([name for name in density.variables if "time" in density[name].dims]))
