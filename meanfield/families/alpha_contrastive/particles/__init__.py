"""SGD on batches of pairs of views."""
