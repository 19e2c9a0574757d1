"""Predicted times, memory and sizes of methods against measured ones, for problems of all families."""
