"""Figures can be read: curves differ by more than colour, legends hide nothing, bins and curves resolve peaks."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.stats import norm

from meanfield import plotting
from meanfield.comparison.inputs import is_comparable
from meanfield.plotting.histograms import bin_edges, bins_of_sample, density_curve, draw_histogram, show_areas
from meanfield.plotting.panels import draw_figure
from meanfield.plotting.style import LINES
from meanfield.plotting.trajectories import entries_of
from meanfield.problems.known_families import families
from meanfield.results.result import Result
from meanfield.testing.methods import Example
from tests.plotting.conftest import check_panels


def hidden_pixels(figure):
    """Number of pixels of curves below legends: those that are not white when legends are not drawn."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [axes.get_legend().get_window_extent() for axes in figure.axes if axes.get_legend()]
    figure.set_layout_engine("none")
    for axes in figure.axes:
        if axes.get_legend():
            axes.get_legend().set_visible(False)
    canvas.draw()
    image = np.asarray(canvas.buffer_rgba())[::-1, :, :3]  # rows from below
    parts = (image[int(b.y0) + 1 : int(b.y1), int(b.x0) + 1 : int(b.x1)] for b in boxes)
    return sum(int((part < 250).any(axis=-1).sum()) for part in parts)


def test_styles_of_many_curves_differ():
    axes = Figure().subplots()
    for number in range(3 * len(LINES)):
        axes.plot([0, 1], [0, 1], label=str(number), **plotting.curve_style(number))
    check_panels(axes.figure)
    assert len({plotting.marker_style(number)["marker"] for number in range(7)}) == 7


def test_comparison_can_be_read(results):
    figure = plotting.plot_comparison(results)
    check_panels(figure)
    assert hidden_pixels(figure) == 0


@pytest.mark.slow
@pytest.mark.parametrize("part", [pytest.param(each, id=each.example) for every in families() for each in every.parts])
def test_no_legend_hides_part_of_a_result_of_any_family(part):
    example = Example(part)
    results = [example.result(method) for method in part.methods]
    in_time = [each for each in results if is_comparable(Result.of(each))]
    figures = [*map(plotting.plot_result, results)]
    figures += [plotting.plot_comparison(dict(zip("ab", pair, strict=True))) for pair in combinations(in_time, 2)]
    assert [hidden_pixels(figure) for figure in figures] == [0] * len(figures)


def test_times_that_are_evenly_spaced_in_their_logarithms_are_shown_so():
    for times, scale in ([0.0, 0.1, 1.0, 10.0, 100.0], "symlog"), ([0.0, 1.0, 2.0, 3.0, 4.0], "linear"):

        def panel(axes, times=times):
            axes.plot(times, np.ones(5))
            axes.set(xlabel="time $t$")

        assert draw_figure("title", [panel]).axes[0].get_xscale() == scale


def test_a_figure_is_high_enough_for_long_legends():
    """Three results with six curves each, and a title with a verdict on each pair of results."""

    def panel(axes):
        for number in range(18):
            axes.plot([0, 1], [number, number + 1], label=f"result, {number}", **plotting.curve_style(number))

    figure = draw_figure("\n".join(["title", *["a - b: AGREES"] * 3]), [panel] * 3)
    figure.draw_without_rendering()
    title = figure.texts[0].get_window_extent()
    for axes in figure.axes:
        legend, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
        assert figure.bbox.y0 <= legend.y0
        assert legend.y1 <= title.y0
        assert legend.height <= inside.height


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_room_is_made_for_a_legend_where_there_is_none(scale):
    figure = Figure(figsize=(4, 3), layout="constrained")
    axes = figure.subplots()
    x = np.linspace(0, 1, 201)
    axes.plot(x, 2 + np.sin(80 * x), label="everywhere")
    axes.fill_between(x, 0.5, 1.5, label="a band")
    axes.set(yscale=scale, ylim=(0.5, 3.2), xlim=(0, 1))
    plotting.place_legend(axes)
    assert axes.get_ylim()[0] == 0.5
    assert hidden_pixels(figure) == 0


def test_bins_resolve_a_peak_and_do_not_split_its_tails():
    """Nine in ten weights lie in a peak a hundred times narrower than the range: bins of one width show one bar."""
    rng = np.random.default_rng(1)
    n = 20_000
    sample = np.where(rng.random(n) < 0.9, 0.02 * rng.standard_normal(n), 1.0 * rng.standard_normal(n))
    edges = bins_of_sample(sample)
    counts, _ = np.histogram(sample, edges)
    assert counts.max() / n < 1.3 * n ** (-1 / 3)  # the bound of the docstring
    assert np.diff(edges).max() < 1.3 * n ** (-1 / 3) * (edges[-1] - edges[0])  # the same for widths
    assert np.histogram(sample, len(edges) - 1)[0].max() / n > 0.5


