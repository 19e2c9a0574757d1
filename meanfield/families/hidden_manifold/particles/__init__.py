"""SGD of hidden-manifold problems at finite N: line by line, and as a Markov chain of Gram matrices."""
