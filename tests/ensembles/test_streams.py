"""Random numbers by address: the right bits, the same ones however they are asked for, and the right laws.

The seeds of the statistical tests are fixed. Had they been drawn at random, those that draw normals would raise a false
alarm with probability below `FALSE_ALARM` all together, and so would those that draw uniforms: each battery of tests
shares it among its tests (Bonferroni). Wrong generators fail the same batteries.
"""

import math
from itertools import pairwise, product

import numba
import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom, chi2, chisquare, kstest, norm

from meanfield.ensembles.streams import (
    NORMALS,
    RETRY,
    START,
    UNIFORMS,
    VECTOR,
    _block,
    _direction,
    _log,
    fill_normals,
    fill_uniforms,
    retry,
    stream_key,
)

FALSE_ALARM = 1e-3  # of each of the two batteries
KEY = stream_key(5)
ULP = 2.0**-52
WORD = 2**32

KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((WORD - 1,) * 4, (WORD - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
"""Counters, keys and what Philox4x32-10 makes of them, as its authors publish."""


def philox(counter, key):
    """Philox4x32-10 in whole numbers of any size (Salmon, Moraes, Dror and Shaw 2011)."""
    x0, x1, x2, x3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * x0, WORD)
        high1, low1 = divmod(0xCD9E8D57 * x2, WORD)
        x0, x1, x2, x3 = high1 ^ x1 ^ k0, low1, high0 ^ x3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % WORD, (k1 + 0xBB67AE85) % WORD
    return x0, x1, x2, x3


def words(key, replica, purpose, index):
    """The two words of 64 bits at an address."""
    x = philox((index % WORD, index // WORD, purpose, replica), [int(k) for k in key])
    return x[0] + WORD * x[1], x[2] + WORD * x[3]


def compiled_words(key, replica, purpose, index):
    return tuple(int(x) for x in call_block(np.array(key, dtype=np.uint64), replica, purpose, np.uint64(index)))


@numba.njit(cache=True)
def call_block(key, replica, purpose, index):
    return _block(key, replica, purpose, index)


@numba.njit(cache=True)
def call_log(u):
    return _log(u)


@numba.njit(cache=True)
def call_direction(bits):
    return _direction(bits)


def uniforms(count, replica=0, purpose=UNIFORMS, first=0, key=KEY):
    out = np.empty(count)
    fill_uniforms(key, replica, purpose, first, out)
    return out


def normals(count, replica=0, purpose=NORMALS, first=0, key=KEY):
    out = np.empty(count)
    fill_normals(key, replica, purpose, first, out)
    return out


FILLS = pytest.mark.parametrize("draw", [uniforms, normals])


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_known_answers(counter, key, answer):
    index = counter[0] + WORD * counter[1]
    right = answer[0] + WORD * answer[1], answer[2] + WORD * answer[3]
    assert compiled_words(key, counter[3], counter[2], index) == right
    assert philox(counter, key) == answer


def test_random_counters():
    rng = np.random.default_rng(1)
    for _ in range(200):
        *counter, k0, k1 = (int(x) for x in rng.integers(WORD, size=6))
        index = counter[0] + WORD * counter[1]
        key = np.array([k0, k1], dtype=np.uint64)
        assert compiled_words(key, counter[3], counter[2], index) == words(key, counter[3], counter[2], index)


def test_key_depends_on_the_whole_seed():
    keys = {tuple(int(k) for k in stream_key(seed)) for seed in [*range(1000), WORD, 2 * WORD, 2**64, 2**100]}
    assert len(keys) == 1004
    assert all(0 <= k < WORD for key in keys for k in key)


ADDRESSES = [(0, 0), (7, 10), (WORD - 1, 2 * WORD - 2), (3, 2 * WORD), (1, 10**12), (2, 2**62)]


@pytest.mark.parametrize(("replica", "first"), ADDRESSES)
def test_uniforms_are_the_bits_of_their_address(replica, first):
    """1 - k/2^52 from the upper 52 bits k of each word."""
    found = uniforms(8, replica, START, first)
    bits = [word for i in range(4) for word in words(KEY, replica, START, first // 2 + i)]
    assert found.tolist() == [1 - (word >> 12) / 2**52 for word in bits]


def box_muller(first, second):
    """The pair of normals that two words of 64 bits give, by the functions of the standard library."""
    radius = math.sqrt(-2 * math.log(1 - (first >> 12) / 2**52))
    angle = ((second >> 10) % 2**52 / 2**52 - 0.5) * (0.5 * math.pi)
    x, y = math.cos(angle), math.sin(angle)
    x, y = (y, x) if second >> 63 else (x, y)
    sign = -1 if (second >> 62) % 2 else 1
    return sign * radius * x, sign * radius * y


@pytest.mark.parametrize(("replica", "first"), ADDRESSES)
def test_normals_are_those_of_their_address(replica, first):
    found = normals(400, replica, VECTOR, first)
    right = [x for i in range(200) for x in box_muller(*words(KEY, replica, VECTOR, first // 2 + i))]
    assert found == pytest.approx(right, rel=6 * ULP, abs=0)  # log, sine 1 each, twice; root, products a half each


def test_retries_are_those_of_their_address():
    """From a stream of their own, in the two blocks that belong to them; an index below 0 is at the stream's end."""
    for index in (0, 1, 12345, 2**40, -256, -1):
        normal, uniform = retry(KEY, 3, index)
        first, second = (words(KEY, 3, RETRY, (2 * index + i) % 2**64) for i in (0, 1))
        assert normal == pytest.approx(box_muller(*first)[0], rel=6 * ULP)  # as in the test before
        assert uniform == 1 - (second[0] >> 12) / 2**52


def test_logarithm():
    rng = np.random.default_rng(2)
    near = [1 - k * ULP for k in range(1, 50)] + [math.sqrt(0.5) + k * ULP / 2 for k in range(-5, 6)]
    for u in [*near, *rng.random(2000), *(2.0**-k for k in range(1, 53)), *(3 * 2.0**-k for k in range(2, 52)), ULP]:
        assert call_log(u) == pytest.approx(math.log(u), rel=2 * ULP)  # one unit each in the last place
    assert call_log(1.0) == 0


def test_direction():
    """All octants, and the ends of each."""
    rng = np.random.default_rng(3)
    places = [0, 1, 2**51 - 1, 2**51, 2**51 + 1, 2**52 - 1, *(int(k) for k in rng.integers(2**52, size=500))]
    for place, high in product(places, range(4)):
        x, y = call_direction(np.uint64((high << 62) + (place << 10)))
        angle = (place / 2**52 - 0.5) * (0.5 * math.pi)
        right = (math.cos(angle), math.sin(angle))[:: -1 if high >= 2 else 1]
        sign = -1 if high % 2 else 1
        assert (x, y) == pytest.approx((sign * right[0], sign * right[1]), rel=2 * ULP, abs=0)  # one unit each


def test_extreme_normals_are_finite():
    """The largest radius is sqrt(104 log 2) = 8.49; the smallest is 0."""
    assert math.sqrt(-2 * call_log(ULP)) == pytest.approx(math.sqrt(104 * math.log(2)), rel=1e-15)  # rounding
    assert math.sqrt(-2 * call_log(1.0)) == 0


@FILLS
def test_cuts_do_not_matter(draw):
    rng = np.random.default_rng(4)
    whole = draw(4096, replica=2, first=1000)
    for _ in range(20):
        cuts = 2 * np.sort(rng.integers(0, 2049, size=5))
        edges = [0, *cuts, 4096]
        parts = [draw(int(b - a), replica=2, first=1000 + int(a)) for a, b in pairwise(edges)]
        assert np.array_equal(np.concatenate(parts), whole)


@FILLS
def test_streams_share_no_numbers(draw):
    """Two of 2^17 numbers with 52 random bits are equal with probability 2e-6."""
    keys = [KEY, stream_key(6)]
    addresses = [(r, p, key) for r, p, key in product((0, 1, 2**31), (START, UNIFORMS, NORMALS, VECTOR, RETRY), keys)]
    parts = [draw(4096, replica, purpose, key=key) for replica, purpose, key in addresses]
    everything = np.concatenate(parts)
    assert len(np.unique(everything)) == len(everything)


def z_value(values, mean, variance):
    """Standard errors by which an average misses the mean."""
    return (values.mean() - mean) / math.sqrt(variance / values.size)


def of_z(z):
    return 2 * norm.sf(abs(z))


def counts_in(edges, sample):
    return np.histogram(sample, edges)[0]


def moments(draw):
    """Averages of x^k to order 6 over 2^24 numbers, and the counts and the extremes of their tails."""
    sums, tail, most, chunks, size = np.zeros(6), [], 0.0, 16, 2**20
    for chunk in range(chunks):
        x = draw(size, replica=9, first=chunk * size)
        square = x * x
        sums += [x.mean(), square.mean(), (x * square).mean(), (square**2).mean(), (x * square**2).mean(), 0]
        sums[5] += (square**3).mean()
        tail.append(x[square > 9])
        most = max(most, square.max())
    total = chunks * size
    moment = [math.prod(range(1, k, 2)) if k % 2 == 0 else 0 for k in range(13)]
    for k in range(1, 7):
        variance = moment[2 * k] - moment[k] ** 2
        yield f"moment {k}", of_z((sums[k - 1] / chunks - moment[k]) / math.sqrt(variance / total))
    edges = np.array([3, 3.25, 3.5, 3.75, 4, 4.25, 4.5, 5, np.inf])
    edges = np.concatenate([-edges[::-1], edges])
    expected = np.diff(ndtr(edges)) * total
    expected[len(expected) // 2] = total - np.delete(expected, len(expected) // 2).sum()
    counts = counts_in(edges, np.concatenate(tail))
    counts[len(counts) // 2] = total - counts.sum() + counts[len(counts) // 2]
    yield "tails", chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1)
    below = math.exp(total * math.log1p(-2 * norm.sf(math.sqrt(most))))
    yield "largest", 2 * min(below, 1 - below)


def dependence(x, y, name):
    """Products of x, x^2 - 1 and |x| - E|x| of numbers that shall be independent."""
    size = math.sqrt(2 / math.pi)
    values = {
        "x": (x, y, 1),
        "x^2": (x * x - 1, y * y - 1, 2),
        "|x|": (np.abs(x) - size, np.abs(y) - size, 1 - size**2),
    }
    for a, b in (("x", "x"), ("x", "x^2"), ("x^2", "x"), ("x^2", "x^2"), ("|x|", "|x|")):
        yield f"{name}: {a} {b}", of_z(z_value(values[a][0] * values[b][1], 0, values[a][2] * values[b][2]))


def squares(u, v, cells, name):
    """Counts in a lattice of squares."""
    index = (u * cells).astype(np.int64).clip(0, cells - 1) * cells + (v * cells).astype(np.int64).clip(0, cells - 1)
    yield f"{name}: squares", chisquare(np.bincount(index, minlength=cells * cells)).pvalue


def pairs_of_normals(draw):
    """Whether numbers at different places, or of different streams, are independent."""
    size = 2**20
    x = draw(size)
    even, odd = x[::2], x[1::2]
    pairs = {
        "pairs": lambda: (even, odd),
        "neighbours": lambda: (odd[:-1], even[1:]),
        "every second": lambda: (even[:-1], even[1:]),
        "replicas": lambda: (x, draw(size, replica=1)),
        "far replicas": lambda: (x, draw(size, replica=2**16)),
        "purposes": lambda: (x, draw(size, purpose=VECTOR)),
        "seeds": lambda: (x, draw(size, key=stream_key(6))),
    }
    pairs |= {f"lag {lag}": lambda lag=lag: (x[:-lag], x[lag:]) for lag in (3, 4, 8, 512, 1024)}
    for name, pair in pairs.items():
        a, b = pair()
        yield from dependence(a, b, name)
        yield from squares(ndtr(a), ndtr(b), 32, name)


def battery_of_normals(draw):
    """P-values of independent N(0, 1), by name."""
    yield from moments(draw)
    x = draw(2**20)
    yield "Kolmogorov-Smirnov", kstest(x, "norm").pvalue
    yield "bins", chisquare(counts_in(ndtri(np.linspace(0, 1, 257)), x)).pvalue
    even, odd = x[::2], x[1::2]
    for name, half in (("even", even), ("odd", odd)):
        yield f"Kolmogorov-Smirnov, {name}", kstest(half, "norm").pvalue
    # of each pair the angle and the radius
    angle, radius = np.arctan2(odd, even) / (2 * math.pi) + 0.5, -np.expm1(-0.5 * (even**2 + odd**2))
    yield "angle", kstest(angle, "uniform").pvalue
    yield "radius", kstest(radius, "uniform").pvalue
    yield from squares(angle, radius, 32, "angle and radius")
    yield from pairs_of_normals(draw)


def battery_of_uniforms(draw):
    """P-values of independent numbers uniform on (0, 1] that use all 52 bits, by name."""
    size = 2**20
    u = draw(size)
    yield "Kolmogorov-Smirnov", kstest(u, "uniform").pvalue
    yield "bins", chisquare(np.bincount((u * 1024).astype(np.int64).clip(0, 1023), minlength=1024)).pvalue
    for k in range(1, 7):
        yield f"moment {k}", of_z(z_value(u**k, 1 / (k + 1), 1 / (2 * k + 1) - 1 / (k + 1) ** 2))
    for name, extreme in (("smallest", u.min()), ("largest", 1 - u.max())):
        above = math.exp(size * math.log1p(-extreme))
        yield name, 2 * min(above, 1 - above)
    digits = ((1 - u) * 2**52).astype(np.int64)
    for bit in range(52):
        yield f"bit {bit}", of_z((np.count_nonzero(digits >> bit & 1) - size / 2) / math.sqrt(size / 4))
    yield "equal numbers", binom.sf(size - len(np.unique(u)) - 1, size, size / 2**53)  # about so many birthdays meet
    pairs = {
        "pairs": (u[::2], u[1::2]),
        "neighbours": (u[1:-1:2], u[2::2]),
        "last bits of pairs": ((u[::2] * 2**44) % 1, (u[1::2] * 2**44) % 1),
        "replicas": (u, draw(size, replica=1)),
        "purposes": (u, draw(size, purpose=START)),
        "seeds": (u, draw(size, key=stream_key(6))),
    }
    pairs |= {f"lag {lag}": (u[:-lag], u[lag:]) for lag in (2, 3, 4, 8, 512, 1024)}
    for name, (a, b) in pairs.items():
        yield f"{name}: product", of_z(z_value((a - 0.5) * (b - 0.5), 0, 1 / 144))
        yield from squares(a, b, 64, name)


SIZES = {battery_of_normals: 87, battery_of_uniforms: 87}
"""Numbers of tests of the batteries, each of which has an equal share of the rate of false alarms."""


def is_refused(draw, battery, part=None):
    """Whether a test of a battery, or of a part of it, refuses a generator; the first refusal is enough."""
    return any(not p > FALSE_ALARM / SIZES[battery] for _, p in (part or battery)(draw))


@pytest.mark.parametrize(("battery", "draw"), [(battery_of_normals, normals), (battery_of_uniforms, uniforms)])
def test_numbers_pass(battery, draw):
    p = dict(battery(draw))
    assert len(p) == SIZES[battery]
    assert min(p.values()) > FALSE_ALARM / len(p)


def wide_normals(*args, **more):
    return math.sqrt(1.003) * normals(*args, **more)


def following_normals(*args, **more):
    x = normals(*args, **more)
    x[1::2] = (x[1::2] + 0.01 * x[::2]) / math.sqrt(1.0001)
    return x


def same_length_normals(*args, **more):
    """Neighbours whose signs are independent, but not their sizes."""
    x = normals(*args, **more)
    follow = np.arange(1, x.size, 100)
    x[follow] = np.copysign(x[follow - 1], x[follow])
    return x


def cut_normals(*args, **more):
    return np.clip(normals(*args, **more), -4.5, 4.5)


def same_replica_normals(count, replica=0, **more):
    return normals(count, replica % 2**16, **more)


def coarse_uniforms(*args, **more):
    """Multiples of 2^-24."""
    return np.ceil(uniforms(*args, **more) * 2**24) / 2**24


def following_uniforms(*args, **more):
    u = uniforms(*args, **more)
    u[1::200] = u[::200][: len(u[1::200])]
    return u


WRONG_NORMALS = {
    wide_normals: moments,
    following_normals: pairs_of_normals,
    same_length_normals: pairs_of_normals,
    cut_normals: moments,
    same_replica_normals: pairs_of_normals,
}
"""Wrong generators, and the part of the battery that is there for what is wrong with them."""

WRONG_UNIFORMS = [coarse_uniforms, following_uniforms]


@pytest.mark.parametrize("wrong", WRONG_NORMALS)
def test_wrong_normals_are_refused(wrong):
    assert is_refused(wrong, battery_of_normals, WRONG_NORMALS[wrong])


@pytest.mark.parametrize("wrong", WRONG_UNIFORMS)
def test_wrong_uniforms_are_refused(wrong):
    assert is_refused(wrong, battery_of_uniforms)
