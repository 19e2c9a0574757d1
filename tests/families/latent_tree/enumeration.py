"""Oracle: loss of a latent tree by listing all values of all latents, with a network written node by node.

It shares no code with the library, and takes complex weights, so that derivatives follow from an imaginary step.
"""

from itertools import product

import numpy as np


def edges_of(tree):
    """Matrices P(child|parent) by level from the root down, and edge; drawn ones as the library has drawn them."""
    if tree.polarity is not None:
        m = len(tree.root)
        rows = [list(row) for row in reversed(tree.polarities)]
        stay, move = (lambda rho: 1 / m + rho - rho / m), (lambda rho: (1 - rho) / m)
        return [
            [[[stay(rho) if i == j else move(rho) for j in range(m)] for i in range(m)] for rho in row] for row in rows
        ]
    return [[edge.tolist() for edge in row] for row in reversed(tree.edges)]


def leaf_law(problem):
    """All configurations of the leaves, shape (configurations, inputs), and P(c|z), shape (values, configurations)."""
    tree, edges = problem.tree, edges_of(problem.tree)
    children = [tree.children] * tree.depth if isinstance(tree.children, int) else list(tree.children)
    m = len(edges[-1][0][0])
    configurations = list(product(range(m), repeat=len(edges[-1])))

    def chance(level, k, z, leaves):
        """Probability of the leaves below latent k, `level` levels below the root, that has the value z."""
        if level == len(children):
            return 1.0 if leaves[0] == z else 0.0
        below, size, found = children[level], len(leaves) // children[level], 1.0
        for child in range(k * below, (k + 1) * below):
            part = leaves[(child - k * below) * size :][:size]
            found *= sum(p * chance(level + 1, child, v, part) for v, p in enumerate(edges[level][child][z]))
        return found

    P = np.array([[chance(0, 0, z, leaves) for leaves in configurations] for z in range(len(tree.root))])
    inputs = np.eye(m) if tree.leaves == "one_hot" else np.array(tree.leaves).reshape(m, -1)
    return inputs[np.array(configurations)].reshape(len(configurations), -1), P


def output(problem, W, b, leaves):
    """Outputs for configurations of the leaves, shape (configurations, outputs)."""
    width = problem.tree.inputs.shape[1]
    below = np.split(leaves, leaves.shape[1] // width, axis=1)
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
