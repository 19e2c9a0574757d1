"""Linearised right-hand side of the points, its elimination, and the response of averages to displacements of points.

The right-hand side at a point is (theory of the frame: `meanfield.numerics.quantile_frame.stages`)

    f_i = s_i [v_i + D xi_i (Q_+ + Q_-)/2] - (D + a_i) (Q_+ - Q_-)/h_i,    v_i = G X_i - u.g - tau phi_i,

with Q_+ = (xi_{i+1} - xi_i)/(X_{i+1} - X_i), and Q_+ = Q_- at the ends; a_i is the `damping` for
y = v_i (X_{i+1} - X_{i-1}). Its derivative for given coefficients
(G, g, D) is tridiagonal for every node.
"""

from __future__ import annotations

from typing import NamedTuple

from meanfield.numerics.compiled.vectors import choose_smaller, load, smaller, spread, square_root, store
from meanfield.numerics.quantile_frame.frame import BOUNDED, LANES, damping, limit_powers
from meanfield.numerics.quantile_frame.stages import retained
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray


class Nodal(NamedTuple):
    """Coefficients of every node, or their changes, each of shape (blocks * LANES,).

    Parameters
    ----------
    growths, tilts, noises : ndarray
        G, u.g and D.
    """

    growths: FloatArray
    tilts: FloatArray
    noises: FloatArray


class Elimination(NamedTuple):
    """Factors of the matrix 1/(h gamma) - J of every node, each an array of the shape of X.

    Parameters
    ----------
    lower, pivot, upper : ndarray
        Subdiagonal, inverse pivots, and the superdiagonal times them.
    by_growth, by_pull, by_noise : ndarray
        Solutions for right-hand sides df/dG, -df/d(u.g) and df/dD.
    by_rate : ndarray
        Solution for -df/dtau where tau changes in time; empty where it does not.
    mean, work, second : ndarray
        Derivatives of E[X], E[X phi] and E[X^2] of a node with respect to each point.
    mass : ndarray
        Room for those of the mass.
    before, here, after : ndarray
        Derivatives of the force at a point with respect to the point before, itself and the one after.
    """

    lower: FloatArray
    pivot: FloatArray
    upper: FloatArray
    by_growth: FloatArray
    by_pull: FloatArray
    by_noise: FloatArray
    by_rate: FloatArray
    mean: FloatArray
    work: FloatArray
    second: FloatArray
    mass: FloatArray
    before: FloatArray
    here: FloatArray
    after: FloatArray


