"""Networks of two layers by their definition, on complex weights, one sample at a time: an oracle of gradients."""

import numpy as np

import meanfield
from validation.alpha_contrastive.figures.exact_flows import train_two_layers

ACTIVATIONS = {
    "linear": lambda z: z,
    "quadratic": lambda z: z * z,
    "tanh": np.tanh,
    "relu": lambda z: z * (z.real > 0),
}


def hidden(problem, filters, x):
    """Activations of filters (places, filters, d) at inputs (N, places, d), with batch normalisation."""
    z = np.einsum("kma,ika->ikm", filters, x)
    return ACTIVATIONS[problem.model.activation](z).reshape(len(x), -1)


def normalised(problem, f, frozen):
    """Batch normalisation; `frozen` has activations whose mean and variance take the place of those of f."""
    norm = problem.model.batch_norm
    mean = (f if norm.differentiate_mean else frozen).mean(axis=0)
    own = f if norm.differentiate_variance else frozen
    variance = ((own - own.mean(axis=0)) ** 2).mean(axis=0)
    return (f - mean) / np.sqrt(variance + norm.epsilon)


def outputs(problem, filters, top, x, frozen_filters):
    f = hidden(problem, filters, x)
    if problem.model.layers == 1:
        return f / np.sqrt(f.shape[1])
    if problem.model.batch_norm.active:
        f = normalised(problem, f, hidden(problem, frozen_filters, x))
    y = f @ top.T
    return y / np.sqrt((y * y).sum(axis=1, keepdims=True)) if problem.model.normalise_outputs else y


def energy(alpha, f, view):
    """E = tr C_alpha[f]/2, pair by pair (theory page, section 1)."""
    N, total = len(f), 0.0
    for i in range(N):
        for j in range(N):
            total += alpha[i, j] * (((f[i] - f[j]) ** 2).sum() - ((f[i] - view[i]) ** 2).sum())
    return total / (4.0 * N**2)


def distances_of_sgd(made, filters, top, draw, runs):
    """Largest distances, in standard errors, of means of plain SGD at N = 8 from flows of finite and large batches."""
    ends = []
    for finite in (True, False):
        end = meanfield.solve(made(training={"batch_size": 8}, population={"finite_batch": finite}), "population")
        ends.append(np.concatenate([end[name].values[-1].ravel() for name in ("weights", "top")]))
    found = train_two_layers(filters, top, draw, np.inf, np.random.default_rng(1), runs, 8, 0.02, 100)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    return [(np.abs(found.mean(axis=0) - end) / error).max() for end in ends]
