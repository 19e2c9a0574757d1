"""The large-batch limit: importance of pairs as a function of distances, activations and their kinks."""
