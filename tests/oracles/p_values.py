"""P-values of tests that are shared by several files, and the bound that they obey."""

import numpy as np
from scipy import stats


def all_above(share, /, **p):
    """All p-values are above their shares of a test's rate of false alarms (Bonferroni)."""
    for name, value in p.items():
        assert value > share / len(p), f"{name}: p = {value:.1e}"  # the share that the caller states


def independent(x, y):
    """P-value of no correlation of ranks, and of ranks of sizes where these differ (Bonferroni)."""
    pairs = [pair for pair in ((x, y), (np.abs(x), np.abs(y))) if min(map(np.ptp, pair)) > 1e-12]  # rounding
    return min(1, len(pairs) * min(stats.spearmanr(*pair).pvalue for pair in pairs))
