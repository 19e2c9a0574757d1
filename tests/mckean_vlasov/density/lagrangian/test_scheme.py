"""Levels of the Lagrangian scheme: exactness, orders, conservation, Jacobian, and robust corners."""

import math
import tracemalloc

import numpy as np
import pytest

from meanfield.extend import Limit, PriorSettings
from meanfield.ingredients.laws import GaussianCoordinate, GaussianResidual
from meanfield.ingredients.laws.coordinate import LaplaceCoordinate, RademacherCoordinate
from meanfield.mckean_vlasov.density.lagrangian import level as of_level
from meanfield.mckean_vlasov.density.lagrangian import preparation
from meanfield.mckean_vlasov.density.lagrangian.budget import Budget
from meanfield.mckean_vlasov.density.lagrangian.estimate import extrapolated
from meanfield.mckean_vlasov.density.lagrangian.level import Level
from meanfield.mckean_vlasov.density.lagrangian.levels import FACTORS
from meanfield.mckean_vlasov.density.lagrangian.marching import average
from meanfield.mckean_vlasov.density.lagrangian.points import Frames, grading_of, packed, unpacked
from meanfield.mckean_vlasov.density.lagrangian.preparation import UNRESOLVED, prepare, run
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.numerics.quantile_frame.frame import DAMPED_SPACING, DAMPING, force_slopes
from meanfield.numerics.quantile_frame.inversion import invert
from meanfield.numerics.quantile_frame.linearised import eliminate, respond
from meanfield.numerics.quantile_frame.stages import FREE, FROZEN, solve_stage

GAIN = 0.5


def make_limit(name="none", strength=0.0, noise=0.2, stop=2.0, coordinate=None, gain=GAIN, **parameters):
    return Limit(
        closure=lambda q: (-gain * q, noise),
        learning_rate=0.5,
        prior=PriorSettings(name=name, strength=strength, parameters=parameters),
        coordinates=(coordinate or RademacherCoordinate(),),
        initial_overlap=np.array([0.3]),
        initial_residual=GaussianResidual(),
        times=np.linspace(0.0, stop, 5),
    )


def solved(limit, points, tolerance=1e-9, frames=None):
    nodes = Nodes.of(limit, 5)
    frames = frames or Frames.plain(nodes, grading_of(limit, 0.5 * limit.closure(limit.initial_overlap)[1]), 0.2)
    level = Level(limit, frames, points, tolerance, Budget())
    run(level, "")
    return level


@pytest.mark.parametrize("noise", [0.2, 0.0])
@pytest.mark.parametrize("name", ["none", "l2"])
def test_linear_priors_keep_the_gaussian_law_whatever_the_noise(name, noise):
    level = solved(make_limit(name, 1.0, noise, coordinate=GaussianCoordinate()), 40)
    u, _ = level.frames.nodes.solved
    q = level.moments[:, 0]
    exact = q[:, None, None] * u[None, :, :] + np.sqrt(1 - q * q)[:, None, None] * level.xi(0)
    assert np.abs(level.X - exact).max() < 3e-8  # of time steps, at the ends of the tails
    assert np.abs(level.moments[:, -2] - 1).max() < 1e-8  # of time steps
    assert q[-1] > q[0] + 0.05


def test_without_noise_points_obey_the_equation_of_each_weight():
    """dw/dt = G w - u.g - tau w^3 with G(t) of the solution, by small Runge-Kutta steps."""
    limit = make_limit("quartic", 0.4, noise=0.0, stop=1.0)
    level = solved(limit, 200)

    def drift(w, q, r):
        growth = q * (-GAIN * q) + limit.learning_rate * r
        return growth * w + GAIN * q * level.frames.nodes.solved[0] - limit.learning_rate * 0.4 * w**3

    w = level.X[0].copy()
    mass = np.exp(-0.5 * level.xi(0) ** 2)
    mass /= mass.sum(axis=1, keepdims=True)
    u, weight = level.frames.nodes.solved

    def rate(w):
        q = float(weight @ (u[:, 0] * (mass * w).sum(axis=1)))
        return drift(w, q, float(weight @ (mass * 0.4 * w**4).sum(axis=1)))

    h = 1.0 / 2000
    for _ in range(2000):
        a = rate(w)
        b = rate(w + 0.5 * h * a)
        c = rate(w + 0.5 * h * b)
        w = w + h / 6 * (a + 2 * b + 2 * c + rate(w + h * c))
    inner = np.abs(level.xi(0)) < 5
    assert np.abs(w - level.X[-1])[inner].max() < 1e-7  # of time steps of both


