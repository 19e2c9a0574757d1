"""The contract of `meanfield.testing`, for every family of the package; families written elsewhere run the same."""

import pytest

from meanfield.problems.known_families import families
from meanfield.testing import checks_of

CHECKS = [
    pytest.param(check, id="-".join([family.name, *law, name]))
    for family in families()
    for law, part in zip([(), *((law,) for law in family.laws if family.laws[law])], family.parts, strict=True)
    for name, check in checks_of(part)
]


@pytest.mark.parametrize("check", CHECKS)
def test_contract(check):
    check()
