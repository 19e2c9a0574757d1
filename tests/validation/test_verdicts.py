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
    found = verdicts.measure(verdicts.task_of("", "pair", verdicts.FIRST_SEED))
    row = verdicts.together("pair", pair.sizes, [found])
    assert row.true[0].count == 20
    assert row.true[0].differ <= 5  # 5 % of 20 give 1; chance: 3e-4
    assert row.wrong[0] == (5, 5)  # of twice the learning rate
    assert verdicts.cells(row)[:3] == ("pair", "8", "20")


def test_rows_that_are_measured_anew_take_their_place_on_the_page(monkeypatch, tmp_path):
    page = tmp_path / "verdicts.md"
    page.write_text("# How often verdicts are right\n\nNothing yet.\n\n## other\n\nAs it was.\n")
    monkeypatch.setattr(verdicts, "PAGE", page)
    monkeypatch.setattr(verdicts, "PROBLEMS", 2)
    pairs = dict.fromkeys(("first", "second", "third"), verdicts.Pair("", None, (4, 8)))
    study = verdicts.Study("About.", pairs, lambda: (True, ["| another table |", "More."]))
    monkeypatch.setattr(verdicts, "study_of", lambda _: study)
    counts = {"first": 4, "second": 6, "third": 5}

    def measured(measure, tasks, files):
        assert (measure, files) == (verdicts.measure, [verdicts.ROWS])
        rows = {}
        for task in tasks:
            family, name, seed = task.split(verdicts.SEPARATOR)
            differ = counts[name] if int(seed) == verdicts.FIRST_SEED else 0
            rows[task] = {"true": [[differ, 50]] * 2, "wrong": [[5, 5]] * 2, "commit": f"of {family}"}
        return rows

    monkeypatch.setattr(verdicts.rows, "measure", measured)
    assert verdicts.run_study("family")
    whole = page.read_text()
    assert "Of true pairs **5.0 %** differ, of 600. About." in whole
    assert whole.index("As it was.") < whole.index(
        "| first | 4, 8 | 200 | 4.0, 4.0 | 4.0 ± 3.0 | 100, 100 | of family |"
    )
    assert whole.endswith(" |\n\n| another table |\n\nMore.\n")
    counts["second"] = 9
    verdicts.run_study("family", ["second"])
    again = page.read_text()
    assert "Of true pairs **6.0 %** differ, of 600. About." in again
    assert "| second | 4, 8 | 200 | 9.0, 9.0 |" in again
    assert "| first | 4, 8 | 200 | 4.0, 4.0 |" in again
    assert again.endswith(" |\n\n| another table |\n\nMore.\n")
