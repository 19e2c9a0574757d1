"""States of several channels at rest: closed forms, numbers of the theory, and what the ODE does to perturbations."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive import FAMILY
from meanfield.families.contrastive.channels.states.analysis import arrangement_of, solve_channel_states
from meanfield.families.contrastive.channels.states.field import SmoothField, state_from_nothing
from meanfield.families.contrastive.channels.states.search import ChannelStates
from meanfield.families.contrastive.channels.states.symmetry import Symmetries, coincidences
from meanfield.families.contrastive.channels.thresholds import uninformed_rates
from meanfield.families.contrastive.dynamics import describe
from meanfield.families.contrastive.fixed_points.branches import branches_of_channels
from meanfield.families.contrastive.reductions import growth, similarity, states
from meanfield.numerics.continuation import follow
from meanfield.numerics.ode import Tolerance, solve_ode
from meanfield.plotting import plot_result
from meanfield.results.text import describe_branches
from meanfield.testing import methods
from meanfield.testing.methods import Example
from tests import ROOT
from tests.families.contrastive.channels.problems import standard

pytestmark = pytest.mark.usefixtures("plain_figures")

ALIKE = ("second_moment = 1.0, fourth_moment = 5.0", "second_moment = 1.1, fourth_moment = 6.05"), ("= 3", "= 10")
GAUSSIAN = 'hidden = { law = "gaussian", second_moment = 1.5 }'
ONE_FEATURE = (
    '[[features]]\nhidden = { law = "three_point", second_moment = 1.0, fourth_moment = 5.0 }\n'
    "initial_overlap = [0.2, 0.4]\n",
    "",
)


def alike(strength, centering="population", tau=0.005):
    """Both features with the moments (1.1, 6.05), as in section 6."""
    return standard(
        *ALIKE, ("strength = 0.05", f"strength = {strength}"), ('"none"', f'"{centering}"'),
        ("learning_rate = 0.01", f"learning_rate = {tau}"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("centering", "kappa", "omega", "speed"),
    [
        ("none", 0.006385469485, 0.012701392193, 0.006983477732),
        ("population", -0.040185997320, -0.013879434405, 0.007345781516),
    ],
)
def test_rates_where_channels_coincide(centering, kappa, omega, speed):
    """Reference rates of 1 - M12 and of q_21 - q_22 at q_11 = q_12 = sqrt(0.9), M12 = 1, where K is singular."""
    field = SmoothField(alike(0.02, centering, 0.01))
    at = field.packed(np.array([[0.9**0.5] * 2, [0.0, 0.0]]), np.ones((2, 2)))
    slope = field.jacobian(at)
    np.testing.assert_allclose(field(at)[:2], speed, rtol=1e-9)  # digits of the reference
    assert slope[4, 4] == pytest.approx(kappa, abs=2e-11)  # extrapolation, 5e-12 at 2e-3 as measured, and rounding
    assert slope[2, 2] - slope[2, 3] == pytest.approx(omega, abs=2e-11)  # the same
    np.testing.assert_allclose(slope[4, :4], 0.0, atol=2e-10)  # equal channels stay equal; the same
    rates = np.linalg.eigvals(slope)
    assert min(abs(rates - kappa)) < 1e-9  # eigenvalues of what is known to 2e-10
    assert min(abs(rates - omega)) < 1e-9  # the same


def test_rates_with_kinks_where_channels_coincide():
    """ReLU, q = 0: kappa = Lambda_11 (k'(1) - 1) with the arc-cosine kernel k, whose slope at 1 is 1."""
    problem = standard(
        ("quadratic", "relu"), ("= 0.05", "= 0.0"), ("= 3", "= 1"), ("learning_rate = 0.01", "learning_rate = 0.7")
    )
    field = SmoothField(problem)
    at = field.packed(np.zeros((2, 2)), np.ones((2, 2)))
    noise = field.closure(*field.unpacked(at)).Lambda[0, 0]
    assert noise > 0.1
    kappa = field.jacobian(at)[-1, -1]
    assert abs(kappa) < field.resolution < 1e-4 * noise  # what rates are resolved to where there are kinks


@pytest.fixture(scope="module")
def tilted():
    """States at a strength where tilted and distinct states attract."""
    return solve_channel_states(alike(0.03), starts=12, seed=5)


def test_attractors_of_random_starts(tilted):
    stable = tilted.isel(state=np.flatnonzero(tilted["stability"].values == 1))
    assert stable["arrangement"].values.tolist() == ["distinct", "tilted"]
    assert float(tilted["region_share"].sum()) == 1.0
    np.testing.assert_allclose(stable["region_share"][0], 0.74, atol=0.35)  # 2.7 sd of 12 starts: false alarm 1 in 150
    q, M = stable["q"].values[1], stable["M"].values[1]
    np.testing.assert_allclose(np.abs(q), [[0.98, 0.98], [0.14, 0.14]], atol=6e-3)  # digits of the theory's table
    assert M[0, 1] == pytest.approx(0.95, abs=5e-3)  # the same
    kinds = {str(state["arrangement"].item()): str(state["kind"].item()) for _, state in tilted.groupby("orbit")}
    assert kinds["collapsed"] in ("saddle", "unstable node")
    assert "nothing learned" in kinds
    assert tilted["region_share"].attrs | {"starts": 12, "seed": 5} == tilted["region_share"].attrs


@pytest.mark.parametrize(("strength", "expected"), [(0.0, "collapsed"), (0.012, "tilted"), (0.03, "distinct")])
def test_starts_from_nothing_as_the_dimension_grows(strength, expected):
    """The ODE from (eps, rho eps) on the plane of the faster feature, in the table at the end of section 6."""
    problem = standard(
        ("second_moment = 1.1, fourth_moment = 6.05", "second_moment = 2.0, fourth_moment = 20.0"),
        ("second_moment = 1.0, fourth_moment = 5.0", "second_moment = 1.7, fourth_moment = 14.45"),
        ("= 3", "= 5"), ('"none"', '"population"'), ("learning_rate = 0.01", "learning_rate = 0.004"),
        ("strength = 0.05", f"strength = {strength}"),
    )  # fmt: skip
    field, rates = SmoothField(problem), uninformed_rates(problem)[:, 0]
    found, rng = ChannelStates(field), np.random.default_rng(1)
    for _ in range(2):
        found.attractor(state_from_nothing(field, rates, found.resting_overlap(), rng))
    (state,) = found.states()  # the same for all ratios of the two channels
    assert arrangement_of(state.q, state.M) == expected
    assert state.verdict == 1
    if expected == "tilted":
        np.testing.assert_allclose(np.abs(state.q), [[0.94, 0.94], [0.3, 0.3]], atol=5e-3)  # digits of the table
        assert abs(state.M[0, 1]) == pytest.approx(0.8, abs=5e-3)  # the same
    elif expected == "collapsed":
        assert np.abs(state.q[0]).min() > 0.9  # the faster feature


@pytest.mark.parametrize(
    ("centering", "strength", "expected"),
    [
        ("none", 0.4, {"rotated"}),
        # random starts come to distinct states above, and starts from nothing to collapsed ones
        pytest.param("none", 0.01, {"distinct", "collapsed"}, marks=pytest.mark.slow),
    ],
)
def test_kinds_of_attractors(centering, strength, expected):
    found = ChannelStates(SmoothField(alike(strength, centering)))
    for space in coincidences(found.field):
        found.search(space)
    assert {arrangement_of(s.q, s.M) for s in found.states() if s.verdict == 1} == expected


def test_results_are_saved_drawn_and_described(tilted, tmp_path):
    example = Example(replace(FAMILY, methods={"fixed_points": FAMILY.methods["fixed_points"]}))
    example.__dict__["problem"], example._results["fixed_points"] = alike(0.03), tilted
    checks = (methods.check_result, methods.check_file, methods.check_conventions, methods.check_tables)
    for check in (*checks, methods.check_figure):
        check(example, "fixed_points", tmp_path)
    text = describe(tilted)
    assert "distinct: q = (0.9960, 0.0000), (0.0000, 0.9960), M = 0.0000   stable node" in text
    assert "8 by symmetry" in text
    assert "beside a channel with feature 1: " in text
    kept = similarity(tilted) | states(tilted) | growth(tilted)
    assert float(kept["similarity"]) == pytest.approx(0.996, abs=1e-3)  # of distinct states, to the digits above
    assert int(kept["stable_count"]) == 2
    assert kept["uninformed_channel_rate"].dims == ("feature", "channel")


def test_perturbations_grow_at_the_leading_rate(tilted):
    """The ODE itself, from a perturbation along the leading eigenvector, of states whose channels do not coincide."""
    field, checked = SmoothField(alike(0.03)), 0
    for i in range(tilted.sizes["state"]):
        state = tilted.isel(state=i)
        if np.abs(state["M"].values[0, 1]) > 0.999:
            continue
        at = field.packed(state["q"].values, state["M"].values)
        assert np.abs(field(at)).max() < 1e-10 * field.size  # the tolerance of Newton's method, and rounding
        rates, directions = np.linalg.eig(field.jacobian(at))
        along = directions[:, np.argmax(rates.real)].real
        rate = float(state["growth_rate"])
        path = solve_ode(
            lambda t, x: field(x),
            at + 1e-5 * along,
            [0.0, 1.0 / abs(rate)],
            Tolerance(1e-9, 1e-13),
            integrator="DOP853",
        )
        grown = np.linalg.norm(path.end - at) / 1e-5
        assert grown == pytest.approx(np.exp(np.sign(rate)), rel=5e-3)  # second order in the perturbation
        checked += 1
    assert checked >= 6


def test_copies_are_one_state():
    """Images by hand: channels change places, channels and features are flipped, equal features change places."""
    field = SmoothField(alike(0.03))
    q, M = np.array([[0.7, 0.6], [0.2, -0.5]]), np.array([[1.0, 0.35], [0.35, 1.0]])
    symmetries, images = Symmetries(field), set()
    for f, g, order, places in product(product((1, -1), repeat=2), product((1, -1), repeat=2), *[[(0, 1), (1, 0)]] * 2):
        image = (np.array(f)[:, None] * q * np.array(g))[np.ix_(order, places)]
        overlaps = (np.outer(g, g) * M)[np.ix_(places, places)]
        assert symmetries.same(field.packed(image, overlaps), field.packed(q, M))
        images.add(tuple(np.round([*image.ravel(), overlaps[0, 1]], 9)))
    assert symmetries.copies(field.packed(q, M)) == len(images) == 32
    assert not symmetries.same(field.packed(q, M), field.packed(q, -M))
    other = Symmetries(SmoothField(standard()))  # features of different laws
    assert other.copies(field.packed(q, M)) == 16
    odd = Symmetries(
        SmoothField(standard(("quadratic", "relu")))
    )  # only features may be flipped, and channels exchanged
    assert not odd.channel_flips
    assert odd.copies(field.packed(q, M)) == 8


def test_gaussian_features_can_be_rotated():
    laws = ['hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }']
    laws.append('hidden = { law = "three_point", second_moment = 1.0, fourth_moment = 5.0 }')
    problem = standard(*((law, GAUSSIAN) for law in laws), ('"none"', '"population"'), ("= 3", "= 10"))
    found = solve_channel_states(problem, starts=2)
    learnt = np.abs(found["q"].values).max(axis=(1, 2)) > 0.1
    assert np.isinf(found["copies"].values[learnt]).all()
    assert np.isfinite(found["copies"].values[~learnt]).all()
    assert (found["kind"].values[learnt] == "marginal").all()
    rates = np.abs(found["eigenvalue_real"].values[learnt])
    assert rates.min(axis=1).max() < 1e-9  # a rate of 0 along the rotation, by differences of fourth order
    attractor = found.isel(state=0)
    assert float(attractor["region_share"]) == 1.0
    np.testing.assert_allclose(attractor["M"].values, np.eye(2), atol=1e-8)  # the tolerance of Newton's method
    field, turn = SmoothField(problem), np.array([[0.8, 0.6], [-0.6, 0.8]])
    symmetries, (q, M) = Symmetries(field), (attractor["q"].values, attractor["M"].values)
    assert symmetries.same(field.packed(turn @ q, M), field.packed(q, M))  # points of a continuum are one state
    assert not symmetries.same(field.packed(turn @ q, M), field.packed(0.99 * q, M))


@pytest.mark.slow  # attractors of random starts are found in the test beside it
def test_random_starts_find_what_indices_miss():
    problem = meanfield.load_problem(ROOT / "data" / "problems" / "two_channels.toml")
    found = ChannelStates(SmoothField(problem))
    for space in coincidences(found.field):
        found.search(space)
    assert found.index_sum == -7.0  # eight images of one state are missing
    found.search_at_random(np.random.default_rng(0))
    assert found.index_sum == 1.0
    q, M = found.field.unpacked(found.symmetries.representative(found.x[-1]))
    # both channels have the second feature, one of them a little of it
    known = [0.0, 0.0, 0.312779, 0.990507]
    np.testing.assert_allclose(np.sort(np.abs(q), axis=None), known, atol=1e-4)  # other states are far away
    assert abs(M[0, 1]) == pytest.approx(0.26187, abs=1e-4)  # the same


@pytest.mark.slow  # thresholds are in test_thresholds.py, branches below and in fixed_points/test_branches.py
def test_collapsed_branch_loses_its_stability_where_channels_part():
    problem = standard(ONE_FEATURE, ("= 3", "= 10"), ('"none"', '"population"'))
    threshold = meanfield.contrastive.collapse_threshold(problem)
    found = meanfield.contrastive.continue_fixed_points(
        problem, "decorrelation.strength", 0.5 * threshold, 1.5 * threshold, 6
    )
    learnt = np.abs(found["q"].isel(feature=0, channel=0, drop=True)) > 0.9
    collapsed = found.isel(point=(found["arrangement"] == "collapsed") & learnt)
    order = np.argsort(collapsed["parameter"].values)
    p, rate = collapsed["parameter"].values[order], collapsed["growth_rate"].values[order]
    assert rate[0] < 0 < rate[-1]
    assert np.interp(0.0, rate, p) == pytest.approx(threshold, rel=1e-2)  # linear between points 1/5 of it apart
    tilted = found.isel(point=found["arrangement"] == "tilted")
    assert tilted["stability"].max() == 1
    assert float(tilted["parameter"].min()) == pytest.approx(threshold, rel=5e-3)  # shortest steps of a branch
    assert tilted["M"].values[tilted["parameter"].values.argmin(), 0, 1] > 0.999
    assert [axes.get_ylabel() for axes in plot_result(found).axes] == ["overlap $q$", "overlap of channels $M_{12}$"]
    assert any("1 change(s) of stability" in line for line in describe_branches(found))


def test_a_branch_of_distinct_states_goes_on(tilted):
    key, start = "decorrelation.strength", tilted.isel(state=0)
    equations = branches_of_channels(alike(0.03), key, (0.03, 0.04))[0]
    x = SmoothField(alike(0.03)).packed(start["q"].values, start["M"].values)
    branch = follow(equations, x, 0.03, (0.03, 0.04), 0.25, 1e-11)
    assert float(branch.p[-1]) == 0.04
    field = SmoothField(alike(0.04))
    assert np.abs(field(branch.x[-1])).max() < 1e-10 * field.size  # the tolerance of Newton's method, and rounding
    assert equations.variables(branch.x[-1], 0.04)["growth_rate"] < 0.0


@pytest.mark.slow
def test_distinct_branch_loses_its_stability_where_features_mix():
    problem = alike(0.1, tau=0.001)
    equations = branches_of_channels(problem, "decorrelation.strength", (0.15, 0.2))[0]
    fields = equations.at(0.15)
    start = max(equations.search(0.15), key=lambda x: max(abs(x[0] * x[3]), abs(x[1] * x[2])))
    branch = follow(equations, start, 0.15, (0.15, 0.2), 0.25, 1e-11)
    assert fields.groups == 2
    assert branch.ends == ("limit", "limit")
    rates = [equations.variables(x, float(p))["growth_rate"] for x, p in zip(branch.x, branch.p, strict=True)]
    assert np.interp(0.0, rates, branch.p) == pytest.approx(0.17264, abs=2e-4)  # linear between points; the reference


def test_words_for_arrangements():
    one, both = np.eye(2), np.ones((2, 2))
    c, s = np.cos(0.2), np.sin(0.2)
    for q, M, words in (
        (np.zeros((2, 2)), one, "nothing learned"),
        ([[0.9, 0.0], [0.0, 0.0]], one, "some channels only"),
        ([[0.9, 0.9], [0.0, 0.0]], both, "collapsed"),
        ([[0.9, -0.9], [0.0, 0.0]], 2 * one - both, "collapsed"),
        ([[c, c], [s, -s]], np.array([[1.0, 0.9], [0.9, 1.0]]), "tilted"),
        ([[0.9, 0.0], [0.0, 0.9]], one, "distinct"),
        ([[c, s], [-s, c]], one, "rotated"),
        ([[0.6, 0.0], [0.6, 0.9]], one, "mixture"),
    ):
        assert arrangement_of(np.array(q), M) == words
    three = np.eye(3)
    three[0, 1] = three[1, 0] = 1.0
    assert arrangement_of(np.array([[0.9, 0.9, 0.0], [0.0, 0.0, 0.9]]), three) == "partly collapsed"


def test_groupings_of_channels():
    field = SmoothField(standard(ONE_FEATURE))
    field.channels = 4
    sizes = [space.groups for space in coincidences(field)]
    assert sorted(sizes, reverse=True) == sizes
    assert len(sizes) == 5


def test_what_has_no_states_is_refused():
    with pytest.raises(InputError, match="take random batches, whose errors hide"):
        meanfield.solve(
            standard(("quadratic", "tanh"), ("= 0.05", '= 0.05\npenalty = "smooth_absolute"')), "fixed_points"
        )
    with pytest.raises(InputError, match="starts = 0: shares are of random starts"):
        solve_channel_states(standard(), starts=0)
    with pytest.raises(InputError, match=r"model.channels = 2: portraits, learnability and"):
        meanfield.contrastive.phase_portrait(standard())
    with pytest.raises(InputError, match="fixed points do not depend on it"):
        meanfield.contrastive.continue_fixed_points(standard(), "model.initial_channel_overlap", 0.0, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("centering", "strength", "expected"),
    [
        ("none", 0.0, {"distinct", "collapsed"}),
        ("none", 0.01, {"distinct", "collapsed"}),
        ("none", 0.03, {"distinct"}),
        ("none", 0.4, {"rotated"}),
        ("none", 1.0, {"some channels only", "nothing learned"}),
        ("population", 0.0, {"distinct", "collapsed"}),
        ("population", 0.01, {"distinct", "collapsed"}),
        ("population", 0.03, {"distinct", "tilted"}),
        ("population", 0.1, {"distinct"}),
        ("population", 0.4, {"rotated"}),
        ("population", 1.0, {"rotated"}),
    ],
)
def test_table_of_attractors(centering, strength, expected):
    """The table of section 6: which arrangements 24 random starts come to."""
    found = solve_channel_states(alike(strength, centering))
    assert float(found["region_share"].sum()) == 1.0
    assert set(found["arrangement"].values[found["region_share"].values > 0].tolist()) == expected
    assert (found["stability"].values[found["region_share"].values > 0] == 1).all()
