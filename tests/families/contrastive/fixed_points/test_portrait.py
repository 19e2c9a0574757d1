"""Portraits against the field itself, trajectories on both sides of separatrices, files and refusals."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from meanfield.errors import InputError
from meanfield.families.contrastive.fixed_points.attraction import attractor_of
from meanfield.families.contrastive.fixed_points.points import find_fixed_points
from meanfield.families.contrastive.fixed_points.portrait import (
    OUTSIDE_DISC,
    phase_portrait,
    portrait_arrays,
    portrait_of,
    separatrices,
)
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.order_parameters.table import TABLE_TOLERANCE
from meanfield.plotting import plot_portrait, plot_trajectories
from meanfield.results.schema import build_dataset
from tests.example_problems import feature, features, gaussian, make_problem

LAW = '{ law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }'
SKEW = '{ law = "two_point", values = [-0.5, 2.0], probability = 0.8 }'
UNEQUAL = make_problem(features(feature(0.1, gaussian(1.2)), feature(0.1, LAW)))
SKEWED = make_problem(features(feature(0.1, SKEW), feature(0.1, LAW)), 'model = { activation = "relu" }')


@pytest.fixture(scope="module", params=[UNEQUAL, SKEWED], ids=["Q", "q"])
def portrait(request):
    return portrait_of(find_fixed_points(VectorField(request.param)), cells=14)


@pytest.fixture(scope="module")
def dataset():
    return phase_portrait(UNEQUAL)


def test_velocities_are_those_of_the_field(portrait):
    inside = portrait.region != OUTSIDE_DISC
    assert portrait.table_error < TABLE_TOLERANCE
    exact = portrait.fixed_points.field(portrait.q[inside])
    # the error is estimated between nodes, at other points; twice for the difference
    assert np.abs(portrait.velocity[inside] - exact).max() < 2 * TABLE_TOLERANCE * np.abs(exact).max()
    assert np.isnan(portrait.velocity[~inside]).all()


def test_regions_are_those_of_the_field(portrait):
    rows = np.argwhere(portrait.region != OUTSIDE_DISC)
    chosen = rows[np.random.default_rng(0).choice(len(rows), 40, replace=False)]
    row, column = chosen.T
    # An error of 1e-5 moves the borders by about as much, and no cell is that close to one.
    assert np.array_equal(attractor_of(portrait.fixed_points, portrait.q[row, column]), portrait.region[row, column])


def test_separatrices_separate(portrait):
    checked = 0
    for curve in portrait.separatrices:
        length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))])
        middle = int(np.searchsorted(length, 0.5 * length[-1]))
        if length[-1] < 0.2 or np.any(np.abs(curve[middle]) < 1e-6):
            continue  # on an axis, or too short to look at both sides
        along = curve[middle + 1] - curve[middle - 1]
        across = 1e-4 * np.array([-along[1], along[0]]) / np.linalg.norm(along)
        one, other = attractor_of(portrait.fixed_points, curve[middle] + np.array([across, -across]))
        assert one != other
        checked += 1
    assert checked > 0


def test_separatrices_end_at_saddles_that_they_come_from(monkeypatch):
    """Where q = 0 is a saddle, its separatrices along the axis of a feature come from the saddles on that axis."""
    laws = '{ law = "laplace", second_moment = 0.8188 }', gaussian(1.1043)
    both = features(feature(0.1, laws[0]), feature(0.1, laws[1], "uniform"))
    model = 'model = { activation = "cubic", centering = "none", learning_rate = 0.1983, batch_size = 500 }'
    points = find_fixed_points(VectorField(make_problem(both, model)))
    own, calls = VectorField.__call__, []
    monkeypatch.setattr(VectorField, "__call__", lambda field, q: calls.append(q) or own(field, q))
    curves = separatrices(points, quadrant=False)
    assert len(calls) < 20_000  # it went on for ever
    ends = [curve[-1] for curve in curves if np.array_equal(curve[0], np.zeros(2))]
    saddles = [point.q for point in points.points if point.kind == "saddle" and point.q.any()]
    assert len(ends) == len(saddles) == 2
    assert sorted(end.tolist() for end in ends) == sorted(saddle.tolist() for saddle in saddles)


def test_nullclines_are_where_a_component_vanishes(portrait):
    for k, points in enumerate(portrait.nullclines):
        points = points[:: max(1, len(points) // 60)]
        values = portrait.fixed_points.field(points * (1 - 1e-12))
        size = np.nanmax(np.abs(portrait.velocity))
        assert np.abs(values[:, k]).max() < 1e-3 * size  # linear between edges that are pi/400 apart, squared


def test_shares_add_up_and_are_those_of_the_trajectories(dataset):
    """The second feature attracts more (paper, section IV.B)."""
    share = dataset["region_share"].values
    assert share.sum() == pytest.approx(1.0)
    learnt = np.abs(dataset["q"].values).argmax(axis=1)
    starts = np.sqrt(np.random.default_rng(1).dirichlet(np.ones(3), 60)[:, :2])  # uniform over the triangle
    points = find_fixed_points(VectorField(UNEQUAL))
    sampled = np.mean([np.abs(points.q[i]).argmax() == 1 for i in attractor_of(points, starts)])
    expected = share[(learnt == 1) & (share > 0)].sum()
    assert expected > 0.7
    # 60 uniform starts: 4 standard errors, one false alarm in 16000 seeds; the seed is fixed
    assert abs(sampled - expected) < 4 * np.sqrt(expected * (1 - expected) / 60)


def test_portraits_are_drawn(portrait):
    problem = portrait.fixed_points.field.problem
    result = build_dataset("portrait", problem, portrait_arrays(portrait), "complete", "{}")
    result["region"] = result["region"].astype(float)  # as a program may store it that knows no whole numbers
    axes = plot_portrait(result.assign_attrs(plane=portrait.plane), Figure().subplots())
    plot_trajectories(np.array([[[0.1, 0.1], [0.2, 0.3]]]), axes, plane=portrait.plane)
    assert {"separatrix", "stable node", "saddle", "unstable node"} <= set(axes.get_legend_handles_labels()[1])
    assert axes.get_xlabel().startswith(f"${portrait.plane}_1")
    axes.figure.canvas.draw()


@pytest.mark.parametrize(
    ("problem", "options", "message"),
    [
        (UNEQUAL, {"cells": 1}, "cells = 1"),
        (make_problem(), {}, "features: 1 of them, but portraits are drawn for 2"),
    ],
)
def test_bad_input_is_refused(problem, options, message):
    with pytest.raises(InputError, match=message):
        phase_portrait(problem, **options)


def test_squares_do_not_tell_all_where_signs_matter(portrait):
    if portrait.plane == "q":
        with pytest.raises(InputError, match="signs of the overlaps matter"):
            portrait_of(portrait.fixed_points, "Q")
