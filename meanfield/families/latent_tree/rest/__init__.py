"""Networks at rest under the gradient flow of the population loss: states, their stability, and what comes to them."""
