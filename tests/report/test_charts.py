"""Charts of results against what they show, and their drawings in a browser."""

import shutil
import subprocess

import numpy as np
import pytest
import xarray as xr

from meanfield.families.alpha_contrastive import charts as circle
from meanfield.families.latent_tree import display as tree
from meanfield.numerics.sphere_cells import SphereCells
from meanfield.report.charts import Chart, matrices, profile, profile_of_runs
from meanfield.report.maps import plane
from meanfield.report.motion import _frames_of, _panels_of_charts
from meanfield.report.page import Page, rendered
from meanfield.results.schema import SCHEMA_VERSION
from tests import ROOT

MIXING = np.array([[1.2, 0.0], [0.3, 0.5]])
"""Factor of the covariance of two Gaussian weights, which are not alike."""


def attrs(method, u='{ law = "rademacher" }'):
    """Attributes of results of two channels, and of a feature whose coordinates have a law."""
    problem = (ROOT / "data/problems/two_channels.toml").read_text(encoding="utf-8")
    one, _, rest = problem.partition("[[features]]")
    feature = f'hidden.law = "rademacher"\ninitial_overlap = [0.4, 0.3]\ncoordinate = {u}\n'
    text = f"{one}[[features]]\n{feature}\n[time]{rest.partition('[time]')[2]}"
    return {"method": method, "schema_version": SCHEMA_VERSION, "family": "contrastive", "problem": text}


def gaussian_plane(cells=160):
    """Density P of the two weights, averaged over cells of unlike widths by a midpoint in each of 9 parts of a cell.

    Given u = +-1 it is P(w) (1 + u tanh w_1), whose mean is P as P is even.
    """
    edges = [8.0 * np.linspace(-1.0, 1.0, cells + 1), 5.0 * np.linspace(-1.0, 1.0, cells + 21)]
    precision, norm = np.linalg.inv(MIXING @ MIXING.T), 2.0 * np.pi * np.linalg.det(MIXING)
    P, tilted, thirds = 0.0, 0.0, (np.arange(3) + 0.5) / 3.0
    for i, j in np.ndindex(3, 3):
        x, y = np.meshgrid(
            *(e[:-1] + p * np.diff(e) for e, p in zip(edges, thirds[[i, j]], strict=True)), indexing="ij"
        )
        w = np.stack([x, y], axis=-1)
        part = np.exp(-0.5 * np.einsum("abi,ij,abj->ab", w, precision, w)) / norm / 9.0
        P, tilted = P + part, tilted + part * np.tanh(x)
    bounds = {
        f"w{k + 1}_bnds": ((f"w{k + 1}", "bounds"), np.stack([e[:-1], e[1:]], axis=1)) for k, e in enumerate(edges)
    }
    places = {f"w{k + 1}": 0.5 * (e[1:] + e[:-1]) for k, e in enumerate(edges)}
    held = {"P_joint": (("density_time", "w1", "w2"), np.stack([P, np.full_like(P, np.nan)]))}
    given = np.stack([np.stack([P - tilted, P + tilted])] * 2)
    held["P_joint_given_u"] = (("density_time", "node", "w1", "w2"), given)
    held |= {"u": (("node", "feature"), [[-1.0], [1.0]]), "u_weight": ("node", [0.5, 0.5])}
    return xr.Dataset(held | bounds, places | {"density_time": [0.0, 1.0]}, attrs("density"))


def weights_of_sgd(count=40_000):
    random = np.random.default_rng(7)
    w = random.normal(size=(2, 1, count, 2)) @ MIXING.T
    u = np.where(random.uniform(-1.0, 1.0, (2, count)) < np.tanh(w[:, 0, :, 0]), 1.0, -1.0)[..., None]
    w[1, 0, :9] = np.nan  # of a replica that did not come so far
    held = {"weights": (("replica", "snapshot_time", "coordinate", "channel"), w)}
    held["U"] = (("replica", "coordinate", "feature"), u)
    return xr.Dataset(held, {"snapshot_time": [0.0]}, attrs("particles"))


def tree_of(nodes=3, replicas=2):
    """Correlations in a binary tree of four levels."""
    levels = np.repeat([4, 3, 2, 1], [1, 2, 4, 8])
    values = np.random.default_rng(1).uniform(-1.0, 1.0, (replicas, 2, 15, nodes))
    held = {"correlation": (("replica", "time", "latent", "node"), values)}
    return xr.Dataset(held, {"time": [0.0, 1.0], "latent_level": ("latent", levels)})


