"""Hidden-manifold problems in words, and warnings about them."""
