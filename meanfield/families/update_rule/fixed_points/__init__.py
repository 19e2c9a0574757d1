"""States of update rules at rest: all that a search finds, up to symmetry, their stability, and what attracts."""
