"""Objects on a ring: the phase portrait of a node, sliding, and SGD."""

import json
from itertools import product

import numpy as np
import pytest

import meanfield
from meanfield.families.latent_tree.operators import operators
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.ring_tables import RingTables
from meanfield.families.latent_tree.settings import RingObjects
from meanfield.problems.file import format_problem, parse_problem
from tests.families.latent_tree import enumeration

DIGITS = 6e-13
"""Half a unit of the last printed digit, and rounding."""


def ring(rows, biases=None, sites=8, stop=1.0, outputs=2, **more):
    """Nodes with given weights on a ring."""
    initial = {"law": "explicit", "weights": [[rows]]} | ({} if biases is None else {"biases": [[biases]]})
    network = {"nodes_per_latent": len(rows), "bias": biases is not None, "initial": initial}
    data = {"data": {"law": "ring_objects", "sites": sites}, "network": network}
    return Problem.model_validate(data | {"time": {"stop": stop, "outputs": outputs}} | more)


def seen(sites, z, place):
    """The two pixels 0 and 1 of a ring with an object, written pixel by pixel."""
    pixels = [0.0] * sites
    for shift in ((0, 1), (0, 2))[z]:
        pixels[(place + shift) % sites] = 1.0
    return pixels[:2]


def loss(sites, w, b=0.0):
    """Loss of one node by its definition, a sum over places of anchor, positive and negative."""
    f = np.array([[np.maximum(np.dot(w, seen(sites, z, k)) + b, 0.0) for k in range(sites)] for z in (0, 1)])
    near = np.mean([(x - y) ** 2 / 2 for z in (0, 1) for x, y in product(f[z], repeat=2)])
    far = np.mean([(x - y) ** 2 / 2 for x, y in product(f.ravel(), repeat=2)])
    return near - far


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("sites", [4, 5, 8])
def test_loss_and_gradient_are_those_of_all_places(sites, bias):
    rng = np.random.default_rng(sites)
    rows, biases = rng.normal(size=(3, 2)), rng.normal(size=3) if bias else np.zeros(3)
    problem = ring(rows.tolist(), biases.tolist() if bias else None, sites=sites)
    value, slope = RingTables(problem).loss_and_gradient(problem.initial_weights)
    assert value == pytest.approx(
        sum(loss(sites, w, b) for w, b in zip(rows, biases, strict=True)), rel=1e-12
    )  # rounding
    h, expected = 1e-6, []
    for k in range(3 * 2 + 3 * bias):
        moved = [np.concatenate([rows.ravel(), biases]) for _ in range(2)]
        moved[0][k] += h
        moved[1][k] -= h
        ends = [sum(loss(sites, x[2 * j : 2 * j + 2], x[6 + j]) for j in range(3)) for x in moved]
        expected.append((ends[0] - ends[1]) / (2 * h))
    assert np.allclose(slope.vector, expected, rtol=0, atol=1e-9)  # rounding over h; the loss is a square


@pytest.mark.parametrize(
    ("w", "expected"),
    [((1, -2), (1, 0)), ((-1, 0.5), (0, 1)), ((-0.3, 0.5), (1, 0)), ((0.3, 0.5), (0, 0)), ((-0.3, -0.5), (0, 0))],
)
def test_operators_are_those_of_the_phase_portrait(w, expected):
    problem = ring([w])
    tables = RingTables(problem)
    found = tables.forward(problem.initial_weights)
    (operator,) = operators(tables, found, tables.evaluate(found))
    assert np.allclose(4 * 64 * operator.matrix, np.diag(expected), rtol=0, atol=1e-14)  # rounding


LOSSES = [
    {"kind": "beta", "beta": -0.4},
    {"kind": "triplet", "margin": 0.2, "temperature": 0.5},
    {"kind": "infonce", "temperature": 0.5},
    {"kind": "exact", "negatives": 2, "temperature": 0.5},
    {"kind": "batch_ratio", "temperature": 0.3},
    {"kind": "nt_xent", "temperature": 0.5},
]


@pytest.mark.parametrize("chosen", LOSSES, ids=lambda chosen: chosen["kind"])
def test_losses_gradients_and_operators_are_those_of_all_places(chosen):
    rows = np.random.default_rng(0).normal(size=(3, 2))
    problem = ring(rows.tolist(), sites=5, loss=chosen, training={"batch_size": 2})
    x = np.array([seen(5, z, k) for z in (0, 1) for k in range(5)])
    P = np.repeat(np.eye(2), 5, axis=1) / 5

    def value_of(w):
        u = x @ w.T
        return enumeration.loss_of(problem.contrast, np.where(u.real > 0.0, u, 0.0), (0.5, 0.5), P)

    tables = RingTables(problem)
    found = tables.forward(problem.initial_weights)
    evaluation = tables.evaluate(found)
    slope = tables.gradient(found, tables.by_last(found, evaluation.slope)).vector
    steps = 1e-30j * np.eye(6).reshape(6, 3, 2)
    expected = np.array([value_of(rows + step).imag / 1e-30 for step in steps])
    assert evaluation.value == pytest.approx(value_of(rows), rel=1e-12)  # rounding
    assert np.allclose(slope, expected, rtol=0, atol=1e-12 * np.abs(expected).max())  # rounding
    (operator,) = operators(tables, found, evaluation)
    product = -2.0 * operator.matrix @ rows.ravel()
    assert np.allclose(product, expected, rtol=0, atol=1e-12 * np.abs(expected).max())  # rounding


