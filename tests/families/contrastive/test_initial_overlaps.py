"""Problem files of several channels: what they mean, and which starts no channels can have."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.ingredients.penalties import PENALTIES, make_penalty
from meanfield.ingredients.user_functions import check_slope
from meanfield.problems.file import format_problem
from meanfield.problems.problem_keys import with_value
from tests import ROOT
from tests.families.contrastive.channels.problems import standard

ONE = "channels = 2\ninitial_channel_overlap = 0.25\n[decorrelation]\nstrength = 0.05", ""
FLAT = ("[0.5, 0.3]", "0.5"), ("[0.2, 0.4]", "0.2")


def test_the_start_of_two_channels():
    problem = standard()
    assert problem.initial_overlap.tolist() == [[0.5, 0.3], [0.2, 0.4]]  # rows are features
    assert problem.initial_channel_overlap.tolist() == [[1.0, 0.25], [0.25, 1.0]]
    assert problem.decorrelation_strength == 0.05
    assert meanfield.parse_problem(format_problem(problem)) == problem
    matrix = standard(("overlap = 0.25", "overlap = [[1, 0.25], [0.25, 1]]"))
    np.testing.assert_array_equal(matrix.initial_channel_overlap, problem.initial_channel_overlap)
    assert with_value(problem, "features[0].initial_overlap[1]", 0.1).initial_overlap[0, 1] == 0.1


def test_channels_share_what_features_give_them_if_nothing_is_said():
    q = np.array([[0.5, 0.3], [0.2, 0.4]])
    M = standard(("initial_channel_overlap = 0.25", "")).initial_channel_overlap
    np.testing.assert_allclose(M, np.where(np.eye(2), 1.0, q.T @ q), rtol=1e-15)  # rounding


def test_random_channels_are_orthogonal():
    random = ("[0.5, 0.3]", '"random"'), ("[0.2, 0.4]", '"random"')
    problem = standard(*random, ("initial_channel_overlap = 0.25", ""))
    assert not problem.initial_overlap.any()
    np.testing.assert_array_equal(problem.initial_channel_overlap, np.eye(2))
    with pytest.raises(InputError, match="orthogonal; remove one of the two"):
        standard(*random)


def test_a_problem_of_one_channel_is_written_as_before_there_were_several():
    text = format_problem(standard(ONE, *FLAT))
    assert "channel" not in text
    assert "decorrelation" not in text
    assert standard(ONE, *FLAT).initial_overlap.shape == (2,)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([("0.25", "[[1, 0.25], [0.2, 1]]")], "channel_overlap.0..1. = 0.25, but .1..0. = 0.2; make the matrix"),
        ([("0.25", "[[1, 0.25], [0.25, 0.9]]")], "initial_channel_overlap.1..1. = 0.9: .* set the diagonal to 1"),
        ([("0.25", "[[1, 0.25]]")], "initial_channel_overlap: 1 row.* give 2 x 2 numbers"),
        ([("0.25", "0.97")], r"= 0.97 .* eigenvalue -0.01027 below 0; give an overlap .* from -0.4997\d* to 0.9597"),
        ([("0.25", "1.5")], r"initial_channel_overlap = 1.5: .* \[-1, 1\]; correct it"),
        ([("[0.5, 0.3]", "[0.5, 0.3, 0.1]")], r"features\[0\].initial_overlap = .*3 number.* give a list of 2"),
        ([("[0.5, 0.3]", "0.5")], r"features\[0\].initial_overlap = 0.5: 1 number.* one number per channel"),
        ([("[0.5, 0.3]", "[0.99, 0.3]")], r"of channel 1: \|q\(0\)\|\^2 = 1.0201.* lower initial_overlap"),
        ([("[0.5, 0.3]", "[1e200, 0.3]")], "of channel 1.* = inf.* lower initial_overlap"),
        ([("[0.5, 0.3]", '"random"')], "make it 'random' for all or for none"),
        ([("channels = 2\n", "")], r"features\[0\].initial_overlap = \[0.5, 0.3\]: a list is for several channels"),
        ([(ONE[0], "[decorrelation]\nstrength = 0.05"), *FLAT], "decorrelation with model.channels = 1.* remove it"),
        ([(ONE[0], "initial_channel_overlap = 0.1"), *FLAT], "initial_channel_overlap = 0.1 with model.channels = 1"),
        ([("strength = 0.05", 'strength = 1\npenalty = "sqare"')], "unknown name 'sqare'; did you mean 'square'"),
        ([("strength = 0.05", "strength = 1\nparameters = { width = 1 }")], "'square' has no parameter 'width'"),
        ([("[time]", '[initial_residual]\nlaw = "uniform"\n[time]')], "initial_residual.law = .* remove initial_resid"),
        ([("[time]", "[particles]\ndimension = 5\n[time]")], "particles.dimension = 5.* 2 channels .* least 6"),
    ],
)  # fmt: skip
def test_what_no_channels_can_have_is_refused_with_a_remedy(changes, words):
    with pytest.raises(InputError, match=words):
        standard(*changes)


def test_collapsed_and_opposite_channels_are_allowed():
    """K = M - q^T q may be singular, but rounding must not refuse it."""
    same = ("[0.5, 0.3]", "[0.3, 0.3]"), ("[0.2, 0.4]", "[0.7, 0.7]")
    assert standard(*same, ("= 0.25", "= 1.0")).initial_channel_overlap[0, 1] == 1
    opposite = ("[0.5, 0.3]", "[0.3, -0.3]"), ("[0.2, 0.4]", "[0.7, -0.7]")
    assert standard(*opposite, ("= 0.25", "= -1.0")).initial_channel_overlap[0, 1] == -1


def test_a_method_that_knows_one_channel_says_so():
    with pytest.raises(
        InputError, match=r"model.channels = 2: .* a single channel; use the order parameters or particles, or set"
    ):
        meanfield.contrastive.phase_portrait(standard())


@pytest.mark.parametrize("name", PENALTIES)
def test_slopes_of_penalties(name):
    """Against numerical differentiation, with the stated error of `check_slope`; and psi'(0) = 0 in theory and SGD."""
    penalty = make_penalty(name)
    check_slope(penalty.value, penalty.slope, penalty.kinks, name, "")
    assert penalty.slope(0.0) == 0


def test_a_penalty_of_ones_own(tmp_path):
    (tmp_path / "own.py").write_text("import numpy as np\n\ndef psi(x):\n    return np.log(np.cosh(x))\n")
    (tmp_path / "own.toml").write_text(format_problem(standard()).replace('penalty = "square"', 'penalty = "own:psi"'))
    penalty = meanfield.load_problem(tmp_path / "own.toml").decorrelation.functions
    assert penalty.address
    text = (tmp_path / "own.toml").read_text().replace("own:psi", "own:phi")
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(InputError, match=r"decorrelation.penalty: 'own:phi': module 'own' has no 'phi'"):
        meanfield.load_problem(tmp_path / "own.toml")


def test_the_example():
    problem = meanfield.load_problem(ROOT / "data" / "problems" / "two_channels.toml")
    assert problem.model.channels == 2
    text = str(meanfield.explain(problem))
    assert "2 channels y_k = sigma(w_k.x/sqrt N)" in text
    assert "pairs of channels start with overlaps M = 0.25" in text
    assert "square of the covariances" in text
