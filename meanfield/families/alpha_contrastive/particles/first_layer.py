"""First layer of a network: activations of filters at inputs, and the derivative by the filters.

A place sees a token as a vector along one coordinate, so that a filter has as many activations as there are tokens; a
table of these replaces the products of filters and inputs.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray


class FirstLayer(Protocol):
    """Filters at inputs, for several networks at once."""

    def forward(self, filters: FloatArray, inputs: Any) -> tuple[FloatArray, Any]:
        """Activations, shape (networks, samples, places * filters), and what the derivative needs."""

    def backward(self, kept: Any, slope: FloatArray) -> FloatArray:
        """Derivative by the filters from that by the activations."""


class TokenLayer:
    """Filters at tokens, inputs of shape (networks, samples, places).

    Parameters
    ----------
    lengths : ndarray, shape (tokens,)
        Length of the vector of each token.
    """

    def __init__(self, h: Filter, lengths: FloatArray) -> None:
        self._h, self._lengths = h, lengths

    def forward(self, filters: FloatArray, inputs: IntArray) -> tuple[FloatArray, Any]:
        """See `FirstLayer.forward`."""
        table = np.swapaxes(filters, -1, -2) * self._lengths[:, None]  # (networks, places, tokens, filters)
        networks, places, tokens, count = table.shape
        first = tokens * np.arange(networks * places).reshape(networks, 1, places)
        rows = inputs + first
        values = self._h.value(table).reshape(-1, count).take(rows.ravel(), axis=0)
        return values.reshape(networks, -1, places * count), (table, rows)

    def backward(self, kept: Any, slope: FloatArray) -> FloatArray:
        """See `FirstLayer.backward`."""
        table, rows = kept
        by_table = np.zeros((table.size // table.shape[-1], table.shape[-1]))
        add_rows(rows.ravel(), slope.reshape(-1, table.shape[-1]), by_table)
        by_table = by_table.reshape(table.shape) * self._h.slope(table) * self._lengths[:, None]
        return np.asarray(np.swapaxes(by_table, -1, -2))


class DenseLayer:
    """Filters at vectors, inputs of shape (networks, samples, places, coordinates)."""

    def __init__(self, h: Filter) -> None:
        self._h = h

    def forward(self, filters: FloatArray, inputs: FloatArray) -> tuple[FloatArray, Any]:
        """See `FirstLayer.forward`."""
        x = np.ascontiguousarray(np.swapaxes(inputs, 1, 2))
        z = x @ np.swapaxes(filters, -1, -2)
        return np.swapaxes(self._h.value(z), 1, 2).reshape(*inputs.shape[:2], -1), (x, z)

    def backward(self, kept: Any, slope: FloatArray) -> FloatArray:
        """See `FirstLayer.backward`."""
        x, z = kept
        by_value = np.swapaxes(slope.reshape(len(z), z.shape[2], z.shape[1], -1), 1, 2)
        return np.asarray(np.swapaxes(by_value * self._h.slope(z), -1, -2) @ x)


@numba.njit("void(int64[::1], float64[:, ::1], float64[:, ::1])", cache=True, nogil=True)
def add_rows(rows, values, out):  # type: ignore[no-untyped-def]
    """Add row i of `values` to row `rows[i]` of `out`."""
    for i in range(rows.size):
        target = out[rows[i]]
        for m in range(values.shape[1]):
            target[m] += values[i, m]
