"""Many nodes per latent: the density on the circle, kernels at the start, and lucky nodes."""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad

import meanfield
from meanfield.errors import InputError
from meanfield.families.latent_tree.many_nodes.ensemble import ensemble_of
from meanfield.families.latent_tree.many_nodes.kernels import _of_counts, wide_limit
from meanfield.families.latent_tree.many_nodes.luck import lucky_chance, nodes_for_luck
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.wording import warnings_of
from tests.families.latent_tree.problems import drawn

DIGITS = 6e-13
"""Half a unit of the last printed digit, and rounding."""


def on_the_circle(fixed=True, positive=1.0, nodes=40, stop=2.0, outputs=3, bias=False, tree=None, **more):
    """Two latents with two leaves each, the case 8 of latent_tree.md, section 5."""
    initial = {"law": "sphere", "fixed_lengths": fixed, "positive": positive, "seed": 3}
    data = {
        "tree": tree or {"depth": 2, "polarity": [[0.8, 0.5], [0.9, 0.6, 0.8, 0.7]]},
        "network": {"nodes_per_latent": nodes, "bias": bias, "initial": initial},
        "time": {"stop": stop, "outputs": outputs},
    }
    return Problem.model_validate(data | more)


@cache
def density_on_the_circle():
    return meanfield.solve(on_the_circle(), "density")


def test_the_density_has_the_reference_values():
    result = density_on_the_circle()
    assert float(result["Delta"][0]) == pytest.approx(0.438904204127, rel=0, abs=DIGITS)
    assert float(result["Delta"][-1]) == pytest.approx(0.5479207, rel=0, abs=5e-8)  # its printed digits
    nodes = ensemble_of(on_the_circle())
    assert nodes.Delta(1e4) == pytest.approx(0.873024747968, rel=0, abs=DIGITS)
    assert nodes.averages(1e4)[1] == pytest.approx(1.0, abs=1e-13)  # rounding
    late = meanfield.solve(on_the_circle(stop=1e4, outputs=2, density={"cells": 24}), "density")
    gathered = late["atom"].sel(sign=1.0).isel(time=-1)
    assert np.allclose(gathered.isel(gate=0), 1 / 8, rtol=0, atol=1e-12)  # from 3 pi/4 to pi, all at pi; rounding
    assert np.allclose(gathered.isel(gate=slice(1, None)), 0.0, atol=1e-12)  # rounding


@pytest.mark.parametrize("fixed", [True, False])
def test_weights_that_stay_on_the_sphere_are_not_said_to_become_infinite(fixed):
    assert ("nothing bounds the weights" in " ".join(warnings_of(on_the_circle(fixed), []))) == (not fixed)


@pytest.mark.parametrize("fixed", [True, False])
def test_shares_add_up_to_1(fixed):
    result = meanfield.solve(on_the_circle(fixed, positive=0.7, density={"cells": 50}), "density")
    width = result["angle_bnds"].diff("bounds")[:, 0].drop_vars("angle_bnds", errors="ignore").values
    total = (result["rho"] * width).sum(["angle", "sign"]) + result["atom"].sum(["gate", "sign"])
    assert np.allclose(total, 1.0, rtol=0, atol=1e-13)  # rounding
    assert float(result["rho"].min()) >= -1e-12  # rounding


def velocities(problem, angle):
    """Slopes of s on both sides of angles, (latents, 2, angles), and s, by their definitions."""
    leaves = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    rho = np.array(problem.tree.polarity[1]).reshape(-1, 2)
    sides = np.stack([angle - 1e-9, angle + 1e-9])
    w, along = (np.stack(pair, axis=-1) for pair in ((np.cos(sides), np.sin(sides)), (-np.sin(sides), np.cos(sides))))
    chance = [np.prod((1 + rho[:, None] * np.where(leaves == z, 1, -1)) / 2, axis=-1) for z in (0, 1)]
    difference = 0.5 * (chance[1] - chance[0])
    slope = np.einsum("lc,sac,sac->lsa", difference, w @ leaves.T > 0, along @ leaves.T)
    s = np.einsum("lc,ac->la", difference, np.maximum(w[1] @ leaves.T, 0.0))
    return slope, s


