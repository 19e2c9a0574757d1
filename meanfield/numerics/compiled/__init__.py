"""Building blocks of compiled loops."""
