"""Functions of several kinds of samples, of tests."""

import numpy as np


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


def half(s, rate):
    """Half of Oja's gain."""
    return 0.5 * rate * s


def along_feature(y, rate):
    """Move along a feature."""
    return rate * y**2


def loss(w):
    """What a discriminator gives to samples."""
    return w**2


def threshold_step(w, threshold):
    """Side variable that follows the outputs."""
    return w**2 - threshold


def two(s):
    """Two numbers where one is wanted."""
    return np.array([s, s])
