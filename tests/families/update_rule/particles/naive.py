"""SGD of update rules as a loop of NumPy, vector by vector, with the random numbers of plain steps by their addresses.

Hidden variables are Gaussian. The rule is called as it is written, without compilation.
"""

import numpy as np

from meanfield.ensembles.streams import NORMALS, UNIFORMS, VECTOR, fill_normals, fill_uniforms, stream_key
from meanfield.families.update_rule.particles.observables import Observables
from meanfield.families.update_rule.particles.plain import MASKS
from meanfield.families.update_rule.particles.start import draw_vectors
from meanfield.families.update_rule.particles.steps import variances_of
from meanfield.families.update_rule.rule import arguments_of
from meanfield.families.update_rule.system import system_of
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.problems.in_time import InTime


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


def factor(covariance):
    """Lower triangular root without columns of zeros."""
    whole = np.zeros_like(covariance)
    for b in range(len(covariance)):
        pivot = covariance[b, b] - whole[b, :b] @ whole[b, :b]
        if pivot > 1e-14 * covariance[b, b]:
            whole[b:, b] = (covariance[b:, b] - whole[b:, :b] @ whole[b, :b]) / np.sqrt(pivot)
    return whole[:, whole.any(axis=0)]


def sources(kind):
    """Loadings of the noise that views share, and of their own, in the inputs of samples that are together."""
    L, each = kind.views, np.eye(kind.samples)
    return factor(np.kron(np.full((L, L), kind.noise), each)), factor(np.kron(kind.own, each))


def inputs(problem, kind, Z, c, noise):
    """Views of samples of a kind that are together, before masks, from standard normal vectors: (views samples, N)."""
    N, U = len(Z), Z[:, : len(problem.features)]
    noise = noise * (1.0 if problem.data.spectrum is None else np.sqrt(variances_of(problem)))
    shared, own = sources(kind)
    common = shared @ noise[: shared.shape[1]]
    if kind.projected:
        common = common - common @ U @ U.T / N
    signal = c.reshape(kind.samples, -1) @ Z[:, kind.along].T / np.sqrt(N)
    return common + own @ noise[shared.shape[1] :] + np.tile(signal, (kind.views, 1))


def averages(problem, system, rules, known, R, Q, v):
    """Averages that functions of each kind of sample read, by names, from what others test."""
    constants = system.constants(InTime(problem)(known["t"]), known["t"], R, Q, v, rules)
    return [
        {
            name: squeezed(constants[list(place.columns)])
            for name, place in draw.names.items()
            if name in kind.mean_names
        }
        for draw, kind in zip(system.draws, problem.kinds, strict=True)
    ]


def run(problem, replica, steps, shown=None):
    """U, W and side variables after some steps; what samples show is added to a list for each kind, where given."""
    system = system_of(problem)
    rules = Observables(problem, system).means
    N, key = problem.particles.dimension, stream_key(problem.particles.seed)
    even, data, kinds = N + N % 2, problem.data, problem.kinds
    U, W = draw_vectors(problem, replica)
    M, most = len(problem.features), max(kind.batch_size for kind in kinds)
    v = np.array([side.start for side in problem.side.values()])
    hidden = [float(np.sqrt(law.second_moment)) for kind in kinds for law in kind.laws]
    together = sum(kind.samples for kind in kinds)
    rows, coins = len(hidden) + together * len(data.normals), together * len(data.coins)
    source = mask = 0
    for k in range(steps):
        own = numbers(fill_normals, key, replica, NORMALS, k * (most * rows + most * rows % 2), most * rows)
        own, tossed = own.reshape(rows, most), most * coins
        thrown = numbers(fill_uniforms, key, replica, UNIFORMS, k * (tossed + tossed % 2), tossed).reshape(-1, most)
        parameters = {
            name: each.value_at(k / N) if isinstance(each, Schedule) else each
            for name, each in problem.model.rule_parameters.items()
        }
        Z = np.hstack([U, W])
        known = {"t": k / N, "Q": squeezed(W.T @ W / N), "R": squeezed(W.T @ U / N), **parameters}
        known |= dict(zip(problem.side, v, strict=True))
        means = averages(problem, system, rules, known, W.T @ U / N, W.T @ W / N, v)
        new, new_v, first, before = W.copy(), v.copy(), 0, 0
        for d, kind in enumerate(kinds):
            m, size, count = kind.batch_size, kind.samples, sum(each.shape[1] for each in sources(kind))
            for b in range(m):
                c = np.array([hidden[first + j] * own[first + j, b] for j in range(len(kind.laws))])
                noise = [
                    numbers(fill_normals, key, replica, VECTOR, (source + j) * even, even)[:N] for j in range(count)
                ]
                x = inputs(problem, kind, Z, c, np.array(noise))
                for each, number, share in zip(x, kind.masks, kind.observed, strict=True):
                    each *= numbers(fill_uniforms, key, replica, MASKS, (mask + number) * even, even)[:N] <= share
                source, mask = source + count, mask + 1 + max(kind.masks)
                seen = known | means[d]
                seen["c"] = squeezed(c.reshape(size, -1))
                x = x.reshape(kind.views, size, N)
                for view, each in enumerate(x):
                    number = str(view + 1) if kind.views > 1 else ""
                    for group, vectors in problem.vectors.items():
                        name = "y" if group == "u" else group
                        seen[name + number] = squeezed(each @ Z[:, vectors] / np.sqrt(N))
                first_normal, first_coin = len(hidden) + before * len(data.normals), before * len(data.coins)
                for j, name in enumerate(data.normals):
                    seen[name] = squeezed(own[first_normal + j * size :, b][:size])
                for j, (name, p) in enumerate(data.coins.items()):
                    seen[name] = squeezed(1.0 * (thrown[first_coin + j * size :, b][:size] <= p))
                if shown is not None:
                    shown[d].append((x, seen))
                for each, uses in zip(x, kind.gains, strict=True):
                    for use in uses:
                        F = np.broadcast_to(value(use.function, seen), use.shape).reshape(size, len(use.students))
                        new[:, [k - M for k in use.students]] += each.T @ F / (m * np.sqrt(N))
                for use in kind.moves:
                    B = value(use.function, seen).reshape(len(use.vectors), len(use.students))
                    new[:, [k - M for k in use.students]] += Z[:, use.vectors] @ B / (m * N)
                side = [problem.side[name].function if name in kind.side else lambda: 0.0 for name in problem.side]
                new_v += [value(function, seen) / (m * N) for function in side]
            first, before = first + len(kind.laws), before + size
        strength = problem.prior.strength
        strength = strength.value_at(k / N) if isinstance(strength, Schedule) else strength
        new -= strength * problem.prior.functions.forces(W.ravel()).reshape(W.shape) / N
        lengths = np.diag(problem.initial_Q)
        for constraint, students in problem.constraints:
            new[:, students] = constrained(new[:, students], constraint, lengths[students])
        W, v = new, new_v
    return U, W, v
