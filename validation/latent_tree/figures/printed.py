"""Printed numbers: table 6 of the paper, whose first part has those of table 4."""

import numpy as np
import xarray as xr

LATENTS = ("s", "s0", "s1", "s101", "s0111")
LOWS = (0.7, 0.8, 0.9)
NODES = (2, 10)
COLUMNS = ("initial", "after epoch 1", "converged")

ROUNDING_ERROR = 0.01 / np.sqrt(12.0)
"""Standard error of a number with two digits after the point."""

TRIALS = 10
"""Trials behind each printed mean and standard deviation."""

MEANS = """
35 39 62  62 82 85   48 57 72  75 90 91   66 73 80  88 95 96
52 53 62  68 83 86   65 65 70  79 90 91   80 81 84  90 95 96
45 50 64  64 78 82   60 62 79  76 87 89   72 78 86  88 94 95
66 69 72  87 90 92   74 75 77  91 93 95   83 84 86  96 97 97
83 83 84  93 93 93   87 88 88  95 95 96   93 93 93  98 98 98
"""
"""Means in percent: a line for each latent, and in it for each least polarity, number of nodes and column."""

DEVIATIONS = """
20 20 29  10  6  5   23 30 31   8  3  3   28 30 29   5  2  1
20 20 21   7  6  5   19 18 14   5  3  3   13 12  9   2  2  1
13 20 22  10  8  6   16 16 20   7  4  4    8 12  9   4  2  2
24 24 24   6  4  4   25 24 25   4  3  2   22 22 22   2  1  1
19 19 19   3  3  3   16 15 15   2  2  2   10 10 10   1  1  1
"""
"""Standard deviations over trials, in the same order."""


def printed() -> xr.Dataset:
    """Means, and their standard errors, rounding included."""
    over = ("latent", "low", "nodes", "column")
    shape = (len(LATENTS), len(LOWS), len(NODES), len(COLUMNS))
    mean, deviation = (np.array(text.split(), dtype=float).reshape(shape) / 100.0 for text in (MEANS, DEVIATIONS))
    coordinates = {"latent": list(LATENTS), "low": list(LOWS), "nodes": list(NODES), "column": list(COLUMNS)}
    return xr.Dataset(
        {"mean": (over, mean), "error": (over, np.hypot(deviation / np.sqrt(TRIALS), ROUNDING_ERROR))}, coordinates
    )
