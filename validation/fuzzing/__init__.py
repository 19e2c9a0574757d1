"""Random problem files and result files, and the judges of what became of them."""
