"""Animations: a frame for each time, the right numbers in it, and files that other software reads."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.animation import writers
from PIL import Image

from meanfield.errors import InputError
from meanfield.plotting import animate_weights
from meanfield.results import figure_files
from tests.plotting.conftest import cell_averages


@pytest.fixture(scope="module")
def film(results):
    return animate_weights(results["density"], results["SGD"], feature=1)


def test_frames_show_density_and_nearest_histogram(results, film):
    density, sgd = results["density"], results["SGD"]
    assert film._save_count == density.sizes["time"]
    overlap, everything, given_u = film._fig.axes
    assert given_u.get_ylabel() == "density $P_t(w|u_2)$"
    for frame, time in enumerate(density["time"].values):
        film._func(frame)
        assert everything.get_title() == f"all weights, $t = {time:g}$"
        assert list(overlap.lines[-1].get_xdata()) == [time, time]
        P = density["P_w"].values[frame]
        assert np.allclose(cell_averages(everything.lines[0]), P, rtol=1e-9, atol=1e-9)  # by way of sums; cut off at 0
        snapshot = int(np.argmin(np.abs(sgd["snapshot_time"].values - time)))
        heights, edges, _ = everything.patches[0].get_data()
        w = sgd["weights"].values[:, snapshot].ravel()
        counts = np.histogram(w, edges)[0]
        assert np.allclose(heights * np.diff(edges) * w.size, counts)  # exact: rounding
    assert len(given_u.lines) == 2  # a Rademacher coordinate has two values


def test_histograms_are_faint_at_other_times(results):
    few = results["SGD"].isel(snapshot_time=[-1])
    film = animate_weights(results["density"], few)
    histogram = film._fig.axes[1].patches[0]
    film._func(0)
    faint = histogram.get_alpha()
    film._func(2)
    assert faint < histogram.get_alpha()
    assert histogram.get_label() == "SGD at $t = 1$"
    film._draw_was_started = True  # nothing was saved, and that is meant


def test_gif_has_all_frames(results, film, tmp_path):
    path = tmp_path / "weights.gif"
    figure_files.save_animation(film, path)
    with Image.open(path) as image:
        assert image.n_frames == results["density"].sizes["time"]
        assert image.size == (1000, 360)
        assert image.info["duration"] == 100
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
@pytest.mark.skipif(not writers.is_available("ffmpeg"), reason="ffmpeg is not installed")
def test_mp4_is_one(results, tmp_path):
    path = tmp_path / "weights.mp4"
    figure_files.save_animation(animate_weights(results["density"].isel(time=[0, 2])), path)
    assert path.read_bytes()[4:8] == b"ftyp"


def test_paths_are_refused_before_anything_is_drawn(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="'avi' is no animation format; use one of gif, mp4"):
        figure_files.check_animation_path(tmp_path / "a.avi")
    with pytest.raises(InputError, match="does not exist"):
        figure_files.check_animation_path(tmp_path / "none" / "a.gif")
    monkeypatch.setattr(type(writers), "is_available", lambda self, name: False)
    with pytest.raises(InputError, match=r"written by ffmpeg, which is not installed; .* ends in .gif"):
        figure_files.check_animation_path(tmp_path / "a.mp4")


class Broken:
    """An animation whose writing fails half-way."""

    def save(self, path, **_):
        Path(path).write_text("half of it")
        raise OSError("no space left on device")


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "weights.gif"
    path.write_text("old")
    with pytest.raises(OSError, match="no space"):
        figure_files.save_animation(Broken(), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_animated_is_refused(results):
    with pytest.raises(InputError, match="shows a density, not 'order_parameters'"):
        animate_weights(results["ODE"])
    with pytest.raises(InputError, match="kept no weights"):
        animate_weights(results["density"], results["SGD"].drop_vars("weights"))
    with pytest.raises(InputError, match="feature = 2: give the number of a feature, 0 to 1"):
        animate_weights(results["density"], feature=2)