def ring_of(cells=90, start=0.3):
    """Density (1 + cos theta)/(2 pi) along a circle that is cut at an angle."""
    edges = start + np.linspace(0.0, 2.0 * np.pi, cells + 1)
    rho = np.diff(edges + np.sin(edges)) / np.diff(edges) / (2.0 * np.pi)
    bounds = np.stack([edges[:-1], edges[1:]], axis=1)
    return xr.Dataset({"rho": (("time", "angle"), [rho]), "angle_bnds": (("angle", "bounds"), bounds)}, {"time": [0.0]})


def filters_of_sgd(runs=40, filters=50):
    """Filters with that law, by rejection."""
    random = np.random.default_rng(3)
    angle = random.uniform(-np.pi, np.pi, 20 * runs * filters)
    angle = angle[random.uniform(0.0, 2.0, len(angle)) < 1.0 + np.cos(angle)][: runs * filters]
    w = np.stack([np.cos(angle), np.sin(angle)], axis=1).reshape(runs, 1, 1, filters, 2)
    dims = ("replica", "time", "place", "filter", "coordinate")
    return xr.Dataset({"weights": (dims, 2.0 * w)}, {"time": [0.0]})


def spectral_runs():
    """Weights with mean product 2 rho where the eigenvalue is rho, over 30 runs."""
    random = np.random.default_rng(5)
    rho = xr.DataArray(random.uniform(0.1, 3.0, (30, 400)), dims=("replica", "coordinate"))
    u = xr.DataArray(random.normal(size=(30, 400, 1)), dims=("replica", "coordinate", "feature"))
    noise = xr.DataArray(
        random.normal(size=(30, 1, 400, 2)), dims=("replica", "snapshot_time", "coordinate", "student")
    )
    w = (2.0 * rho * u).squeeze("feature", drop=True) + noise
    return w.assign_coords(snapshot_time=[1.0]), u, rho


def test_the_plane_of_two_weights_has_their_moments_and_is_that_of_sgd():
    limits, runs = [*plane(gaussian_plane())], [*plane(weights_of_sgd())]
    limit, sgd = limits[0], runs[0]
    assert limit.values.sizes["density_time"] == 1  # the other was not reached
    edges, P = limit.places["x"], limit.values.values[0]
    assert (edges == sgd.places["x"]).all()
    middle, mass = 0.5 * (edges[1:] + edges[:-1]), P * np.diff(edges)[0] ** 2
    assert abs(mass.sum() - 1.0) < 2e-3  # VISIBLE lies beyond each of four sides
    covariance = np.einsum("ij,i,j->", mass, middle, middle)  # cells change no mixed moment of a smooth law by 1 %
    assert covariance == pytest.approx((MIXING @ MIXING.T)[0, 1], rel=1e-2)
    second = [mass.sum(axis=1 - k) @ middle**2 - (edges[1] - edges[0]) ** 2 / 12.0 for k in (1, 0)]
    assert second == pytest.approx(np.diag(MIXING @ MIXING.T), rel=2e-2)  # w1 along columns, its tails cut
    assert [each.tab for each in limits] == [each.tab for each in runs] == ["", "u = -1", "u = 1"]
    for limit, sgd, draws in zip(limits, runs, (80_000 - 9, 40_000, 40_000), strict=True):
        expected = limit.values.values[0] * np.diff(edges)[0] ** 2
        drawn = sgd.values.values[0] * np.diff(edges)[0] ** 2
        many = expected > 20.0 / draws
        z = (drawn - expected)[many] / np.sqrt(expected[many] / draws)
        # chi^2: one in 10^6 by chance; the numbers of points given u are their means to half a percent
        assert abs((z**2).mean() - 1.0) < 5.0 * np.sqrt(2.0 / many.sum())


def test_maps_given_u_are_at_the_values_of_the_law():
    """Runs normalise sparse features, each by its own length."""
    law = '{ law = "three_point", fourth_moment = 4.0 }'
    runs = weights_of_sgd(400).assign_attrs(attrs("particles", law))
    random = np.random.default_rng(3)
    u = random.choice([-2.0, 0.0, 2.0], runs["U"].shape, p=[0.125, 0.75, 0.125])
    runs["U"] = runs["U"].dims, u / np.sqrt((u**2).mean(axis=1, keepdims=True))
    assert [each.tab for each in plane(runs)] == ["", "u = -2", "u = 0", "u = 2"]


