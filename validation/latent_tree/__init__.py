"""Studies of deep networks on latent trees."""
