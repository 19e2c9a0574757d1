"""Joint laws of all hidden variables: dependence, and what is refused."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from meanfield import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.ingredients.laws.empirical import JointEmpirical
from meanfield.ingredients.laws.hidden import JointDiscrete
from meanfield.problems.file import format_problem, load_problem, parse_problem

FALSE_ALARM = 1e-4  # of each test of a sampler, had its seed been drawn at random
SAMPLES = 20_000

VALUES = ((1.0, 0.5), (-1.0, -0.5), (2.0, -0.7), (0.0, 1.5))
PROBABILITIES = (0.4, 0.3, 0.2, 0.1)
LAW = JointDiscrete(values=VALUES, probabilities=PROBABILITIES)
TAU, BATCH = 0.3, 4

TEXT = """
model = {{ activation = "{activation}", learning_rate = 0.3, batch_size = 4 }}
time = {{ stop = 1.0 }}
{features}
{joint}
"""
FEATURE = "[[features]]\ninitial_overlap = 0.3\n"


def text(joint="", features=2 * FEATURE, activation="quadratic"):
    return TEXT.format(joint=f"[hidden]\n{joint}" if joint else "", features=features, activation=activation)


def discrete(values=VALUES, probabilities=PROBABILITIES):
    return f"law = 'discrete'\nvalues = {[list(v) for v in values]}\nprobabilities = {list(probabilities)}"


def with_own(*laws):
    return "".join(f"{FEATURE}hidden = {{ {law} }}\n" for law in laws)


def refusal(toml, folder=None):
    with pytest.raises(InputError) as error:
        parse_problem(toml, folder)
    return str(error.value)


def test_atoms():
    assert LAW.dimension == 2
    assert LAW.exact
    assert LAW.box == 0
    for power in (2.0, 6.0):
        probability, mean, variance = LAW.components(power)
        np.testing.assert_allclose(probability, PROBABILITIES, rtol=1e-15)  # rounding
        np.testing.assert_array_equal(mean, VALUES)
        np.testing.assert_array_equal(variance, np.zeros((4, 2)))


def test_probabilities_are_normalised_exactly():
    law = JointDiscrete(values=VALUES[:3], probabilities=(0.3333333333,) * 3)
    np.testing.assert_allclose(law.components(2.0)[0], [1 / 3] * 3, rtol=1e-15)  # rounding


def test_sampler_draws_vectors():
    """Rows of the table and nothing else, with their probabilities."""
    sample = LAW.sample(np.random.default_rng(41), (200, 100))
    assert sample.shape == (200, 100, 2)
    np.testing.assert_array_equal(sample, LAW.sample(np.random.default_rng(41), (200, 100)))
    assert LAW.sample(np.random.default_rng(41), ()).shape == (2,)
    counts = [np.count_nonzero(np.all(sample == value, axis=-1)) for value in VALUES]
    assert sum(counts) == SAMPLES
    assert stats.chisquare(counts, np.array(PROBABILITIES) * SAMPLES).pvalue > FALSE_ALARM
    first = sample[..., 0]
    assert stats.pearsonr(first[:, 1:].ravel(), first[:, :-1].ravel()).pvalue > FALSE_ALARM


def samples_file(folder):
    """Samples of `LAW` in its proportions, in columns 2 and 0 of three."""
    rows = np.repeat(VALUES, [4, 3, 2, 1], axis=0)
    np.save(folder / "samples.npy", np.column_stack([rows[:, 1], np.arange(10.0), rows[:, 0]]))


def test_samples_in_a_file_are_kept_together(tmp_path):
    samples_file(tmp_path)
    (tmp_path / "problem.toml").write_text(text("law = 'empirical'\nfile = 'samples.npy'\ncolumns = [2, 0]"))
    problem = load_problem(tmp_path / "problem.toml")
    law = problem.hidden
    assert isinstance(law, JointEmpirical)
    assert law.dimension == 2
    found = {tuple(value): p for value, p in zip(*law.atoms, strict=True)}
    assert found == pytest.approx(dict(zip(VALUES, PROBABILITIES, strict=True)), rel=1e-15)  # rounding
    sample = law.sample(np.random.default_rng(42), (SAMPLES,))
    counts = [np.count_nonzero(np.all(sample == value, axis=-1)) for value in VALUES]
    assert sum(counts) == SAMPLES
    assert stats.chisquare(counts, np.array(PROBABILITIES) * SAMPLES).pvalue > FALSE_ALARM
    assert_same_closure(problem, parse_problem(text(discrete())))
    stored = parse_problem(format_problem(problem))
    assert stored == problem
    assert_same_closure(stored, problem)


def test_samples_are_standardised_column_by_column(tmp_path):
    samples_file(tmp_path)
    keys = "law = 'empirical'\nfile = 'samples.npy'\nstandardise = true\ncolumns = [2, 0]"
    values, probability = parse_problem(text(keys), tmp_path).hidden.atoms
    rows = np.repeat(VALUES, [4, 3, 2, 1], axis=0)
    np.testing.assert_allclose(probability @ values, 0, rtol=0, atol=1e-15)  # rounding
    np.testing.assert_allclose(probability @ values**2, 1, rtol=1e-14)  # rounding
    right = np.corrcoef(rows.T)[0, 1]
    assert probability @ np.prod(values, axis=1) == pytest.approx(right, rel=1e-14)  # rounding


# What the closures make of it


QS = [np.array(q) for q in ([0.3, 0.3], [0.0, -0.8], [-0.5, 0.6])]


def assert_same_closure(first, second):
    a, b = Closure(first), Closure(second)
    for q in QS:
        (g1, diffusion1), (g2, diffusion2) = a(q), b(q)
        np.testing.assert_allclose(g1, g2, rtol=1e-12, atol=1e-14)  # rounding
        assert diffusion1 == pytest.approx(diffusion2, rel=1e-12)  # rounding


def test_mixed_moments_enter():
    """For x^2: s1 s2 = Theta^4 and s^2 p^2 = 4 Theta^6, whose averages over e are polynomials of c.q."""
    closure = Closure(parse_problem(text(discrete())))
    c, p = np.array(VALUES), np.array(PROBABILITIES)
    for q in QS:
        b, v = c @ q, 1 - q @ q
        second = p @ (b**2 + v)
        cross = p @ (c * (b**3 + 3 * b * v)[:, None])
        sixth = p @ (b**6 + 15 * b**4 * v + 45 * b**2 * v**2 + 15 * v**3)
        g, diffusion = closure(q)
        right = TAU * (12 * q * second - 4 * cross)
        np.testing.assert_allclose(g, right, rtol=1e-11, atol=1e-12)  # rounding of the table of Theta^4
        assert diffusion == pytest.approx(TAU**2 / BATCH * 16 * sixth, rel=1e-11)  # the same


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_a_product_is_the_same_as_its_factors(activation):
    one, other = ((-0.5, 0.8), (2.0, 0.2)), ((1.0, 0.3), (-1.0, 0.6), (0.3, 0.1))
    pairs = [((a, b), p * r) for (a, p), (b, r) in product(one, other)]
    joint = discrete([v for v, _ in pairs], [p for _, p in pairs])
    laws = [
        f"law = 'discrete', values = {[v for v, _ in f]}, probabilities = {[p for _, p in f]}" for f in (one, other)
    ]
    both = parse_problem(text(joint, activation=activation))
    assert_same_closure(both, parse_problem(text(features=with_own(*laws), activation=activation)))


def test_one_variable_alone():
    joint = parse_problem(text(discrete([(-0.5,), (2.0,)], [0.8, 0.2]), features=FEATURE))
    own = "law = 'two_point', values = [-0.5, 2.0], probability = 0.8"
    alone = parse_problem(text(features=with_own(own)))
    for q in (0.0, 0.4):
        (g1, diffusion1), (g2, diffusion2) = Closure(joint)([q]), Closure(alone)([q])
        assert g1 == pytest.approx(g2, rel=1e-13, abs=1e-15)  # rounding
        assert diffusion1 == pytest.approx(diffusion2, rel=1e-13)  # rounding


# What is refused


@pytest.mark.parametrize(
    ("values", "probabilities", "words"),
    [
        ([[1.0, 0.5], [1.0]], [0.5, 0.5], ["1 and 2 entries", "one for each feature"]),
        ([[1.0, 0.5], [1.0, 2.0]], [1.0], ["2 values but 1 probabilities", "give one"]),
        ([[1.0, 0.5], [1.0, 2.0]], [1.5, -0.5], ["probability 1.5", "[0, 1]", "correct it"]),
        ([[1.0, 0.5], [1.0, 2.0]], [0.5, 0.4], ["add up to 0.9", "not to 1", "normalise"]),
        ([[1.0, 0.0], [1.0, 0.0]], [0.5, 0.5], ["concentrated at 0", "other than 0"]),
        ([[1.0, 2.0], [0.0, 1.0]], [0.0, 1.0], ["concentrated at 0", "other than 0"]),
        ([[1.0, "nan"], [1.0, 0.0]], [0.5, 0.5], ["values[0][1] = nan", "finite"]),
        ([[1.0, "'x'"], [1.0, 0.0]], [0.5, 0.5], ["values[0][1] = 'x'", "number"]),
        ([[], [1.0, 0.0]], [0.5, 0.5], ["values[0]", "at least 1"]),
        ([], [], ["hidden.values = []", "at least 1", "one number per feature"]),
    ],
)
def test_what_is_no_joint_law(values, probabilities, words):
    rows = ", ".join(f"[{', '.join(map(str, row))}]" for row in values)
    found = refusal(text(f"law = 'discrete'\nvalues = [{rows}]\nprobabilities = {probabilities}"))
    assert all(word in found for word in ["hidden", *words]), found


@pytest.mark.parametrize("features", [1, 3])
def test_one_variable_for_each_feature(features, tmp_path):
    samples_file(tmp_path)
    for joint in (discrete(), "law = 'empirical'\nfile = 'samples.npy'\ncolumns = [0, 2]"):
        found = refusal(text(joint, features=features * FEATURE), tmp_path)
        assert f"hidden: a law of 2 variable(s) for {features} feature(s)" in found
        assert "give one variable for each feature" in found


def test_every_hidden_variable_has_one_law():
    own = with_own("law = 'rademacher'")
    both = refusal(text(discrete(), features=FEATURE + own))
    words = ("features[1].hidden", "[hidden] table is the joint law", "remove one of the two")
    assert all(word in both for word in words), both
    none = refusal(text(features=own + FEATURE))
    assert all(word in none for word in ("features[1].hidden", "is missing; add it", "[hidden] table")), none


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        ("law = 'gaussian'", ["hidden.law = 'gaussian'", "'discrete'", "'empirical'"]),
        ("values = [[1.0, 1.0]]", ["hidden.law: is missing; add it"]),
        ("law = 'empirical'\nfile = 'x.npy'", ["hidden.columns: is missing; add it"]),
        ("law = 'empirical'\nfile = 'x.npy'\ncolumn = 1", ["hidden: unknown key 'column'", "'columns'?"]),
        ("law = 'empirical'\nfile = 'x.npy'\ncolumns = [0, -1]", ["hidden.columns[1] = -1", "equal to 0"]),
        ("law = 'empirical'\nfile = 'x.npy'\ncolumns = []", ["hidden.columns = []", "at least 1"]),
        ("law = 'empirical'\nfile = 'x.npy'\ncolumns = 1", ["hidden.columns = 1", "list in square brackets"]),
    ],
)
def test_keys_of_a_joint_law(joint, words):
    found = refusal(text(joint))
    assert all(word in found for word in words), found
