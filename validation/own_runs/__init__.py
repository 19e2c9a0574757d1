"""Studies of training code of one's own that is held against a limit."""
