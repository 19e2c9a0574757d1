"""The default scheme of the density where two other discretisations or an exact law settle it."""

import numpy as np
from scipy.special import ndtr

from meanfield.families.contrastive.density import solve_density
from meanfield.mckean_vlasov.cells import edges_of, nodes_of
from meanfield.problems.file import parse_problem

SETTLED = """
title = "sigmoid under a quartic prior"
[model]
activation = "sigmoid"
centering = "population"
learning_rate = 0.01789
batch_size = 500
[[features]]
hidden = { law = "laplace", second_moment = 0.7540 }
coordinate = { law = "gaussian" }
initial_overlap = 0.007
[augmentation]
variance = [0.256, 0.135]
correlation = -0.533
[prior]
name = "quartic"
strength = 0.1999
[time]
stop = 11.591
outputs = 21
"""


def test_a_density_with_hardly_any_noise_is_the_settled_one():
    run = solve_density(parse_problem(SETTLED))
    assert run.status == "complete"
    assert run.Lambda.max() < 1e-8  # cells in w would be crossed by advection alone
    assert abs(float(run.q[-1, 0]) - 0.006956803) <= float(run.q_error[-1].max()) + 1e-9  # of the reference
    assert abs(float(run.r[-1]) - 0.479519882) <= float(run.r_error[-1]) + 1e-9  # the same


KINKED = """
[model]
activation = "cubic"
centering = "none"
learning_rate = 0.4169
batch_size = 10
[[features]]
hidden = { law = "gaussian", second_moment = 1.6571 }
coordinate = { law = "rademacher" }
initial_overlap = -0.6496
[augmentation]
variance = [0.498, 0.2032]
correlation = 0.7267
[prior]
name = "elastic_net"
strength = 1.141
[time]
stop = 0.5
outputs = 3
"""


def test_the_error_of_a_density_under_a_kink_is_claimed_at_the_start():
    run = solve_density(parse_problem(KINKED))
    edges, u, q = edges_of(run), nodes_of(run)[0], float(run.q[0, 0])
    mass = np.diff(ndtr((edges - q * u) / np.sqrt(1.0 - q * q)))  # w|u ~ N(q u, 1 - q^2)
    error = float(np.abs(run.P[0].values * np.diff(edges) - mass).sum(axis=1) @ run.u_weight.values)
    assert error > 1e-6  # a claim that can be missed
    assert error <= float(run.P_error[0])
