"""Plot functions that are given something else than a result and the Axes of a panel say what to give."""

import inspect

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from meanfield import InputError, plotting
from meanfield.plotting import plane, weights

pytestmark = pytest.mark.usefixtures("plain_figures")

TAKE_A_RESULT = [
    name
    for name in plotting.__all__
    if name.startswith(("plot_", "animate_"))
    and next(iter(inspect.signature(getattr(plotting, name)).parameters.values())).annotation == "xr.Dataset"
]
TAKE_AXES = [
    name
    for name in plotting.__all__
    if name.startswith("plot_") and "axes" in inspect.signature(getattr(plotting, name)).parameters
]


def call(name, axes, result):
    """Call a plot function with `result` wherever it takes one, and plain values for what else it needs."""
    plot, given = getattr(plotting, name), {}
    for parameter in inspect.signature(plot).parameters.values():
        if parameter.name == "axes":
            given["axes"] = axes
        elif parameter.annotation.startswith("xr.Dataset"):
            given[parameter.name] = result
        elif parameter.default is parameter.empty and parameter.kind != parameter.VAR_KEYWORD:
            given[parameter.name] = {"float": 0.0, "str": "q"}.get(parameter.annotation, np.zeros((1, 1, 2)))
    return plot(**given)


def call_with_each(name, axes, *results):
    for result in results:
        call(name, axes, result)


class AnyResult(xr.Dataset):
    """A result that seems to hold every variable, so that only its Axes can be wrong."""

    __slots__ = ()

    def __contains__(self, key):
        return True


def test_most_plot_functions_take_a_result_and_axes():
    assert len(TAKE_A_RESULT) >= 28
    assert len(TAKE_AXES) >= 24


@pytest.fixture(scope="module")
def untouched():
    """Axes of all tests that draw nothing on them."""
    return Figure().subplots()


@pytest.mark.parametrize("name", TAKE_A_RESULT)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("a.nc", r"a path is no result; call meanfield\.load\('a\.nc'\) first"),
        (None, "NoneType is no result"),
        (xr.DataArray(1.0), "DataArray is no result; give a Dataset"),
    ],
)
def test_no_result(name, given, words, untouched):
    with pytest.raises(InputError, match=words):
        call(name, untouched, given)
    assert not untouched.has_data()


@pytest.mark.parametrize("name", TAKE_AXES)
@pytest.mark.parametrize(
    ("given", "shown"), [(None, "None"), (Figure(), "<Figure>"), (Figure().subplots(1, 2), "<ndarray>"), ("Q", "'Q'")]
)
def test_no_axes(name, given, shown):
    with pytest.raises(InputError, match=f"axes = {shown}: give the Axes of one panel, such as matplotlib"):
        call(name, given, AnyResult())


@pytest.mark.parametrize("name", sorted({*TAKE_A_RESULT} - {"plot_result", "animate_weights"}))
def test_a_result_of_another_method(name, axes, results, branches):
    """No function draws all of a density and of branches, and each says what it misses."""
    with pytest.raises(InputError, match=r"draws '|is no number over two axes"):
        call_with_each(name, axes, results["density"], branches)


def test_where_to_find_what_is_missing(axes, results):
    with pytest.raises(InputError, match=r"draws 'P', which .*'order_parameters' does not hold; give .* 'density', or"):
        plotting.plot_density(results["ODE"], axes, 1.0)
    with pytest.raises(
        InputError,
        match="draws 'escape_time', which this result lacks, and others of method 'particles' hold; change",
    ):
        plotting.plot_escape_times(results["SGD"], axes)
    with pytest.raises(InputError, match=r"draws 'p', which .* does not hold; call plot_result"):
        plotting.plot_replicas(results["SGD"], axes, quantity="p")
    with pytest.raises(InputError, match="draws 'weights'"):
        plotting.plot_conditional(results["density"], results["ODE"], axes, 1.0)


def test_results_that_may_be_left_out(axes, results):
    assert plotting.plot_histogram(results["SGD"], axes, 1.0, density=None) is axes


def test_numbers_that_are_texts(axes):
    with pytest.raises(InputError, match=r"q = 'a\.nc': give overlaps in time"):
        plotting.plot_trajectories("a.nc", axes)
    with pytest.raises(InputError, match=r"q = <list>: give overlaps in time, an array of shape"):
        plotting.plot_trajectories([0.1, 0.2], axes)
    with pytest.raises(InputError, match="chance = 'high': give an array"):
        plotting.plot_chance([100.0], "high", axes)


def test_results_that_have_no_place_side_by_side(results, branches):
    with pytest.raises(InputError, match="'branches' is no result in time of the family of the first one; draw it by"):
        plotting.plot_comparison({"ODE": results["ODE"], "branches": branches})
    with pytest.raises(InputError, match=r"comparison = <Dataset>: give what meanfield\.compare"):
        plotting.plot_comparison({"ODE": results["ODE"]}, results["SGD"])
    with pytest.raises(InputError, match="not a result of meanfield"):
        plotting.plot_comparison({"ODE": results["ODE"], "own": xr.Dataset({"q": 1.0})})


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda d, s, axes: plotting.plot_density(d, axes, "1.0"), r"time = '1\.0': give a number"),
        (lambda d, s, axes: plotting.plot_histogram(s, axes, None), "time = None: give a number"),
        (lambda d, s, axes: plotting.plot_densities(d, axes, 1.0), r"times = 1\.0: give a list of numbers"),
        (lambda d, s, axes: plotting.plot_histograms(s, axes, []), "times = <list>: give a list of numbers"),
        (lambda d, s, axes: plotting.plot_density_given_u(d, axes, feature=3), "feature = 3: give the .*, 0 to 1"),
        (lambda d, s, axes: plotting.plot_pairs(s, axes, feature=-1), "feature = -1: give the number of a feature"),
        (lambda d, s, axes: plotting.plot_conditional(d, s, axes, 1.0, feature="u"), "feature = 'u': give the number"),
        (lambda d, s, axes: plotting.animate_weights(d, feature=2), "feature = 2: give the number"),
    ],
)
def test_times_and_features(results, axes, use, words):
    with pytest.raises(InputError, match=words):
        use(results["density"], results["SGD"], axes)


