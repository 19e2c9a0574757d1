"""Density of two channels: Gaussian laws, an independent scheme, SGD, claimed errors, channels without a plane."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.density import choice
from meanfield.families.contrastive.channels.in_time import ChannelsInTime
from meanfield.families.contrastive.channels.limit import joint_limit_of
from meanfield.plotting import plot_comparison
from meanfield.problems.problem_keys import with_values
from meanfield.process.progress import interrupted_after
from meanfield.several_vectors.evolution import DegenerateError, Evolution
from tests.families.contrastive.channels.plane_oracle import PlaneOracle

pytestmark = pytest.mark.usefixtures("plain_figures")

PROBLEM = meanfield.parse_problem("""
[model]
activation = "quadratic"
learning_rate = 0.02
batch_size = 3
channels = 2
initial_channel_overlap = 0.5
[decorrelation]
strength = 0.02
[[features]]
hidden = { law = "three_point", second_moment = 1.5, fourth_moment = 11.25 }
coordinate = { law = "rademacher" }
initial_overlap = [0.6, 0.4]
[time]
stop = 1.5
outputs = 4
[prior]
name = "l2"
""")
SIGNS, HALVES = np.array([[-1.0], [1.0]]), np.full(2, 0.5)
L1 = with_values(PROBLEM, {"prior": {"name": "l1", "strength": 2.0}})


def evolved(problem, cells, steps, spread=1.0):
    limit = joint_limit_of(ChannelsInTime(problem), in_plane=True)
    evolution = Evolution(limit, SIGNS, HALVES, cells, 6.0, spread)
    for step in range(1, steps + 1):
        evolution.step(problem.time.stop * step / steps)
    return evolution


def overlaps(q, M):
    return np.append(np.ravel(q), M[..., 0, 1])


NOISE = {"augmentation": {"variance": [0.4, 0.1], "correlation": -0.5}, "model.centering": "population"}
"""Views that differ, and outputs less their means."""


@pytest.mark.parametrize(
    "changes",
    [pytest.param(NOISE, marks=pytest.mark.slow), {"model.initial_channel_overlap": 0.9}],
    ids=["noise", "alike"],
)
def test_linear_priors_have_gaussian_laws(changes):
    """In a frame that is too wide the law moves, and cells and steps have errors, of order two."""
    problem = with_values(PROBLEM, changes)
    run = meanfield.solve_order_parameters(problem)
    right = overlaps(run["q"].values[-1], run["M"].values[-1])
    wrong = []
    for cells in (24, 48):
        evolution = evolved(problem, cells, cells // 2, spread=1.3)
        now = evolution.averages
        wrong.append(np.abs(overlaps(now.q, now.M) - right).max())
        assert now.mass == pytest.approx(1.0, abs=1e-13)  # rounding
        assert evolution.density.min() >= 0
    assert wrong[1] < 2e-4  # what was found, and as much again
    assert np.log2(wrong[0] / wrong[1]) == pytest.approx(2.0, abs=0.25)  # order 2, up to the next one
    now = evolved(problem, 24, 96).averages
    assert np.abs(overlaps(now.q, now.M) - right).max() < 2e-6  # at rest in the frame of the law: steps of the frame


def test_cells_solve_gaussian_laws_where_they_are_asked_for():
    """The overlaps of the formula are those of the ODE; those of cells come from moments of the density."""
    by_formula = meanfield.solve(PROBLEM, "density")
    by_cells = meanfield.solve(with_values(PROBLEM, {"density": {"scheme": "finite_volumes"}}), "density")
    for name in ("q", "M"):
        away = np.abs(by_cells[name] - by_formula[name])
        assert (away <= by_cells[f"{name}_error"] + by_formula[f"{name}_error"]).all()  # both as they claim
        assert away.max() > 1e-12  # two ways, and not one
    assert float(np.abs(by_cells["P_w"] - by_formula["P_w"]).max()) < 1e-3  # the tolerance of the density


def test_an_independent_scheme_agrees():
    """Cells that stay where they are, on which the kinks of the prior lie: extrapolated from two numbers of cells."""
    found = meanfield.solve_density(with_values(L1, {"time.stop": 0.5, "density.tolerance": 1e-3}))
    coarse, fine = (
        np.concatenate([np.ravel(part) for part in PlaneOracle(ChannelClosure(L1), SIGNS, HALVES, n).run(0.5, n // 8)])
        for n in (40, 80)
    )
    right = fine + (fine - coarse) / 3.0
    q, M, r = (found[name].values[-1] for name in ("q", "M", "r"))
    expected = overlaps(right[:2], right[2:6].reshape(2, 2))
    assert overlaps(q, M) == pytest.approx(expected, abs=4e-4)  # a fifth of fine - coarse
    assert r == pytest.approx(right[6:], abs=1e-2)  # the kink, of third order in the cells of the oracle


@pytest.mark.parametrize(
    "prior", [("l1", 2.0), pytest.param(("quartic", 0.5), marks=pytest.mark.slow)], ids=["l1", "quartic"]
)
def test_sgd_agrees(prior):
    """Projected SGD, whose verdict is wrong once in 20 times for a random seed; this one is fixed."""
    settings = {
        "prior": {"name": prior[0], "strength": prior[1]},
        "time.outputs": 3,
        "particles": {"dimension": 2000, "replicas": 8, "seed": 4, "snapshots": [1.5]},
        "density.tolerance": 5e-3,
    }
    problem = with_values(PROBLEM, settings)
    (density, joint), sgd = meanfield.contrastive.solve_joint_density(problem), meanfield.solve(problem, "particles")
    assert density.attrs["status"] == "complete"
    report = meanfield.compare(density, sgd)
    assert str(report["verdict"].values[0]) == "AGREES", str(report["reason"].values[0])
    for name in ("W1", "W1_diagonal"):
        assert np.isfinite(report[name]).all()
        assert (report[name] < report[f"{name}_chance"]).all()
    figure = plot_comparison({"density": density, "joint": joint, "SGD": sgd})
    assert [axes.get_ylabel() for axes in figure.axes].count("weight $w_2$") == 1


def assert_estimates_bound(changes, tolerance):
    """Errors at a tolerance, against the solution at a tenth of it."""
    rough, fine = (
        meanfield.solve_density(with_values(PROBLEM, changes | {"density.tolerance": each}))
        for each in (tolerance, 0.1 * tolerance)
    )
    for quantity in ("q", "M", "r"):
        allowed = rough[f"{quantity}_error"] + fine[f"{quantity}_error"] + 1e-12  # rounding
        assert (abs(rough[quantity] - fine[quantity]) <= allowed).all(), quantity


RANDOM = np.random.default_rng(5).uniform(size=(3, 4))


@pytest.mark.parametrize(
    ("name", "random"),
    [
        pytest.param(name, row, marks=() if name == "l1" else pytest.mark.slow, id=name)  # the others are smooth
        for name, row in zip(("l1", "log_cosh", "quartic"), RANDOM, strict=True)
    ],
)
def test_estimates_bound_errors(name, random):
    """A tolerance of 1e-2 against one a tenth of it, at random starts and strengths."""
    q = 0.2 + 0.4 * random[:2]
    changes = {
        "features[0].initial_overlap": q.tolist(),
        "model.initial_channel_overlap": float(q.prod() - 0.4 + 0.8 * random[2]),
        "prior": {"name": name, "strength": float(0.5 + 1.5 * random[3])},
        "time.stop": 1.0,
        "time.outputs": 2,
    }
    assert_estimates_bound(changes, 1e-2)


def test_estimates_bound_errors_at_all_times():
    """At single times the extrapolations of two levels agree by chance, and missed the error of r 18 times."""
    changes = {
        "features[0].initial_overlap": [0.2514, 0.3997],
        "model.initial_channel_overlap": 0.1817,
        "prior": {"name": "l1", "strength": 0.543},
        "time": {"stop": 0.7219, "outputs": 9},
    }
    assert_estimates_bound(changes, 1e-3)


def test_an_interruption_while_nodes_are_chosen_leaves_an_unfinished_density():
    with interrupted_after(20):  # the first level on which nodes are compared takes twelve steps
        run = meanfield.solve_density(
            with_values(
                L1, {"features[0].coordinate": {"law": "gaussian"}, "time.stop": 0.5, "density.tolerance": 1e-2}
            )
        )
    assert run.attrs["status"] == "interrupted"
    assert run["P"].isnull().all()


def test_the_start_is_known():
    """Coarse cells missed r(0) by twice of what was claimed: an extrapolation of two levels told its own error."""
    prior = {"prior": {"name": "quartic", "strength": 1.7}, "density.tolerance": 1e-2}
    run = meanfield.solve_density(with_values(PROBLEM, prior | {"time.stop": 0.05, "time.outputs": 2}))
    q = np.array([0.6, 0.4])
    fourth = q**4 + 6 * q**2 * (1 - q**2) + 3 * (1 - q**2) ** 2  # of weights given u = +-1
    assert run["r"].values[0] == pytest.approx(1.7 * fourth, rel=1e-9)  # the spline of the rule
    assert run["r_error"].values[0].tolist() == [0.0, 0.0]


def test_densities_belong_together():
    run, together = meanfield.contrastive.solve_joint_density(L1)
    w, h = run["w"], float(np.diff(run["w_bnds"])[0, 0])
    second = h * (run["P_w"] * w**2).sum("w")
    assert second.values == pytest.approx(1.0, abs=2e-3)  # cells of the display, and P_error times w^2
    joint = together["P_joint"].isel(density_time=-1)
    area = float(np.diff(together["w1_bnds"])[0, 0]) ** 2
    assert float(area * joint.sum()) == pytest.approx(1.0, abs=1e-10)  # rounding
    product = float(area * (joint * joint["w1"] * joint["w2"]).sum())
    assert product == pytest.approx(run["M"].values[-1, 0, 1], abs=3e-3)  # the same
    spread = [h * float((run[name].isel(time=-1) * w**2).sum("w")) for name in ("P_sum", "P_difference")]
    assert spread == pytest.approx([1 + run["M"].values[-1, 0, 1], 1 - run["M"].values[-1, 0, 1]], abs=3e-3)  # the same


def test_densities_under_linear_priors_have_the_moments_of_the_overlaps():
    run, together = meanfield.contrastive.solve_joint_density(PROBLEM)
    w, h = run["w"], float(np.diff(run["w_bnds"])[0, 0])
    mean = h * (run["P"] * w).sum("w").isel(u=1, time=-1).values
    assert mean == pytest.approx(run["q"].values[-1, 0], abs=1e-6)  # tails beyond the cells
    area = float(np.diff(together["w1_bnds"])[0, 0]) ** 2
    mass = area * float(together["P_joint"].isel(density_time=-1).sum())
    assert mass == pytest.approx(1.0, abs=1e-6)  # the same


EQUAL_CHANNELS = {"model.initial_channel_overlap": 1.0, "features[0].initial_overlap": [0.5, 0.5]}


def test_channels_without_a_plane_are_handed_over():
    run = meanfield.solve(
        with_values(L1, EQUAL_CHANNELS | {"time.stop": 0.2, "time.outputs": 2, "density.tolerance": 1e-2}), "density"
    )
    assert run.attrs["method"] == "limit_particles"
    assert "one channel is a function of the other" in run.attrs["warning"]
    with pytest.raises(InputError, match=r"finite_volumes': at t = 0: K .*particles"):
        meanfield.solve(with_values(L1, EQUAL_CHANNELS | {"density": {"scheme": "finite_volumes"}}), "density")


def test_channels_that_lose_their_plane_on_the_way_are_handed_over(monkeypatch):
    def lose(_):
        raise DegenerateError(0.7, "one channel became a function of the other")

    monkeypatch.setattr(choice, "solve_plane", lose)
    short = {"time.stop": 0.2, "time.outputs": 2, "density.tolerance": 1e-2}
    assert "t = 0.7: one channel" in meanfield.solve(with_values(L1, short), "density").attrs["warning"]
    with pytest.raises(InputError, match=r"t = 0.7: .*; set density.scheme = \"particles\""):
        meanfield.solve(with_values(L1, short | {"density.scheme": "finite_volumes"}), "density")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"density": {"scheme": "eulerian"}}, "'eulerian' .* single channel; leave the key out"),
        ({"density": {"half_width": 4.0}}, "half_width = 4 .* remove it"),
        ({"density": {"scheme": "finite_volumes"}, "model.channels": 3}, "cells are for two channels; .*particles"),
    ],
)  # fmt: skip
def test_what_cells_are_not_for_is_refused(changes, words):
    if "model.channels" in changes:
        changes |= {"features[0].initial_overlap": [0.1, 0.2, 0.3], "model.initial_channel_overlap": 0.2}
    with pytest.raises(InputError, match=words):
        meanfield.solve(with_values(L1, changes), "density")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (EQUAL_CHANNELS, "at t = 0: K .* no density in the plane; without cells there is no joint density"),
        ({"density": {"scheme": "particles"}}, "density.scheme = 'particles'; without cells .*, take solve_density"),
        ({"density": {"scheme": "eulerian"}}, "leave the key out"),
    ],
)  # fmt: skip
def test_weights_without_a_plane_have_no_joint_density(changes, words):
    with pytest.raises(InputError, match=words):
        meanfield.contrastive.solve_joint_density(with_values(L1, changes))


def test_one_channel_has_no_scheme_of_several():
    problem = meanfield.load_problem("data/problems/sparse_prior.toml")
    with pytest.raises(InputError, match=r"'finite_volumes' with model.channels = 1"):
        meanfield.solve(with_values(problem, {"density": {"scheme": "finite_volumes"}}), "density")
    with pytest.raises(InputError, match=r"model.channels = 1: a joint density is one of .*; take solve_density"):
        meanfield.contrastive.solve_joint_density(problem)


@pytest.mark.slow
def test_two_gaussian_features_on_given_cells_agree_with_sgd():
    """Of 20 verdicts on runs that are right one is a false alarm; the seed is fixed. Twice the prior is seen."""
    weight = {"hidden": {"law": "three_point", "second_moment": 1.2, "fourth_moment": 7.2}}
    changes = {
        "model": {
            "activation": "quadratic",
            "centering": "population",
            "learning_rate": 0.1,
            "batch_size": 10,
            "channels": 2,
            "initial_channel_overlap": 0.25,
        },
        "features": [weight | {"initial_overlap": [0.6, 0.2]}, weight | {"initial_overlap": [0.1, 0.6]}],
        "prior": {"name": "l1", "strength": 0.3},
        "density": {"cells": 32, "steps": 60},
        "time": {"stop": 4.0, "outputs": 3},
        "particles": {"dimension": 2000, "replicas": 8, "snapshots": []},
    }
    problem = with_values(PROBLEM, changes)
    density, runs = meanfield.solve_density(problem), meanfield.simulate_sgd(problem)
    assert meanfield.compare(density, runs).attrs["verdict"] == "AGREES"
    stronger = meanfield.solve_density(meanfield.with_value(problem, "prior.strength", 0.6))
    wrong = density.assign({name: density[name].copy(data=stronger[name].values) for name in ("q", "M", "r")})
    assert meanfield.compare(wrong, runs).attrs["verdict"] == "DIFFERS"
