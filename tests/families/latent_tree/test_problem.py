"""Problem files: what is wrong is refused with the key, the value and a remedy, before anything is computed."""

import re

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.problems.file import format_problem, parse_problem
from tests.families.latent_tree.problems import WEIGHTS, case_b

TABLES = {
    "tree": "depth = 2\npolarity = [[0.8, -0.6], [0.9, 0.7, -0.5, 0.6]]",
    "network": "nodes_per_latent = 2",
    "loss": "kind = 'simple'",
    "training": "",
    "time": "stop = 1.0\noutputs = 3",
    "particles": "",
}
DRAWN = "polarity = { law = 'uniform', low = 0.7 }"
GIVEN = f"initial = {{ law = 'explicit', weights = {WEIGHTS}"

WRONG = [
    ("tree", "depth = 1\npolarity = [[0.8]]", "its list [0] has 1 number(s), but there are 2 edges above the leaves"),
    ("tree", "depth = 2\npolarity = [[0.8, -0.6]]", "tree.polarity: has 1 list(s), but depth = 2; give one for each"),
    ("tree", "depth = 2", "tree.polarity: is missing; add it"),
    ("tree", "depth = 2\npolarity = { law = 'uniform', low = 0.9, high = 0.8 }", "low: is 0.9, above high = 0.8"),
    ("tree", f"depth = 2\nroot = [0.5, 0.6]\n{DRAWN}", "tree.root: [0.5, 0.6] adds up to 1.1"),
    ("tree", f"depth = 2\nroot = [0.0, 1.0]\n{DRAWN}", "tree.root: [0.0, 1.0] never varies"),
    ("tree", f"depth = 2\nroot = [0.5, 0.3, 0.2]\n{DRAWN}", "the root has two values: give two probabilities"),
    ("tree", f"depth = 2\nleaves = [1.0]\n{DRAWN}", "tree.leaves: [1.0]: give two different numbers"),
    ("tree", f"depth = 2\nchildren = [2]\n{DRAWN}", "tree.children: has 1 number(s), but depth = 2"),
    ("tree", f"depth = 16\nchildren = 3\n{DRAWN}", "tree.depth: 16 gives 43,046,721 leaves, at most 65,536 fit"),
    (
        "tree",
        "depth = 1\nvalues = 3\npolarity = [[0.8, -0.6]]",
        "tree.polarity: -0.6: with 3 values it is -0.5 or more",
    ),
    ("tree", f"depth = 1\nvalues = [3, 2]\n{DRAWN}", "give transitions in its place, or one number of values"),
    ("tree", f"depth = 1\nvalues = [3, 2, 2]\n{DRAWN}", "tree.values: has 3 number(s), but depth = 1; give 2"),
    (
        "tree",
        f"depth = 1\nvalues = 3\nleaves = [0, 1]\n{DRAWN}",
        "give 3 different numbers, for instance [0.0, 0.5, 1.0]",
    ),
    (
        "tree",
        f"depth = 1\nleaves = [[0, 1], [1]]\n{DRAWN}",
        "tree.leaves: [[0.0, 1.0], [1.0]]: give as many inputs for each",
    ),
    ("tree", f"depth = 1\nvalues = 3\n{DRAWN[:-2]}, random_sign = true }}", "lower high to 0.5, or set random_sign"),
    ("tree", f"depth = 1\n{DRAWN}\ntransitions = [[[[1, 0], [0, 1]]]]", "transitions: is given beside polarity"),
    (
        "tree",
        "depth = 1\ntransitions = [[[[1, 0], [0.5, 0.6]]]]",
        "its matrix [0][0] is [[1.0, 0.0], [0.5, 0.6]]; give 2",
    ),
    ("network", "nodes_per_latent = 2\nepsilon = 0.1", "network.epsilon: belongs to output_normalisation = true"),
    ("network", f"nodes_per_latent = 3\n{GIVEN} }}", "weights[0][0] has 2 element(s), and 3 are wanted"),
    ("network", f"nodes_per_latent = 2\nbias = true\n{GIVEN} }}", "network.initial.biases is missing; add it"),
    ("network", f"nodes_per_latent = 2\n{GIVEN}, biases = [[[1.0]]] }}", "biases belongs to network.bias = true"),
    ("loss", "beta = 0.1", "loss.beta: belongs to kind = 'beta'"),
    ("loss", "kind = 'nt_xent'\nbeta = 0.1", "loss.beta = 0.1: on trees it belongs to loss.kind = 'beta'"),
    ("loss", "margin = 0.1", "loss.margin: belongs to kind = 'triplet'"),
    ("loss", "negatives = 2", "kind = 'simple' has one negative"),
    ("training", "learning_rate = 1e-19", "takes 1e+19 steps of SGD"),
    ("particles", "snapshots = [0.3]", "0.3 is not an output time; the nearest one is 0.5"),
]


def written(**tables):
    return 'family = "latent_tree"\n' + "".join(f"[{name}]\n{text}\n" for name, text in (TABLES | tables).items())


@pytest.mark.parametrize(("table", "text", "words"), WRONG, ids=[words[:40] for _, _, words in WRONG])
def test_faults_are_refused_with_key_value_and_remedy(table, text, words):
    with pytest.raises(InputError, match=re.escape(words)):
        parse_problem(written(**{table: text}))


def test_a_batch_of_one_has_no_negatives():
    with pytest.raises(InputError, match=r"training.batch_size = 1: loss.kind = 'nt_xent'"):
        parse_problem(written(loss="kind = 'nt_xent'", training="batch_size = 1"))


def test_problems_survive_their_text():
    problem = case_b()
    assert parse_problem(format_problem(problem)) == problem


def test_polarities_are_drawn_within_bounds_by_their_seed():
    def drawn(seed, sign):
        law = f"{{ law = 'uniform', low = 0.7, high = 0.8, random_sign = {sign}, seed = {seed} }}"
        return parse_problem(written(tree=f"depth = 5\npolarity = {law}")).tree.polarities

    first, again, other, signed = drawn(1, "false"), drawn(1, "false"), drawn(2, "false"), drawn(1, "true")
    assert [len(row) for row in first] == [32, 16, 8, 4, 2]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])
    assert all(np.all((row >= 0.7) & (row <= 0.8)) for row in first)
    assert {-1.0, 1.0} == set(np.sign(np.concatenate(signed)))


def test_initial_weights_are_uniform_within_the_root_of_their_number():
    problem = parse_problem(written(network="nodes_per_latent = 100\nbias = true"))
    weights = problem.initial_weights
    for W, b, inputs in zip(weights.W, weights.b, (2, 200), strict=True):
        for part in (W, b):
            assert np.abs(part).max() <= inputs**-0.5
            # standard deviation of a mean of squares: 5 of them leave a false alarm once in 1e6 seeds
            assert abs(inputs * np.mean(part**2) - 1 / 3) < 5 * np.sqrt(4 / 45 / part.size)
