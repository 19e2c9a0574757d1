"""Plot functions that are given something else than a result and the Axes of a panel say what to give."""

import inspect

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from meanfield import InputError, plotting

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


@pytest.mark.parametrize("name", TAKE_A_RESULT)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("a.nc", r"a path is no result; call meanfield\.load\('a\.nc'\) first"),
        (None, "NoneType is no result"),
        (xr.DataArray(1.0), "DataArray is no result; give a Dataset"),
    ],
)
def test_no_result(name, given, words, axes):
    with pytest.raises(InputError, match=words):
        call(name, axes, given)


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