def test_bins_of_equal_draws_are_one_bar():
    assert len(bins_of_sample(np.full(50, 0.3))) == 2
    two = bins_of_sample(np.repeat([-1.0, 1.0], 500))
    assert np.all(np.diff(two) > 0)
    assert np.histogram(np.repeat([-1.0, 1.0], 500), two)[0].sum() == 1000


def test_bins_follow_a_law_if_it_is_known():
    w = np.linspace(-8, 8, 4001)
    F = 0.5 * (1 + np.sign(w) * (1 - np.exp(-np.abs(w))))  # Laplace's
    edges = bin_edges(w, F, 1000.0)
    assert np.allclose(edges, -edges[::-1], atol=1e-9)  # rounding
    assert np.diff(np.interp(edges, w, F)).max() < 1.3 * 1000 ** (-1 / 3)


@pytest.mark.parametrize("kink", [False, True])
def test_curve_of_a_density_is_of_third_order_even_at_a_kink(kink):
    """Averages over cells of width h of exp(-|w|) are h/2 too low at its peak; the curve errs by h^3."""
    errors = []
    for cells in (40, 80, 160):
        edges = np.linspace(-2.0, 2.0, cells + 1)
        F = -np.sign(edges) * np.expm1(-np.abs(edges)) if kink else np.sin(edges)
        averages = np.diff(F) / np.diff(edges)
        w, P = density_curve(edges, averages)
        exact = np.exp(-np.abs(w)) if kink else np.cos(w)
        inside = np.abs(w) < 1.5  # cos w is cut off at 0
        errors.append(np.abs(P - exact)[inside].max())
        cells_inside = inside[1::3]
        assert np.allclose((P.reshape(-1, 3) @ [1, 4, 1] / 6)[cells_inside], averages[cells_inside])  # exact: rounding
    assert np.all(np.diff(np.log2(errors)) < -2.7)  # third order, 8 at each step
    assert errors[-1] < 1e-5


def test_legends_are_placed_in_panels_as_they_are_laid_out():
    """Free room below rising curves is enough for a long legend, once labels and titles have theirs."""
    x = np.linspace(0, 20, 41)
    q = 0.5 + 0.47 * np.minimum(x / 17, 1.0)

    def panel(axes):
        for number, label in enumerate(("density", "FiPy, 320 cells", "ODE without the prior", "SGD")):
            axes.plot(x, q, label=label, **plotting.curve_style(number))

    figure = draw_figure("title", [panel] * 4)
    assert all(axes.get_ylim()[1] < 1.0 for axes in figure.axes)
    assert hidden_pixels(figure) == 0


def test_a_legend_beside_a_panel_leaves_the_others_free():
    def panel(axes, count):
        x = np.linspace(0, 1, 101)
        for number in range(count):
            axes.plot(x, x**2 + number, label=f"result of a method, {number}", **plotting.curve_style(number))

    figure = draw_figure("title", [partial(panel, count=count) for count in (2, 24, 3)])
    assert hidden_pixels(figure) == 0


def test_scale_shows_areas_under_narrow_ridges(axes):
    """A hundredth of the probability in a ridge of width 1e-3 is twenty times as high as all the rest."""
    rng, w = np.random.default_rng(0), np.linspace(-4, 4, 80_001)
    P = 0.99 * norm.pdf(w) + 0.01 * norm.pdf(w, scale=5e-4)
    sample = np.concatenate([rng.normal(size=9900), rng.normal(scale=5e-4, size=100)])
    draw_histogram(sample, axes, law=(w, np.cumsum(P) / P.sum()))
    axes.plot(w, P)
    assert show_areas(axes) == pytest.approx(P.max(), rel=1e-12)  # rounding
    assert 0.4 < axes.get_ylim()[1] < 4.0  # the normal density has its maximum at 0.4, the ridge at 8


def test_scale_shows_peaks_that_are_not_far_above_the_areas(axes):
    w = np.linspace(-4, 4, 2001)
    draw_histogram(np.random.default_rng(0).normal(size=1000), axes, law=(w, norm.cdf(w)))
    axes.plot(w, norm.pdf(w))
    assert show_areas(axes) is None
    assert axes.get_ylim()[1] > norm.pdf(0.0)


def test_panels_say_how_many_entries_they_leave_out(axes):
    values = xr.DataArray(np.zeros((3, 4, 10)), dims=("time", "latent", "node"))
    axes.set_title("selectivity")
    for _ in range(2):
        assert len(list(entries_of(values, "time", axes=axes))) == 12
    assert axes.get_title() == "selectivity\n12 of 40 shown"
    list(entries_of(values.isel(latent=0), "time", axes=axes))
    assert axes.get_title() == "selectivity\n12 of 40 shown"
