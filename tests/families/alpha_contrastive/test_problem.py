"""Problem files: what is wrong is refused with the key, the value and a remedy, before anything is computed."""

import re

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.explanation.prediction import START, predictions
from meanfield.problems.file import format_problem, parse_problem
from tests.families.alpha_contrastive.problems import LAW_F, data, kernel, problem, problem_from

TOKENS = {"law": "tokens", "places": 4, "vocabulary": 4, "patterns": [[0, 1, -1, -1], [2, -1, 2, -1]]}
SUM = {"law": "latent_summation", "directions": [[1.0, 0.1], [0.0, 1.0]], "probabilities": [0.2, 0.3]}
MIXTURE = {"law": "gaussian_mixture", "probabilities": [0.4, 0.6], "means": [[1.0, 0.0], [0.0, 1.0]], "covariance": 0.1}

WRONG = [
    (data(law=LAW_F | {"probabilities": [0.3, 0.25, 0.2, 0.15, 0.2]}), "data.probabilities: add up to 1.1, not to 1"),
    (data(law=LAW_F | {"probabilities": [0.5, 0.5]}), "data.probabilities: has 2 number(s), but there are 5 points"),
    (data(law=LAW_F | {"points": [[1.0, 2.0], [1.0]]}), "data.points: row 1 has 1 number(s), and row 0 has 2"),
    (data(law={"law": "points", "points": [[1.0], [2.0]]}), "data.points: rows have 1 number(s); give 2 or more"),
    (data(law={"law": "points", "points": [[1.0, 2.0]] * 2}), "data.points: are all the same"),
    (data(law=MIXTURE | {"covariance": [[1.0, 2.0], [2.0, 1.0]]}), "data.covariance: has the eigenvalue -1"),
    (data(law=MIXTURE | {"covariance": [[1.0, 0.5], [0.0, 1.0]]}), "data.covariance: is not symmetric: entry [0][1]"),
    (data(law=MIXTURE | {"covariance": [0.1, 0.1, 0.1]}), "data.covariance: has 3 entries, but means has 2"),
    (data(law=MIXTURE | {"probabilities": [1.0]}), "data.probabilities: has 1 number(s), but means has 2 component"),
    (data(law=SUM | {"probabilities": [0.2]}), "data.directions: has 2 column(s), but probabilities has 1 number"),
    (data(law=SUM | {"directions": [[1.0, 0.0], [0.0, 0.0]]}), "data.directions: column 1 is 0, and so no pattern"),
    (data(law=TOKENS), "model.layers = 1, but data.law = 'tokens' is for 2 layers"),
    (data(law=TOKENS | {"vocabulary": 2}), "data.patterns: row 1 has the token 2, but vocabulary = 2"),
    (data(law=TOKENS | {"generators": 4}), "data.generators: is for generators that are drawn; remove"),
    (
        data(law={"law": "tokens", "places": 4, "vocabulary": 4}),
        "data.generators: is missing; add it, or give patterns",
    ),
    (data(importance={"kind": "mine:nothere"}), "importance.kind: 'mine:nothere': module 'mine' cannot be imported"),
    (
        data(
            law={
                "law": "tokens",
                "places": 4,
                "vocabulary": 4,
                "generators": 2,
                "pattern_tokens": 2,
                "seed": 0,
                "tokens_per_place": 9,
            }
        ),
        "data.tokens_per_place = 9 is more than",
    ),
    (data(importance={"kind": "infonce", "epsilon": -1.0}), "importance.epsilon = -1 is a weight of infonce"),
    (
        data(filters={"start": {"law": "fourier", "cosine": [1.5]}}),
        "filters.start.cosine: with sine gives a density of",
    ),
    (
        data(law=LAW_F | {"points": [[1.0, 0.0, 0.0]] + [[0.0, 1.0, 0.0]] * 4}, filters={"start": {"law": "fourier"}}),
        "'fourier' is a density on the circle, but data have 3 coordinates",
    ),
    (data(filters={"start": {"law": "points", "values": [[0.0, 0.0]]}}), "values: row 0 is 0, which is no direction"),
    (
        data(filters={"count": 2, "start": {"law": "points", "values": [[1.0, 0.0]]}}),
        "filters.count = 2, but filters.start.values has 1 row(s)",
    ),
]


@pytest.mark.parametrize(("given", "words"), WRONG)
def test_wrong_problems_are_refused_with_the_key(given, words):
    with pytest.raises(InputError, match=re.escape(words)):
        problem_from(given)


