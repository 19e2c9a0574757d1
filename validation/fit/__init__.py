"""Studies of fits of problems to runs."""
