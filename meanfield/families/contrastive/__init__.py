"""Contrastive learning of one neuron in the high-dimensional limit."""
