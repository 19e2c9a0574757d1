"""Update rules of the tests of SGD, with two features, two students and a side variable, or with one of each."""

import math

import numpy as np

from meanfield.families.update_rule.rule import Rule


def hebb(y, rate):
    return rate * np.sign(y)


def oja(s, rate):
    return rate * s


def _step(y, s, c, eps, flip, rate, gain, t, R, Q):
    error = math.tanh(y[0]) + math.tanh(y[1]) + 0.5 * c[0] * eps - gain * math.tanh(s[0] + s[1]) - flip
    return rate * error * (1.0 + t) * (1.0 + 0.1 * s) + 0.1 * R[:, 0] - 0.1 * Q[:, 1]


def _along(y, s, rate):
    B = np.zeros((4, 2))
    B[0, 1], B[2, 0], B[2, 1], B[3, 1] = rate * s[1], -rate * s[0] ** 2, 0.3 * y[0], -rate
    return B


def gain_step(s, eps, gain):
    return eps * s[0] + 0.5 - gain


def _factor(s, rate):
    return -rate * s**2


full = Rule(_step, along=_along)
oja_itself = Rule(oja, along=_factor)
