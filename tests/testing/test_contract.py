"""What is said of the checks of a family; the checks themselves run in `tests/families/test_contract.py`."""

import pytest

from meanfield.families.contrastive import FAMILY
from meanfield.testing import check_family, contract


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
