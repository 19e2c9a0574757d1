"""Priors whose force overflows far out, such as w exp(w^2): symmetries and growth are seen where it is finite."""

import math

import numpy as np
import pytest

from meanfield.extend import Prior
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.mckean_vlasov.stationary.equations import _growth


class Limit:
    """What the two ask of a limit: its prior."""

    def __init__(self, prior):
        self.priors = (self,)
        self.force = prior.forces


STEEP = Prior(lambda w: w * math.exp(w * w), lambda w: 0.5 * math.exp(w * w))
TILTED = Prior(lambda w: w * math.exp(w * w) + 1.0, lambda w: 0.5 * math.exp(w * w) + w)
FALLING = Prior(lambda w: -w * math.exp(w * w), lambda w: -0.5 * math.exp(w * w))


@pytest.mark.parametrize(("prior", "mirrored"), [(STEEP, True), (TILTED, False), (FALLING, True)])
@pytest.mark.filterwarnings("error")
def test_a_force_is_odd_by_what_it_is_near_the_weights(prior, mirrored):
    """A part that is even was nothing beside 1e300 far out: the density would have been mirrored, and wrong."""
    nodes, weight = np.array([[-1.0], [1.0]]), np.array([0.5, 0.5])
    assert Nodes.with_symmetry(Limit(prior), nodes, weight).mirrored is mirrored


@pytest.mark.parametrize(("prior", "growth"), [(STEEP, math.inf), (FALLING, 0.0)])
@pytest.mark.filterwarnings("error")
def test_what_overflows_outgrows_a_parabola(prior, growth):
    assert _growth(prior) == growth
