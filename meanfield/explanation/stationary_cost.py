"""Predicted cost of stationary states of one vector: the usual number of evaluations of their equations."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from meanfield.ensembles.simulation import BYTES_PER_NUMBER
from meanfield.explanation.prediction import HEADER, Prediction, seconds_of
from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.search import NODE_ERROR
from meanfield.mckean_vlasov.stationary.spectra import equations_of
from meanfield.mckean_vlasov.stationary.states import CELLS
from meanfield.mckean_vlasov.stationary.unknowns import unknowns_at


def predicted_stationary(limit: Limit, feature_nodes: int | None) -> Prediction:
    """Prediction of the search for stationary states."""
    quadrature = feature_quadrature(limit.coordinates, feature_nodes, spectrum=limit.spectrum)
    d1, nodes = len(limit.coordinates), len(quadrature[1])
    states = 3**d1
    size = BYTES_PER_NUMBER * states * nodes * CELLS
    # A cell of a stationary density takes some 5e-7 seconds, and the search works with some 12 MB; densities of states
    # are compressed to some 0.25 of their size.
    seconds = _search_seconds(limit) + 5e-7 * states * nodes * CELLS
    contents = "all states, their stability, P(w|u)"
    return Prediction("stationary states", "", seconds, 1.2e7 + 2 * size, 0.25 * size + HEADER, contents)


def _search_seconds(limit: Limit) -> float:
    """Predict the time in which stationary states are found, by an evaluation at a norm that there is on the way."""
    d1 = len(limit.coordinates)
    x = unknowns_at(limit, np.full(d1, 0.6 * d1**-0.5), math.log(limit.initial_norm))
    equations: StationaryEquations | None = equations_of(limit)
    seconds = {1: 1.0, 2: 2.0, 3: 6.0}[d1]  # seconds that do not depend on the prior
    while equations is not None:
        seconds += 120 * seconds_of(partial(equations, x))  # the usual number of evaluations on each set of nodes
        finer = equations.coordinates.finer
        enough = finer is None or not NODE_ERROR < equations.node_error(x) < np.inf  # inf: there is no state at x
        equations = None if enough else equations_of(limit, finer)
    return seconds
