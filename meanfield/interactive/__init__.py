"""What people type first: one line from a problem to a picture."""
