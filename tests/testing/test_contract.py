"""What is said of the checks of a family; the checks themselves run in `tests/families/test_contract.py`."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

import meanfield.methods
from meanfield.families.contrastive import FAMILY
from meanfield.testing import check_family, contract
from meanfield.testing.methods import Example
from meanfield.testing.verdicts import check_verdicts


def test_what_was_checked_is_said_line_by_line(monkeypatch, capsys):
    few = [check for check in contract.checks_of(FAMILY) if check[0].startswith(("check_names", "check_kinds"))]
    monkeypatch.setattr(contract, "checks_of", lambda family: few)
    check_family(FAMILY)
    assert capsys.readouterr().out == "passed names\npassed kinds\nfamily 'contrastive': all 2 checks passed\n"
    check_family(FAMILY, quiet=True)
    assert capsys.readouterr().out == ""


def test_the_first_check_that_fails_is_named(monkeypatch, capsys):
    def fail():
        raise AssertionError("a is not b")

    checks = [("check_names", lambda: None), ("check_result[density]", fail), ("check_kinds", fail)]
    monkeypatch.setattr(contract, "checks_of", lambda family: checks)
    with pytest.raises(AssertionError, match=r"^family 'contrastive', check_result\[density\]: a is not b$"):
        check_family(FAMILY)
    assert capsys.readouterr().out == "passed names\n"


def two_methods(**changes):
    """The contrastive family with two quick methods."""
    methods = {name: FAMILY.methods[name] for name in ("order_parameters", "particles")}
    return Example(replace(FAMILY, methods=methods, **changes))


@pytest.mark.parametrize(
    ("changes", "shift", "words"),
    [
        ({}, 0.0, ""),
        ({}, 0.1, r"\('order_parameters', 'particles'\) differ: They differ at the start, by 0\.1 in q"),
        ({"trials": ()}, 0.0, r"no trial tells .*: declare Family\.trials"),
        ({"untold": {("order_parameters", "particles"): "of old"}}, 0.0, "untold has .*, which agree"),
        (
            {"trials": ({"particles.replicas": 4, "time.stop": 0.5, "particles.snapshots": [0.5]},)},
            0.0,
            "twice as fast",
        ),
    ],
)
def test_verdicts_are_checked(changes, shift, words, monkeypatch, tmp_path):
    """Right methods pass; a wrong prediction, runs that hide one of twice the rate, and missing declarations do not."""
    solve = meanfield.methods.solve

    def shifted(problem, method):
        result = solve(problem, method)
        return result.assign(q=result["q"] + shift) if method == "order_parameters" else result

    monkeypatch.setattr(meanfield.methods, "solve", shifted)
    with pytest.raises(AssertionError, match=words) if words else nullcontext():
        check_verdicts(two_methods(**changes), tmp_path)
