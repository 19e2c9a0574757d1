"""Verdicts on printed tables and figures: numbers that agree are confirmed, others are not."""

import numpy as np
import pytest
import xarray as xr

from validation.latent_tree.figures import figure_3, figure_11, growing_norms, table_4, table_6, tables
from validation.latent_tree.figures.norms import BASE, SETTINGS
from validation.latent_tree.figures.tables import WAYS
from validation.latent_tree.figures.trees import READINGS


def made_up(off):
    """Networks whose means are off print by some combined standard errors."""
    wanted = tables.theory()
    error = np.hypot(wanted["error"], 0.01)
    shift = xr.concat([wanted["mean"] + off * error] * len(WAYS), "reading").assign_coords(reading=list(WAYS))
    apart = xr.DataArray(0.03 * (-1.0) ** np.arange(10), dims="trial")  # a standard error of 0.01
    combined = xr.zeros_like(shift) + error
    return wanted.assign(
        sgd_score=shift + apart, sgd_mean=shift, sgd_error=xr.full_like(shift, 0.01), sgd_combined=combined
    )


@pytest.mark.parametrize("study", [table_4, table_6])
def test_printed_means_that_agree(study):
    prepare = table_4.root if study is table_4 else (lambda numbers: numbers)
    near = [s for s in study.judge(prepare(made_up(2.5))) if "printed means" in s.text]
    far = [s for s in study.judge(prepare(made_up(-3.5))) if "printed means" in s.text]
    assert near
    assert all(s.holds for s in near)
    assert not any(s.holds for s in far)
    assert "s at 0.7 (-3.5)" in far[0].number
    rows = 3 * (1 if study is table_4 else 5)
    agree, disagree = (tables.table_page(prepare(made_up(off))) for off in (1.0, -3.5))
    assert agree.count("| printed |") == rows
    assert "(-3.5)" not in agree
    assert disagree.count("2 nodes, initial (-3.5)") == len(WAYS) * rows


def test_largest_of_many_deviations():
    """One of 90 that is 4.3 standard errors off is to be expected by Student's law, all of them 8 off are not."""
    one = made_up(0.0)
    one["sgd_mean"][0, 0, 0, 0, 0] += 4.3 * one.sgd_combined[0, 0, 0, 0, 0]
    assert tables.largest(one, "as printed").holds
    assert "1 are above 3" in tables.largest(one, "as printed").number
    assert not tables.largest(made_up(8.0), "as printed").holds


def test_growth_needs_three_standard_errors_of_the_same_trials():
    change = xr.DataArray(0.03 * (-1.0) ** np.arange(10), dims="trial") + xr.zeros_like(
        made_up(0.0)["mean"][0, :, :, 0]
    )
    assert table_4.grows("", change + 0.031).holds is True
    assert table_4.grows("", change + 0.029).holds is None
    assert table_4.grows("", change - 0.031).holds is False


def test_loss_of_print():
    numbers = made_up(0.0)
    numbers["sgd_mean"][0] += 0.1  # as printed
    assert table_6.loss(numbers).holds
    numbers["sgd_mean"][1] += 0.1
    assert not table_6.loss(numbers).holds


def test_norms_that_grow():
    shape = (2, len(SETTINGS), 3, 2, 1, 2)
    norm = np.ones(shape)
    norm[:, :, :, 1] = 2.0
    over = ("reading", "setting", "seed", "epoch", "latent", "contraction")
    index = {name: ("setting", [getattr(setting, name) for setting in SETTINGS]) for name in BASE._fields}
    places = {"reading": list(READINGS), "contraction": ["paper", "code"], "latent": ["s0"]}
    data = xr.Dataset({"sgd_norm": (over, norm), "sgd_others": (over[:-1], norm[..., 0] ** 0.5)}, places | index)
    assert all(s.holds for s in growing_norms.judge(data, "paper"))
    assert growing_norms.along(data, "depth").depth.values.tolist() == [3, 4, 5]
    assert [s.holds for s in growing_norms.judge(1.0 / data, "paper")] == [False] * 4 + [True]
    by_weights = data.assign(sgd_others=data.sgd_others**4)
    assert [s.holds for s in growing_norms.judge(by_weights, "paper")] == [True, False] * 2 + [True]


@pytest.mark.slow  # tests/families/latent_tree/test_ring.py holds the same flows against a reference and SGD
def test_what_a_neuron_on_a_ring_learns():
    assert [s.holds for s in figure_3.judge(figure_3.theory())] == [True, True, True, False, False, True, True]


def test_what_bounds_are_worth():
    assert [s.holds for s in figure_11.judge(figure_11.theory())] == [True, True, False, True, False]
