"""The study of verdicts: its problems are whole, and its shares are counted as the verdicts say."""

import pytest

from meanfield.problems.base import Problem
from validation import verdicts


@pytest.mark.parametrize("family", verdicts.FAMILIES)
def test_random_problems_are_whole_and_have_their_method(family):
    for pair in verdicts.study_of(family).pairs.values():
        problems = [pair.problem_of(seed) for seed in (1, 2)]
        assert all(isinstance(problem, Problem) for problem in problems)
        assert problems[0] != problems[1]
        assert pair.comparisons >= 2 * verdicts.PROBLEMS


def test_a_wrong_prediction_is_found_and_a_right_one_is_not(monkeypatch):
    monkeypatch.setattr(verdicts.rotations, "ROTATIONS", verdicts.rotations.ROTATIONS)  # which a study lowers
    monkeypatch.setattr(verdicts.rotations, "SEED", 0)
    monkeypatch.setattr(verdicts, "PROBLEMS", 1)
    pair = verdicts.study_of("contrastive").pairs["quadratic, N = 1024"]._replace(sizes=(8,), comparisons=20)
    monkeypatch.setattr(verdicts, "study_of", lambda family: verdicts.Study("", {"pair": pair}))
    row = verdicts.measure("", "pair")
    assert row.true[0].count == 20
    assert row.true[0].differ <= 5  # 5 % of 20 give 1; chance: 3e-4
    assert row.wrong[0] == (5, 5)  # of twice the learning rate
    assert verdicts.cells(row)[:3] == ("pair", "8", "20")
