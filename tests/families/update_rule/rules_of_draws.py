"""Functions of several kinds of samples, of tests."""

import numpy as np

import meanfield


def up(w, rate):
    """Discriminator on a real sample."""
    return rate * w


def down(w, rate):
    """Discriminator on a generated sample."""
    return -rate * w


def teach(w, c, slow):
    """Generator on a sample of its own, along the discriminator."""
    return slow * w * c


def hold(Q, rate):
    """Penalty on the length of the discriminator."""
    return -rate * np.tanh(Q[0, 0] - 1)


def hold_generator(Q, slow):
    """Penalty on the length of a generator of one vector."""
    return -slow * np.tanh(Q[1, 1] - 1)


def hold_generators(Q, slow):
    """Penalty on the lengths of a generator of several vectors."""
    return -slow * np.diag(np.tanh(np.diag(Q)[1:] - 1))


def first(s1, s2, rate):
    """Squares as activation: the gradient of the product of both outputs by the first."""
    return rate * s2**2 * 2.0 * s1


def second(s1, s2, rate):
    """The same by the second."""
    return rate * s1**2 * 2.0 * s2


def by_second(s2, rate):
    """Half a step of the first of two views, by the field of the other."""
    return 0.5 * rate * s2


def by_first(s1, rate):
    """The same of the second."""
    return 0.5 * rate * s1


def half(s, rate):
    """Half of Oja's gain."""
    return 0.5 * rate * s


def loss(w):
    """What a discriminator gives to samples."""
    return w**2


def threshold_step(w, threshold):
    """Side variable that follows the outputs."""
    return w**2 - threshold


def two(s):
    """Two numbers where one is wanted."""
    return np.array([s, s])


def output(s):
    """Output of a view."""
    return np.tanh(s)


def first_centred(s1, s2, mean1, mean2, rate):
    """Gradient of the product of centred outputs by the first."""
    return rate * (np.tanh(s2) - mean2) * (1 - np.tanh(s1) ** 2)


def second_centred(s1, s2, mean1, mean2, rate):
    """The same by the second."""
    return rate * (np.tanh(s1) - mean1) * (1 - np.tanh(s2) ** 2)


def product(s1, s2):
    """Product of both views."""
    return s1 * s2


def fails(s):
    """Division by zero."""
    return s / (s - s)


def square(s):
    """Square of an output."""
    return s * s


def normalised(y, s, mean, rate):
    """Regression by outputs of the population's variance 1."""
    return rate * (y - s / np.sqrt(mean))


def weighed(label, s, flip):
    """Outputs of several students, weighed by a label."""
    return np.tanh(s) * (1 + label) + flip


def sum_of_outputs(s, eps):
    """A sum of terms of three directions."""
    return np.tanh(s[0]) * s[1] + np.tanh(eps) * s[0]


def of_classes(s, mean1, mean2, rate, flip, eps):
    """Step that reads averages, and all that is random."""
    return rate * (mean1 - s * mean2 + flip + eps)


def centred_regression(y, s, rate):
    """Regression on errors that are centred over a batch."""
    error = y - s
    return rate * (error - error.mean()) / s.size


def info_first(s1, s2, rate):
    """Gradient by the first views of the mean of log p_bb, with p_bd the softmax of s1_b s2_d over d."""
    F = np.empty(s1.size)
    for b in range(s1.size):
        p = np.exp(s1[b] * s2 - np.max(s1[b] * s2))
        F[b] = rate * (s2[b] - (p * s2).sum() / p.sum()) / s1.size
    return F


def info_second(s1, s2, rate):
    """The same by the second views."""
    F = np.zeros(s2.size)
    for b in range(s1.size):
        p = np.exp(s1[b] * s2 - np.max(s1[b] * s2))
        F += -rate * s1[b] * p / p.sum() / s1.size
        F[b] += rate * s1[b] / s1.size
    return F


def ranked(s, rate):
    """Hebb's step on the larger of two outputs."""
    return rate * np.array([1.0 * (s[0] > s[1]), 1.0 * (s[1] > s[0])])


larger = meanfield.Rule(ranked, kinks=("s[0] - s[1]",))


def fake_alone(w, V, flip, rate):
    """A step of one sample, of two groups."""
    return -rate * (w * (1 + flip) + V[0])


def drawn_alone(w, V, eps, rate):
    """A step of several vectors."""
    return 0.5 * rate * (w + V) + 0.2 * eps


def taught_alone(w, c, rate):
    """Moves of one sample."""
    return rate * w * c


def fake_together(w, V, flip, rate):
    """The same of a batch, with its mean."""
    return -rate * (w * (1 + flip) + V[:, 0]) / w.size


def drawn_together(w, V, eps, rate):
    """The same of a batch, with its mean."""
    F = np.empty(V.shape)
    for b in range(w.size):
        F[b] = (0.5 * rate * (w[b] + V[b]) + 0.2 * eps[b]) / w.size
    return F


def taught_together(w, c, rate):
    """The same of a batch, with its mean."""
    B = np.zeros(c.shape[1])
    for b in range(w.size):
        B += rate * w[b] * c[b] / w.size
    return B


def size_of_batch(w, c):
    """Observable of a batch."""
    return (w * w).mean() + c[0, 0] * c[1, 0]


def normalised_batch(y, s, mean, rate):
    """Regression by outputs of the population's variance 1, on a batch."""
    return rate * (y - s / np.sqrt(mean)) / s.size
