"""Density of filters on the circle against characteristics, another method (alpha_contrastive.md, section 4)."""

import re

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.density.solver import _flow_of, _solved
from meanfield.families.alpha_contrastive.limit.circle import on_circle
from meanfield.families.alpha_contrastive.limit.fields import discrete_field
from meanfield.families.alpha_contrastive.limit.networks import network_of
from meanfield.numerics.periodic_transport import transport
from tests.families.alpha_contrastive.problems import LAW_F, kernel, problem, problem_from, solved

START = {"law": "fourier", "cosine": [0.4], "sine": [0.2]}
KERNEL = kernel("gaussian", 0.3)


def short(activation="relu", importance=KERNEL, law=LAW_F, stop=1.0, **density):
    tables = {"filters": {"start": START}, "time": {"stop": stop, "outputs": 3}, "density": density}
    return problem(activation, law, importance, **tables)


def characteristics(given, particles=1500, steps=100):
    """Moments at the end: particles of equal weight, by the classical Runge-Kutta method."""
    field, start = discrete_field(given, given.data), given.filters.start
    fine = np.linspace(-np.pi, np.pi, 20001)
    mass = start.distribution(fine) - start.distribution(fine[:1])
    theta = np.interp((np.arange(particles) + 0.5) / particles, mass / mass[-1], fine)
    weight = np.full(particles, 1.0 / particles)
    atoms = field.atoms

    def velocity(theta):
        z = on_circle(theta) @ atoms.T
        h = field.filter.value(z)
        along = np.stack([-np.sin(theta), np.cos(theta)], axis=1) @ atoms.T
        return np.sum((h @ network_of(field, h, weight).laplacian) * field.filter.slope(z) * along, axis=1)

    dt = given.time.stop / steps
    for _ in range(steps):
        a = velocity(theta)
        b = velocity(theta + 0.5 * dt * a)
        c = velocity(theta + 0.5 * dt * b)
        theta = theta + dt / 6.0 * (a + 2.0 * b + 2.0 * c + velocity(theta + dt * c))
    k = np.arange(1, 9)
    return np.cos(np.outer(theta, k)).mean(axis=0), np.sin(np.outer(theta, k)).mean(axis=0)


@pytest.mark.parametrize(
    ("activation", "importance"),
    [("relu", KERNEL), ("relu", None), ("relu", kernel("infonce", 0.3)), ("quadratic", KERNEL)],
)
def test_moments_agree_with_characteristics_within_their_error(activation, importance):
    given = short(activation, importance)
    density = meanfield.solve(given, "density").isel(time=-1)
    # characteristics: 1500 particles of equal weight, and steps of 0.01 across walls where the velocity jumps
    own = 5e-4
    for name, exact in zip(("moment_cos", "moment_sin"), characteristics(given), strict=True):
        away = np.abs(density[name].values - exact)
        assert np.all(away <= density[f"{name}_error"].values + own), name
    assert density["moment_cos_error"].max() <= given.density.tolerance


@pytest.mark.parametrize(
    ("importance", "cells", "least"),
    [
        (None, (50, 200, 800), 16.0),  # the ratio at order two; 63 at order three, that of the parabolas
        (KERNEL, (200, 800, 1600), 12.0),  # 21 at order two with that reference, 7 at order one
    ],
)
def test_order_mass_and_positivity(importance, cells, least):
    given = short("quadratic", importance)
    *paths, reference = [_solved(given, _flow_of(given), count) for count in cells]
    errors = [np.abs(path.moments - reference.moments)[:, -1, :4].max() for path in paths]
    assert errors[0] / errors[1] > least
    for path in paths:
        np.testing.assert_allclose(path.rho @ path.grid.width, 1.0, rtol=0.0, atol=1e-13)  # rounding of 800 sums
        assert path.rho.min() >= 0.0


def test_walls_that_are_known_keep_more_than_order_one():
    """Filters of ReLU that gather at walls, are crossed by others, and leave yet others."""
    given = short("relu", None, stop=2.0)
    paths = {cells: _solved(given, _flow_of(given), cells) for cells in (200, 800, 3200)}
    errors = [np.abs(paths[cells].moments - paths[3200].moments)[:, -1, :4].max() for cells in (200, 800)]
    assert errors[0] / errors[1] > 8.0  # 17 at order two and 5 at order one with that reference


def test_objective_rises_and_the_certificate_holds():
    density = meanfield.solve(short(stop=4.0), "density")
    best = solved("optimal_filters", "relu", LAW_F, KERNEL)
    assert np.all(np.diff(density["G"]) > 0.0)
    # quadrature over cells: the estimated error of G
    assert np.all(density["G"] + density["certificate_gap"] + density["G_error"] >= float(best["G"]))


def test_mixtures_move_filter_by_filter():
    law = {"law": "gaussian_mixture", "probabilities": [0.6, 0.4], "means": [[1.0, 0.0], [0.0, 1.0]], "covariance": 0.2}
    density = meanfield.solve(short("relu", None, law, tolerance=1e-2), "density")
    points = solved("critical_points", "relu", law)
    assert np.all(np.diff(density["G"]) > 0.0)
    best = np.full(3, float(points["energy"].max()))
    np.testing.assert_allclose(density["G"] + density["certificate_gap"], best, rtol=1e-12)  # rounding


def test_a_rotation_brings_a_density_back():
    cells = 200
    width = np.full(cells, 2.0 * np.pi / cells)
    angle = np.cumsum(width)
    rho = (1.0 + 0.5 * np.cos(angle)) / (2.0 * np.pi)
    turned = transport(rho, width, lambda rho: np.ones((2, cells)), 2.0 * np.pi, np.zeros(cells, dtype=bool))
    too_far = 2.0 * np.pi * (0.4 * width[0]) ** 2 / 6.0  # Heun's method turns a wave by dt^2/6 per unit of time
    slope = 0.5 / (2.0 * np.pi)
    np.testing.assert_allclose(turned, rho, rtol=0.0, atol=1.5 * too_far * slope)  # 1.5: terms of higher order


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"time": {"stop": 1e6}}, "time.stop = 1e+06 takes"),
        ({"filters": {"start": {"law": "random"}}}, "filters.start.law = 'random' is a start of single filters"),
        (
            {"data": {"law": "points", "points": np.eye(3).tolist()}},
            "data have 3 coordinates, and the density of filters",
        ),
    ],
)
def test_where_there_is_no_density(tables, words):
    given = {"family": "alpha_contrastive", "model": {"activation": "relu"}, "data": LAW_F} | tables
    with pytest.raises(InputError, match=re.escape(words)):
        meanfield.solve(problem_from(given), "density")
