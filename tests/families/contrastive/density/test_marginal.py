"""The density of w alone where P(w|u) is narrower than the distance of the nodes in u."""

import numpy as np
import pytest
from scipy.stats import norm

import meanfield
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.numerics.distances import l1_distance
from meanfield.problems.file import parse_problem
from tests.example_problems import make_problem
from validation.contrastive.exact_marginal import exact_marginal

NARROW = """
[model]
activation = "relu"
learning_rate = 0.1
batch_size = 20
[[features]]
hidden = { law = "gaussian", second_moment = 2.0 }
initial_overlap = 0.4
[augmentation]
variance = [0.5, 0.5]
correlation = -1.0
[time]
stop = 40.0
outputs = 5
[particles]
method = "projected"
dimension = 400
replicas = 4
snapshots = [40.0]
"""


@pytest.fixture(scope="module")
def narrow():
    return meanfield.solve_density(parse_problem(NARROW))


def test_gaussian_weights_are_gaussian_however_close_q_is_to_one(narrow):
    q, edges = narrow["q"].values[:, 0], edges_of(narrow)
    assert narrow.attrs["status"] == "complete"
    assert q[-1] > 0.99
    assert np.sqrt(1 - q[-1] ** 2) < 0.5 * np.diff(narrow["u"].values).max()
    exact = np.diff(norm.cdf(edges)) / np.diff(edges)
    distance = l1_distance(edges, narrow["P_w"].values, exact)
    assert (distance <= narrow["P_error"].values + 1e-10).all()  # what it promises, and the cut of the nodes
    assert distance.max() < 1e-4
    sums = (narrow["u_weight"] * narrow["P"]).sum("u").values
    assert l1_distance(edges, sums, exact).max() > 0.05  # what it is good for
    P = narrow["P_w"].values[-1]
    assert np.sum((P[1:-1] > P[:-2]) & (P[1:-1] >= P[2:]) & (P[1:-1] > 1e-6)) == 1  # of two cells alike at zero


@pytest.mark.parametrize(
    ("law", "q", "tolerance"),
    [
        # wide features need many nodes: by default once
        pytest.param(law, *case, marks=() if law != "laplace" or case == (0.999, 1e-6) else pytest.mark.slow)
        for law in ("uniform", "laplace", "rademacher")
        for case in ((0.999, 1e-4), (0.999, 1e-6), (0.9999, 1e-6))
    ],
)
def test_weights_at_the_feature_are_mixtures_of_narrow_gaussians(law, q, tolerance):
    """Errors of q of 4e-9 then change a variance of 1e-3 visibly, which the claimed error counts."""
    hidden = '{ law = "gaussian", second_moment = 2.0 }'
    problem = parse_problem(
        f"""
        model = {{ activation = "relu", learning_rate = 0.02, batch_size = 500 }}
        features = [{{ hidden = {hidden}, coordinate = {{ law = "{law}" }}, initial_overlap = {q} }}]
        prior = {{ name = "l2", strength = 0.3 }}
        time = {{ stop = 20.0, outputs = 2 }}
        density = {{ tolerance = {tolerance} }}
        """
    )
    found = meanfield.solve_density(problem)
    edges = edges_of(found)
    exact = np.array([exact_marginal(problem, q, edges) for q in found["q"].values])
    distance = l1_distance(edges, found["P_w"].values, exact)
    assert found.attrs["status"] == "complete"
    assert found["q"].values.max() < 1.0
    assert (distance <= found["P_error"].values + 1e-10).all()  # what it promises, and the cut of the nodes
    assert distance.max() < 1e-4  # what users are promised; the largest is 1.1e-5


def test_sgd_agrees_with_it(narrow):
    report = meanfield.compare(narrow, meanfield.simulate_sgd(parse_problem(NARROW)))
    # Chance exceeds 2.5 times the mean of W1 or KS less than once in 1000; weights of a run share their overlap.
    for name in ("W1", "KS", "W1_given_u", "KS_given_u"):
        ratio = (report[name] / report[name.replace("_", "_expected_", 1) if "_" in name else f"{name}_expected"]).max()
        assert float(ratio) < 2.5


@pytest.mark.parametrize(
    "prior", [("l1", 1.0), pytest.param(("quartic", 0.2), marks=pytest.mark.slow)], ids=["l1", "quartic"]
)
def test_under_a_prior_it_is_that_of_many_nodes(prior):
    lines = ('prior = {{ name = "{}", strength = {} }}'.format(*prior), "time = { stop = 20.0, outputs = 3 }")
    fixed = "density = {{ cells = 560, half_width = 11.2, steps = 400, order = 2, feature_nodes = {} }}"
    run, reference = (meanfield.solve_density(make_problem(*lines, fixed.format(nodes))) for nodes in (36, 200))
    assert run.status == reference.status == "complete"
    assert run["q"][-1, 0] > 0.95
    assert l1_distance(edges_of(run), run["P_w"].values, reference["P_w"].values).max() < 1e-4


def test_few_nodes_for_the_density_alone_are_made_more(monkeypatch):
    problem = make_problem('prior = { name = "l1", strength = 1.0 }', "time = { stop = 20.0, outputs = 3 }")
    nodes = meanfield.solve_density(problem).sizes["u"]
    monkeypatch.setattr("meanfield.mckean_vlasov.density.solver.MARGINAL_TOLERANCE", 1e-4)
    finer = meanfield.solve_density(problem)
    assert finer.sizes["u"] > nodes
    assert finer.status == "complete"
