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
    """Outputs for one configuration of the leaves."""
    below = [np.array([x]) for x in leaves]
    for level in range(len(W)):
        size, above = len(below) // len(W[level]), []
        for m in range(len(W[level])):
            u = np.asarray(W[level][m]).reshape(len(W[level][m]), -1) @ np.concatenate(below[m * size : (m + 1) * size])
            u = u + (b[level][m] if b else 0.0)
            above.append(u if level == len(W) - 1 else np.where(u.real > 0, u, 0.0))
        below = above
    (f,) = below
    if not problem.network.output_normalisation:
        return f
    length = np.sqrt((f * f).sum())
    return f / (length + problem.network.epsilon) if length.real > 0 else 0.0 * f


def loss(problem, W, b):
    """Population loss by its definition, a sum over anchors, positives and negatives."""
    leaves, P = leaf_law(problem)
    y, p, kind = np.array([output(problem, W, b, x) for x in leaves]), problem.tree.root, problem.loss
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
    total, tau = 0.0, kind.temperature
    for places in product(range(len(y)), repeat=2 + kind.negatives):
        a, plus, negatives = places[0], places[1], list(places[2:])
        chance = near[a, plus] * np.prod(alone[negatives])
        x = (r[a, plus] - r[a, negatives] + kind.margin) / tau
        total += chance * (tau if kind.kind == "triplet" else 1.0) * np.log(1 + np.exp(x).sum())
    return total


def gradient(problem, W, b):
    """Loss, and its derivatives by weights and biases in the order of results, by an imaginary step."""
    h, found = 1e-30, []
    for part in [*W, *(b or [])]:
        for place in np.ndindex(part.shape):
            value = part[place]
            part[place] = value + 1j * h
            found.append(loss(problem, W, b).imag / h)
            part[place] = value
    return loss(problem, W, b).real, np.array(found)
