"""One figure for a result of any method: all panels labelled, with the numbers of the Dataset in them."""

import warnings

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield import plotting
from meanfield.errors import InputError
from meanfield.families.contrastive import FAMILY
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.plotting.results import plot_plain
from meanfield.problems.family import resolve
from meanfield.problems.file import parse_problem
from meanfield.problems.problem_keys import with_value
from meanfield.results.schema import SCHEMA_VERSION
from tests.example_problems import SMALL
from tests.plotting.conftest import TEXT, cell_averages, check_panels


def drawn(dataset):
    """The figure, drawn without a warning, each panel labelled on both axes, and curves told apart without colours."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = plotting.plot_result(dataset)
        figure.set_layout_engine("none")  # half of the time
        figure.draw_without_rendering()
    assert figure.axes
    check_panels(figure)
    for axes in figure.axes:
        assert axes.get_xlabel() or axes.get_label() == "<colorbar>"
        assert axes.get_ylabel()
    return figure


@pytest.fixture(scope="module")
def sparse():
    """One feature under a prior, in time."""
    return parse_problem(SMALL + '[prior]\nname = "l1"\nstrength = 1.0\n')


@pytest.fixture(scope="module")
def density(sparse):
    return meanfield.solve_density(sparse)


@pytest.fixture(scope="module")
def sgd(sparse):
    return meanfield.simulate_sgd(sparse)


@pytest.fixture(scope="module")
def ensemble(sparse):
    recorded = with_value(with_value(sparse, "particles.record", "statistics"), "particles.escape_overlap", 0.5)
    return meanfield.simulate_sgd(recorded)


@pytest.fixture(scope="module")
def states(sparse):
    return meanfield.find_stationary_states(sparse)


def test_every_kind_has_a_figure():
    assert all(callable(resolve(kind.figure)) for kind in FAMILY.all_kinds.values())


def test_density_run(density, axes):
    figure = drawn(density)
    assert len([a for a in figure.axes if a.get_label() != "<colorbar>"]) == 6
    plotting.plot_densities(density, axes, [0.0, 1.0])
    assert [line.get_label() for line in axes.lines] == ["$t = 0$", "$t = 1$"]
    assert np.allclose(cell_averages(axes.lines[1]), density["P_w"].values[-1], atol=1e-8)  # cut off at 0


def test_image_of_a_density_averages_over_other_coordinates(results, axes):
    plotting.plot_density_given_u(results["density"], axes)
    u, mean = axes.lines[0].get_data()
    # Exact without a prior; the cells of 0.1 and the few steps err by 1e-4, and nodes themselves lie 0.6 apart.
    assert np.allclose(mean, results["density"]["q"].values[-1, 0] * u, atol=5e-4)
    assert np.diff(u).max() < 0.3
    other = plotting.plot_density_given_u(results["density"], Figure().subplots(), feature=1)
    assert list(other.lines[0].get_xdata()) == [-1.0, 1.0]  # a Rademacher coordinate
    assert other.get_xlabel() == "feature coordinate $u_2$"


def test_errors_are_drawn_on_a_logarithmic_scale(density, axes):
    plotting.plot_errors(density, axes)
    assert np.allclose(axes.lines[0].get_ydata(), abs(density["norm"] - 1), rtol=1e-12)  # the same numbers
    assert axes.get_yscale() == "log"
    estimated = density.assign(q_error=0 * density["q"] + 1e-7)
    names = [line.get_label() for line in plotting.plot_errors(estimated, Figure().subplots()).lines]
    assert names == ["$|E[w^2] - 1|$", "estimate for $q$"]  # the total probability errs by mere rounding


def test_order_parameter_run(results):
    figure = drawn(results["ODE"])
    bands, coefficients = figure.axes
    assert np.array_equal(bands.lines[1].get_ydata(), results["ODE"]["q"][:, 1])
    assert np.array_equal(coefficients.lines[0].get_ydata(), results["ODE"]["g"][:, 0])
    assert np.array_equal(coefficients.lines[2].get_ydata(), results["ODE"]["Lambda"])


def test_particle_run(sgd, axes):
    assert len(drawn(sgd).axes) == 4
    plotting.plot_replicas(sgd, axes, "r")
    for replica, line in enumerate(axes.lines[:-1]):
        assert np.array_equal(line.get_ydata(), sgd["r"][replica])
    assert np.allclose(axes.lines[-1].get_ydata(), sgd["r"].mean("replica"))
    dots = plotting.plot_pairs(sgd, Figure().subplots()).lines[0]
    assert np.array_equal(dots.get_xdata(), sgd["U"].values.ravel())
    assert np.array_equal(dots.get_ydata(), sgd["weights"][:, -1].values.ravel())


def test_interrupted_runs_are_drawn_as_far_as_they_came(density, sgd):
    stopped = density.copy(deep=True)
    for name in ("q", "r", "P", "mass", "norm", "g", "Lambda"):
        stopped[name][2] = np.nan
    assert drawn(stopped).axes[2].lines[-1].get_label() == "$t = 0.5$"
    part = sgd.copy(deep=True)
    part["q"][2], part["r"][2], part["weights"][2], part["q"][:, 2] = np.nan, np.nan, np.nan, np.nan
    drawn(part)


def test_ensemble(ensemble, axes):
    figure = drawn(ensemble)
    assert len(figure.axes) == 3
    plotting.plot_quantiles(ensemble, axes)
    assert np.array_equal(axes.lines[0].get_ydata(), ensemble["q_quantile"].sel(quantile=0.5)[:, 0])
    assert len(axes.collections) == ensemble.sizes["quantile"] // 2
    assert np.array_equal(figure.axes[1].lines[0].get_ydata(), ensemble["r_mean"])


def test_states_of_one_density_share_a_curve(states, axes):
    assert len(drawn(states).axes) == 2
    plotting.plot_state_densities(states, axes)
    labels = axes.get_legend_handles_labels()[1]
    assert len(labels) < states.sizes["state"]
    assert any("(2 states), stable" in label for label in labels)
    width = np.diff(edges_of(states))
    assert all(cell_averages(line) @ width == pytest.approx(1, abs=1e-8) for line in axes.lines)  # cut off at 0
    plotting.plot_result(states.isel(state=[])).draw_without_rendering()  # no state is a result, too


def test_branches_and_portrait(branches):
    drawn(meanfield.contrastive.phase_portrait(parse_problem(TEXT)))
    assert drawn(branches).axes[0].get_xlabel() == r"learning rate $\tau$"


def test_comparison(density, sgd, ensemble):
    report = meanfield.compare(density, sgd, ensemble)
    figure = drawn(report)
    assert len(figure.axes) == 4
    ratio = (report["q_difference"] / report["q_standard_error"]).values[0, :, 0]
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    assert np.array_equal(lines["density - particles"], ratio, equal_nan=True)
    distances = {line.get_label(): line.get_ydata() for line in figure.axes[2].lines}
    assert np.allclose(distances["W1, density - particles"], report["W1"][0] / report["W1_chance"][0])
    assert np.allclose(figure.axes[3].lines[0].get_xdata(), report["group_u"][0, 0])


def test_comparison_of_equations_has_differences_as_they_are(results):
    report = meanfield.compare(results["density"], results["ODE"])
    (axes,) = drawn(report).axes
    assert axes.get_yscale() == "log"
    shown = axes.lines[1].get_ydata()
    assert np.nanmax(shown) == np.abs(report["q_difference"][0, :, 1]).max()


def sweep(*axes):
    shape = [len(values) for _, values in axes]
    coordinates = {
        key.rpartition(".")[2]: (key.rpartition(".")[2], values, {"key": key, "scale": "linear"})
        for key, values in axes
    }
    dims = tuple(coordinates)
    texts = {"title": "costs $5, or $$", "problem": SMALL, "provenance": "{}", "status": "complete"}
    values = np.arange(float(np.prod(shape))).reshape(shape)
    return xr.Dataset(
        {
            "similarity": (dims, values, {"long_name": "similarity"}),
            "status": (dims, np.full(shape, "complete"), {"long_name": "status"}),
        },
        coordinates,
        {"method": "sweep", "schema_version": SCHEMA_VERSION} | texts,
    )


def test_sweep_over_one_axis_is_a_line_and_over_two_a_diagram():
    rate, size = ("model.learning_rate", [0.1, 0.2, 0.3]), ("model.batch_size", [1, 2])
    (axes,) = drawn(sweep(rate)).axes
    assert axes.get_xlabel() == r"learning rate $\tau$"
    assert np.array_equal(axes.lines[0].get_ydata(), [0, 1, 2])
    assert drawn(sweep(rate, size)).axes[0].get_ylabel() == "batch size $m$"
    with pytest.raises(InputError, match=r"over 3 axes.*sweep.isel\(learning_rate=0\)"):
        plotting.plot_result(sweep(rate, size, ("prior.strength", [0.0, 1.0])))
    with pytest.raises(InputError, match="keeps no number"):
        plotting.plot_result(sweep(rate).drop_vars("similarity"))


def test_what_is_no_result_is_refused():
    with pytest.raises(InputError, match="not a result of meanfield"):
        plotting.plot_result(xr.Dataset())


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