def test_the_sphere_has_the_density_of_its_cells_and_filters_where_they_point():
    """With the density (1 + w_1/2 + w_3/2)/(4 pi)."""
    cells, random = SphereCells(60), np.random.default_rng(9)
    at = cells.coordinates()
    polar, azimuth = np.meshgrid(at["polar"], at["azimuth"], indexing="ij")
    rho = (1.0 + 0.5 * np.sin(polar) * np.cos(azimuth) + 0.5 * np.cos(polar)) / (4.0 * np.pi)
    bounds = {f"{name}_bnds": ((name, "bounds"), at[f"{name}_bnds"]) for name in ("polar", "azimuth")}
    held = {
        "rho_on_sphere": (("time", "polar", "azimuth"), rho[None]),
        "mean": (("time", "coordinate"), [[1 / 6, 0, 1 / 6]]),
    }
    (limit,) = circle.charts(xr.Dataset(held | bounds, {"time": [0.0]}))
    x, z = (0.5 * (limit.places[name][1:] + limit.places[name][:-1]) for name in "xy")
    exact = (1.0 + 0.5 * np.sqrt(1.0 - z**2)[:, None] * np.cos(np.pi * x) + 0.5 * z[:, None]) / (4.0 * np.pi)
    # midpoints, on cells of pi/16 by 1/8: a few percent at the poles, where the square root bends
    assert np.abs(limit.values.values[0] / exact - 1.0).max() < 0.03
    w = random.normal(size=(100_000, 3))
    w /= np.linalg.norm(w, axis=1)[:, None]
    w = w[random.uniform(0.0, 1.75, len(w)) < 1.0 + 0.5 * w[:, 0] + 0.5 * w[:, 2]][:40_000].reshape(2, 1, 1, -1, 3)
    dims = ("replica", "time", "place", "filter", "coordinate")
    (sgd,) = circle.charts(xr.Dataset({"weights": (dims, 2.0 * w)}, {"time": [0.0]}))
    share = limit.values.values[0] * 4.0 * np.pi / limit.values.values[0].size
    count = 40_000 * sgd.values.values[0] * 4.0 * np.pi / share.size
    assert count.sum() == pytest.approx(40_000)
    chi = ((count - 40_000 * share) ** 2 / (40_000 * share)).sum()
    assert chi < share.size + 5.0 * np.sqrt(2.0 * share.size)  # one in 10^6 by chance


def test_profiles_of_runs_have_their_intervals_about_what_is_true():
    w, u, rho = spectral_runs()
    (chart,) = profile_of_runs("R", w, u, rho)
    assert chart.places["curves"] == ["11", "21"]
    assert (np.diff(chart.places["x"]) > 0).all()
    off = np.abs(chart.values.values[0] - 2.0 * chart.places["x"]) / chart.half[0]
    assert (off > 1.0).sum() <= 5  # of 24, two of which hold the same u; 5 % chance each
    assert off.max() < 2.0
    (square,) = profile_of_runs("Q", w, w.rename(student="student_"), rho)
    assert square.places["curves"] == ["11", "12", "22"]
    assert list(profile_of_runs("R", w, u, 0.0 * rho + 1.0)) == []  # one eigenvalue
    limit = xr.DataArray(np.ones((2, 1, 1)), {"time": [0.0, 1.0], "rho": [1.0]}, ("time", "rho", "student"))
    assert list(profile("R", limit)) == []


def test_the_circle_is_turned_without_loss_and_has_the_filters_of_all_runs():
    (limit,) = circle.charts(ring_of())
    sgd, dots = circle.charts(filters_of_sgd())
    edges = limit.places["x"]
    exact = np.diff(edges + np.sin(edges)) / np.diff(edges) / (2.0 * np.pi)
    # within a cell of 4 degrees the density is taken as even, which it is to half the change of its slope
    assert np.abs(limit.values.values[0] - exact).max() < 0.5 * (2.0 * np.pi / 90) / (2.0 * np.pi)
    assert (limit.values.values[0] * np.diff(edges)).sum() == pytest.approx(1.0, abs=1e-12)
    width = np.diff(sgd.places["x"])
    expected = np.diff(sgd.places["x"] + np.sin(sgd.places["x"])) / (2.0 * np.pi)
    count = sgd.values.values[0] * width * 2000
    assert count.sum() == pytest.approx(2000)
    chi = ((count - 2000 * expected) ** 2 / (2000 * expected)).sum()
    assert chi < len(width) + 5.0 * np.sqrt(2.0 * len(width))
    assert dots.values.shape == (1, 50)
    assert dots.label == "first run"
    stopped = filters_of_sgd().isel(time=[0, 0]).assign_coords(time=[0.0, 1.0])
    stopped["weights"][3, 1] = np.nan  # so that 39 of 40 runs are there
    stopped["weights"][:, 0] = np.nan
    absent, present = next(circle.charts(stopped)).values.values
    assert np.isnan(absent).all()
    assert (present * width).sum() == pytest.approx(1.0)


