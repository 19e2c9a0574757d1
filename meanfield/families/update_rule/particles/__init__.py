"""SGD of update rules at finite N: with its vectors, or by overlaps alone."""
