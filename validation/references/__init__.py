"""Independent solvers whose numbers the library is held against."""
