"""Contract that every family of problems fulfils, as checks that its authors can run."""

from meanfield.testing.contract import check_family, checks_of

__all__ = ["check_family", "checks_of"]
