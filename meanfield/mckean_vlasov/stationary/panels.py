"""Panels on which a density exp(E(w)) of w is integrated: Gauss-Legendre quadrature on them is exact to rounding.

The exponent E(w) = a w^2/2 - s w - b Phi(w) belongs to one value of the tilt s. A panel ends at the kinks of phi and is
halved until E varies by little over it, however sharp the peaks, so that nothing but the number of panels tells a
boundary layer of width 1e-6 from a Gaussian.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.numerics.compiled.exponential import exp_minus
from meanfield.numerics.compiled.scalar_functions import call_scalar
from meanfield.process import own_numba as numba

ORDER = 16
NODES, WEIGHTS = np.polynomial.legendre.leggauss(ORDER)

VARIATION = 4.0
"""Largest variation of E over a panel: the rule then has a relative error of 1e-14, for exp(-4 x^2) and exp(2 x)."""

DEPTH = 38.0
"""Depth below the maximum of E from which on E + 3 log|w| is negligible: exp(-38) = 3e-17, of E[w^2] too if tails are
powers."""

FLOOR = 60.0
"""Largest depth of E between two peaks, where it is raised: their exchange takes exp(60) relaxation times."""

MOST_PANELS = 600
"""Largest number of panels of one density."""

CROWDED = -2
"""Status of a density that takes more panels."""

DECAY_DISTANCE = 2.0**40
"""Distance from 0 at which a density that can be normalised has decayed."""

SAMPLES = 5
"""Number of points from which the variation of E over a panel is estimated, ends included."""

MOMENTS = 8
"""Averages of w, w^2, w^3, w^4, Phi, w Phi, w^2 Phi and the logarithm of the integral of exp(E)."""

ODD_MOMENTS = [0, 2, 5]
"""Indices of the averages that change their sign with the tilt if Phi is even."""


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _exponent(potential, a, b, s, w):  # type: ignore[no-untyped-def]
    return (0.5 * a * w - s) * w - b * call_scalar(potential, w)


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _depth(w):  # type: ignore[no-untyped-def]
    """Depth of E at w from which on what is further out adds nothing to E[w^2]."""
    return DEPTH + 3.0 * math.log(max(abs(w), 1.0))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _climbed(potential, a, b, s, w, width):  # type: ignore[no-untyped-def]
    """A place uphill of w, by ever shorter steps until E is flat, and E there."""
    best, top = w, _exponent(potential, a, b, s, w)
    for _ in range(50):
        width *= 0.7
        left = _exponent(potential, a, b, s, best - width)
        right = _exponent(potential, a, b, s, best + width)
        if left > top or right > top:
            best, top = (best - width, left) if left > right else (best + width, right)
        elif top - min(left, right) < 0.1:  # a climb goes on for larger differences
            break
    return best, top


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _reach(potential, a, b, s):  # type: ignore[no-untyped-def]
    """Half-width beyond which exp(E) decays and is negligible, or NaN, and a lower bound of the maximum of E."""
    low, high = -16.0, 16.0
    best, top = 0.0, -math.inf
    farthest = 0.0
    if a < 0.0 and abs(s / a) > high:  # a potential that grows slowly may leave a maximum beyond a dip of any width
        farthest, top = _climbed(potential, a, b, s, s / a, 0.25 * abs(s / a))
        best = farthest
    while True:
        for i in range(65):
            w = low + (high - low) * i / 64
            e = _exponent(potential, a, b, s, w)
            if e > top:
                best, top = w, e
        left = _exponent(potential, a, b, s, low)
        right = _exponent(potential, a, b, s, high)
        falls = _exponent(potential, a, b, s, 2.0 * high) < right and _exponent(potential, a, b, s, 2.0 * low) < left
        holds = high > abs(farthest) or _exponent(potential, a, b, s, farthest) < top - _depth(farthest)
        if falls and holds and max(left, right) < top - _depth(high):
            break
        if not 2.0 * high < DECAY_DISTANCE:
            if falls and holds and max(left, right) < top - DEPTH:
                break  # a tail so heavy that E[w^2] is hardly finite
            return math.nan, math.nan
        low, high = 2.0 * low, 2.0 * high
    ends = max(_exponent(potential, a, b, s, -DECAY_DISTANCE), _exponent(potential, a, b, s, DECAY_DISTANCE))
    if not ends < top - DEPTH:  # an l1 prior against G > 0: E falls at first
        return math.nan, math.nan
    best, highest = _climbed(potential, a, b, s, best, (high - low) / 64)
    # So far below the maximum exp(E) is 0 in doubles, however wide a wall is.
    while abs(best) < 0.5 * high <= 8.0 and _is_wall(potential, a, b, s, 0.5 * high, high, highest - 1e3):
        high *= 0.5
    return high, highest


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _is_wall(potential, a, b, s, near, far, most):  # type: ignore[no-untyped-def]
    """Whether E falls from both ends of [-near, near] on, where it is small: such walls would take many panels.

    It must fall on the way to them, too: a peak beside an end would lie between two places.
    """
    before_left = before_right = most
    for i in range(-1, 33):
        w = near + (far - near) * i / 32
        left, right = _exponent(potential, a, b, s, -w), _exponent(potential, a, b, s, w)
        if not (left <= before_left and right <= before_right):
            return False
        before_left, before_right = left, right
    return True


@numba.njit(cache=True, nogil=True, error_model="numpy")
def find_panels(potential, a, b, s, kinks, fineness, edges):  # type: ignore[no-untyped-def]
    """Cut the line into the panels of one density.

    Parameters
    ----------
    potential : int
        Address of Phi.
    a, b, s : float
        E(w) = a w^2/2 - s w - b Phi(w).
    kinks : ndarray
        Kinks of Phi, increasing; panels end there.
    fineness : float
        1, or more for narrower panels.
    edges : ndarray, shape (MOST_PANELS + 1,)
        Array to fill with the ends of the panels, increasing.

    Returns
    -------
    count : int
        Number of panels; -1 if exp(E) cannot be normalised, CROWDED if there are more than MOST_PANELS.
    top : float
        The largest E that was met.
    """
    reach, top = _reach(potential, a, b, s)
    if math.isnan(reach):
        return -1, math.nan
    stack = np.empty((128, 2))
    depth = 0
    high = reach
    for i in range(kinks.size - 1, -1, -1):  # the leftmost piece ends on top
        if -reach < kinks[i] < high:
            stack[depth] = kinks[i], high
            high = kinks[i]
            depth += 1
    stack[depth] = -reach, high
    depth += 1
    count, needed = 0, 0
    while depth > 0:
        depth -= 1
        low, high = stack[depth]
        least, most = math.inf, -math.inf
        for i in range(SAMPLES):
            e = _exponent(potential, a, b, s, low + (high - low) * i / (SAMPLES - 1))
            least, most = min(least, e), max(most, e)
        top = max(top, most)
        # Near 0 phi may vary on the scale of 1 where E hardly does; far out on the scale of |w|.
        widest = max(1.0, min(abs(low), abs(high)) / 8.0)
        # samples of a wider panel may miss peaks
        negligible = 2.0 * most - least < top - _depth(max(abs(low), abs(high))) and high - low <= widest
        fine = most - least <= VARIATION / fineness and high - low <= widest / fineness
        if not (negligible or fine) and depth < 126 and high - low > 1e-14 * reach:
            middle = 0.5 * (low + high)
            stack[depth] = middle, high
            stack[depth + 1] = low, middle
            depth += 2
            continue
        if negligible and count == 0:
            continue  # before the first panel that counts
        if count == MOST_PANELS:
            return CROWDED, top
        edges[count], edges[count + 1] = low, high
        count += 1
        if not negligible:
            needed = count
    return needed, top


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_moments(potential, a, b, s, edges, count, top, result):  # type: ignore[no-untyped-def]
    """Write the averages listed in `MOMENTS` to `result`, shape (MOMENTS,)."""
    shift = top + VARIATION  # samples may have missed the maximum by less
    sums = np.zeros(MOMENTS)
    w, phi, exponent = np.empty(ORDER), np.empty(ORDER), np.empty(ORDER)
    for panel in range(count):
        half = 0.5 * (edges[panel + 1] - edges[panel])
        middle = 0.5 * (edges[panel + 1] + edges[panel])
        for i in range(ORDER):
            w[i] = middle + half * NODES[i]
            phi[i] = call_scalar(potential, w[i])
        for i in range(ORDER):
            exponent[i] = half * WEIGHTS[i] * exp_minus(max(shift - (0.5 * a * w[i] - s) * w[i] + b * phi[i], 0.0))
        for i in range(ORDER):
            x, p = w[i], exponent[i]
            sums[7] += p
            sums[0] += p * x
            sums[1] += p * x * x
            sums[2] += p * x * x * x
            sums[3] += p * x * x * x * x
            sums[4] += p * phi[i]
            sums[5] += p * phi[i] * x
            sums[6] += p * phi[i] * x * x
    for i in range(MOMENTS - 1):
        result[i] = sums[i] / sums[7]
    result[7] = math.log(sums[7]) + shift


@numba.njit(cache=True, nogil=True, error_model="numpy")
def tilted_moments(potential, a, b, tilts, kinks, fineness):  # type: ignore[no-untyped-def]
    """Averages over the densities of all tilts.

    Returns
    -------
    moments : ndarray, shape (tilts, MOMENTS)
        NaN from the first density that failed.
    status : int
        0, or the negative count by `find_panels` of the first density that failed.
    """
    moments = np.full((tilts.size, MOMENTS), np.nan)
    edges = np.empty(MOST_PANELS + 1)
    for i in range(tilts.size):
        count, top = find_panels(potential, a, b, tilts[i], kinks, fineness, edges)
        if count < 1:
            return moments, count or CROWDED  # no panel that counts: rounding, or a peak that was missed
        add_moments(potential, a, b, tilts[i], edges, count, top, moments[i])
    return moments, 0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def all_panels(potential, a, b, tilts, kinks):  # type: ignore[no-untyped-def]
    """Panels of all tilts: ends, shape (tilts, most + 1), filled up with the last end, and the largest E of each."""
    edges = np.empty((tilts.size, MOST_PANELS + 1))
    tops = np.empty(tilts.size)
    most = 1
    for i in range(tilts.size):
        count, tops[i] = find_panels(potential, a, b, tilts[i], kinks, 1.0, edges[i])
        edges[i, max(count, 0) + 1 :] = edges[i, max(count, 0)]
        most = max(most, count)
    return edges[:, : most + 1].copy(), tops
