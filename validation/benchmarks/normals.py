"""Other generators of normals than ours, for the benchmark of the particles.

Every entry of `contenders` fills a vector. Those inside numba are what a compiled step of SGD could call; the others
show what NumPy and PyTorch have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numba
import numpy as np
from numpy.random import PCG64, SFC64, Generator, Philox

from meanfield.ensembles.streams import RETRY, VECTOR, _block, _log, _uniform, fill_normals, stream_key
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts

LAYERS = 256
EDGE, AREA = 3.6541528853610088, 0.00492867323399
"""Begin of the tail, and area of each layer (Doornik 2005, for 256 layers)."""
WORDS = 256
"""Number of blocks of random bits that the ziggurat draws at once."""


def ziggurat_tables() -> tuple[np.ndarray, np.ndarray]:
    """Right ends of the layers, shape (257,), and which part of each lies under the density, shape (256,)."""
    x = np.zeros(LAYERS + 1)
    x[0], x[1] = AREA * math.exp(0.5 * EDGE**2), EDGE
    for i in range(2, LAYERS):
        x[i] = math.sqrt(-2.0 * math.log(AREA / x[i - 1] + math.exp(-0.5 * x[i - 1] ** 2)))
    return x, x[1:] / x[:-1]


@without_reference_counts()
def fill_ziggurat(key, x, inner, words, out):  # type: ignore[no-untyped-def]
    """Normals by the ziggurat method (Marsaglia and Tsang 2000), one word each, from the same blocks as ours.

    The words are made some at a time, shape (2, n), because that vectorises.
    """
    for start in range(0, out.size // 2, words.shape[1]):
        count = min(words.shape[1], out.size // 2 - start)
        for i in range(count):
            words[0, i], words[1, i] = _block(key, 0, VECTOR, np.uint64(start + i))
        for i in range(count):
            index = 2 * (start + i)
            out[index] = _ziggurat(key, np.uint64(index), words[0, i], x, inner)
            out[index + 1] = _ziggurat(key, np.uint64(index + 1), words[1, i], x, inner)


@without_reference_counts(inline="always")
def _ziggurat(key, index, bits, x, inner):  # type: ignore[no-untyped-def]
    layer = bits & np.uint64(LAYERS - 1)
    u = 2.0 * _uniform(bits) - 1.0  # from other bits than the layer
    if abs(u) < inner[layer]:
        return u * x[layer]
    return _outside(key, index, layer, u, x, inner)


@without_reference_counts()
def _outside(key, index, layer, u, x, inner):  # type: ignore[no-untyped-def]
    """What is left for one normal in a hundred: a wedge or the tail; further words from attempts 0, 1, ..."""
    attempt = 0
    while True:
        first, second = _block(key, attempt, RETRY, index)
        attempt += 1
        if layer == 0:  # the tail, until it succeeds
            beyond = -_log(_uniform(first)) / EDGE
            if -2.0 * _log(_uniform(second)) > beyond * beyond:
                return math.copysign(EDGE + beyond, u)
            continue
        y = u * x[layer]
        low, high = math.exp(0.5 * (y * y - x[layer] ** 2)), math.exp(0.5 * (y * y - x[layer + 1] ** 2))
        if low + _uniform(first) * (high - low) < 1.0:
            return y
        layer, u = second & np.uint64(LAYERS - 1), 2.0 * _uniform(second) - 1.0
        if abs(u) < inner[layer]:
            return u * x[layer]


@numba.njit
def fill_by_numpy(rng, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = rng.standard_normal()


@numba.njit
def fill_by_legacy_numpy(out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = np.random.normal()  # noqa: NPY002 -- it is what is measured


def box_muller(rng: Generator, size: int) -> Callable[[np.ndarray], None]:
    """Box-Muller with NumPy's functions of whole arrays, in place."""
    radius, angle = np.empty(size // 2), np.empty(size // 2)

    def fill(out: np.ndarray) -> None:
        rng.random(out=radius)
        rng.random(out=angle)
        np.subtract(1.0, radius, out=radius)
        np.log(radius, out=radius)
        np.multiply(-2.0, radius, out=radius)
        np.sqrt(radius, out=radius)
        np.multiply(2.0 * math.pi, angle, out=angle)
        np.cos(angle, out=out[: size // 2])
        np.sin(angle, out=out[size // 2 :])
        out[: size // 2] *= radius
        out[size // 2 :] *= radius

    return fill


def torch_fill(out: np.ndarray) -> Callable[[np.ndarray], Any] | None:
    """`torch.randn` into the memory of `out`; None where PyTorch is not installed."""
    if find_spec("torch") is None:
        return None
    import torch

    tensor, rng = torch.from_numpy(out), torch.Generator().manual_seed(0)
    return lambda _: torch.randn(len(tensor), out=tensor, generator=rng)


def contenders(out: np.ndarray) -> dict[str, Callable[[np.ndarray], Any] | None]:
    """All generators by name, ours first; None for what is not installed."""
    key, tables, words = stream_key(0), ziggurat_tables(), np.empty((2, WORDS), dtype=np.uint64)
    fills: dict[str, Callable[[np.ndarray], Any] | None] = {
        "ours: Philox4x32-10 and Box-Muller, vectorised": lambda x: fill_normals(key, 0, VECTOR, 0, x),
        "the same Philox, vectorised, and a ziggurat": lambda x: fill_ziggurat(key, *tables, words, x),
    }
    for bits in (PCG64, SFC64, Philox):
        rng = Generator(bits(0))
        fills[f"numba: numpy's standard_normal(), {bits.__name__}"] = lambda x, rng=rng: fill_by_numpy(rng, x)
    fills["numba: np.random.normal(), Mersenne Twister"] = fill_by_legacy_numpy
    rng = Generator(SFC64(0))
    fills["NumPy: standard_normal(out=), SFC64"] = lambda x: rng.standard_normal(out=x)
    fills["NumPy: Box-Muller with ufuncs, SFC64"] = box_muller(rng, len(out))
    fills["PyTorch: randn(out=)"] = torch_fill(out)
    return fills
