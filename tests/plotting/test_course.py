"""What changes in time has a panel below the others, and phases are shaded in all panels in time."""

import numpy as np
import pytest
from matplotlib.patches import Rectangle

import meanfield
from meanfield import plotting
from meanfield.plotting.course import SHADE, course_of
from tests.example_problems import SMALL
from tests.plotting.conftest import check_panels

PHASES = [{"stop": 0.25}, {"stop": 0.5, "set": {"model.batch_size": 8}}, {"stop": 1.0}]
STEPS = {"times": [0.0, 0.4], "values": [0.05, 0.02], "interpolation": "step"}


def run_with(**values):
    """Result of a short run of a problem with other values, whose keys have "__" in place of dots."""
    given = {key.replace("__", "."): value for key, value in values.items()}
    return meanfield.simulate_sgd(meanfield.with_values(meanfield.parse_problem(SMALL), given))


@pytest.fixture(scope="module")
def run():
    return run_with(model__learning_rate=STEPS, phases=PHASES, time__outputs=5)


def test_numbers_in_time_are_shares_of_their_largest_values_with_their_jumps(run):
    figure = plotting.plot_result(run)
    check_panels(figure)
    *_, below = figure.axes
    rate, batch = below.lines
    for line, low, jump, high in ((rate, 1.0, 0.4, 0.4), (batch, 0.5, 0.25, 1.0)):
        times, shares = line.get_data()
        assert np.all(shares[times < jump] == low)
        assert shares[times >= jump] == pytest.approx(high, rel=1e-15)  # rounding of a share
        assert times[times < jump].max() == np.nextafter(jump, 0.0)
    assert [line.get_label() for line in below.lines] == [
        r"learning rate $\tau$, up to 0.05",
        "batch size $m$, up to 8",
    ]
    assert below.get_ylabel() == "share of the largest"


def test_phases_are_shaded_and_numbered(run):
    figure = plotting.plot_result(run)
    for axes in figure.axes:
        shaded = [patch for patch in axes.patches if isinstance(patch, Rectangle) and patch.get_zorder() == 0.0]
        expected = [(0.25, 0.5)] if axes.get_xlabel().startswith("time") else []
        assert [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in shaded] == expected
        assert all(patch.get_facecolor()[0] == float(SHADE) for patch in shaded)
    assert [text.get_text() for text in figure.axes[-1].texts] == ["phase 1", "phase 2", "phase 3"]


def test_one_number_is_drawn_as_it_is_and_nothing_where_nothing_changes():
    values = {"phases": [{"stop": 0.5}, {"stop": 1.0, "set": {"features[0].hidden.second_moment": 0.9}}]}
    course = course_of(run_with(**values))
    assert list(course.values) == ["second moment $m_2$ of the hidden variable"]
    assert {*course.values["second moment $m_2$ of the hidden variable"]} == {1.1, 0.9}
    assert plotting.plot_result(run_with(**values)).axes[-1].get_ylabel() == "value"
    assert course_of(run_with()) is None


def test_runs_are_shown_as_far_as_they_came(run):
    course = course_of(run.isel(time=slice(0, 3)))
    assert course.ends == [0.0, 0.25, 0.5]
    assert course.times[-1] == 0.5


def test_files_that_a_result_names_are_not_opened(tmp_path):
    (tmp_path / "rates.csv").write_text("0, 0.05\n1.0, 0.02\n")
    found = run_with(model__learning_rate=str(tmp_path / "rates.csv"))
    assert plotting.plot_result(found).axes[-1].lines[0].get_label() == r"learning rate $\tau$, not opened"


def test_results_side_by_side_have_the_panel_too(run):
    other = run_with(model__learning_rate=STEPS, phases=PHASES, time__outputs=5, particles__seed=1)
    for figure in (
        plotting.plot_comparison({"a": run, "b": other}),
        plotting.plot_result(meanfield.compare(run, other)),
    ):
        assert figure.axes[-1].get_ylabel() == "share of the largest"
