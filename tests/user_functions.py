"""What a user might write: functions that tests name by "tests.user_functions:name"."""

import numpy as np


def bent(x):
    """Between |x| and x^2/2, and not even: its derivative is left to differences."""
    return np.sqrt(1.0 + x * x) + 0.3 * np.tanh(x)


def bump(x):
    """Largest in the middle."""
    return np.exp(-0.5 * x * x)


def lean(w):
    """The force of a prior whose potential w^4/4 + w^2/2 - w is not even."""
    return w * w * w + w - 1.0


def root_pull(w):
    """The force of a prior |w|^1.5/1.5, which grows without bound but more slowly than w."""
    return np.sign(w) * np.sqrt(np.abs(w))


def steep_pull(w):
    """The force of a prior |w|^2.5/2.5, which grows faster than w."""
    return w * np.sqrt(np.abs(w))


def far_wells(w):
    """The force of a bounded prior with wells at w = -2 and 2, which hold more than a unit of the norm."""
    return np.tanh(w - 2.0) + np.tanh(w + 2.0) - 2.0 * np.tanh(w)


def uneven(w):
    """A force with a kink at w = 0.3 that is not odd: -1 on one side, 2 on the other, and w/2 everywhere."""
    return 0.5 * w + (2.0 if w > 0.3 else -1.0)