def by_finite_volumes(problem, cells):
    """Delta at the end by upwind fluxes of densities that are constant in cells, in explicit steps."""
    width = 2 * np.pi / cells
    edges = -0.75 * np.pi + width * np.arange(cells)
    slope, _ = velocities(problem, edges)
    _, s = velocities(problem, edges + 0.5 * width)
    rho0 = np.array(problem.tree.polarity[0])
    rho = np.full((2, cells), 0.5 / np.pi)

    def Delta():
        return 2.0 * width * rho0 @ (s * rho).sum(axis=1)

    steps = int(np.ceil(problem.time.stop * 2.0 * np.abs(slope).max() / width))
    for _ in range(steps):
        before, after = np.moveaxis(rho0[:, None, None] * slope * Delta(), 1, 0)
        flux = np.maximum(before, 0.0) * np.roll(rho, 1, axis=1) + np.minimum(after, 0.0) * rho
        rho = rho + problem.time.stop / steps * (flux - np.roll(flux, -1, axis=1)) / width
    return Delta()


def test_finite_volumes_come_to_it():
    """Fluxes know nothing of paths; they are of first order."""
    problem = on_the_circle()
    exact = float(density_on_the_circle()["Delta"][-1])
    errors = [abs(by_finite_volumes(problem, cells) - exact) for cells in (96, 192, 384)]
    assert errors[0] < exact / 96  # first order in cells of this part of the circle
    assert errors[1] < 0.6 * errors[0]  # a half, of first order
    assert errors[2] < 0.6 * errors[1]  # the same


@pytest.mark.parametrize("tree", [None, {"depth": 2, "polarity": [[0.8, -0.5], [0.9, -0.6, 0.3, 0.7]]}])
def test_trained_lengths_are_those_of_single_nodes(tree):
    """Nodes on a fine grid of angles, whose weights take small steps without a look at gates."""
    problem = on_the_circle(fixed=False, positive=0.7, stop=1.5, outputs=2, tree=tree)
    result = meanfield.solve(problem, "density")
    count = 2000
    angle = -np.pi + 2 * np.pi * (np.arange(count) + 0.5) / count
    leaves = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    rho0, rho = np.array(problem.tree.polarity[0]), np.array(problem.tree.polarity[1]).reshape(-1, 2)
    chance = [np.prod((1 + rho[:, None] * np.where(leaves == z, 1, -1)) / 2, axis=-1) for z in (0, 1)]
    c = 0.5 * (chance[1] - chance[0])
    w = np.broadcast_to(np.stack([np.cos(angle), np.sin(angle)], axis=-1), (2, 2, count, 2)).copy()
    v = np.broadcast_to(np.array([-1.0, 1.0])[:, None], (2, 2, count)).copy()
    share = np.array([0.3, 0.7])

    def rates(w, v):
        u = w @ leaves.T
        s = np.einsum("lc,lspc->lsp", c, np.maximum(u, 0.0))
        Delta = 2 * np.einsum("l,s,lsp->", rho0, share, v * s) / count
        pull = Delta * rho0[:, None, None]
        return (pull * v)[..., None] * np.einsum("lc,lspc,ci->lspi", c, u > 0, leaves), pull * s, Delta

    steps = 60
    for _ in range(steps):
        dt = 1.5 / steps
        dw, dv, _ = rates(w, v)
        dw, dv, _ = rates(w + 0.5 * dt * dw, v + 0.5 * dt * dv)
        w, v = w + dt * dw, v + dt * dv
    Delta = rates(w, v)[2]
    assert float(result["Delta"][-1]) == pytest.approx(Delta, rel=1e-4)  # steps across gates, and a sum over angles
    square = (w**2).sum(axis=-1).mean(axis=-1)
    assert np.allclose(result["square"][-1], square, rtol=1e-4)  # the same


