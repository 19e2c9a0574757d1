"""Training of one vector of weights on the sphere: the parts that families of such problems share."""
