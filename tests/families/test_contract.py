"""The contract of `meanfield.testing`, for every family of the package; families written elsewhere run the same."""

import pytest

from meanfield.problems.known_families import families
from meanfield.testing import checks_of

CHECKS = [pytest.param(check, id=f"{family.name}-{name}") for family in families() for name, check in checks_of(family)]


@pytest.mark.parametrize("check", CHECKS)
def test_contract(check):
    check()
