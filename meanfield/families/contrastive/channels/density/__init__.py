"""The density of two channels by finite volumes in a frame that moves with the weights."""
