"""Objects on a ring of pixels, the example of translations in one dimension (latent_tree.md, section 1.4)."""
