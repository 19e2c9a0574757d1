"""Studies of teacher and student on a hidden manifold."""