def test_weights_become_infinite_where_lengths_are_trained():
    result = meanfield.solve(on_the_circle(fixed=False, stop=20.0), "density")
    assert result.attrs["status"].startswith("failed: at t = ")
    assert "fixed_lengths" in result.attrs["status"]


def test_one_leaf_and_a_bias_are_on_the_circle_too():
    """Two latents with one leaf each; the flow of angles by a general integrator, away from gates."""
    tree = {"depth": 2, "children": [2, 1], "polarity": [[0.8, 0.5], [0.9, 0.7]]}
    nodes = ensemble_of(on_the_circle(bias=True, tree=tree))
    expected = 0.0
    for rho0, rho in ((0.8, 0.9), (0.5, 0.7)):

        def s(a, r=rho):
            return 0.5 * r * (max(np.cos(a) + np.sin(a), 0.0) - max(np.sin(a), 0.0))

        expected += (
            2 * rho0 * quad(s, -np.pi, np.pi, points=[-np.pi / 4, 0, 3 * np.pi / 4], epsabs=1e-13)[0] / (2 * np.pi)
        )
    assert nodes.Delta(0.0) == pytest.approx(expected, rel=1e-11)  # of the quadrature


def test_sgd_follows_the_density():
    """Nodes are finitely many and drawn: Delta of the start has their fluctuation, which many of them leave small."""
    training, particles = {"learning_rate": 0.05, "batch_size": 32}, {"replicas": 8, "score_samples": 2}
    for fixed in (True, False):
        more = {"training": training, "particles": particles}
        problem = on_the_circle(fixed, nodes=400, stop=1.0, outputs=2, **more)
        density, sgd = meanfield.solve(problem, "density"), meanfield.solve(problem, "particles")
        Delta = 2.0 * sgd["selectivity"].isel(latent=0, node=0, time=-1)
        error = float(Delta.std("replica", ddof=1)) / np.sqrt(8)
        gap = abs(float(Delta.mean() - density["Delta"][-1]))
        # 4.5 standard errors leave a false alarm once in 1e3 seeds of 8 runs; nodes vary by 1/sqrt(nodes) of s, 0.35
        assert gap < 4.5 * error + 4.5 * 0.35 / np.sqrt(400)
        if fixed:
            W = sgd["weights"].isel(time=-1)[:, : 2 * 400 * 2].values.reshape(8, -1, 2)
            assert np.allclose((W**2).sum(axis=-1), 1.0, rtol=0, atol=1e-12)  # rounding


@pytest.mark.slow
def test_batches_shake_all_nodes_together():
    """The spread of Delta over runs is sqrt(eta/B), whatever the number of nodes."""
    found = {}
    for nodes, rate, batch in ((20, 0.05, 16), (320, 0.05, 16), (80, 0.05, 64), (80, 0.0125, 16)):
        more = {"training": {"learning_rate": rate, "batch_size": batch}}
        problem = on_the_circle(nodes=nodes, outputs=2, particles={"replicas": 200, "score_samples": 2}, **more)
        Delta = 2.0 * meanfield.solve(problem, "particles")["selectivity"].isel(latent=0, node=0, time=-1)
        found[nodes, rate, batch] = float(Delta.std("replica", ddof=1)) * np.sqrt(batch / rate)
    spread = np.array(list(found.values()))
    # a standard deviation of 200 runs has an error of 5 %; 4 of them; the angles of 20 nodes change it by some 10 %
    assert np.all(np.abs(spread / 0.184 - 1.0) < 0.3), found


def test_what_has_no_density_is_refused_with_another_method():
    for problem, words in (
        (drawn((2, 2)), "network.initial.law = 'uniform'"),
        (on_the_circle(positive=0.5), "infinitely many nodes never move"),
    ):
        with pytest.raises(InputError) as error:
            meanfield.solve(problem, "density")
        assert words in str(error.value)
    with pytest.raises(ValueError, match="for trees with two levels of latents"):
        on_the_circle(tree={"depth": 1, "polarity": [[0.9, 0.8]]})


