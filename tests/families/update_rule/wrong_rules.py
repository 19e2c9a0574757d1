"""Update rules with mistakes, as users make them."""

import math

import numpy as np
import scipy.special

import meanfield

seen = []
number = 3.0
a_ufunc = np.tanh


def several_numbers(s, rate):
    return np.array([rate * s, s])


def one_too_many(s, rate):
    return rate * np.append(s, 0.0)


def row(s, rate):
    return rate * np.zeros((1, 2)) + s


def nothing(s, rate):
    rate * s


def beyond(s, rate):
    return rate * s * s[2]


def index_of_a_number(s, rate):
    return rate * s[0]


def branches_on_an_array(s, rate):
    return rate * s if s > 0 else 0.0 * s


def writes(s, rate):
    s[0] = 0.0
    return rate * s


def takes_anything(*fields):
    return fields[0]


def reads_nothing():
    return 1.0


def reads_x(x, rate):
    return rate * x


def reads_no_rate(s):
    return 0.1 * s


def reads_c(c, rate):
    return rate * c


def reads_y(y, rate):
    return rate * y


def numpy_noise(y, s, rate):
    return rate * (y - s + np.random.randn())  # noqa: NPY002  # as users write it


def remembers(s, rate):
    seen.append(s)
    return rate * s / len(seen)


def sees_the_one_before(s, rate):
    seen.append(s)
    return rate * seen[-2] if len(seen) > 1 else 0.0


def misspelt(s, rate):
    return rate * ss  # noqa: F821  # the mistake


def of_bessel(s, rate):
    return rate * scipy.special.jv(0, s)


def not_a_number(s, rate):
    return rate * np.sqrt(s)


def power_of_negative(s, rate):
    return rate * s**0.5


def yields(s, rate):
    yield rate * s


def pole(s, rate):
    return rate / s


def grows(s, rate):
    return rate * np.exp(s * s)


def cubes(s, rate):
    return rate * s**3


def bends(s, rate):
    return rate * np.abs(s)


def moved_bend(s, rate):
    return rate * np.abs(s - 1)


def oja(s, rate):
    return rate * s


def two_numbers(s):
    return np.array([s, s])


def decays(s):
    return -1.0


def short(s):
    return np.zeros((2, 3))


def error(y, s):
    return s * y < 0


def itself(s):
    return s


kink_product = meanfield.Rule(bends, kinks=("s*s - 1",))
kink_unknown = meanfield.Rule(bends, kinks=("z",))
kink_parameter = meanfield.Rule(bends, kinks=("s - rate",))
kink_cut = meanfield.Rule(bends, kinks=("s -",))
kink_number = meanfield.Rule(bends, kinks=("1",))
kink_index = meanfield.Rule(bends, kinks=("s[1]",))
kink_infinite = meanfield.Rule(bends, kinks=("s - 1e400",))
kink_elsewhere = meanfield.Rule(moved_bend, kinks=("s",))
along_a_number = meanfield.Rule(oja, along=decays)
along_short = meanfield.Rule(oja, along=short)
along_two = meanfield.Rule(oja, along=two_numbers)
observable_of_two = meanfield.Rule(oja, observables={"e": itself})
observable_jumps = meanfield.Rule(oja, observables={"e": error})
logarithm = meanfield.Rule(lambda s, rate: math.log(s), kinks=("s",))
