"""Laws of single numbers in results of several channels: each weight, and what two weights have in common.

A density of one weight is compared with weights of SGD as it is. Of several channels each weight is taken by itself,
and of two channels (w_1 + w_2)/sqrt(2) and (w_1 - w_2)/sqrt(2), whose laws tell how channels share their weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import xarray as xr


class Pair(NamedTuple):
    """Density and SGD of a single number.

    Parameters
    ----------
    place : tuple of int
        Its channel in variables that have several; empty where there is one.
    density, particles : xarray.Dataset
        As of one channel.
    """

    place: tuple[int, ...]
    density: xr.Dataset
    particles: xr.Dataset


def weights_alone(density: xr.Dataset, particles: xr.Dataset) -> Iterator[Pair]:
    """The weights of each channel."""
    if "channel" not in particles["weights"].dims:
        yield Pair((), density, particles)
        return
    for k in range(particles.sizes["channel"]):
        yield Pair((k,), density.isel(channel=k), particles.isel(channel=k))


def diagonals(density: xr.Dataset, particles: xr.Dataset) -> Iterator[Pair]:
    """Sum and difference of the weights of two channels, over sqrt(2)."""
    if "P_sum" not in density:
        return
    first, second = (particles["weights"].isel(channel=k, drop=True) for k in (0, 1))
    for s, (name, sign) in enumerate((("P_sum", 1.0), ("P_difference", -1.0))):
        law = density.isel(channel=0).assign(P_w=density[name])
        yield Pair((s,), law, particles.assign(weights=(first + sign * second) / math.sqrt(2.0)))
