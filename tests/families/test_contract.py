"""The contract of `meanfield.testing`, for every family of the package; families written elsewhere run the same."""

import pytest

from meanfield.extend import checks_of
from meanfield.problems.known_families import families
from meanfield.results import figure_files

DRAWN = ("density", "particles", "order_parameters", "stationary", "dynamics")

SLOW = {
    *(f"contrastive-check_figure[{name}]" for name in DRAWN),
    *(f"{name}-check_comparison" for name in ("contrastive", "hidden_manifold", "alpha_contrastive")),
}
"""Checks of half a second or more. Other tests draw these results, in tests/plotting/test_results.py and
tests/test_scripts.py, and compare results of these families, in tests/comparison; what the checks themselves do is
tried on other methods and families."""


def named(check, name):
    return pytest.param(check, id=name, marks=pytest.mark.slow if name in SLOW else ())


CHECKS = [
    named(check, "-".join([family.name, *law, name]))
    for family in families()
    for law, part in zip([(), *((law,) for law in family.laws if family.laws[law])], family.parts, strict=True)
    for name, check in checks_of(part)
]


def test_slow_checks_exist():
    assert {check.id for check in CHECKS} >= SLOW


@pytest.fixture(autouse=True)
def usual_resolution(monkeypatch):
    """Files of figures have the resolution in which they are laid out, so that no text is measured twice."""
    monkeypatch.setattr(figure_files, "RESOLUTION", 100)


@pytest.mark.parametrize("check", CHECKS)
def test_contract(check):
    check()
