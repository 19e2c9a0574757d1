"""Verdicts on printed tables and figures: numbers that agree are confirmed, others are not."""

import numpy as np
import pytest
import xarray as xr

from validation.latent_tree.figures import figure_3, figure_11, growing_norms, table_4, table_6, tables
from validation.latent_tree.figures.norms import BASE, SETTINGS
from validation.latent_tree.figures.trees import READINGS


def made_up(off):
    """Networks whose means are off print by some combined standard errors."""
    wanted = tables.theory()
    error = np.hypot(wanted["error"], 0.01)
    shift = xr.concat([wanted["mean"] + off * error] * 2, "reading").assign_coords(reading=list(READINGS))
    return wanted.assign(sgd_mean=shift, sgd_error=xr.full_like(shift, 0.01))


@pytest.mark.parametrize("study", [table_4, table_6])
def test_printed_means_that_agree(study):
    prepare = table_4.root if study is table_4 else (lambda numbers: numbers)
    near = [s for s in study.judge(prepare(made_up(2.5))) if "printed means" in s.text]
    far = [s for s in study.judge(prepare(made_up(-3.5))) if "printed means" in s.text]
    assert near
    assert all(s.holds for s in near)
    assert not any(s.holds for s in far)
    assert "s at 0.7 (-3.5)" in far[0].number
    assert tables.table_page(prepare(made_up(1.0))).count("| printed |") == 3 * (1 if study is table_4 else 5)


def test_norms_that_grow():
    shape = (len(SETTINGS), 3, 2, 1, 2)
    norm = np.ones(shape)
    norm[:, :, 1] = 2.0
    over = ("setting", "seed", "epoch", "latent", "contraction")
    index = {name: ("setting", [getattr(setting, name) for setting in SETTINGS]) for name in BASE._fields}
    places = {"contraction": ["paper", "code"], "latent": ["s0"]}
    data = xr.Dataset({"sgd_norm": (over, norm)}, places | index)
    assert all(s.holds for s in growing_norms.judge(data, "paper"))
    assert growing_norms.along(data, "depth").depth.values.tolist() == [3, 4, 5]
    assert not any(s.holds for s in growing_norms.judge(1.0 / data, "paper")[:1])


def test_what_a_neuron_on_a_ring_learns_and_what_bounds_are_worth():
    assert [s.holds for s in figure_3.judge(figure_3.theory())] == [True, True, True, False, False, True, True]
    assert [s.holds for s in figure_11.judge(figure_11.theory())] == [True, True, False, True, False]
