"""Studies of update rules."""
