"""Closures of two features on tiles: as accurate as they promise wherever they are, and honest where they are not."""

from typing import NamedTuple

import numba
import numpy as np
import pytest

from meanfield.mckean_vlasov.closure_tiles import MOST_DIVIDED, TILE_TOLERANCE, closures_on_tiles, tiled
from meanfield.mckean_vlasov.closures import closure_values, register_closure


class Model(NamedTuple):
    """Closure with singularities on the circle, and with a kink; it counts its calls."""

    kink: float
    calls: np.ndarray


@register_closure(Model)
@numba.njit(cache=True)
def model_values(model, q):
    model.calls[0] += 1
    rest = np.sqrt(max(1.0 - q[0] * q[0] - q[1] * q[1], 0.0))
    bend = model.kink * abs(q[0] - 0.1)
    return np.array([np.sin(3.0 * q[0]) + q[1] * rest, q[0] * q[1] + bend, 0.1 + np.exp(q[1]) * rest])


@numba.njit(cache=True)
def evaluate(closure, q):
    return closure_values(closure, q)


def disk(count):
    """Points that are dense near the circle, which the last one lies on."""
    draw = np.random.default_rng(3)
    radius, angle = np.append(1.0 - 10.0 ** draw.uniform(-4, 0, count - 1), 1.0), draw.uniform(0, 2 * np.pi, count)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


@pytest.mark.parametrize("kink", [0.0, 0.1])
def test_tiles_are_as_accurate_as_they_promise(kink):
    model = Model(kink, np.zeros(1))
    closure, across = tiled(model, 2), np.linspace([0.1, -0.9], [0.1, 0.9], 100)
    for q in np.concatenate([disk(300), across]):
        assert evaluate(closure, q) == pytest.approx(evaluate(model, q), abs=TILE_TOLERANCE)  # what it promises
    tiles, divided, _ = closure.tiles.counts
    assert tiles > divided + 50
    assert divided == (0 if kink == 0.0 else MOST_DIVIDED)  # no tile on a kink will do


def test_a_path_needs_few_calls_and_its_values_do_not_depend_on_the_way_there():
    model = Model(0.0, np.zeros(1))
    closure, other = tiled(model, 2), tiled(model, 2)
    path = np.linspace([0.1, 0.7], [0.3, -0.2], 5000)
    values = [evaluate(closure, q) for q in path]
    assert model.calls[0] < 3000  # some twenty tiles; 5000 points without
    assert all((evaluate(other, q) == before).all() for q, before in zip(path[::-1], values[::-1], strict=True))
    assert closures_on_tiles(path[::250]) == 100 * closure.tiles.counts[0]


def test_closures_of_paths_to_the_circle_are_counted():
    """Towards the circle tiles become smaller; the smallest end before it, and there closures are called."""
    model = Model(0.0, np.zeros(1))
    closure, radius = tiled(model, 2), 1.0 - 10.0 ** np.linspace(-0.1, -4.0, 2000)
    path = radius[:, None] * np.array([0.6, 0.8])
    called = sum(evaluate(closure, q) is None or closure.tiles.counts[2] < 0 for q in path)
    assert called == 0
    counted = closures_on_tiles(path[::20])
    assert counted > 3000
    assert abs(counted - 100 * closure.tiles.counts[0]) <= 300  # tiles that a coarse path cuts the corners of


def test_a_closure_of_one_feature_is_called():
    model = Model(0.0, np.zeros(1))
    evaluate(tiled(model, 1), np.array([0.3, 0.2]))
    assert model.calls[0] == 1
