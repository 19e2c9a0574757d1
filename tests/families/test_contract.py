"""The contract of `meanfield.testing`, for every family of the package; families written elsewhere run the same."""

import pytest

from meanfield.extend import checks_of
from meanfield.problems.known_families import families
from meanfield.results import figure_files

CHECKS = [
    pytest.param(check, id="-".join([family.name, *law, name]))
    for family in families()
    for law, part in zip([(), *((law,) for law in family.laws if family.laws[law])], family.parts, strict=True)
    for name, check in checks_of(part)
]


@pytest.fixture(autouse=True)
def usual_resolution(monkeypatch):
    """Files of figures have the resolution in which they are laid out, so that no text is measured twice."""
    monkeypatch.setattr(figure_files, "RESOLUTION", 100)


@pytest.mark.parametrize("check", CHECKS)
def test_contract(check):
    check()