@pytest.mark.parametrize("law", [MIXTURE, MIXTURE | {"covariance": [0.1, 0.2]}, SUM, TOKENS])
def test_laws_survive_their_text(law):
    layers = 2 if law is TOKENS else 1
    made = problem_from(data(law=law) | {"model": {"activation": "relu", "layers": layers}})
    assert parse_problem(format_problem(made)) == made


def test_sums_of_patterns_have_mean_zero_and_variance_one():
    law = problem(law=SUM | {"directions": [[1.0, 0.0], [0.0, 1.0]]}).data
    mean = law.weights @ law.atoms
    second = np.einsum("i,ij,ik->jk", law.weights, law.atoms, law.atoms)
    np.testing.assert_allclose(mean, 0.0, atol=1e-15)  # rounding
    np.testing.assert_allclose(second, np.eye(2), atol=1e-15)  # rounding


def test_a_negative_importance_of_a_user_is_refused(tmp_path):
    (tmp_path / "own_importance.py").write_text("def line(d):\n    return 1.0 - 0.1 * d\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"importance\.kind: 'own_importance:line' is .* an importance is a number >= 0"
    ):
        problem_from(data(importance={"kind": "own_importance:line"}), tmp_path)


def test_an_importance_of_a_user_is_asked_for_no_negative_distance(tmp_path):
    text = "import math\n\ndef far(d):\n    return math.exp(-math.sqrt(0.1 + d))\n"
    (tmp_path / "importance_of_distances.py").write_text(text, encoding="utf-8")
    found = problem_from(data(importance={"kind": "importance_of_distances:far"}), tmp_path)
    assert found.importance.own.value(0.9) == pytest.approx(np.exp(-1.0), abs=1e-15)  # rounding


def test_critical_points_under_an_importance_of_a_user_are_drawn_without_its_module(tmp_path):
    (tmp_path / "drawn_importance.py").write_text("def far(d):\n    return 1.0 / (1.0 + d)\n", encoding="utf-8")
    points = {"law": "points", "points": [[1.0, 0.2], [-0.5, 1.0], [0.3, -0.9]]}
    given = problem_from(data(law=points, importance={"kind": "drawn_importance:far"}), tmp_path)
    figure = meanfield.plotting.plot_result(meanfield.solve(given, "critical_points"))
    heights = figure.axes[0]
    assert all(line.get_linestyle() == "None" for line in heights.lines)  # points alone, no curve
    assert len(heights.lines) >= 1


def test_an_importance_of_a_user_with_a_wrong_slope_is_refused(tmp_path):
    text = "import meanfield\n\nfar = meanfield.Activation(lambda d: 1.0 / (1.0 + d), lambda d: -1.0 / (1.0 + d))\n"
    (tmp_path / "importance_with_slope.py").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"importance\.kind: the derivative of 'importance_with_slope:far' is"):
        problem_from(data(importance={"kind": "importance_with_slope:far"}), tmp_path)


def test_what_has_no_effect_in_the_limit_is_said():
    words = "importance.epsilon = 1 has no effect in the limit"
    assert words in str(meanfield.explain(problem(importance={"kind": "infonce", "epsilon": 1.0})))
    assert words not in str(meanfield.explain(problem(importance={"kind": "infonce"})))


REFUSED = [
    (data(importance={"kind": "triplet"}), "importance.kind = 'triplet' jumps where"),
    (data(importance={"kind": "lifted"}), "importance.kind = 'lifted' grows with the logarithm"),
    (data(law=MIXTURE, importance=kernel("gaussian", 1e-6)), "importance.temperature = 1e-06 needs"),
    (data("hard_tanh", law={"law": "points", "points": np.eye(3).tolist()}), "'hard_tanh' has kinks away from 0"),
    (data(law=TOKENS) | {"model": {"activation": "relu", "layers": 2}}, "model.layers = 2, with data.law = 'tokens'"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED)
def test_methods_say_where_they_do_not_apply(given, words):
    with pytest.raises(InputError, match=re.escape(words)):
        meanfield.solve(problem_from(given), "critical_points")


def test_costs_of_all_methods_are_predicted():
    rows = predictions(problem("quadratic", LAW_F, kernel("gaussian", 0.3)))
    assert len(rows) == 5
    assert all(row.applies and START < row.seconds < np.inf for row in rows)
