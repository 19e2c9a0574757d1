"""Stationary states of several channels: their laws, what ends in them, and all that is done with results."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive import FAMILY
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.states import search
from meanfield.families.contrastive.channels.states.field import SmoothField
from meanfield.families.contrastive.channels.stationary import gaussian, plane
from meanfield.families.contrastive.channels.stationary.cells import Cells, LawGivenU
from meanfield.families.contrastive.channels.stationary.equations import APART, PlaneEquations, functions_of
from meanfield.families.contrastive.channels.stationary.motion import Motion
from meanfield.families.contrastive.channels.stationary.stability import spectrum
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.several_vectors.frame import Frame
from meanfield.testing import methods
from meanfield.testing.methods import Example
from tests import ROOT

pytestmark = pytest.mark.usefixtures("plain_figures")

ONE_FEATURE = """
[model]
activation = "quadratic"
centering = "population"
learning_rate = 0.02
batch_size = 5
channels = 2
initial_channel_overlap = 0.3
[decorrelation]
strength = 0.05
[[features]]
hidden = { law = "three_point", second_moment = 1.2, fourth_moment = 7.2 }
coordinate = { law = "rademacher" }
initial_overlap = [0.8, 0.7]
[time]
stop = 400.0
outputs = 3
"""


@pytest.fixture(scope="module")
def problem():
    return meanfield.parse_problem(ONE_FEATURE)


@pytest.fixture(scope="module")
def states(problem):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "QUIET_STARTS", 10)
        patch.setattr(gaussian, "channel_states", partial(gaussian.channel_states, starts=2))
        return meanfield.find_stationary_states(problem)


def with_prior(strength, text=ONE_FEATURE, name="l1"):
    return meanfield.parse_problem(f'{text}[prior]\nname = "{name}"\nstrength = {strength}\n')


@pytest.fixture(scope="module")
def under_l1():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plane, "RANDOM_STARTS", 2)
        patch.setattr(search, "QUIET_STARTS", 10)
        return meanfield.find_stationary_states(with_prior(0.3))


def test_gaussian_laws_have_the_overlaps_of_their_states(states):
    w, u_weight = states["w"].values, states["u_weight"].values
    mass = states["P"].transpose("state", "channel", ..., "w").values * np.diff(edges_of(states))
    q = np.einsum("sknw,n,w->sk", mass, states["u"].values.ravel() * u_weight, w)
    np.testing.assert_allclose(q, states["q"].values[:, 0], atol=5e-4)  # a cell of the width 0.07 shifts a mean less
    assert states.attrs["indices_add_up"] == "true"
    assert {1, -1} <= set(states["stability"].values.tolist())
    assert float(abs(states["multiplier_residual"]).max()) < 1e-9  # rounding of averages


def test_a_long_density_ends_in_a_stable_state(problem, states):
    density = meanfield.solve_density(problem)
    away = [
        max(float(abs(density[name][-1] - state[name]).max()) for name in ("q", "M", "r"))
        for _, state in states.where(states["stability"] == 1, drop=True).groupby("state")
    ]
    assert min(away) < 1e-4  # exp(-0.03 * 400) of the first distance, with the slowest rate and the time


def test_laws_on_cells_are_gaussian_where_they_should_be():
    """Linear drift with currents that do not stop: L Lambda is not symmetric."""
    L, noise, drift = np.array([[-0.1, 0.06], [-0.03, -0.08]]), np.array([[0.1, 0.03], [0.03, 0.08]]), [0.05, 0.03]
    S = np.array([[0.7, 0.1], [0.05, 0.6]])
    moments = []
    for count in (32, 64):
        motion, frame = Motion(np.empty((0, 2)), L, noise), Frame(np.array([0.3, 0.2]), S)
        law = LawGivenU(Cells(count, 7.0), motion, 0.0, with_prior(1.0).prior, np.array(drift), frame)
        moments.append(functions_of(law.w) @ law.P)
    m = -np.linalg.solve(L, drift)
    C = solve_continuous_lyapunov(L, -noise) + np.outer(m, m)
    exact = np.array([*m, C[0, 1], C[0, 0], C[1, 1]])
    errors = [np.abs(each - exact).max() for each in moments]
    assert errors[0] < 0.01  # cells of 0.44 standard deviations, squared, over 12
    assert 3.5 < errors[0] / errors[1] < 4.5  # of second order


def test_a_channel_by_itself_has_the_state_of_a_single_channel():
    """Without a penalty, and where the other channel has learnt nothing: there noise is not shared."""
    problem = with_prior(0.3, ONE_FEATURE.replace("strength = 0.05", "strength = 0.0"))
    closure, nodes = ChannelClosure(problem), Nodes.of(problem, None)
    found = []
    for cells in (48, 64):
        equations = PlaneEquations(closure, nodes, Cells(cells, 8.0))
        y = equations.root(equations.start(np.array([[0.96, 0.0]]), np.eye(2)))
        state = equations.state(y)
        found.append([*y[:3], *state.work(problem.prior.force)])
    q, other, M, r, r_of_nothing = (64**2 * np.array(found[1]) - 48**2 * np.array(found[0])) / (64**2 - 48**2)
    text = ONE_FEATURE.replace("channels = 2\ninitial_channel_overlap = 0.3", "").replace("[0.8, 0.7]", "0.8")
    single = meanfield.find_stationary_states(with_prior(0.3, text.replace("[decorrelation]\nstrength = 0.05", "")))
    learnt, nothing = single.isel(state=single["q"].values.argmax()), single.isel(state=1)
    # what the extrapolation from 48 and 64 cells leaves: 1e-3 of the error of 48 of them, more around a kink, and most
    # for a channel that learns nothing, whose weights lie in few cells around it
    assert [q, other, M] == pytest.approx([learnt["q"].item(), 0.0, 0.0], abs=1e-6)
    assert r == pytest.approx(learnt["r"].item(), abs=5e-6)
    assert r_of_nothing == pytest.approx(nothing["r"].item(), abs=1e-3)
    alike = np.eye(2) + (1.0 - APART) * (1.0 - np.eye(2))
    pair = equations.state(equations.root(equations.start(np.array([[0.96, 0.96]]), alike)))
    # channels that coincide are one channel; APART = 1e-4, and 64 cells
    assert pair.unknowns[:2] == pytest.approx(learnt["q"].item(), abs=1e-5)
    assert pair.work(problem.prior.force) == pytest.approx(learnt["r"].item(), abs=1e-5)
    assert spectrum(equations, pair).eigenvalues.real.max() < 0.0


def test_growth_that_is_much_faster_than_relaxation_is_found():
    """With a Gaussian law the rate of q is known; ten relaxations of the law are nearer to zero."""
    text = (ROOT / "data" / "problems" / "two_channels.toml").read_text(encoding="utf-8")
    problem = meanfield.parse_problem(f"{text}[density]\nfeature_nodes = 2\n")
    closure = ChannelClosure(problem)
    equations = PlaneEquations(closure, Nodes.of(problem, 2), Cells(32, 6.0))
    state = equations.state(equations.root(equations.start(np.zeros((2, 2)), np.eye(2))))
    field = SmoothField(problem, closure=closure)
    exact = np.linalg.eigvals(field.jacobian(np.zeros(5))).real.max()
    found = spectrum(equations, state, expected=1.1 * exact)
    # cells of 0.375 standard deviations, squared, over 4
    assert found.eigenvalues[0].real == pytest.approx(exact, rel=0.04)
    assert len(found.eigenvalues) == 7


def test_derivatives_are_those_of_differences():
    problem = with_prior(0.3)
    equations = PlaneEquations(ChannelClosure(problem), Nodes.of(problem, None), Cells(24, 6.0))
    y = equations.start(np.array([[0.9, 0.4]]), np.array([[1.0, 0.3], [0.3, 1.0]]))
    _, slope = equations(y)
    differences = [
        (equations.values_alone(y + 1e-5 * unit) - equations.values_alone(y - 1e-5 * unit)) / 2e-5 for unit in np.eye(5)
    ]
    # the Jacobian leaves out the motion of the frame, an error of the order of that of the cells
    np.testing.assert_allclose(slope, np.transpose(differences), atol=0.02 * np.abs(slope).max())


def test_states_under_l1(under_l1):
    assert under_l1["arrangement"].values.tolist() == [
        "tilted",
        "some channels only",
        "nothing learned",
        "tilted",
    ]
    assert under_l1["stability"].values.tolist() == [1, 1, -1, -1]
    assert "nothing proves" in under_l1.attrs["warning"]
    assert float(under_l1["quadrature_error"].max()) < 2e-3  # of the unstable tilted state, whose kinks are oblique
    # what n has to be by the closure, which the equations do not ask for
    assert float(abs(under_l1["multiplier_residual"]).max()) < 2e-4


def plain_runs(N, replicas, q, M, burn, stop, seed):
    """Means of |q_1|, |q_2|, |M_12|, r_1 and r_2 of each run between two times, by NumPy alone."""
    tau, batch, strength, prior = 0.02, 5, 0.05, 0.3
    rng = np.random.default_rng(seed)
    U = rng.choice([-1.0, 1.0], (replicas, N))
    K = np.array([[1.0, M], [M, 1.0]]) - np.outer(q, q)
    w = U[:, :, None] * np.array(q) + rng.normal(size=(replicas, N, 2)) @ np.linalg.cholesky(K).T
    w *= np.sqrt(N) / np.linalg.norm(w, axis=1, keepdims=True)
    rows = []
    for step in range(N * stop):
        c = rng.choice([0.0, 6.0**0.5, -(6.0**0.5)], (replicas, batch), p=[0.8, 0.1, 0.1])
        x = rng.normal(size=(replicas, batch, N))
        x += (c / np.sqrt(N) - np.einsum("rbn,rn->rb", x, U) / N)[:, :, None] * U[:, None, :]
        overlap = np.einsum("rn,rnk->rk", U, w) / N
        z = x @ w / np.sqrt(N)
        y = z * z - (1.0 + 0.2 * overlap**2)[:, None, :]
        C = np.einsum("rb,rb->r", y[:, :, 0], y[:, :, 1]) / batch
        gain = 4.0 * z * (y - 2.0 * strength * C[:, None, None] * y[:, :, ::-1])
        w += tau / (batch * np.sqrt(N)) * x.transpose(0, 2, 1) @ gain - tau * prior / N * np.sign(w)
        w *= np.sqrt(N) / np.linalg.norm(w, axis=1, keepdims=True)
        if step >= N * burn and step % (N // 5) == 0:
            overlap = np.einsum("rn,rnk->rk", U, w) / N
            M12 = np.einsum("rn,rn->r", w[:, :, 0], w[:, :, 1]) / N
            r = prior * np.abs(w).mean(axis=1)
            rows.append(np.column_stack([np.abs(overlap), np.sign(overlap.prod(axis=1)) * M12, r]))
    return np.mean(rows, axis=0)


@pytest.mark.slow
def test_plain_sgd_stays_in_the_tilted_state(under_l1):
    tilted, runs = under_l1.isel(state=0), 24
    q, M = np.abs(tilted["q"].values[0]), abs(float(tilted["M"][0, 1]))
    small, large = (plain_runs(N, runs, q, M, 80, 140, N) for N in (200, 400))
    # effects of finite N are of order 1/N, which the difference of both sizes takes away
    found = 2.0 * large.mean(axis=0) - small.mean(axis=0)
    error = np.sqrt((4.0 * large.var(axis=0, ddof=1) + small.var(axis=0, ddof=1)) / runs)
    z = (found - [*q, M, *tilted["r"].values]) / error
    # five numbers, each beyond 3.5 by chance in 1 of 1000 tests (Student's law of 23 degrees or more): 0.5 % together
    assert np.abs(z).max() < 3.5


@pytest.mark.slow
def test_a_long_density_under_l1_ends_in_the_tilted_state(under_l1):
    density = meanfield.solve_density(meanfield.with_value(with_prior(0.3), "time.stop", 300.0))
    tilted = under_l1.isel(state=0)
    for name in ("q", "M", "r"):
        # exp(-0.03 * 300) of the first distance, 0.1, and the errors that the density states
        allowed = 1e-4 + float(density[f"{name}_error"][-1].max())
        np.testing.assert_allclose(abs(density[name][-1]), abs(tilted[name]), atol=allowed)


def test_everything_is_done_with_stationary_states(problem, states, under_l1, tmp_path):
    example = Example(replace(FAMILY, methods={"stationary": FAMILY.methods["stationary"]}))
    example.__dict__["problem"], example._results["stationary"] = problem, states
    methods.check_report(example, tmp_path)
    for check in (methods.check_result, methods.check_file, methods.check_conventions, methods.check_figure):
        check(example, "stationary", tmp_path)
    example._results["stationary"] = under_l1
    methods.check_figure(example, "stationary", tmp_path)


def at_one_end(branches, end, names):
    """Sorted rows of the points at an end of the range, of what does not depend on the image that was found."""
    return rows_of(branches.isel(point=branches["parameter"].values == end).rename(point="state"), names)


def rows_of(states, names):
    each = (states.isel(state=k) for k in range(states.sizes["state"]))
    return np.unique(np.round([signless(state, names) for state in each], 4), axis=0)


def signless(state, names):
    q, M = np.sort(np.abs(state["q"].values), axis=None), abs(float(state["M"][0, 1]))
    return [*q, M, *(float(state[name]) for name in names)]


@pytest.mark.slow
def test_branches_pass_through_the_states_at_their_ends(problem, states):
    """Under a linear prior, where all is known of a state but of channels that part from those that coincide."""
    names = ("growth_rate", "relaxation_rate")
    found = meanfield.contrastive.continue_stationary_states(problem, "decorrelation.strength", 0.05, 0.06, points=2)
    ends, single = at_one_end(found, 0.05, names), rows_of(states, names)
    np.testing.assert_allclose(ends, single, atol=2e-4)  # the last digit that is kept
    assert {"M", "arrangement", "copies", "stability"} <= set(found)
    assert np.abs(found["residual"]).max() < 1e-6  # in units of the velocity


@pytest.mark.slow
def test_branches_under_other_priors_do_so_too(under_l1):
    names = ("relaxation_rate",)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plane, "RANDOM_STARTS", 2)
        patch.setattr(search, "QUIET_STARTS", 10)
        found = meanfield.contrastive.continue_stationary_states(with_prior(0.3), "prior.strength", 0.3, 0.32, points=2)
    assert found.attrs["warning"] == plane.NOT_LOOKED_FOR
    ends, single = at_one_end(found, 0.3, names), rows_of(under_l1, names)
    np.testing.assert_allclose(ends, single, atol=2e-4)  # last digit that is kept
    for _, branch in found.groupby("branch"):
        assert np.abs(np.diff(branch["q"].values, axis=0)).max(initial=0.0) < 0.2  # of steps of half the range


def test_more_channels_have_branches_under_linear_priors_alone():
    text = ONE_FEATURE.replace("channels = 2", "channels = 3").replace("[0.8, 0.7]", "[0.8, 0.7, 0.2]")
    with pytest.raises(InputError, match=r"prior.name = 'l1' with model.channels = 3: .* set model.channels to 2"):
        meanfield.contrastive.continue_stationary_states(with_prior(0.3, text), "prior.strength", 0.1, 0.2)
