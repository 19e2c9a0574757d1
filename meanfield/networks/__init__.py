"""Losses and outputs of finite networks with their gradients, for families that train whole networks."""
