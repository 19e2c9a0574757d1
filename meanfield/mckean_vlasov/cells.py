"""Cells in w and nodes in u, as results hold them and as methods use them.

A result has the edges of each cell beside its centre, as the CF conventions have it, so that a table of it has a row
for each cell. Methods count edges once, and have nodes in any number of features in one shape.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from meanfield.errors import InputError
from meanfield.ingredients.laws import CoordinateLaw
from meanfield.ingredients.spectra import Spectrum
from meanfield.numerics.quadrature import tensor_rule
from meanfield.typing import FloatArray


def cell_arrays(edges: FloatArray) -> dict[str, FloatArray]:
    """Variables of a result that describe its cells.

    Parameters
    ----------
    edges : ndarray, shape (cells + 1,)
    """
    return {"w": 0.5 * (edges[1:] + edges[:-1]), "w_bnds": np.stack([edges[:-1], edges[1:]], axis=1)}


def edges_of(result: Mapping[Any, Any], name: str = "w") -> FloatArray:
    """Edges of the cells of a result along a coordinate, or of the arrays that it is made of, shape (cells + 1,).

    Raises
    ------
    InputError
        If it has none, as files of schema versions before 5 in plain xarray.
    """
    if f"{name}_bnds" not in result:
        raise InputError(
            f"there is no '{name}_bnds' with edges of cells; read files by meanfield.load(path), old ones too"
        )
    bounds = np.asarray(result[f"{name}_bnds"])
    return np.concatenate([bounds[:, 0], bounds[-1:, 1]])


def nodes_of(result: Mapping[Any, Any]) -> tuple[FloatArray, FloatArray]:
    """Nodes in u of a result, shape (nodes, d1) for a single feature too, and their weights, shape (nodes,).

    Where variances of the noise differ, these are a last coordinate.
    """
    weight = np.asarray(result["u_weight"])
    u = np.asarray(result["u"]).reshape(len(weight), -1)
    return (np.column_stack([u, result["rho_of_node"]]) if "rho_of_node" in result else u), weight


VARIANCE_NODES = 12
"""Default number of nodes of a spectrum of more eigenvalues."""


def feature_quadrature(
    coordinates: Sequence[CoordinateLaw], nodes: int | None, scale: float = 1.0, spectrum: Spectrum | None = None
) -> tuple[FloatArray, FloatArray]:
    """Tensor-product quadrature over the feature coordinates, and over variances of the noise if these differ.

    Parameters
    ----------
    coordinates : sequence of CoordinateLaw
        Law of each coordinate.
    nodes : int or None
        Nodes for each coordinate whose law is continuous; None for the law's own default.
    scale : float
        Factor on the default number of nodes.
    spectrum : Spectrum, optional
        Law of the variances.

    Returns
    -------
    u : ndarray, shape (nodes, d1), or (nodes, d1 + 1) with variances
    weight : ndarray, shape (nodes,)
    """
    d1 = len(coordinates)
    rules = [law.quadrature(math.ceil(scale * (nodes or law.default_nodes[d1 - 1]))) for law in coordinates]
    if spectrum is not None:
        variances = spectrum.nodes(math.ceil(scale * VARIANCE_NODES))
        rules.append((variances.rho, variances.weight))
    # Lighter nodes, in the corners, only widen the range of w.
    return tensor_rule(rules, 1e-13)
