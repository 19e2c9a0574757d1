"""McKean-Vlasov equation of a weight given its feature coordinates: densities in time and at rest, for any family."""
