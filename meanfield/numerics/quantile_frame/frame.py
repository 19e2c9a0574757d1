"""Points of the quantile frame, and averages over the density that they carry.

The law of w at a node u is given by its quantiles w = X(xi), xi ~ N(0, 1), X increasing. A point i keeps the
coordinate zeta_i = xi + psi(w) along the curve: without grading, psi = 0, it keeps its quantile and follows the
weights; near a centre of the grading psi, where psi' is large, it keeps its w. With

    psi(w) = sum_k amplitude_k f_k((w - centre_k)/width_k),    f_k(z) = asinh(z) or z/sqrt(1 + z^2),

points lie on both sides of a kink at geometrically growing distances, or gather in a core, wherever the weights go.
Averages are sums
E[f] = sum_i m_i f(X_i) with masses m_i = n(xi_i) s_i h_i, where n is the normal density, h_i the spacing of zeta and

    s = dxi/dzeta = rise/(rise + psi'(X_i) (X_{i+1} - X_{i-1})/2)

with the mean rise of xi to both neighbours. Where one of the two is less than a quarter of their mean, points are too
far apart to resolve a corner of the curve: a limit on the mean, smooth in both, then keeps xi increasing. Averages are
divided by the total mass. Arrays are flat, laid out as [block of nodes][point][lane].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.numerics.compiled.exponential import arcsinh_and_slope, exp_between
from meanfield.numerics.compiled.vectors import load, smaller, spread, square_root, store, where_less
from meanfield.numerics.quantile_frame.forces import cubic_spline, evaluate_force
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

LANES = 8
"""Number of nodes side by side in a block."""

LARGEST_XI_SQUARED = 1300.0
"""Value of xi^2 at which the normal density is cut, at 1e-283."""

DAMPING = 0.5
"""Strength of the damping of points that stay where they are; see `damping`."""

DAMPED_SPACING = 0.2
"""Spacing at which half of the damping of points is left where y is as large as the noise: that of the first level."""

UNRESOLVED = 1e9
"""Ratio of neighbouring rises at which that ratio is cut, so that its powers stay finite."""

LOGARITHMIC, BOUNDED = 0.0, 1.0
"""Kinds of the terms of psi: asinh(z) and z/sqrt(1 + z^2)."""

ROOT_TWO_PI = math.sqrt(2.0 * math.pi)

SLOPE_STEP = 1e-6
"""Relative step of the differences that give the slope of the force."""


class Mesh(NamedTuple):
    """Points, nodes and force, which stay as they are.

    Parameters
    ----------
    zeta, spacing : ndarray, shape (blocks * points * LANES,)
        Coordinates along the curve, and the spacing h of a smooth map of equally spaced numbers to them.
    grading : ndarray, shape (4, terms)
        Amplitudes, centres, inverse widths and kinds of the terms of psi.
    kinks : ndarray, shape (3, kinks)
        Where the force has a kink, and the jumps there of the force and of its slope.
    force : int
        Address of the force of unit strength, a function of w.
    loop : int
        Address of the same force in a loop; 0 if it would have to be compiled, which takes longer than most runs.
    """

    zeta: FloatArray
    spacing: FloatArray
    grading: FloatArray
    kinks: FloatArray
    force: int
    strength: float
    points: int
    loop: int


class Frame(NamedTuple):
    """Quantities of the frame at given values X of all points, each an array of the shape of X.

    Parameters
    ----------
    xi : ndarray
        Quantiles on the scale of the normal law.
    slope : ndarray
        psi'(X).
    weight : ndarray
        n(xi) h.
    share : ndarray
        s = dxi/dzeta.
    force : ndarray
        phi(X), averaged over the neighbourhood of a point where there is a kink.
    """

    xi: FloatArray
    slope: FloatArray
    weight: FloatArray
    share: FloatArray
    force: FloatArray


@numba.njit(inline="always")
def damping(y, noise, share, spacing):  # type: ignore[no-untyped-def]
    """Diffusion of points that stay where they are, and its derivatives with respect to y, the share and the noise.

    Weights that pass such points would make waves of the size of the spacing, where the noise is small in units of y,
    the speed of weights times the distance of both neighbours in w. The diffusion is the square of the spacing times
    what does not depend on it: however little noise there is, an extrapolation in the spacing takes all of it away.
    """
    still = 1.0 - share
    y = spacing * y
    refined = spacing * (1.0 / DAMPED_SPACING)
    refined = refined * refined
    noise = noise * refined
    inverse = 1.0 / (where_less(y, 0.0, -1.0 * y, y) + (noise + 1e-200))  # no division by zero
    strength = DAMPING * still * still
    part = y * y * inverse
    by_y = strength * spacing * y * inverse * (1.0 + noise * inverse)
    return strength * part, by_y, -2.0 * DAMPING * still * part, -1.0 * strength * refined * part * inverse


@numba.njit(inline="always")
def limit_powers(mean, least):  # type: ignore[no-untyped-def]
    """Ratio x of the mean to four times the smaller number, cut where it is large, and x^16."""
    x = 0.25 * mean / least
    x = where_less(x, UNRESOLVED, x, UNRESOLVED)
    square = x * x
    fourth = square * square
    eighth = fourth * fourth
    return x, eighth * eighth


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def place(X, mesh, frame):  # type: ignore[no-untyped-def]
    """Fill in `xi`, `slope` and `weight`."""
    width = numba.uint64(LANES)
    terms = mesh.grading.shape[1]
    for i in range(numba.uint64(X.size) // width):
        at = i * width
        x = load(X, at, LANES)
        shift, slope = spread(0.0, LANES), spread(0.0, LANES)
        for k in range(terms):
            z = mesh.grading[2, k] * (x - mesh.grading[1, k])
            if mesh.grading[3, k] == BOUNDED:
                inverse = 1.0 / square_root(z * z + 1.0)
                shift = shift + mesh.grading[0, k] * (z * inverse)
                inverse = inverse * inverse * inverse
            else:
                log, inverse = arcsinh_and_slope(where_less(z, 0.0, -1.0 * z, z))
                shift = shift + mesh.grading[0, k] * where_less(z, 0.0, -1.0 * log, log)
            slope = slope + mesh.grading[0, k] * mesh.grading[2, k] * inverse
        xi = load(mesh.zeta, at, LANES) - shift
        square = xi * xi
        store(frame.xi, at, xi)
        store(frame.slope, at, slope)
        cut = where_less(square, LARGEST_XI_SQUARED, square, LARGEST_XI_SQUARED)
        store(frame.weight, at, exp_between(-0.5 * cut) * load(mesh.spacing, at, LANES) * (1.0 / ROOT_TWO_PI))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _side(x):  # type: ignore[no-untyped-def]
    """Step function, 1/2 at the step itself."""
    return 1.0 if x > 0.0 else (0.5 if x == 0.0 else 0.0)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _spacing(X, j, i, points):  # type: ignore[no-untyped-def]
    """Half of the distance between both neighbours of point i at index j, or between it and the only one."""
    return 0.5 * ((X[j + LANES] if i < points - 1 else X[j]) - (X[j - LANES] if i > 0 else X[j]))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _first_beyond(X, start, points, w):  # type: ignore[no-untyped-def]
    """Number of the first point of a node that lies beyond w, or the number of points."""
    low, high = 0, points
    while low < high:
        middle = (low + high) // 2
        if X[start + middle * LANES] > w:
            high = middle
        else:
            low = middle + 1
    return low


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _reaches(X, start, i, points, kink):  # type: ignore[no-untyped-def]
    """Whether a point of a node is so near a kink that its average, or a difference there, meets it."""
    j = start + i * LANES
    return abs(X[j] - kink) < max(2.0 * _spacing(X, j, i, points), SLOPE_STEP * (1.0 + abs(X[j])))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _near(X, start, points, kink):  # type: ignore[no-untyped-def]
    """Numbers of the points of a node near a kink: the first, and the one after the last."""
    first = last = _first_beyond(X, start, points, kink)
    while first > 0 and _reaches(X, start, first - 1, points, kink):
        first -= 1
    while last < points and _reaches(X, start, last, points, kink):
        last += 1
    return first, last


@numba.njit(cache=True, nogil=True, error_model="numpy")
def average_force(X, mesh, frame):  # type: ignore[no-untyped-def]
    """Fill in `force`: phi at each point, but near a kink its average over a cubic B-spline of the local spacing.

    Points move across a kink one by one. The average is three times differentiable in their positions, so that time
    steps need not notice.
    """
    evaluate_force(mesh, X, frame.force)
    for j in range(X.size):
        frame.force[j] *= mesh.strength
    for k in range(mesh.kinks.shape[1]):
        kink, jump, bend = mesh.kinks[0, k], mesh.kinks[1, k], mesh.kinks[2, k]
        for node in range(X.size // mesh.points):
            start = (node // LANES) * mesh.points * LANES + node % LANES
            first, last = _near(X, start, mesh.points, kink)
            for i in range(first, last):
                j = start + i * LANES
                z, spacing = X[j] - kink, _spacing(X, j, i, mesh.points)
                if abs(z) < 2.0 * spacing:
                    _, part, corner = cubic_spline(z / spacing)
                    frame.force[j] += jump * (part - _side(z)) + bend * (spacing * corner - max(z, 0.0))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def force_slopes(X, mesh, before, here, after):  # type: ignore[no-untyped-def]
    """Derivatives of `Frame.force` at a point with respect to the point before, the point itself and the one after."""
    for j in range(X.size):
        before[j] = X[j] + SLOPE_STEP * (1.0 + abs(X[j]))
    evaluate_force(mesh, before, here)
    for j in range(X.size):
        before[j] = X[j] - SLOPE_STEP * (1.0 + abs(X[j]))
    evaluate_force(mesh, before, after)
    for j in range(X.size):
        up = X[j] + SLOPE_STEP * (1.0 + abs(X[j]))
        here[j] = mesh.strength * (here[j] - after[j]) / (up - before[j])
    before[:] = 0.0
    after[:] = 0.0
    for k in range(mesh.kinks.shape[1]):
        kink, jump, bend = mesh.kinks[0, k], mesh.kinks[1, k], mesh.kinks[2, k]
        for node in range(X.size // mesh.points):
            start = (node // LANES) * mesh.points * LANES + node % LANES
            first, last = _near(X, start, mesh.points, kink)
            for i in range(first, last):
                j = start + i * LANES
                z, spacing = X[j] - kink, _spacing(X, j, i, mesh.points)
                step = SLOPE_STEP * (1.0 + abs(X[j]))
                # In place of differences across the kink there are the derivatives of its average.
                rise = jump * (_side(z + step) - _side(z - step)) + bend * (max(z + step, 0.0) - max(z - step, 0.0))
                here[j] -= rise / (2.0 * step)
                if abs(z) < 2.0 * spacing:
                    density, part, corner = cubic_spline(z / spacing)
                    here[j] += jump * density / spacing + bend * part
                    by_spacing = bend * (corner - part * z / spacing) - jump * density * z / (spacing * spacing)
                    before[j] -= 0.5 * by_spacing
                    after[j] += 0.5 * by_spacing
                elif z > 0.0:
                    here[j] += bend


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def weigh(X, mesh, frame, sums):  # type: ignore[no-untyped-def]
    """Fill in `share`, and the sums over points of m, m X, m X phi and m X^2 for every node.

    Parameters
    ----------
    X : ndarray
    mesh : Mesh
    frame : Frame
        Filled in by `place` and `average_force`.
    sums : ndarray, shape (4, blocks * LANES)

    Returns
    -------
    bool
        Whether X and xi increase from point to point.
    """
    width, points = numba.uint64(LANES), numba.uint64(mesh.points)
    one, last = numba.uint64(1), numba.uint64(mesh.points - 1)
    least = spread(1.0, LANES)
    for block in range(numba.uint64(X.size) // (width * points)):
        mass, first, work, second = (
            spread(0.0, LANES), spread(0.0, LANES), spread(0.0, LANES), spread(0.0, LANES),
        )  # fmt: skip
        at = block * points * width
        x_before = x = load(X, at, LANES)
        xi_before = xi = load(frame.xi, at, LANES)
        for i in range(points):
            following = at + width if i < last else at
            x_after, xi_after = load(X, following, LANES), load(frame.xi, following, LANES)
            if i < last:
                least = smaller(least, smaller(x_after - x, xi_after - xi))
            below = xi - xi_before if i > 0 else xi_after - xi
            above = xi_after - xi if i < last else below
            mean, reach = 0.5 * (below + above), 0.5 if 0 < i < last else 1.0
            ratio, power = limit_powers(mean, smaller(below, above))
            rise, bound = mean * (1.0 + power), 1.0 + ratio * power  # the mean rise is the quotient of both
            share = rise / (rise + bound * (reach * load(frame.slope, at, LANES) * (x_after - x_before)))
            store(frame.share, at, share)
            m = load(frame.weight, at, LANES) * share
            mass = mass + m
            m = m * x
            first = first + m
            work = work + m * load(frame.force, at, LANES)
            second = second + m * x
            x_before, x, xi_before, xi = x, x_after, xi, xi_after
            at = at + width
        node = block * width
        nodes = numba.uint64(sums.shape[1])
        flat = sums.reshape(-1)
        store(flat, node, mass)
        store(flat, node + nodes, first)
        store(flat, node + (nodes + nodes), work)
        store(flat, node + (nodes + nodes + nodes), second)
    ends = np.empty(LANES)
    store(ends, numba.uint64(0), least)
    return ends.min() > 0.0 and one > 0
