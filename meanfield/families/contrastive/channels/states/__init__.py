"""States of several channels at rest: all that a search finds, up to symmetry, their stability, and their branches."""
