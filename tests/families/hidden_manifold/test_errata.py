"""What the paper prints and what follows: the right formula follows from the model, and the printed one does not."""

import math

import numpy as np
import pytest

from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import make_system, start_of, unpacked
from meanfield.ingredients.nonlinearities import make_nonlinearity
from meanfield.ingredients.spectra import MarchenkoPastur
from tests.families.hidden_manifold.problems import problem, solved


def test_source_of_the_overlap():
    """A teacher in the upper half of the spectrum: the mean step of SGD, averaged over samples, at fixed weights.

    dr/dt at node j is -(eta/delta) E[v Delta g'(lambda) x.F_j] wt_j, with x = b U + noise, which a sum over the two
    eigenspaces gives exactly for a linear student: E[Delta lambda-derivative] is 1.
    """
    spectrum = {"law": "atoms", "eigenvalues": [0.4, 1.6], "teacher": [0.2, 1.8]}
    one = {"output_weights": [1.0], "activation": "linear"}
    given = problem(
        inputs={"spectrum": spectrum},
        teacher=one | {"overlap": [[1.0]]},
        student=one | {"on_teacher": [[0.3]], "elsewhere": [[0.5]]},
    )
    system = make_system(given, given.inputs.eigenvalues.nodes(2), 10)
    y = start_of(given, system)
    dy = np.empty_like(y)
    rates(y, system, dy)
    b, delta, eta, t = math.sqrt(2 / math.pi), 0.5, 0.2, np.array([0.2, 1.8])
    r, rho = unpacked(system, y).r[:, 0, 0], np.array([0.4, 1.6])
    # Gradient descent on E[(w.x/sqrt N - wt.C/sqrt D)^2]/2 in the eigenbasis, with u = E[x x'] of the limit
    exact = -eta / delta * (((1 - b * b) * delta + b * b * rho) * r - b * rho * t)
    printed = -eta / delta * (((1 - b * b) * delta + b * b * rho) * r - b * rho * np.mean(rho * t))
    found = unpacked(system, dy).r[:, 0, 0]
    assert found == pytest.approx(exact, abs=1e-14)  # rounding
    assert np.abs(found - printed).max() > 0.1


def test_mean_of_the_nonlinearity():
    """Inputs max(u, 0) less their mean: what is not linear in u has the variance 1/4 - 1/(2 pi)."""
    f = make_nonlinearity("relu").moments(1.0)
    rng = np.random.default_rng(0)
    u = rng.standard_normal(400_000)
    rest = np.maximum(u, 0.0) - f.mean - f.slope * u
    right, printed = f.square - f.mean**2 - f.slope**2, f.square - f.slope**2
    error = np.std(rest**2) / math.sqrt(len(u))
    assert abs(np.mean(rest**2) - right) < 4.5 * error  # false alarms: 1e-5, at a fixed seed
    assert abs(np.mean(rest**2) - printed) > 100 * error
    assert right == pytest.approx(0.25 - 1 / (2 * math.pi), abs=1e-11)  # accuracy of the moments


def test_atom_of_the_spectrum():
    """Eigenvalues of a matrix with D = 2 N: half of them are 0, and nodes find all moments."""
    N = 80
    F = np.random.default_rng(0).standard_normal((2 * N, N))
    values = np.linalg.eigvalsh(F @ F.T / N)
    assert np.mean(values < 1e-9) == pytest.approx(0.5)
    rho, weight, _ = MarchenkoPastur(aspect_ratio=2.0).nodes(12)
    for k in (1, 2, 3):
        assert weight @ rho**k == pytest.approx(np.mean(values**k), rel=0.1)  # of N = 80


def test_equal_variance_is_not_enough():
    relu = make_nonlinearity("relu")
    assert relu.moments(1.0).mean == pytest.approx(0.398942, abs=1e-6)  # digits printed
    assert 0.5 * (max(1.0, 0.0) + max(-1.0, 0.0)) == 0.5


def test_scales_change_the_overlap():
    """R at the start is b times <s> of what one Gaussian has; a component for each latent leaves it as it is."""
    scales = [0.4, math.sqrt(1.84)]
    components = [{"weight": 0.5, "scale": s} for s in scales]
    short = {"time": {"stop": 0.1, "outputs": 2}}
    R = [
        solved(inputs=inputs, **short)["R"].values[0, 0, 0]
        for inputs in ({}, {"components": components}, {"components": components, "components_drawn": "coordinate"})
    ]
    assert R[1] / R[0] == pytest.approx(np.mean(scales), abs=1e-12)  # rounding
    assert R[2] / R[0] == pytest.approx(1.0, abs=1e-12)  # rounding
