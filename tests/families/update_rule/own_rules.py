"""Update rules of tests, as a user writes them."""

import numpy as np
from scipy.special import erf

import meanfield


def noisy_step(y, s, flip, rate):
    label = np.sign(y) * (1 - 2 * flip)
    return rate * label * (s * label < 0)


def noisy_hebb(y, flip, rate):
    return rate * np.sign(y) * (1 - 2 * flip)


def noisy_adatron(y, s, flip, rate):
    return -rate * s * (s * y * (1 - 2 * flip) < 0)


def with_margin(y, s, rate, margin):
    return rate * np.sign(y) * (s * np.sign(y) < margin)


at_half = meanfield.Rule(with_margin, kinks=("1e-300*y", "1e-300*(s - 0.5)", "1e+300*(s + 0.5)"))
at_margin = meanfield.Rule(with_margin, kinks=("y", "s - margin", "s + margin"))


def regression(y, s, eps, rate, sigma):
    return rate * (y + sigma * eps - s)


def ahead(a):
    return a


def behind(a):
    return -a


def oja(s, rate):
    return rate * s


def decay_of_oja(s, rate):
    return -rate * s * s


def g(x):
    return erf(x / np.sqrt(2))


def slope(x):
    return np.sqrt(2 / np.pi) * np.exp(-x * x / 2)


def committee_of_one(y, s, eps, rate, sigma):
    return rate * slope(s) * (g(y) + sigma * eps - g(s))


def committee(y, s, rate):
    return rate * slope(s) * (g(y).sum(axis=0) - g(s).sum(axis=0))


def committee_of_one_teacher(y, s, rate):
    return rate * slope(s) * (g(y) - g(s).sum(axis=0))


def relu(y, s, rate):
    return rate * (s > 0) * (np.maximum(y, 0) - np.maximum(s, 0))


def miss(y, s, first, second):
    return g(y) - first * g(s[0]) - second * g(s[1])


def two_layers(y, s, first, second, rate):
    return rate * np.array([first, second]) * slope(s) * miss(y, s, first, second)


def first_layer(y, s, first, second):
    return 0.5 * g(s[0]) * miss(y, s, first, second)


def second_layer(y, s, first, second):
    return 0.5 * g(s[1]) * miss(y, s, first, second)


OBSERVED = 0.4


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def logistic(y, s, coin, rate):
    """Logistic regression: labels have the mean and the variance of 1 with the probability sigmoid(y), else 0."""
    return rate * (sigmoid(y) - sigmoid(s) + (2 * coin - 1) / (2 * np.cosh(y / 2)))


def petrels_step(s, gain, Q):
    return gain * s / (OBSERVED * Q)


def petrels_along(s, gain, Q):
    return -OBSERVED * gain * (s / (OBSERVED * Q)) ** 2


def petrels_gain(s, gain, Q):
    return gain * (1.0 - OBSERVED * gain * (s / (OBSERVED * Q)) ** 2)


def imputed(s, rate):
    return rate * s / OBSERVED


def imputation(s, rate):
    return rate * (1 - OBSERVED) * (s / OBSERVED) ** 2


hebb_with_flips = meanfield.Rule(noisy_hebb, kinks=("y",))
perceptron_with_flips = meanfield.Rule(noisy_step, kinks=("y", "s"))
adatron_with_flips = meanfield.Rule(noisy_adatron, kinks=("y", "s"))
relu_student = meanfield.Rule(relu, kinks=("y", "s"))
own_oja = meanfield.Rule(oja, along=decay_of_oja)
petrels = meanfield.Rule(petrels_step, along=petrels_along)
imputing = meanfield.Rule(imputed, along=imputation)


def of_field_and_hidden(s, c, rate):
    return rate * np.tanh(2 * s - c)


def above_a_threshold(s, c, rate):
    return rate * (np.tanh(s) + (c > 0.4))


def above_a_threshold_of_y(s, y, rate):
    return rate * (np.tanh(s) + (y > 0.4))


def rectified(s, rate):
    return rate * np.maximum(s, 0)


def product_of_hidden(s, c, rate):
    return rate * np.tanh(s + c[0] * c[1])


def unequal_hidden(s, c, rate):
    return rate * s * (c[0] > c[1])


smooth = meanfield.Rule(of_field_and_hidden)
jumps_at_c = meanfield.Rule(above_a_threshold, kinks=("c - 0.4",))
jumps_at_y = meanfield.Rule(above_a_threshold_of_y, kinks=("y - 0.4",))
jumps_without_a_word = meanfield.Rule(above_a_threshold)
bends_at_s = meanfield.Rule(rectified, kinks=("s",))
jumps_at_both = meanfield.Rule(unequal_hidden, kinks=("c[0] - c[1]",))


def separating(s, label, rate):
    return rate * label / (1 + np.exp(label * s))


def wrong_class(s, label):
    return s * label < 0


def noisy_regression(y, s, eps, rate):
    return rate * (y + 0.3 * eps - s)


def robust(y, s, level, rate):
    return rate * np.tanh(y - s) / (1 + level)


classifier = meanfield.Rule(separating, kinks=("s",), observables={"error": wrong_class})


def any_rule(y, s, eps, first, second, third, spread):
    return (
        first * (np.tanh(y) - np.tanh(s)) + second * (y - s) + third * (y * y - s * s) * s / (1 + s * s) + spread * eps
    )
