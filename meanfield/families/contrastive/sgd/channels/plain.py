"""Plain SGD of several channels, step by step as in several_channels.md, section 1: the reference for other steps.

It draws whole samples, so a step costs m N normals (3 m N with augmentation noise).
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.families.contrastive.closures.outputs import mean_outputs
from meanfield.families.contrastive.sgd.training import BATCH, POPULATION, enter_step
from meanfield.numerics.compiled.scalar_functions import call_loop, call_scalar
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba


@numba.njit(cache=True, nogil=True, error_model="numpy")
def plain_steps(training, outputs, force, prior_strength, rng, hidden, first, W, V, U, reached):  # type: ignore[no-untyped-def]
    """Take steps `first`, `first` + 1, ... of one-pass SGD, changing `W` and `V` in place.

    Parameters
    ----------
    training, outputs, force, prior_strength, rng
        See `meanfield.families.contrastive.sgd.plain.sgd_steps`.
    hidden : ndarray, shape (replicas, steps, m, d1)
        Hidden variables c of all samples.
    first : int
    W : ndarray, shape (replicas, d2, N)
        Weights with |w_k|^2 = N.
    V : ndarray, shape (replicas, d2, N)
        Velocities, the last steps of the weights before they went back to the sphere; empty without momentum.
    U : ndarray, shape (replicas, d1, N)
        Features, one in each row, with U U^T = N I.
    reached : ndarray of int, shape (replicas,)
        Receives the step after which the weights were still finite: first + steps unless they blew up, now or earlier.
    """
    replicas, steps, m, _ = hidden.shape
    channels, N = W.shape[1:]
    x1, x2 = np.empty((m, N)), np.empty((m, N))
    means = np.zeros((2, channels))
    for i in range(replicas):
        for step in range(first, first + steps):
            if reached[i] < step:
                break
            enter_step(training, step)
            for b in range(m):
                _draw_sample(U[i], hidden[i, step - first, b], rng, x1[b])
                _add_noise(training, rng, x1[b], x2[b])
            if training.centering == POPULATION:
                for k in range(channels):
                    q = U[i] @ W[i, k] / N
                    means[0, k], means[1, k] = call(mean_outputs, outputs, q)
            if _step(training, force, prior_strength, means, W[i], V[i], x1, x2):
                reached[i] = step + 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _draw_sample(U, c, rng, x):  # type: ignore[no-untyped-def]
    """Draw x = U c/sqrt(N) + a with a ~ N(0, I - U U^T/N), a projected Gaussian vector."""
    d1, N = U.shape
    for n in range(N):
        x[n] = rng.standard_normal()
    for f in range(d1):
        shift = c[f] / math.sqrt(N) - np.dot(U[f], x) / N  # rows of U are orthogonal
        for n in range(N):
            x[n] += shift * U[f, n]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_noise(training, rng, x1, x2):  # type: ignore[no-untyped-def]
    """Make two views of a sample, which is in `x1`."""
    L = training.noise_factor
    for n in range(x1.size):
        x2[n] = x1[n]
    if training.noisy:
        for n in range(x1.size):
            first, second = rng.standard_normal(), rng.standard_normal()
            x2[n] += L[1, 0] * first + L[1, 1] * second
            x1[n] += L[0, 0] * first


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _step(training, force, prior_strength, means, W, V, x1, x2):  # type: ignore[no-untyped-def]
    """One step with the given views of a batch; false if the weights are no longer finite."""
    (channels, N), m = W.shape, len(x1)
    tau, share, penalty_strength = training.rates[0], training.rates[1], training.rates[2]
    root = math.sqrt(N)
    z1, z2, y1, y2, slope1, slope2 = [np.empty((channels, m)) for _ in range(6)]
    for k in range(channels):
        for b in range(m):
            z1[k, b] = np.dot(W[k], x1[b]) / root
            z2[k, b] = np.dot(W[k], x2[b]) / root
    call_loop(training.value, z1, y1)
    call_loop(training.value, z2, y2)
    call_loop(training.derivative, z1, slope1)
    call_loop(training.derivative, z2, slope2)
    for k in range(channels):
        y1[k] -= y1[k].mean() if training.centering == BATCH else means[0, k]
        y2[k] -= y2[k].mean() if training.centering == BATCH else means[1, k]
    # A = -dF/dC, with F = -sum_k C_kk + lambda sum_{k != j} psi(C_kj) and C_kj = (1/m) sum_b y1_kb y2_jb
    A = np.eye(channels)
    for k in range(channels):
        for j in range(channels):
            if k != j and penalty_strength > 0.0:
                A[k, j] = -penalty_strength * call_scalar(training.penalty, np.dot(y1[k], y2[j]) / m)
    # w~_k = w_k + v_k, v_k = momentum v_k + tau/(m sqrt(N)) sum_b (alpha_kb x1_b + beta_kb x2_b) - (tau/N) phi(w_k)
    for k in range(channels):
        change = np.zeros(N)
        for b in range(m):
            alpha = beta = 0.0
            for j in range(channels):
                alpha += A[k, j] * y2[j, b]
                beta += A[j, k] * y1[j, b]
            for n in range(N):
                change[n] += slope1[k, b] * alpha * x1[b, n] + slope2[k, b] * beta * x2[b, n]
        length = 0.0
        for n in range(N):
            pull = share * prior_strength * call_scalar(force, W[k, n])
            move = tau / (m * root) * change[n] - tau / N * pull
            if V.size > 0:
                V[k, n] = move = training.momentum * V[k, n] + move
            W[k, n] += move
            length += W[k, n] * W[k, n]
        # back to the sphere
        scale = root / math.sqrt(length)
        if not (math.isfinite(length) and scale > 0.0):
            return False
        for n in range(N):
            W[k, n] *= scale
    return True
