"""Order parameters of limits that belong to no family, against the exact solution."""

import numpy as np
import pytest

from meanfield import InputError
from meanfield.extend import PriorSettings, order_parameters_of
from meanfield.mckean_vlasov.order_parameters import check_linear
from tests.mckean_vlasov.density.test_solver import TWO, exact_overlap, linear, make_limit


@pytest.mark.parametrize("prior", [PriorSettings(), PriorSettings(name="l2", strength=3.0)], ids=["none", "l2"])
def test_overlaps_and_coefficients_are_exact(prior):
    """A linear prior acts on the norm alone, which is restored."""
    limit = make_limit(prior=prior, coordinates=TWO, overlap=(0.3, 0.2))
    found = order_parameters_of(limit)
    q = exact_overlap(limit)
    assert (found.kind, found.status) == ("order_parameters", "complete")
    assert found.arrays["q"] == pytest.approx(q, abs=1e-8)  # ODE_ACCURACY
    g, diffusion = zip(*map(linear, found.arrays["q"]), strict=True)
    assert np.array_equal(found.arrays["g"], g)
    assert np.array_equal(found.arrays["Lambda"], diffusion)


def test_what_leaves_the_ball_fails_with_the_remedy_of_the_limit():
    """No closure of SGD does that: dq/dt = q."""
    found = order_parameters_of(
        make_limit(closure=lambda q: (-q / (1.0 - q @ q), 0.0), remedy_if_norm_drifts="lower the step")
    )
    assert found.status == "failed: at t = 2: |q| = 2.217, but overlaps lie in the unit ball; lower the step"
    assert np.isfinite(found.arrays["g"]).all(axis=1).tolist() == [True, True, False, False, False]


def test_other_priors_are_refused_with_other_methods():
    with pytest.raises(InputError, match=r"prior.name = 'l1'.*\(none, l2\); use the density, or change the prior"):
        check_linear(PriorSettings(name="l1"), "the density")