@pytest.mark.parametrize(("name", "strength"), [("l1", 1.0), ("smooth_l1", 1.0), ("cauchy", 1.0), ("quartic", 0.3)])
def test_second_order_in_the_points(name, strength):
    limit = make_limit(name, strength)
    frames, _ = prepare(limit, Nodes.of(limit, None), Budget())
    errors = [level.moments[:, :2] for level in (solved(limit, n, 1e-9, frames) for n in (120, 240, 480))]
    coarse, fine = np.abs(errors[0] - errors[1]).max(axis=0), np.abs(errors[1] - errors[2]).max(axis=0)
    assert fine.max() > 1e-8  # there is something to measure
    assert np.log2(coarse / fine) == pytest.approx(2.0, abs=0.2)  # not asymptotic yet


@pytest.mark.parametrize(("name", "strength"), [("log_cosh", 1.0), ("quartic", 0.3)])
def test_errors_of_the_points_have_even_powers_of_their_spacing(name, strength):
    """What two levels extrapolate to is of fourth order: the spacing is one over the intervals, not the points."""
    limit = make_limit(name, strength)
    frames = Frames.plain(Nodes.of(limit, None), grading_of(limit, 0.1), 0.3)
    levels = [solved(limit, n, 1e-10, frames) for n in (50, 100, 200, 400)]
    pairs = [extrapolated(levels[k : k + 2])[:, :2] for k in range(3)]
    coarse, fine = (np.abs(pair - pairs[2]).max() for pair in pairs[:2])
    assert fine > 1e-9  # there is something to measure
    assert np.log2(coarse / fine) == pytest.approx(4.1, abs=0.2)  # not asymptotic yet; 3.2 with points in their place


@pytest.mark.parametrize("noise", [1e-3, 2e-5])
def test_damping_vanishes_with_the_spacing_however_little_noise_there_is(noise):
    """E[w^2] = 1 is what extrapolated levels keep, where weights pass points that stay where they are."""
    limit = make_limit("cauchy", 1.0, noise, 2.0, GaussianCoordinate())
    frames, _ = prepare(limit, Nodes.of(limit, 5), Budget())
    first = frames.first_points(limit)
    levels = [solved(limit, math.ceil(factor * first), 1e-9, frames) for factor in FACTORS[:3]]
    assert np.abs(levels[-1].moments[:, 2] - 1.0).max() > 1e-4  # what is extrapolated
    assert np.abs(extrapolated(levels)[:, 2] - 1.0).max() < 1e-8  # of the sixth order; 2e-6 if noise is not scaled


def test_steps_are_as_accurate_as_their_tolerance():
    limit = make_limit("quartic", 0.3)
    frames, _ = prepare(limit, Nodes.of(limit, None), Budget())
    exact = solved(limit, 100, 1e-12, frames).moments
    errors = [np.abs(solved(limit, 100, t, frames).moments - exact)[:, :2].max() for t in (1e-6, 1e-8)]
    assert errors[0] < 1e-5  # some ten steps
    assert errors[1] < 1e-7  # the same
    assert errors[1] < 0.1 * errors[0]


def test_solutions_of_different_accuracy_share_no_step():
    """Growth alone limits the first steps; were they the same, their error would not show in the difference."""
    limit = make_limit("quartic", 0.3)
    frames = Frames.plain(Nodes.of(limit, 5), grading_of(limit, 0.1), 0.3)
    first = [Level(limit, frames, 50, tolerance, Budget())._clock[2] for tolerance in (1e-6, 1e-5)]
    assert (first[1] / first[0]) ** 5 == pytest.approx(10.0)  # rounding


@pytest.mark.parametrize(
    ("name", "strength", "gain", "most"),
    [("smooth_l1", 0.5, 1.5, 156), ("l1", 2.5, 0.2, 86)],  # half more than there are; 50 000, and points out of order
)
def test_little_noise_does_not_shorten_steps(name, strength, gain, most):
    """Weights all move away from the core, and leave empty points behind; or few survivors leave a full core.

    In both, points of hardly any probability overtake each other within steps, and are in order at their ends.
    """
    limit = make_limit(name, strength, 2e-5, 8.0, GaussianCoordinate(), gain)
    _, level = prepare(limit, Nodes.of(limit, None), Budget(2e7), 2e-6)
    assert level.attempts < most