@pytest.mark.parametrize(("chosen", "slides"), [({"kind": "infonce"}, 0), ({"kind": "exact"}, 2)])
def test_nodes_that_share_a_loss_change_and_slide(chosen, slides):
    """Small steps go through kinks, or back and forth over one on which the flow slides."""
    problem = ring([(1.0, -0.8), (-0.6, 0.7)], sites=4, stop=12.0, loss=chosen | {"temperature": 0.5})
    result = meanfield.solve(problem, "population")
    tables, start = RingTables(problem), problem.initial_weights
    provenance = json.loads(result.attrs["provenance"])
    assert (provenance["changes"], provenance["slides"]) == (2, slides), "another start is needed"

    def small_steps(dt):
        y = start.vector
        for _ in range(round(12.0 / dt)):
            y = y - dt * tables.loss_and_gradient(start.like(y))[1].vector
        return y

    last = result["weights"].values[-1]
    coarse, fine = (np.abs(small_steps(dt) - last).max() for dt in (0.2, 0.05))
    assert coarse < 0.02 * np.abs(last - start.vector).max()
    assert fine < 0.4 * coarse  # first order in the step: a quarter


def test_a_node_reaches_the_line_and_slides_as_the_reference_says():
    problem = ring([(1.0, -2.0), (-0.3, 0.5)], stop=180.0, outputs=10)
    result = meanfield.solve(problem, "population")
    first, second = result["weights"].values.reshape(10, 2, 2).transpose(1, 0, 2)
    at = dict(zip(result["time"].values.tolist(), first, strict=True))
    assert np.allclose(at[60.0], [1.5979954499506, -2.0], rtol=0, atol=1e-7)  # a hundred times the tolerance of a step
    assert np.allclose(at[120.0], [2.2599068379307, -2.2599068379307], rtol=0, atol=1e-7)  # the same
    assert np.allclose(second[-1, 0], -second[-1, 1], rtol=0, atol=1e-7)  # on the line since 128 log(5/3) = 65.4
    grown = 0.5 * np.exp((180 - 128 * np.log(5 / 3)) / 256)
    assert second[-1, 1] == pytest.approx(grown, abs=1e-7)  # a hundred times the tolerance of a step
    assert np.allclose(
        result["loss"],
        -(np.minimum(first[:, 0], -first[:, 1]) ** 2 + np.minimum(-second[:, 0], second[:, 1]) ** 2) / 256,
        rtol=1e-6,
    )  # the same, of a square


def test_views_have_the_law_of_the_ring():
    data, rng, count = RingObjects(law="ring_objects", sites=5), np.random.default_rng(0), 40_000
    for z in (False, True):
        found = data.views(rng, np.full(count, z)) @ np.array([2, 1])
        share, P = np.bincount(found, minlength=4) / count, data.given_object[int(z)]
        counted = np.bincount([2 * int(a) + int(b) for a, b in (seen(5, int(z), k) for k in range(5))], minlength=4) / 5
        assert np.allclose(P, counted, rtol=0, atol=1e-15)  # rounding
        assert np.all(np.abs(share - P) <= 4.9 * np.sqrt(P * (1 - P) / count))  # once in 1e6 seeds


def test_sgd_slides_along_the_line():
    training = {"learning_rate": 0.1, "batch_size": 64}
    problem = ring(
        [(1.0, -1.2)], sites=4, stop=15.0, outputs=3, training=training, particles={"replicas": 6, "score_samples": 50}
    )
    flow, sgd = meanfield.solve(problem, "population"), meanfield.solve(problem, "particles")
    w = sgd["weights"].isel(time=-1)
    error = w.std("replica", ddof=1) / np.sqrt(6)
    # sliding is a zigzag of steps of size eta across the line, which costs O(eta) of the weights
    assert np.all(np.abs(w.mean("replica") - flow["weights"].isel(time=-1)) < 4.9 * error + 0.02)
    assert float(np.abs(w.sum("weight")).mean()) < 0.1  # it started at 0.2; steps across the line have 0.1 of 1.5
    assert float(flow["weights"][-1, 0]) > 1.3  # it slides since 32 log 1.2 = 5.8


def test_ring_problems_survive_their_text_and_refuse_a_tree():
    problem = ring([(1.0, -2.0)])
    assert parse_problem(format_problem(problem)) == problem
    assert "ring of 8 pixels" in str(meanfield.explain(problem))
    with pytest.raises(ValueError, match="outputs, which are rectified and not normalised"):
        ring([(1.0, -2.0)], network={"nodes_per_latent": 1, "output_normalisation": True})
    for more, words in (
        ({"tree": {"depth": 1, "polarity": [[0.5, 0.5]]}}, "give one of the tables"),
        ({"data": {"law": "ring_objects", "sites": 3}}, "greater than or equal to 4"),
    ):
        with pytest.raises(ValueError, match=words):
            ring([(1.0, -2.0)], **more)
    with pytest.raises(meanfield.InputError, match=r"nodes are outputs there.*'population'"):
        meanfield.solve(problem, "density")
    assert meanfield.solve(problem, "operator")["operator_top"].values == pytest.approx(
        [1 / 256], rel=1e-12
    )  # rounding