TAKE_A_TIME = [
    *(getattr(plotting, name) for name in TAKE_AXES),
    plane.plot_channel_densities,
    plane.plot_joint_density,
    weights.plot_sample,
]
TAKE_A_TIME = [plot for plot in TAKE_A_TIME if {"time", "times"} & set(inspect.signature(plot).parameters)]


def draw_at(plot, time, results, axes):
    """Call a plot function at a time, with results that hold what it draws."""
    given = {}
    for parameter in inspect.signature(plot).parameters.values():
        if parameter.annotation.startswith("xr.Dataset"):
            given[parameter.name] = results[parameter.name, plot.__name__]
    given |= {"channel": 0} if "channel" in inspect.signature(plot).parameters else {}
    chosen = (
        {} if time is None else {"times": [time]} if "times" in inspect.signature(plot).parameters else {"time": time}
    )
    return plot(axes=axes, **given, **chosen)


@pytest.fixture(scope="module")
def held(results):
    """Results by the names of arguments and functions that take them."""
    density, runs = results["density"], results["SGD"]
    of_channels = density.expand_dims(channel=2, axis=-1)
    w = np.linspace(-2.0, 2.0, 5)
    ends = np.stack([w[:-1], w[1:]], axis=1)
    P = np.outer([0.1, 0.4, 0.3, 0.2], [0.2, 0.5, 0.2, 0.1]) * np.ones((3, 1, 1))
    joint = xr.Dataset(
        {
            "P_joint": (("density_time", "w1", "w2"), P),
            "w1_bnds": (("w1", "end"), ends),
            "w2_bnds": (("w2", "end"), ends),
        },
        {"density_time": density["time"].values, "w1": w[:-1] + 0.5, "w2": w[:-1] + 0.5},
        density.attrs | {"method": "joint_density"},
    )
    sample = runs.rename(weights="w_sample").isel(replica=0).expand_dims(channel=2, axis=-1)
    both = runs.assign(weights=runs["weights"].expand_dims(channel=2, axis=-1))
    found = {(name, plot.__name__): runs for name in ("dataset", "particles") for plot in TAKE_A_TIME}
    found |= {("density", plot.__name__): density for plot in TAKE_A_TIME}
    found |= {("dataset", name): density for name in ("plot_density", "plot_densities", "plot_density_given_u")}
    found |= {("density", "plot_channel_densities"): of_channels, ("dataset", "plot_sample"): sample}
    return found | {("density", "plot_joint_density"): joint, ("particles", "plot_joint_density"): both}


@pytest.mark.parametrize("plot", TAKE_A_TIME, ids=lambda plot: plot.__name__)
def test_nothing_is_drawn_at_another_time_than_was_asked_for(plot, held):
    """Outputs are at 0, 0.5 and 1; the remedy of the message is followed."""
    for time, nearest in [(99.0, "1"), (0.7, "0.5"), (-1.0, "0"), (0.4999, "0.5")]:
        with pytest.raises(InputError, match=rf"time = {time:g}: .* at 3 times from 0 to 1, of which {nearest} is the"):
            draw_at(plot, time, held, Figure().subplots())
        assert draw_at(plot, float(nearest), held, Figure().subplots()).has_data()
    assert draw_at(plot, 0.5 + 1e-6, held, Figure().subplots()).has_data()  # as typed, within 1e-5


def test_most_functions_that_take_a_time_are_tried():
    assert len(TAKE_A_TIME) >= 10


def stopped_before(result, time):
    """An interrupted run: it has NaN at later times."""
    known = {
        name: values.where(values[dim] < time)
        for name, values in result.data_vars.items()
        for dim in {"time", "snapshot_time"}.intersection(values.dims)
    }
    return result.assign(known).assign_attrs(result.attrs | {"status": "interrupted"})


@pytest.mark.parametrize("plot", ["plot_density", "plot_densities", "plot_density_given_u", "plot_histogram"])
def test_times_that_a_run_did_not_reach_are_refused(plot, held):
    stopped = {key: stopped_before(result, 0.8) for key, result in held.items()}
    with pytest.raises(InputError, match=r"time = 1: the run has no '\w+' there \(interrupted\); give one up to 0\.5"):
        draw_at(getattr(plotting, plot), 1.0, stopped, Figure().subplots())
    assert draw_at(getattr(plotting, plot), 0.5, stopped, Figure().subplots()).has_data()


def test_weights_are_compared_at_the_last_time_that_both_reached(results):
    stopped = {"density": stopped_before(results["density"], 0.8), "SGD": results["SGD"]}
    figure = plotting.plot_comparison(stopped)
    titles = [axes.get_title() for axes in figure.axes[1:]]
    assert len(titles) == 3
    assert all("$t = 0.5$" in title for title in titles)