@pytest.mark.parametrize("improvement", [0.0, 0.3, 1.0])
def test_points_reach_further_only_as_long_as_it_helps(monkeypatch, improvement):
    """Ends that lie in the core stay at their quantile, however far the others reach."""
    first = 8.5
    ends = property(lambda level: 7.2 + improvement * (level.frames.grading.reach - first))
    monkeypatch.setattr(Level, "nearest_end", ends)
    limit, reaches = make_limit("l1", 1.0, stop=0.1), []

    def counted(level, label):
        reaches.append(level.frames.grading.reach)
        run(level, label)

    monkeypatch.setattr(preparation, "run", counted)
    prepare(limit, Nodes.of(limit, 5), Budget())
    assert reaches[0] == first
    assert len(reaches) == 2


def test_trial_runs_end_where_points_reach_all_but_far_enough(monkeypatch):
    """Points that begin further out move inwards faster: what is missing falls by a factor, and never to nothing."""
    limit, ends = make_limit("l1", 4.0, 2e-4, 40.0, gain=0.2), []
    monkeypatch.setattr(preparation, "run", lambda *of: run(*of) or ends.append(of[0].nearest_end))
    prepare(limit, Nodes.of(limit, None), Budget())
    assert ends[-1] > preparation.NEEDED_REACH - preparation.REACH_SLACK
    assert len(ends) == 3  # ten without slack


def test_a_step_whose_points_are_out_of_order_between_its_ends_is_taken_anew(monkeypatch):
    limit = make_limit("quartic", 0.3)
    expected, refused = solved(limit, 60), []

    def interpolate(time, mesh, frame, coupling, state, averages):
        if state.clock[1] > time * (1 + 1e-12):
            refused.append(time)
            return False
        return marching_interpolate(time, mesh, frame, coupling, state, averages)

    marching_interpolate = of_level.interpolate
    monkeypatch.setattr(of_level, "interpolate", interpolate)
    level = solved(limit, 60)
    assert refused
    assert np.abs(level.moments - expected.moments).max() < 1e-8  # of time steps


def test_jumps_leave_sums_over_nodes_as_accurate_as_without():
    """Centres and widths that change steadily with u leave errors of points that do, too, out to the last jump."""
    limit = make_limit("quartic", 3.0, 1e-4, 3.0, LaplaceCoordinate(), 0.2)
    found = []
    for nodes in (16, 22):
        frames, trial = prepare(limit, Nodes.of(limit, nodes), Budget())
        places, inverse_widths = (np.array([each[row, 0] for each in frames.jumps]) for row in (1, 2))
        light = inverse_widths < inverse_widths.max()  # all others have the least width
        assert 0 < light.sum() < nodes / 4
        within = frames.nodes.solved[1] * np.exp(-0.5 * places**2) / inverse_widths
        assert np.all(within[light] < 1.001 * UNRESOLVED)  # to first order in the width
        level = Level(limit, frames, trial.points, 1e-8, Budget())
        run(level, "")
        found.append(level.moments[:, :2])
    assert np.abs(found[0] - found[1]).max() < 3e-8  # of steps and places; more if one is rough, or without the last


