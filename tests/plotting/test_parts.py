import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield import plotting
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.problems import problem_keys
from meanfield.problems.file import parse_problem
from tests.plotting.conftest import TEXT, cell_averages


def test_overlap_draws_a_line_per_feature(results, axes):
    assert plotting.plot_overlap(results["ODE"], axes, "ODE") is axes
    assert len(axes.lines) == 2
    assert np.array_equal(axes.lines[1].get_ydata(), results["ODE"]["q"].isel(feature=1))
    assert axes.get_xlabel() == "time $t = k/N$"


def test_replicas_are_drawn_with_error_bars(results, axes):
    plotting.plot_overlap(results["SGD"], axes, "SGD")
    assert len(axes.containers) == 2
    mean = results["SGD"]["q"].isel(feature=0).mean("replica")
    assert np.allclose(axes.containers[0].lines[0].get_ydata(), mean, rtol=1e-12)  # rounding


def test_histogram_and_density_have_unit_area(results, axes):
    plotting.plot_histogram(results["SGD"], axes, 1.0)
    heights, edges, _ = axes.patches[0].get_data()
    assert np.sum(heights * np.diff(edges)) == pytest.approx(1, abs=1e-12)  # rounding
    plotting.plot_density(results["density"], axes, 1.0)
    P = cell_averages(axes.lines[0])
    assert P @ np.diff(edges_of(results["density"])) == pytest.approx(1, abs=1e-9)  # rounding, and curves end at 0


def test_conditional_draws_a_curve_per_group(results, axes):
    plotting.plot_conditional(results["density"], results["SGD"], axes, 1.0, feature=1)
    assert len(axes.lines) == 2
    assert len(axes.get_legend_handles_labels()[1]) == 2


@pytest.mark.parametrize("chosen", [["ODE"], ["density", "ODE"], ["density", "ODE", "SGD"]])
def test_comparison_has_no_empty_panels(results, chosen):
    """No panel of r, as there is no prior; one of all weights and one for each feature only beside a density."""
    figure = plotting.plot_comparison({label: results[label] for label in chosen})
    assert len(figure.axes) == (4 if "SGD" in chosen else 1)


def test_fluctuations_are_bands_and_bars(results, axes):
    statistics = problem_keys.with_value(parse_problem(TEXT + 'record = "statistics"\n'), "particles.dimension", 400)
    ensemble = meanfield.simulate_sgd(statistics)
    assert plotting.plot_fluctuations(results["ODE"], axes, ensemble) is axes
    assert [label for label in axes.get_legend_handles_labels()[1] if "400" in label] != []
    band = axes.collections[0].get_paths()[0].vertices
    spread = 2 * np.sqrt(results["ODE"]["q_covariance"].values[-1, 0, 0] / 400)
    at_end = band[band[:, 0] == 1.0, 1]
    assert np.ptp(at_end) == pytest.approx(2 * spread, rel=1e-12)  # rounding
    assert len(axes.containers) == 2
    alone = plotting.plot_fluctuations(results["ODE"], Figure().subplots(), dimension=10**6)
    assert "1000000" in alone.get_legend_handles_labels()[1][0]


def test_branches_are_solid_where_stable_and_dashed_where_not(branches):
    figure = plotting.plot_branches(branches)
    assert len(figure.axes) == 2  # one for each overlap, none for r without a prior
    lines = [line for line in figure.axes[0].lines if line.get_linestyle() in ("-", "--")]
    styles = {-1: "--", 1: "-"}
    expected = [styles[int(v)] for v in branches["stability"].values]
    assert {line.get_linestyle() for line in lines} == set(expected)
    assert sum(len(line.get_xdata()) for line in lines) >= branches.sizes["point"]
    assert figure.axes[0].get_xlabel() == r"learning rate $\tau$"
    figure.canvas.draw()


def test_histogram_of_escape_times_counts_those_that_never_escape():
    ensemble = xr.Dataset({"escape_time": ("replica", [1.0, 2.0, 2.5, np.nan])})
    axes = plotting.plot_escape_times(ensemble, Figure().subplots())
    heights, edges, _ = axes.patches[0].get_data()
    assert np.sum(heights * np.diff(edges)) == pytest.approx(0.75)  # exact: rounding


def test_chances_are_a_line_or_bars_of_two_standard_errors():
    axes = Figure().subplots()
    N, share = np.array([100.0, 1000.0]), np.array([0.5, 0.2])
    plotting.plot_chance(N, share, axes)
    assert np.array_equal(axes.lines[0].get_ydata(), share)
    plotting.plot_chance(N, share, axes, replicas=np.array([100, 400]))
    (bars,) = axes.containers[0].lines[2]
    heights = [np.ptp(segment[:, 1]) for segment in bars.get_segments()]
    assert heights == pytest.approx([4 * 0.05, 4 * 0.02])  # exact: rounding
