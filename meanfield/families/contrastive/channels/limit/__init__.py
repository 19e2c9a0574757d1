"""The limit of several channels by interacting particles, for any prior and any number of channels and features."""