@pytest.mark.parametrize(("name", "strength"), [("l1", 3.0), ("smooth_l1", 2.0), ("log_cosh", 5.0)])
def test_the_jacobian_is_that_of_differences(name, strength):
    """Solutions of (rate - J) u = f(X) and responses of averages, against central differences."""
    limit = make_limit(name, strength, noise=0.02)
    level = Level(limit, prepare(limit, Nodes.of(limit, None), Budget())[0], 60, 1e-5, Budget())
    level.reach(0)
    level.reach(1)
    _, coupling, mesh, frame, own, state = level._march
    growth, noise, rate, tau = -0.3, 0.02, 7.0, coupling.learning_rate
    averages, kept = np.empty(4), []

    def fill(X):
        assert average(X, mesh, frame, state.sums, coupling, averages)

    def right_hand_side(X):
        fill(X)
        x, xi, s, phi, h = (unpacked(a, level.nodes, 60) for a in (X, frame.xi, frame.share, frame.force, mesh.spacing))
        Q = np.diff(xi, axis=1) / np.diff(x, axis=1)
        low, high = np.concatenate([Q[:, :1], Q], 1), np.concatenate([Q, Q[:, -1:]], 1)
        drift = growth * x - state.nodal.tilts[: level.nodes, None] - tau * phi
        left = np.clip((FROZEN - np.abs(xi)) / (FROZEN - FREE), 0.0, 1.0)
        kept.append(np.where(drift * xi < 0.0, left, 1.0))
        drift *= kept[-1]
        width = np.pad(x[:, 2:] - x[:, :-2], ((0, 0), (1, 1)))  # at the ends Q is the same on both sides
        y = h * drift * width
        damped = noise + DAMPING * (1 - s) ** 2 * y * y / (np.abs(y) + noise * (h / DAMPED_SPACING) ** 2)
        return s * (drift + 0.5 * noise * xi * (low + high)) - damped * (high - low) / h

    X = state.end.copy()
    state.nodal.growths[:], state.nodal.noises[:] = growth, noise
    fill(X)
    force_slopes(X, mesh, own.before, own.here, own.after)
    eliminate(X, mesh, frame, own, state.sums, state.nodal, rate, tau)
    solve_stage(X, mesh, frame, own, state.increments, np.zeros(8), 0, state.nodal, tau)
    u, h = state.increments[0].copy(), 1e-7
    slope = (right_hand_side(X + h * u) - right_hand_side(X - h * u)) / (2 * h)
    residual = rate * unpacked(u, level.nodes, 60) - slope - right_hand_side(X)
    assert ((kept[-1] > 0.0) & (kept[-1] < 1.0)).any()
    assert np.abs(residual).max() < 3e-6 * np.abs(slope).max()  # of differences, where points are close
    respond(u, own, 60, state.changes)
    found = state.changes.copy()
    sums = []
    for sign in (1.0, -1.0):
        fill(X + sign * h * u)
        sums.append(state.sums[1:] / state.sums[0])
    assert found == pytest.approx((sums[0] - sums[1]) / (2 * h), abs=1e-7)  # of differences


def test_layout_of_the_kernel_is_undone():
    values = np.random.default_rng(1).standard_normal((11, 7))
    assert np.array_equal(unpacked(packed(values), 11, 7), values)


@pytest.mark.parametrize("shift", [0.0, -40.0])
def test_points_are_placed_to_rounding_however_far_a_node_lies(shift):
    terms = np.array([[0.8, 2.0, -2.0], [0.0, 0.0, 0.0], [1e6, 50.0, 12.5]])
    y, x, slopes = np.linspace(-30.0, 30.0, 500), np.empty(500), np.empty(500)
    invert(y, 1.2, shift, terms, x, slopes)
    value = 1.2 * x + shift + sum(a * np.arcsinh((x - c) * w) for a, c, w in terms.T)
    assert np.abs(value - y).max() < 1e-13  # rounding of sums up to 70
    assert np.diff(x).min() > 0.0


def test_points_start_where_the_map_says():
    limit = make_limit("l1", 5.0, noise=1e-4)
    nodes = Nodes.of(limit, None)
    grading = grading_of(limit, 5e-5)
    zeta, spacing, X = Frames.plain(nodes, grading, 0.2).start(limit, 300)
    xi = (X - nodes.solved[0] * 0.3) / math.sqrt(1 - 0.09)
    (tail, tail_centre, tail_rate, _), (core, core_centre, core_rate, _) = grading.terms.T
    z = core_rate * (X - core_centre)
    psi = tail * np.arcsinh(tail_rate * (X - tail_centre)) + core * z / np.sqrt(1 + z * z)
    assert xi + psi == pytest.approx(zeta, abs=1e-12)  # rounding
    assert np.diff(zeta, axis=1) == pytest.approx(spacing[:, 1:], rel=1e-10)  # equally spaced


def test_a_solved_level_keeps_its_points_at_the_output_times_and_little_else():
    limit = make_limit("quartic", 0.3)
    solved(limit, 50)  # what the limit itself keeps
    tracemalloc.start()
    level = solved(limit, 2000, 1e-5)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 1.5 * level.X.nbytes  # the weights, the coordinates of the points (1/5 of them), and small objects
