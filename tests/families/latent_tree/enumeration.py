"""Oracle: loss of a latent tree by listing all values of all latents, with a network written node by node.

It shares no code with the library, and takes complex weights, so that derivatives follow from an imaginary step.
"""

from itertools import product

import numpy as np


def leaf_law(problem):
    """All configurations of the leaves, shape (configurations, leaves), and P(c|z), shape (2, configurations)."""
    polarities = [list(row) for row in reversed(problem.tree.polarities)]  # from the root down
    children = [problem.tree.children] * problem.tree.depth if isinstance(problem.tree.children, int) else None
    children = list(problem.tree.children) if children is None else children
    count = len(polarities[-1])
    configurations = list(product((0, 1), repeat=count))

    def chance(level, m, z, leaves):
        """Probability of the leaves below latent m, `level` levels below the root, that has the value z."""
        if level == len(children):
            return 1.0 if leaves[0] == z else 0.0
        below, size, found = children[level], len(leaves) // children[level], 1.0
        for k in range(below):
            rho, part = polarities[level][m * below + k], leaves[k * size : (k + 1) * size]
            stay = 0.5 * (1 + rho)
            same, other = (chance(level + 1, m * below + k, v, part) for v in (z, 1 - z))
            found *= stay * same + (1 - stay) * other
        return found

    P = np.array([[chance(0, 0, z, leaves) for leaves in configurations] for z in (0, 1)])
    return np.array(problem.tree.leaves)[np.array(configurations)], P


def output(problem, W, b, leaves):
    """Outputs for configurations of the leaves, shape (configurations, outputs)."""
    below = [x[:, None] for x in leaves.T]
    for level in range(len(W)):
        size, above = len(below) // len(W[level]), []
        for m in range(len(W[level])):
            weights = np.asarray(W[level][m]).reshape(len(W[level][m]), -1)
            u = np.concatenate(below[m * size : (m + 1) * size], axis=1) @ weights.T
            u = u + (b[level][m] if b else 0.0)
            above.append(u if level == len(W) - 1 else np.where(u.real > 0, u, 0.0))
        below = above
    (f,) = below
    if not problem.network.output_normalisation:
        return f
    length = np.sqrt((f * f).sum(axis=1, keepdims=True))
    return np.where(length.real > 0, f / np.where(length.real > 0, length + problem.network.epsilon, 1.0), 0.0)


def loss(problem, W, b, law=None):
    """Population loss by its definition, a sum over anchors, positives and single negatives."""
    leaves, P = leaf_law(problem) if law is None else law
    return loss_of(problem.contrast, output(problem, W, b, leaves), problem.tree.root, P)


def loss_of(kind, y, p, P):
    """Loss of views with outputs y, and the chances P of views given samples with the chances p."""
    r = 0.5 * ((y[:, None] - y[None]) ** 2).sum(axis=-1)
    near, alone = np.einsum("z,zc,zd->cd", p, P, P), p @ P
    if kind.kind in ("simple", "beta"):
        return (1 + kind.beta) * (near * r).sum() - alone @ r @ alone
    if kind.kind == "batch_ratio":
        scale = 2 / (y.shape[1] * kind.temperature)
        a, c = np.exp(-scale * (near * r).sum()), np.exp(-scale * (alone @ r @ alone))
        return -a / (a + c)
    if kind.kind == "exact":
        xi = P @ (1 / kind.temperature / (1 + np.exp(r.real / kind.temperature))) @ P.T
        r_near, r_far = np.einsum("zc,zd,cd->z", P, P, r), P @ r @ P.T
        return kind.negatives * np.einsum("z,w,zw,zw", p, p, xi, r_near[:, None] - r_far)
    if kind.kind == "nt_xent":
        length = np.sqrt((y * y).sum(axis=1, keepdims=True))
        unit = np.where(length.real > 0, y / np.where(length.real > 0, length, 1.0), 0.0)
        e = np.exp(unit @ unit.T / kind.temperature)
        S, weight = np.zeros((len(y), 1)), np.ones(1)
        for _ in range(kind.negatives):  # other samples of the batch, two views of each
            two = (e[:, :, None] + e[:, None, :]).reshape(len(y), -1)
            S = (S[:, :, None] + two[:, None]).reshape(len(y), -1)
            weight = np.multiply.outer(weight, near.ravel()).ravel()
        return np.einsum("au,v,auv", near, weight, np.log(1 + S[:, None] / e[:, :, None]))
    assert kind.negatives == 1
    x = (r[:, :, None] - r[:, None, :] + kind.margin) / kind.temperature
    scale = kind.temperature if kind.kind == "triplet" else 1.0
    return scale * np.einsum("au,v,auv", near, alone, np.log(1 + np.exp(x)))


def gradient(problem, W, b):
    """Loss, and its derivatives by weights and biases in the order of results, by an imaginary step."""
    h, found, law = 1e-30, [], leaf_law(problem)
    for part in [*W, *(b or [])]:
        for place in np.ndindex(part.shape):
            value = part[place]
            part[place] = value + 1j * h
            found.append(loss(problem, W, b, law).imag / h)
            part[place] = value
    return loss(problem, W, b, law).real, np.array(found)
