"""Problems of several channels that the studies share, ends of their trajectories, and what these are called."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import meanfield
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.reductions import COLLAPSED_OVERLAP, LEARNT_OVERLAP

Array = np.ndarray

HEAVY = (1.1, 6.05)
"""Second and fourth moments of a feature with heavy tails, which each of two channels can learn."""

KINDS = ("nothing", "one channel", "collapsed", "tilted", "distinct", "rotated")
"""Kinds of states of two channels, in the order of the strengths at which they are seen."""

MIXED = 0.05
"""Least overlap with a second feature of a channel that is called a mixture; chains at rest stray less."""


def several(features: Sequence[tuple[float, ...]], q: Array | str, M: Any = None, **settings: Any) -> Problem:
    """Problem of several channels with independent features; x^2, population centring and the square unless said.

    Parameters
    ----------
    features : sequence of tuple of float
        Second and fourth moments of a three-point law, or the second moment of a Gaussian.
    q : ndarray, shape (d1, d2), or "random"
    M : float or ndarray, shape (d2, d2), optional
    **settings
        `channels` of a random start, `strength`, `penalty`, `activation`, `centering`, `tau`, `m`, `stop`, `outputs`,
        `variance`, `correlation`, and those of `[particles]`.
    """
    given = dict(settings)
    take = partial(_take, given)
    asked = take("channels", 2)
    channels = asked if isinstance(q, str) else len(q[0])
    model: dict[str, Any] = {
        "activation": take("activation", "quadratic"),
        "centering": take("centering", "population"),
        "learning_rate": take("tau", 0.005),
        "batch_size": take("m", 10),
        "channels": channels,
    }
    if M is not None:
        model["initial_channel_overlap"] = M if np.isscalar(M) else np.asarray(M).tolist()
    overlaps = [q] * len(features) if isinstance(q, str) else np.asarray(q).tolist()
    hidden = [_law(*moments) for moments in features]
    data: dict[str, Any] = {
        "model": model,
        "decorrelation": {"penalty": take("penalty", "square"), "strength": take("strength", 0.0)},
        "features": [
            {"hidden": law, "initial_overlap": overlap} for law, overlap in zip(hidden, overlaps, strict=True)
        ],
        "time": {"stop": take("stop", 4.0), "outputs": take("outputs", 2)},
    }
    if "variance" in given:
        data["augmentation"] = {"variance": take("variance", None), "correlation": take("correlation", 0.0)}
    return Problem.model_validate(data | {"particles": given})


def _law(second: float, fourth: float | None = None) -> dict[str, Any]:
    if fourth is None:
        return {"law": "gaussian", "second_moment": second}
    return {"law": "three_point", "second_moment": second, "fourth_moment": fourth}


def _take(settings: dict[str, Any], key: str, default: Any) -> Any:
    return settings.pop(key, default)


def end_of(problem: Problem) -> tuple[Array, Array]:
    """Overlaps q and M of the limit at the last time."""
    run = meanfield.solve_order_parameters(problem).isel(time=-1)
    return np.asarray(run["q"].values), np.asarray(run["M"].values)


def ends_of_chain(problem: Problem) -> tuple[Array, Array]:
    """Overlaps q and M of all replicas at the last time, shapes (replicas, d1, d2) and (replicas, d2, d2)."""
    run = meanfield.simulate_sgd(problem, workers=1).isel(time=-1)
    return np.asarray(run["q"].values), np.asarray(run["M"].values)


def mean_and_error(values: Array) -> tuple[Array, Array]:
    """Means over replicas and their standard errors."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def random_overlaps(rng: np.random.Generator, features: int, channels: int) -> tuple[Array, Array]:
    """Overlaps q and M of channels that are random unit vectors in features + channels dimensions: all of order 1."""
    X = rng.standard_normal((channels, features + channels))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X[:, :features].T, X @ X.T


def kind_of(q: Array, M: Array) -> str:
    """Kind of a state of two channels, one of `KINDS`."""
    size = np.sort(np.abs(q), axis=0)
    learnt, owner = size[-1] >= LEARNT_OVERLAP, np.abs(q).argmax(axis=0)
    if not learnt.all():
        return "one channel" if learnt.any() else "nothing"
    if owner[0] == owner[1]:
        return "collapsed" if abs(M[0, 1]) >= COLLAPSED_OVERLAP else "tilted"
    return "rotated" if size[-2].max() >= MIXED else "distinct"


def shares(kinds: Sequence[str]) -> Array:
    """Share of each of `KINDS`."""
    return np.array([kinds.count(kind) for kind in KINDS]) / len(kinds)


def labelled(variables: dict[str, tuple[Any, Any, str]], **coordinates: Any) -> xr.Dataset:
    """Dataset from variables as (dims, values, long name)."""
    arrays = {name: (dims, values, {"long_name": what}) for name, (dims, values, what) in variables.items()}
    return xr.Dataset(arrays, coordinates)
