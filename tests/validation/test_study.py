"""What studies answer as scripts."""

import pytest

from validation.study import Study, run_study


def run_anyway():
    raise AssertionError("the study runs")


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("--frob", 2)])
def test_arguments_start_no_study(monkeypatch, argument, code):
    monkeypatch.setattr("sys.argv", ["study", argument])
    with pytest.raises(SystemExit) as end:
        run_study(Study(run_anyway, None, None), "study.py")
    assert end.value.code == code
