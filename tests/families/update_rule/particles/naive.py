"""SGD of update rules as a loop of NumPy, vector by vector, with the random numbers of plain steps by their addresses.

Hidden variables are Gaussian. The rule is called as it is written, without compilation.
"""

import numpy as np

from meanfield.ensembles.stepper import replica_generator
from meanfield.ensembles.streams import NORMALS, UNIFORMS, VECTOR, fill_normals, fill_uniforms, stream_key
from meanfield.families.update_rule.particles.plain import MASKS
from meanfield.families.update_rule.particles.start import draw_features, draw_students
from meanfield.families.update_rule.particles.steps import variances_of
from meanfield.families.update_rule.rule import arguments_of
from meanfield.ingredients.schedules.shapes import Schedule


def numbers(fill, key, replica, purpose, first, count):
    out = np.empty(count + count % 2)
    fill(key, replica, purpose, first, out)
    return out[:count]


def squeezed(array):
    """Arrays without dims of one: a number where there is one vector."""
    array = np.squeeze(array)
    return float(array) if array.ndim == 0 else array


def value(function, known):
    return np.asarray(function(**{name: known[name] for name in arguments_of(function, "it")}), dtype=float)


def constrained(W, constraint, lengths):
    N = len(W)
    if constraint == "sphere":
        return W * np.sqrt(N * lengths / (W * W).sum(axis=0))
    if constraint == "gram_schmidt":
        axes, factor = np.linalg.qr(W)
        return np.sqrt(N) * axes * np.sign(np.diag(factor))
    if constraint == "polar":
        left, _, right = np.linalg.svd(W, full_matrices=False)
        return np.sqrt(N) * left @ right
    return W


def run(problem, replica, steps):
    """U, W and side variables after some steps."""
    N, m, key = problem.particles.dimension, problem.model.batch_size, stream_key(problem.particles.seed)
    rng, even, data = replica_generator(problem.particles.seed, replica), N + N % 2, problem.data
    U = draw_features(problem, rng)
    W = draw_students(problem, U, rng)
    (_, K), rule = W.shape, problem.model.functions
    v = np.array([side.start for side in problem.side.values()])
    laws = [feature.hidden for feature in problem.features if feature.hidden is not None]
    deviations = [float(np.sqrt(law.second_moment)) for law in laws]
    for k in range(steps):
        kinds = len(laws) + len(data.normals)
        own = numbers(fill_normals, key, replica, NORMALS, k * (m * kinds + m * kinds % 2), m * kinds).reshape(kinds, m)
        tossed = m * len(data.coins)
        thrown = numbers(fill_uniforms, key, replica, UNIFORMS, k * (tossed + tossed % 2), tossed).reshape(-1, m)
        parameters = {
            name: each.value_at(k / N) if isinstance(each, Schedule) else each
            for name, each in problem.model.rule_parameters.items()
        }
        known = {"t": k / N, "Q": squeezed(W.T @ W / N), "R": squeezed(W.T @ U / N), **parameters}
        known |= dict(zip(problem.side, v, strict=True))
        new, new_v = W.copy(), v.copy()
        for b in range(m):
            c = np.array([deviation * own[j, b] for j, deviation in enumerate(deviations)])
            x = np.sqrt(data.noise) * numbers(fill_normals, key, replica, VECTOR, (k * m + b) * even, even)[:N]
            x *= 1.0 if data.spectrum is None else np.sqrt(variances_of(problem))
            if data.signal == "orthogonal":
                x -= U @ (U.T @ x) / N
            if data.signal != "none":
                x += U @ c / np.sqrt(N)
            if data.observed < 1.0:
                x *= numbers(fill_uniforms, key, replica, MASKS, (k * m + b) * even, even)[:N] <= data.observed
            sample = known | {
                "y": squeezed(U.T @ x / np.sqrt(N)),
                "s": squeezed(W.T @ x / np.sqrt(N)),
                "c": squeezed(c),
            }
            sample |= {name: own[len(laws) + j, b] for j, name in enumerate(data.normals)}
            sample |= {name: float(thrown[j, b] <= p) for j, (name, p) in enumerate(data.coins.items())}
            new += np.outer(x, np.broadcast_to(value(rule.step, sample), K)) / (m * np.sqrt(N))
            if rule.along is not None:
                B = value(rule.along, sample)
                new += (np.hstack([U, W]) @ B if B.ndim else W * B) / (m * N)
            new_v += [value(side.function, sample) / (m * N) for side in problem.side.values()]
        strength = problem.prior.strength
        strength = strength.value_at(k / N) if isinstance(strength, Schedule) else strength
        new -= strength * problem.prior.functions.forces(W.ravel()).reshape(W.shape) / N
        W, v = constrained(new, problem.model.constraint, np.diag(problem.initial_Q)), new_v
    return U, W, v