@numba.njit(inline="always")
def _add(array, at, value):  # type: ignore[no-untyped-def]
    store(array, at, load(array, at, LANES) + value)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def eliminate(X, mesh, frame, own, sums, nodal, rate, learning_rate):  # type: ignore[no-untyped-def]
    """Factor `rate` - J, and fill in all of `own` but the derivatives of the force.

    Parameters
    ----------
    X : ndarray
    mesh : Mesh
    frame : Frame
        Filled in for X.
    own : Elimination
        With derivatives of the force.
    sums : ndarray, shape (4, blocks * LANES)
        From `meanfield.numerics.quantile_frame.frame.weigh`.
    nodal : Nodal
    rate : float
        1/(h gamma).
    learning_rate : float
        tau.
    """
    width, points = numba.uint64(LANES), numba.uint64(mesh.points)
    one, last = numba.uint64(1), numba.uint64(mesh.points - 1)
    nodes = numba.uint64(sums.shape[1])
    flat = sums.reshape(-1)
    nothing = spread(0.0, LANES)
    terms, driven = mesh.grading.shape[1], own.by_rate.size > 0
    own.mass[:] = 0.0
    own.mean[:] = 0.0
    own.work[:] = 0.0
    own.second[:] = 0.0
    for block in range(numba.uint64(X.size) // (width * points)):
        growth, tilt = load(nodal.growths, block * width, LANES), load(nodal.tilts, block * width, LANES)
        noise = load(nodal.noises, block * width, LANES)
        at = block * points * width
        upper = previous_growth = previous_pull = previous_noise = previous_rate = nothing
        q_before = inverse_before = nothing
        for i in range(points):
            behind = at - width if i > 0 else at
            ahead = at + width if i < last else at
            x, x_before, x_after = load(X, at, LANES), load(X, behind, LANES), load(X, ahead, LANES)
            xi, xi_before = load(frame.xi, at, LANES), load(frame.xi, behind, LANES)
            xi_after = load(frame.xi, ahead, LANES)
            p, p_before = load(frame.slope, at, LANES), load(frame.slope, behind, LANES)
            p_after = load(frame.slope, ahead, LANES)
            s, phi = load(frame.share, at, LANES), load(frame.force, at, LANES)
            q_after = inverse_after = nothing
            if i < last:
                inverse_after = 1.0 / (x_after - x)
                q_after = (xi_after - xi) * inverse_after
            of_after = 0.5 if 0 < i < last else (1.0 if i == 0 else 0.0)
            of_before = 1.0 - of_after
            inner = 1.0 if 0 < i < last else 0.0
            q = of_after * q_after + of_before * q_before
            # Derivatives of Q on both sides, of its mean and of its difference times D/h.
            after_by_after = -1.0 * (p_after + q_after) * inverse_after
            after_by_here = (p + q_after) * inverse_after
            before_by_here = -1.0 * (p + q_before) * inverse_before
            before_by_before = (p_before + q_before) * inverse_before
            # Derivatives of the share.
            curvature = nothing
            for k in range(terms):
                z = mesh.grading[2, k] * (x - mesh.grading[1, k])
                square = z * z + 1.0
                c = mesh.grading[0, k] * mesh.grading[2, k] * mesh.grading[2, k]
                bend = c * z / (square * square_root(square))
                if mesh.grading[3, k] == BOUNDED:
                    bend = 3.0 * bend / square
                curvature = curvature - bend
            side = 0.5 if 0 < i < last else 1.0
            stretch = side * (x_after - x_before)
            below = xi - xi_before if i > 0 else xi_after - xi
            above = xi_after - xi if i < last else below
            mean, least = 0.5 * (below + above), smaller(below, above)
            ratio, power = limit_powers(mean, least)
            bounded = 1.0 / (1.0 + ratio * power)
            rise = mean * (1.0 + power) * bounded
            steep = power * (16.0 - 17.0 * ratio - ratio * power) * bounded * bounded  # x g'(x)
            by_mean = (1.0 + power) * bounded + steep
            by_least = -4.0 * ratio * steep
            by_below = 0.5 * by_mean + choose_smaller(below, above, by_least, nothing)
            by_above = 0.5 * by_mean + choose_smaller(above, below, by_least, nothing)
            if i == 0:
                by_below, by_above = nothing, by_below + by_above
            if i == last:
                by_below, by_above = by_below + by_above, nothing
            inverse = 1.0 / (rise + p * stretch)
            kept = 1.0 - s
            share_by_after = -1.0 * (p_after * by_above * kept + side * s * p) * inverse
            share_by_before = (p_before * by_below * kept + side * s * p) * inverse
            share_by_here = (p * (by_above - by_below) * kept - s * curvature * stretch) * inverse
            drift = growth * x - tilt - learning_rate * phi
            kept_drift, steep = retained(drift, xi, mesh.grading.size > 0)
            drift = kept_drift * drift
            spacing = load(mesh.spacing, at, LANES)
            # The damping acts on the jump of Q over h.
            jump, apart = inner * (q_after - q_before) / spacing, x_after - x_before
            damped, damped_by_y, damped_by_share, damped_by_noise = damping(drift * apart, noise, s, spacing)
            diffusion = (noise + damped) * inner / spacing
            by_drift = s - jump * damped_by_y * apart
            by_xi, by_drift = by_drift * steep, by_drift * kept_drift
            by_apart = jump * damped_by_y * drift
            by_share = drift + noise * xi * q - jump * damped_by_share
            half = s * noise * xi
            by_after = (
                share_by_after * by_share
                - diffusion * after_by_after
                - by_apart
                + half * (of_after * after_by_after)
                - by_drift * learning_rate * load(own.after, at, LANES)
            )
            by_before = (
                share_by_before * by_share
                + diffusion * before_by_before
                + by_apart
                + half * (of_before * before_by_before)
                - by_drift * learning_rate * load(own.before, at, LANES)
            )
            by_here = (
                share_by_here * by_share
                - diffusion * (after_by_here - before_by_here)
                + by_drift * (growth - learning_rate * load(own.here, at, LANES))
                - (s * noise * q + by_xi) * p
                + half * (of_after * after_by_here + of_before * before_by_here)
            )
            if i == 0:
                by_here, by_before = by_here + by_before, nothing
            if i == last:
                by_here, by_after = by_here + by_after, nothing
            # Elimination.
            lower = -1.0 * by_before
            pivot = 1.0 / (rate - by_here - lower * upper)
            upper = -1.0 * by_after * pivot
            store(own.lower, at, lower)
            store(own.pivot, at, pivot)
            store(own.upper, at, upper)
            noisy = s * xi * q - jump * (1.0 + damped_by_noise)
            previous_growth = (by_drift * x - lower * previous_growth) * pivot
            previous_pull = (by_drift - lower * previous_pull) * pivot
            previous_noise = (noisy - lower * previous_noise) * pivot
            store(own.by_growth, at, previous_growth)
            store(own.by_pull, at, previous_pull)
            store(own.by_noise, at, previous_noise)
            if driven:
                previous_rate = (by_drift * phi - lower * previous_rate) * pivot
                store(own.by_rate, at, previous_rate)
            # Derivatives of sums over points.
            weight = load(frame.weight, at, LANES)
            m = weight * s
            direct = m * xi * p + weight * share_by_here
            ahead_by, behind_by = weight * share_by_after, weight * share_by_before
            _add(own.mass, at, direct)
            _add(own.mass, ahead, ahead_by)
            _add(own.mass, behind, behind_by)
            _add(own.mean, at, x * direct + m)
            _add(own.mean, ahead, x * ahead_by)
            _add(own.mean, behind, x * behind_by)
            f = x * phi
            _add(own.work, at, f * direct + m * (phi + x * load(own.here, at, LANES)))
            _add(own.work, ahead, f * ahead_by + m * x * load(own.after, at, LANES))
            _add(own.work, behind, f * behind_by + m * x * load(own.before, at, LANES))
            f = x * x
            _add(own.second, at, f * direct + 2.0 * m * x)
            _add(own.second, ahead, f * ahead_by)
            _add(own.second, behind, f * behind_by)
            q_before, inverse_before = q_after, inverse_after
            at = at + width
        # Back substitution, and averages from sums.
        node = block * width
        inverse_mass = 1.0 / load(flat, node, LANES)
        mean = load(flat, node + nodes, LANES) * inverse_mass
        work = load(flat, node + (nodes + nodes), LANES) * inverse_mass
        second = load(flat, node + (nodes + nodes + nodes), LANES) * inverse_mass
        g = v = d = t = nothing
        for j in range(points):
            at = at - width
            upper = load(own.upper, at, LANES) if j > 0 else nothing
            g = load(own.by_growth, at, LANES) - upper * g
            v = load(own.by_pull, at, LANES) - upper * v
            d = load(own.by_noise, at, LANES) - upper * d
            store(own.by_growth, at, g)
            store(own.by_pull, at, v)
            store(own.by_noise, at, d)
            if driven:
                t = load(own.by_rate, at, LANES) - upper * t
                store(own.by_rate, at, t)
            mass = load(own.mass, at, LANES)
            store(own.mean, at, (load(own.mean, at, LANES) - mean * mass) * inverse_mass)
            store(own.work, at, (load(own.work, at, LANES) - work * mass) * inverse_mass)
            store(own.second, at, (load(own.second, at, LANES) - second * mass) * inverse_mass)
    return one


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def respond(x, own, points, changes):  # type: ignore[no-untyped-def]
    """Changes of E[X], E[X phi] and E[X^2] of every node by displacements x of its points, shape (3, nodes)."""
    width, count = numba.uint64(LANES), numba.uint64(points)
    flat, nodes = changes.reshape(-1), numba.uint64(changes.shape[1])
    for block in range(numba.uint64(x.size) // (width * count)):
        first, work, second = spread(0.0, LANES), spread(0.0, LANES), spread(0.0, LANES)
        at = block * count * width
        for _ in range(count):
            value = load(x, at, LANES)
            first = first + value * load(own.mean, at, LANES)
            work = work + value * load(own.work, at, LANES)
            second = second + value * load(own.second, at, LANES)
            at = at + width
        node = block * width
        store(flat, node, first)
        store(flat, node + nodes, work)
        store(flat, node + (nodes + nodes), second)