def equal(depth, rho, nodes, bias=True):
    tree = {"depth": depth, "polarity": {"law": "uniform", "low": rho, "high": rho}}
    return Problem.model_validate(
        {"tree": tree, "network": {"nodes_per_latent": nodes, "bias": bias}, "time": {"stop": 1.0}}
    )


@pytest.mark.parametrize(
    ("rho", "expected"),
    [
        (0.7, [0.7, 0.48522653, 0.33809879]),
        (0.8, [0.8, 0.63488654, 0.50543849, 0.40040880]),
        (0.9, [0.9, 0.80603536, 0.72258796]),
    ],
)
def test_kernels_have_the_reference_values(rho, expected):
    problem = equal(len(expected), rho, 10)
    limit = meanfield.solve(problem, "operator")["correlation_limit"].values
    found = [limit[problem.shape.level_of == level][0] for level in problem.shape.levels]
    assert np.allclose(found, expected, rtol=0, atol=6e-9)  # half a unit of the last printed digit, and rounding


def test_kernels_of_uniform_weights_have_the_reference_values():
    with_bias = {(0, 0, 0): (1 / 6, 1 / 2), (1, 0, 0): (1 / 3, 1 / 2), (2, 0, 0): (1 / 2, 1 / 2)}
    with_bias |= {(0, 1, 0): (17 / 96, 3 / 8), (0, 1, 1): (1 / 5, 1 / 3), (0, 2, 0): (31 / 160, 17 / 48)}
    with_bias |= {(1, 1, 0): (41 / 120, 19 / 48)}
    for (both, first, second), expected in with_bias.items():
        assert np.allclose(_of_counts(1 + both, first, second), expected, rtol=1e-13)  # rounding


def test_kernels_are_the_means_of_many_networks():
    """Root mean square correlations and growth of Delta of drawn networks with one output."""
    problem = equal(2, 0.8, 400)
    limit, rng, rate = wide_limit(problem), np.random.default_rng(0), []
    assert limit.growth == pytest.approx(2 * 0.25 * 114.52 * 0.4, rel=2e-2)  # printed for 1000 nodes; those above count
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    gap = np.prod(np.where(x == 1, 0.9, 0.1), axis=1) - np.prod(np.where(x == 0, 0.9, 0.1), axis=1)
    for _ in range(200):
        W, b = rng.uniform(-1, 1, (2, 400, 2)) / np.sqrt(2), rng.uniform(-1, 1, (2, 400)) / np.sqrt(2)
        top, u = rng.uniform(-1, 1, (2, 400)) / np.sqrt(800), None
        u = np.einsum("lni,ci->lnc", W, x) + b[..., None]
        s = 0.8 * np.maximum(u, 0.0) @ gap
        slope = 0.8 * np.einsum("lnc,c,ci->lni", u > 0, gap, np.c_[x, np.ones(4)])
        rate.append(0.5 * ((s**2).sum() + (top**2 * (slope**2).sum(axis=-1)).sum()))
    error = np.std(rate) / np.sqrt(len(rate))
    assert abs(np.mean(rate) - limit.growth) < 4.9 * error  # once in 1e6 seeds


def test_lucky_nodes_have_the_reference_probabilities():
    for c, gamma, expected in (
        (9, 0.2, 3.397672e-4),
        (9, 0.5, 4.094483e-5),
        (9, 0.8, 1.572269e-8),
        (4, 0.5, 2.026473e-3),
    ):
        assert lucky_chance(c, gamma) == pytest.approx(expected, rel=2e-7)  # half a unit of the last printed digit
    assert lucky_chance(0.0, 0.3) == pytest.approx(0.25 + np.arcsin(-0.3) / (2 * np.pi), rel=1e-12)  # an orthant
    assert nodes_for_luck(9.0, 0.2, 0.05) == pytest.approx(8815.5, abs=0.05)  # printed
    for wrong in ((-1.0, 0.2), (9.0, 1.0), (np.nan, 0.2)):
        with pytest.raises(InputError):
            lucky_chance(*wrong)
    with pytest.raises(InputError, match="miss = 0"):
        nodes_for_luck(9.0, 0.2, 0.0)
