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


def real(w, eps, flip, rate):
    return rate * (math.tanh(w) + 0.3 * eps - 0.5 * flip)


def fake(w, V, rate):
    return -rate * math.tanh(w) * (1.0 + 0.1 * V[0])


def drawn(w, V, rate):
    return 0.5 * rate * np.tanh(w + V)


def taught(w, c, rate):
    return rate * w * c


def shrunk(V, y, rate):
    return -rate * np.outer(V, V) + 0.1 * y[0]


def first_view(w1, w2, V2, rate):
    return rate * (w2 - w1) * V2[1]


def second_view(w1, y1, c, rate):
    return rate * np.tanh(w1) * y1[0] - 0.1 * c[0]


def both_views(V1, V2, rate):
    return rate * np.tanh(V2) * V1


def gain_of_views(w1, w2, gain):
    return w1 * w2 - gain


def level(w):
    return math.tanh(w + 0.3) ** 2


def positive(w1, w2, t):
    return (w1 > 0) * w2 * (1.0 + t)


def sizes(V, gain):
    return np.array([np.tanh(V[0]) ** 2, gain * V[0] * np.tanh(V[1]), 1.0])


def first_centred(w1, w2, mean1, rate):
    return rate * (math.tanh(w2) - mean1) * math.tanh(w1)


def second_centred(w1, y1, mean2, mean3, rate):
    return rate * (y1[0] - mean2 + math.tanh(mean3)) * math.tanh(w1)


def shrunk_by_sizes(V, mean, rate):
    return rate * np.tanh(V) * mean[:2] - 0.1 * mean[2]


def centred_together(w1, w2, eps, flip, rate):
    return rate * np.tanh(w2) * (w1 - w1.mean()) / w1.size + 0.1 * eps * flip


def away_together(V1, V2, c, rate):
    F = np.empty(V1.shape)
    for b in range(len(c)):
        F[b] = rate * (V2[b] - V1[b - 1]) * np.tanh(c[b, 0])
    return F


in_halves = Rule(positive, kinks=("w1",))
