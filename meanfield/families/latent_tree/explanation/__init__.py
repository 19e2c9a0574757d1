"""Words, warnings and costs of latent-tree problems."""
