"""SGD with batches of fresh samples of the tree."""
