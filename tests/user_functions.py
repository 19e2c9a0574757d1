"""What a user might write: functions that tests name by "tests.user_functions:name"."""

import numpy as np


def bent(x):
    """Between |x| and x^2/2, and not even: its derivative is left to the complex step."""
    return np.sqrt(1.0 + x * x) + 0.3 * np.tanh(x)


def bump(x):
    """Largest in the middle."""
    return np.exp(-0.5 * x * x)


def lean(w):
    """The force of a prior whose potential w^4/4 + w^2/2 - w is not even."""
    return w * w * w + w - 1.0
