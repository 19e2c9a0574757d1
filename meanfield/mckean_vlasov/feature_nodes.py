"""Quadrature nodes of the feature coordinates u."""

from __future__ import annotations

import math
from collections.abc import Sequence

from meanfield.ingredients.laws import CoordinateLaw
from meanfield.numerics.quadrature import tensor_rule
from meanfield.typing import FloatArray


def feature_quadrature(
    coordinates: Sequence[CoordinateLaw], nodes: int | None, scale: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Tensor-product quadrature over the feature coordinates.

    Parameters
    ----------
    coordinates : sequence of CoordinateLaw
        Law of each coordinate.
    nodes : int or None
        Nodes for each coordinate whose law is continuous; None for the law's own default.
    scale : float
        Factor on the default number of nodes.

    Returns
    -------
    u : ndarray, shape (nodes, d1)
    weight : ndarray, shape (nodes,)
    """
    d1 = len(coordinates)
    rules = [law.quadrature(math.ceil(scale * (nodes or law.default_nodes[d1 - 1]))) for law in coordinates]
    # Lighter nodes, in the corners, only widen the range of w.
    return tensor_rule(rules, 1e-13)
