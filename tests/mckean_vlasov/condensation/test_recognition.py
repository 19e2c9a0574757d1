"""Condensation in densities: found where the norm goes to few weights, silent elsewhere, and put into words."""

from dataclasses import replace

import numpy as np
import pytest

from meanfield.extend import DensitySettings, Limit, PriorSettings
from meanfield.ingredients.laws import GaussianCoordinate, GaussianResidual
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.mckean_vlasov.condensation import coarsening, condensate, following_time, with_condensate
from meanfield.mckean_vlasov.condensation.recognition import LEAST_WEIGHTS, enough_weights
from meanfield.mckean_vlasov.density.solver import solve

TAU, STRENGTH = 0.1, 10.0
"""c = tau strength = 1."""


def limit_with(name, diffusion, stop=8.0, **parameters):
    return Limit(
        closure=lambda q: (np.zeros(1), diffusion),
        learning_rate=TAU,
        prior=PriorSettings(name=name, strength=STRENGTH, parameters=parameters),
        coordinates=(GaussianCoordinate(),),
        initial_overlap=np.zeros(1),
        initial_residual=GaussianResidual(),
        times=np.linspace(0.0, stop, 9),
    )


def density_of(limit):
    fixed = DensitySettings(cells=1000, half_width=30.0, steps=800, order=2, feature_nodes=2)
    return solve(limit, fixed).arrays(limit)


@pytest.fixture(scope="module")
def condensing():
    """A density under cauchy with Lambda at 2 % of its threshold."""
    limit = limit_with("cauchy", 0.01)
    return limit, density_of(limit)


def test_weights_beyond_the_critical_one_are_those_of_the_flow_without_noise(condensing):
    limit, arrays = condensing
    found, flow = condensate(limit, arrays), coarsening(limit.prior.functions, 8.0)
    assert (found.onset, found.last) == (0, 8)
    for t, share, critical in zip(limit.times[1:], found.weights[1:], found.critical_weight[1:], strict=True):
        assert share == pytest.approx(flow.share_at(t), rel=0.12)  # Lambda is not 0, and the flow's points
        assert critical**2 * np.interp(t, flow.elapsed, flow.critical_weight) ** -2 == pytest.approx(1, rel=0.12)
    # w^2 of survivors is exponential with mean w_c^2: a part 2/e of their norm lies beyond
    assert found.norm[-1] == pytest.approx(2 / np.e, abs=0.05)  # at t = 8 it is on its way there


def test_shares_are_sums_over_cells(condensing):
    limit, arrays = condensing
    critical = condensate(limit, arrays).critical_weight[4]
    edges, P = edges_of(arrays), arrays["u_weight"] @ arrays["P"][4]
    w = np.linspace(edges[0], edges[-1], 400_001)
    far = np.abs(w) > critical
    values = P[np.clip(np.searchsorted(edges, w, side="right") - 1, 0, len(P) - 1)]
    h = w[1] - w[0]
    found = condensate(limit, arrays)
    assert found.weights[4] == pytest.approx(
        h * values[far].sum(), abs=1e-4
    )  # the ends, one of these points, and mass - 1
    assert found.norm[4] == pytest.approx(h * values[far] @ w[far] ** 2, abs=1e-3)  # and E[w^2] in cells: h^2/12


def test_the_l2_part_of_a_prior_is_undone_by_the_multiplier(condensing):
    """Half l1 and half l2, twice as strong, is l1 with r larger by the l2 part's work, strength E[w^2]."""
    _, arrays = condensing
    plain = condensate(limit_with("l1", 0.01), arrays)
    twice = limit_with("elastic_net", 0.01, ratio=0.5)
    twice = replace(twice, prior=PriorSettings(**twice.prior.model_dump() | {"strength": 2 * STRENGTH}))
    found = condensate(twice, arrays | {"r": arrays["r"] + STRENGTH})
    np.testing.assert_allclose(found.critical_weight, plain.critical_weight, rtol=1e-11)  # rounding of G - c kappa
    np.testing.assert_allclose(found.weights, plain.weights, rtol=1e-9)


