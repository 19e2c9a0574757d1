"""Networks at rest: eigenvectors of linear ones, and those of trees against losses by enumeration and plain descent."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.rest import solver
from tests.families.latent_tree.enumeration import gradient, leaf_law, loss
from tests.families.latent_tree.problems import drawn, trigonometric
from tests.families.latent_tree.test_many_nodes import on_the_circle


def few(problem, starts=4):
    return meanfield.with_value(problem, "stationary.starts", starts)


def nested(problem, vector):
    """Weights by level, nested as the enumeration has them."""
    like = problem.initial_weights.like(vector)
    return [w.reshape(*w.shape[:2], -1).astype(complex) for w in like.W], [b.astype(complex) for b in like.b]


def linear(values=3, leaves=3, nodes=2, **loss):
    """One level; a root with some values above leaves with three, each an input for every value."""
    data = {
        "tree": {"depth": 1, "children": leaves, "values": [values, 3], "root": [0.5, 0.3, 0.2]},
        "network": {"nodes_per_latent": nodes},
        "loss": loss,
        "time": {"stop": 1.0},
    }
    data["tree"]["transitions"] = {"law": "regular", "low": 0.6, "seed": 3}
    return Problem.model_validate(data)


def test_directions_of_a_linear_network_are_eigenvectors():
    problem = linear()
    found = meanfield.solve(few(problem, 2), "stationary")
    x, P = leaf_law(problem)
    p = np.array(problem.tree.root)
    means = P @ x - p @ P @ x
    values = np.linalg.eigvalsh((p[:, None] * means).T @ means)[::-1]
    different = values[np.append(True, np.abs(np.diff(values)) > 1e-12)]
    assert len(different) == 3  # two contrasts of three values, and what they do not see
    assert np.allclose(found["loss"], -different, rtol=0, atol=1e-12)  # rounding
    assert "complete" not in found.attrs["warning"]
    assert found["share"].values.tolist() == [1.0, 0.0, 0.0]  # for a random start is never across the top direction
    # w = e + d e_k has the velocity 2 (v_k - v) d across e, of this output and of the other one; that of the other
    # output along e is a rotation.
    for k, value in enumerate(different):
        wanted = np.sort(np.concatenate([2.0 * (values - value), 2.0 * (values - value)]))[::-1]
        rates = found["rates"].values[k]
        rates = rates[np.isfinite(rates)]
        radial = np.argmin(np.abs(wanted))
        assert np.allclose(rates, np.delete(wanted, radial), rtol=0, atol=1e-8)  # of differences of exact gradients
    assert found["stability"].values.tolist() == [1, -1, -1]


def normalised_descent(problem, rng, steps=6000, rate=4.0):
    """Loss at length 1 where the direction of all weights rests, by steps down gradients of the enumeration."""
    W, b = nested(problem, rng.uniform(-0.7, 0.7, len(problem.initial_weights.vector)))
    W = [w.real for w in W]
    law = leaf_law(problem)
    p0 = problem.tree.root
    contrast = law[1][1] - law[1][0]
    W1, W2 = W[0], W[1][0]
    x = law[0].reshape(len(law[0]), len(W1), -1)
    for _ in range(steps):
        u = np.einsum("mji,cmi->cmj", W1, x)
        a = np.maximum(u, 0.0).reshape(len(x), -1)
        Delta = contrast @ a @ W2.T
        by_f = -2.0 * p0[0] * p0[1] * contrast[:, None] * Delta
        by_a = (by_f @ W2).reshape(u.shape) * (u > 0)
        g2, g1 = by_f.T @ a, np.einsum("cmj,cmi->mji", by_a, x)
        W1, W2 = W1 - rate * g1, W2 - rate * g2
        length = np.sqrt((W1**2).sum() + (W2**2).sum())
        W1, W2 = W1 / length, W2 / length
    return loss(problem, [W1, W2[None]], b, law)


@pytest.mark.slow
def test_plain_descent_comes_to_the_directions_that_are_found():
    problem = drawn((2, 2), nodes=2)
    found = meanfield.solve(few(problem, 12), "stationary")
    stable = found["loss"].values[(found["share"] > 0).values]
    rng = np.random.default_rng(1)
    ends = [normalised_descent(problem, rng) for _ in range(5)]
    # Steps go to and fro across kinks: off by about one of them, 4 times gradients of a few hundredths of the weights.
    off = [np.abs(stable / end - 1.0).min() for end in ends]
    assert np.max(off) < 0.03
    assert min(ends) == pytest.approx(stable.min(), rel=1e-3)  # the best is no state at a kink


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "triplet"])
def test_gradients_by_enumeration_vanish_and_rates_are_eigenvalues_of_the_hessian(kind):
    """At states without kinks; the gradient of the direction along the weights is left out, and weights that are 0."""
    problem = drawn((2, 2), nodes=2) if kind == "plain" else drawn((2,), nodes=2, kind="triplet", temperature=0.5)
    found = meanfield.solve(few(problem, 6), "stationary")
    seen = 0
    for k in np.flatnonzero((found["kinks"] == 0).values & (np.abs(found["loss"]) > 1e-6).values):
        y = found["weights"].values[k]

        def field(at):
            at = at / np.linalg.norm(at) if kind == "plain" else at
            g = gradient(problem, *nested(problem, at))[1]
            return -(g - (g @ at) * at) if kind == "plain" else -g

        assert np.abs(field(y)).max() < 1e-9  # roots, by Newton's method
        assert loss(problem, *nested(problem, y)).real == pytest.approx(float(found["loss"][k]), rel=1e-9)  # rounding
        J = np.array([(field(y + e) - field(y - e)) / 2e-6 for e in 1e-6 * np.eye(len(y))])
        rates = found["rates"].values[k]
        rates = rates[np.isfinite(rates)]
        alive = (
            np.abs(y) > 1e-9
        )  # one of 6e-7 is part of a node; and weights that are 0 decay as the others grow: |W| as 4 |L| |W|
        wanted = np.linalg.eigvalsh(0.5 * (J + J.T)[np.ix_(alive, alive)])
        wanted = np.sort(np.append(wanted, np.full((~alive).sum(), 4.0 * float(found["loss"][k]))))[::-1]
        if kind == "plain":  # the length does not count
            wanted = np.delete(wanted, np.abs(wanted).argmin())
        largest = np.abs(wanted).max()
        assert np.allclose(rates, wanted, rtol=0, atol=1e-8 * largest)  # rounding over a step of 1e-6: found 2e-10
        assert int(found["growing"][k]) == (wanted > 1e-8 * largest).sum()
        seen += 1
    assert seen >= 1
    assert np.all(found["flat"] >= found["orbit"])


@pytest.mark.slow
def test_flows_end_at_the_states():
    problem = meanfield.with_values(drawn((2,), nodes=2, kind="triplet", temperature=0.5), {"time.stop": 4000.0})
    found = meanfield.solve(few(problem, 8), "stationary")
    flow = meanfield.solve(problem, "population")
    assert float(flow["loss"][-1]) == pytest.approx(float(found["loss"][0]), rel=1e-6)  # a late time of the flow
    assert float(found["share"].sum()) == pytest.approx(1.0)
    assert found["stability"].values[0] == 1
    assert int(found["orbit"][0]) == 1  # rotations of two outputs


def test_what_has_no_states_is_refused_and_the_remedy_works():
    with pytest.raises(InputError, match=r"network\.initial\.fixed_lengths = true"):
        meanfield.solve(on_the_circle(), "stationary")
    free = on_the_circle(fixed=False, nodes=1)
    assert meanfield.solve(few(free, 1), "stationary").sizes["state"] >= 0
    biased = trigonometric(depth=1)
    with pytest.raises(InputError, match=r"network\.bias = true"):
        meanfield.solve(biased, "stationary")
    with pytest.raises(InputError, match=r"up to 400 weights"):
        meanfield.solve(drawn((2, 2), nodes=60), "stationary")


def test_a_state_is_the_same_after_its_symmetries():
    """Outputs that are rotated, exchanged nodes, and other scales of nodes are told from other outputs."""
    from meanfield.families.latent_tree.rest.equations import Equations
    from meanfield.families.latent_tree.tables import Tables

    problem = drawn((2, 2), nodes=2, kind="infonce", temperature=0.5)
    weights = problem.initial_weights
    equations = Equations(Tables(problem), weights)

    def state(W):
        y = weights.like(np.zeros_like(weights.vector))
        for place, value in zip(y.W, W, strict=True):
            place[...] = value
        return equations.state(y.vector, equations.tables.forward(y).gates, [])

    first, second = (w.copy() for w in weights.W)
    original = state([first, second])
    c, s = np.cos(0.7), np.sin(0.7)
    turned = second.copy()
    turned[0, 0], turned[0, 1] = c * second[0, 0] - s * second[0, 1], s * second[0, 0] + c * second[0, 1]
    for same in ([first, turned], [first[:, ::-1], second[..., ::-1]], [2.0 * first, 0.5 * second]):
        assert np.allclose(original.outputs, state(same).outputs, rtol=0, atol=1e-14)  # rounding
    assert original.is_like(state([first, turned]))
    assert not original.is_like(state([first, 1.1 * second]))


def normalised(**changes):
    """Two nodes a latent, outputs that are normalised with epsilon = 0; random networks 2, 5, 6, 10, 11 do not rest."""
    data = {
        "tree": {"depth": 2, "polarity": {"law": "uniform", "low": 0.5, "seed": 3}},
        "network": {"nodes_per_latent": 2, "output_normalisation": True},
        "time": {"stop": 1.0},
    }
    return Problem.model_validate(data | changes)


def test_networks_whose_outputs_are_led_to_0_are_counted(monkeypatch):
    monkeypatch.setattr(solver, "MOST_GRADIENTS", 2000)  # the others rest sooner
    found = meanfield.find_stationary_states(few(normalised(), 3))
    assert found["share"].sum() == pytest.approx(2 / 3)  # sums of thirds
    assert "1 of 3 random networks came to no rest that was found; of these 1 lead an output to 0" in found.warning
    assert "give network.epsilon, such as 0.1, and use the method 'population'" in found.warning
    follow = meanfield.with_values(normalised(), {"network.epsilon": 0.1, "time.stop": 0.1})
    assert meanfield.solve_population(follow).attrs["status"] == "complete"


@pytest.mark.slow
def test_all_networks_without_rest_lead_an_output_to_0():
    found = meanfield.find_stationary_states(few(normalised(), 12))
    assert "5 of 12 random networks came to no rest that was found; of these 5 lead" in found.warning
