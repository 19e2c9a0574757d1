"""The study of what own runs break: a case of it, and what its statements count."""

from validation.own_runs import cases
from validation.own_runs.reasons import CASES, KINDS, dataset_of, do, judge


def test_a_case_is_judged_and_its_cause_is_named(monkeypatch):
    monkeypatch.setattr(cases, "N", 100)
    row = do("0 hidden law")
    assert row["differs"]
    assert row["named"] == row["in data"] == ["hidden law"]


def test_statements_count_verdicts_names_and_alarms():
    true = {"broken": "", "heavy": False, "differs": False, "named": [], "in data": []}
    kinds = list(KINDS)
    broken = [{**true, "broken": kind, "differs": True, "named": [kind], "in data": [kind]} for kind in kinds * 17][
        :100
    ]
    rows = [*[true] * (CASES // 2), *broken]
    assert [statement.holds for statement in judge(dataset_of(rows))] == [True] * 4
    wrong = [{**row, "differs": not row["differs"], "named": kinds[:1], "in data": kinds[:1]} for row in rows]
    assert [statement.holds for statement in judge(dataset_of(wrong))] == [False] * 4