def test_a_tree_shows_the_nodes_of_the_first_run_from_the_root_on(monkeypatch):
    dataset = tree_of()
    (chart,) = tree.charts(dataset)
    assert chart.places["levels"] == [1, 2, 4, 8]
    assert np.array_equal(chart.values, dataset["correlation"][0])
    assert chart.label == "first run"
    monkeypatch.setattr(tree, "MOST_IN_TREE", 10)
    monkeypatch.setattr(tree, "MOST_NODES", 2)
    (chart,) = tree.charts(dataset.isel(replica=0))
    assert chart.title.endswith("3 of 4 levels, 2 of 3 nodes")
    assert chart.places["levels"] == [1, 2, 4]
    assert chart.values.shape == (2, 7, 2)
    assert chart.label == ""


def test_matrices_are_means_over_runs_and_those_of_one_row_are_left_out():
    R = np.arange(16.0).reshape(2, 2, 2, 2)
    runs = xr.Dataset({"R": (("replica", "time", "student", "teacher"), R)}, {"time": [0.0, 1.0]})
    (chart,) = matrices(runs, "Q", "R")
    assert np.array_equal(chart.values, R.mean(axis=0))
    assert list(matrices(runs.isel(student=[0]), "R")) == []
    statistics = xr.Dataset({"R_mean": runs["R"].mean("replica")})
    assert np.array_equal(next(matrices(statistics, "R")).values, chart.values)


def test_frames_keep_the_times_of_charts_and_parts_have_none_at_others():
    times = np.linspace(0.0, 10.0, 1001)
    many = xr.DataArray(np.zeros((1001, 1, 1)), {"time": times}, ("time", "row", "column"))
    few = many.sel(time=[0.03, 7.77], method="nearest").rename(time="snapshot_time")
    charts = [("many", Chart("map", "a", many)), ("few", Chart("map", "a", few))]
    frames = _frames_of({}, charts)
    assert len(frames) <= 152
    assert np.isclose(frames[:, None], [0.03, 7.77]).sum() == 2
    (panel,) = _panels_of_charts(charts, frames)
    there = [time for time, values in zip(frames, panel["parts"][1]["frames"], strict=True) if values is not None]
    assert there == pytest.approx([0.03, 7.77])


def test_notebooks_show_a_page_in_a_frame():
    shown = Page('<p title="a">&amp;</p>')._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;p title=&quot;a&quot;&gt;&amp;amp;&lt;/p&gt;" sandbox="allow-scripts"')


def page_of_charts():
    """A page with a chart of each kind, in two frames."""
    w, u, rho = spectral_runs()
    limit = xr.DataArray(
        [[[0.0], [0.0]], [[1.0], [4.0]]], {"time": [0.0, 1.0], "rho": [0.5, 2.0]}, ("time", "rho", "k")
    )
    R = xr.DataArray(
        [np.zeros((2, 3)), [[1.0, -0.5, 0.0], [0.2, 0.9, np.nan]]], {"time": [0.0, 1.0]}, ("time", "a", "b")
    )
    joint = gaussian_plane(40).isel(density_time=[0])
    charts = [
        *matrices(xr.Dataset({"R": R}), "R"),
        *plane(joint),
        *plane(weights_of_sgd(500)),
        *profile("R", limit),
        *profile_of_runs("R", w, u, rho),
        *tree.charts(tree_of()),
        *circle.charts(ring_of()),
        *circle.charts(filters_of_sgd(2, 20)),
    ]
    times = np.array([0.0, 1.0])
    motion = {
        "times": times.tolist(),
        "panels": list(_panels_of_charts([("a", v) for v in charts], times)),
        "pairs": [],
    }
    return rendered("explore.html", title="charts", names=["charts"], motions=[motion])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_a_browser_draws_each_kind_of_view_at_two_times(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(page_of_charts(), encoding="utf-8")
    words = "chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr --virtual-time-budget=2000"
    shown = []
    for time in (0, 1):
        command = [*words.split(), "--dump-dom", f"--user-data-dir={tmp_path / 'profile'}", f"{page.as_uri()}#t={time}"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert f"<output>t = {time}</output>" in ended.stdout
        assert "CONSOLE" not in ended.stderr
        assert "NaN" not in ended.stdout.partition("<main>")[2].partition('id="data"')[0]
        shown.append(ended.stdout.partition("<main>")[2].partition('id="data"')[0])
    for drawn in shown:
        assert drawn.count('class="node"') == 15 * 3
        assert drawn.count("<rect") == 6 + 4 * 32**2 + 15 * 3 + 6  # cells, nodes, and frames of axes
        assert drawn.count("<figure") == 6
        assert drawn.count('aria-pressed="true"') == 1
    assert "a, at t = 0" in shown[1]  # densities that are known at the first time stay
    assert shown[0].count("color-mix(in oklab, var(--accent) 100%") < shown[1].count(
        "color-mix(in oklab, var(--accent) 100%"
    )