def test_another_norm_that_is_kept_scales_weights(condensing):
    """Weights twice as large, under l1 twice as strong, condense alike."""
    _, arrays = condensing
    limit, powers = limit_with("l1", 0.01), {"P": -1, "q": 1, "g": 1, "w_bnds": 1, "r": 2, "Lambda": 2, "norm": 2}
    large = replace(limit, initial_norm=4.0, prior=PriorSettings(name="l1", strength=2 * STRENGTH))
    scaled = arrays | {name: arrays[name] * 2.0**power for name, power in powers.items()}
    (plain, words), (found, others) = with_condensate(limit, arrays, 2000), with_condensate(large, scaled, 2000)
    assert others.split("run away:")[1] == words.split("run away:")[1]
    np.testing.assert_allclose(found["critical_weight"], 2.0 * plain["critical_weight"], rtol=1e-12)  # rounding
    np.testing.assert_allclose(found["runaway_norm"], 4.0 * plain["runaway_norm"], rtol=1e-12)


def test_words_name_the_onset_the_weights_and_the_dimension_that_follows(condensing):
    limit, arrays = condensing
    found = condensate(limit, arrays)
    few, many = (with_condensate(limit, arrays, N)[1] for N in (2000, 10**6))
    assert "from t = 0 on the prior outweighs the noise (Lambda = 0.01, below Lambda_c = 0.5)" in few
    assert f"weights beyond |w| = {found.critical_weight[-1]:.3g} run away" in few
    until = following_time(limit.times, found, 2000)
    assert f"SGD with N = 2,000 follows this limit until about t = {until:.3g}" in few
    assert np.exp(np.interp(until, limit.times, np.log(found.weights))) * 2000 == pytest.approx(LEAST_WEIGHTS)
    assert f"N = {enough_weights(found.weights[-1])} would follow to the end" in few
    assert "enough to follow" in many
    assert following_time(limit.times, found, 10**6) == limit.times[-1]
    assert following_time(limit.times, found, 100) == 0.0
    added = with_condensate(limit, arrays, 2000)[0]
    assert set(added) - set(arrays) == {"critical_weight", "runaway_weights", "runaway_norm"}


def test_outputs_that_were_not_reached_are_left_out(condensing):
    limit, arrays = condensing
    cut = {name: values.copy() for name, values in arrays.items()}
    for name in ("q", "g", "Lambda", "r", "norm", "P"):
        cut[name][6:] = np.nan
    found = condensate(limit, cut)
    assert (found.onset, found.last) == (0, 5)
    assert np.isnan(found.weights[6:]).all()
    assert "at t = 5 weights beyond" in with_condensate(limit, cut, 1000)[1]
    for name in ("q", "g", "Lambda", "r", "norm", "P"):
        cut[name][:] = np.nan
    assert condensate(limit, cut) is None


def test_an_onset_in_the_middle_is_the_first_output_from_which_on_weights_run_away(condensing):
    limit, arrays = condensing
    # Lambda = 0.505 is above Lambda_c = 0.5, and leaves G positive at t = 0 and 1
    late = arrays | {"Lambda": np.where(limit.times < 1.5, 0.505, arrays["Lambda"])}
    assert limit.times[condensate(limit, late).onset] == 2.0
    # Lambda = 0.4 is below it, and G negative from t = 3 on
    noisy = arrays | {"Lambda": np.full(9, 0.4)}
    assert condensate(limit, noisy) is None
    multiplier = TAU * arrays["r"] - 0.5 * arrays["Lambda"]
    assert condensate(limit, arrays).critical_weight == pytest.approx(np.sqrt(1 / multiplier - 1), rel=1e-12)
    assert condensate(limit, arrays | {"Lambda": np.where(limit.times > 7.5, 1.0, arrays["Lambda"])}) is None


@pytest.mark.parametrize(("name", "diffusion"), [("cauchy", 0.6), ("quartic", 0.01), ("none", 0.01), ("l2", 0.01)])
def test_nothing_is_said_of_a_norm_that_is_held(name, diffusion):
    limit = limit_with(name, diffusion, stop=2.0)
    arrays = density_of(limit)
    assert with_condensate(limit, arrays, 100) == (arrays, "")


def test_nothing_is_said_before_the_norm_has_gone_to_few_weights():
    limit = limit_with("cauchy", 0.01, stop=0.5)
    assert condensate(limit, arrays := density_of(limit)) is not None
    assert with_condensate(limit, arrays, 100) == (arrays, "")


@pytest.mark.parametrize(("share", "N"), [(0.5, "200"), (0.0101, "10,000"), (3e-5, "4,000,000"), (1e-20, "1e+22")])
def test_numbers_of_weights_are_rounded_up_to_one_digit(share, N):
    assert enough_weights(share) == N
