"""P-values of tests that are shared by several files, and the bound that they obey."""

import numpy as np
from scipy import stats
from scipy.special import kolmogorov


def all_above(share, /, **p):
    """All p-values are above their shares of a test's rate of false alarms (Bonferroni)."""
    for name, value in p.items():
        assert value > share / len(p), f"{name}: p = {value:.1e}"  # the share that the caller states


def independent(x, y):
    """P-value of no correlation of ranks, and of ranks of sizes where these differ (Bonferroni)."""
    pairs = [pair for pair in ((x, y), (np.abs(x), np.abs(y))) if min(map(np.ptp, pair)) > 1e-12]  # rounding
    return min(1, len(pairs) * min(stats.spearmanr(*pair).pvalue for pair in pairs))


def same_law(first, second):
    """Kolmogorov-Smirnov test of two samples, by its law for many; with few samples or ties it is conservative."""
    first, second = np.sort(first), np.sort(second)
    everything = np.concatenate([first, second])
    shares = (np.searchsorted(x, everything, side="right") / x.size for x in (first, second))
    size = first.size * second.size / everything.size
    return float(kolmogorov(np.sqrt(size) * np.abs(np.subtract(*shares)).max()))
