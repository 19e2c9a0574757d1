"""Hidden variables of compiled code: their laws, and numbers that are theirs alone.

The seeds are fixed. Had they been drawn at random, all statistical tests of this file together would raise a false
alarm with probability below `FALSE_ALARM`: every test has an equal share of it, and each of the p-values that it looks
at an equal share of that (Bonferroni).
"""

import math
from functools import partial
from itertools import combinations, product

import numba
import numpy as np
import pytest
from scipy import stats

from meanfield.ensembles.hidden_variables import draw_hidden, hidden_draws
from meanfield.ensembles.streams import NORMALS, UNIFORMS, fill_normals, fill_uniforms, stream_key
from meanfield.ingredients.laws.empirical import Empirical, JointEmpirical
from meanfield.ingredients.laws.hidden import (
    Discrete,
    Gaussian,
    GaussianMixture,
    JointDiscrete,
    Laplace,
    Rademacher,
    StudentT,
    ThreePoint,
    TwoPoint,
    Uniform,
)
from meanfield.ingredients.laws.scales import LogNormal, StudentScale
from tests.oracles.p_values import all_above, independent

FALSE_ALARM = 1e-3  # of the whole file
TESTS = 44
"""Largest number of statistical tests in this file."""
check = partial(all_above, FALSE_ALARM / TESTS)
SAMPLES = 2**17
BATCH = 32
"""Number of samples that are drawn together."""
KEY = stream_key(31)

MIXTURE = GaussianMixture(means=(-0.7, 1.3, 0.2), variances=(0.5, 0.0, 1.2), probabilities=(0.5, 0.3, 0.2))
VALUES = ((1.0, 0.5), (-1.0, -0.5), (2.0, -0.7), (0.0, 1.5))
JOINT = JointDiscrete(values=VALUES, probabilities=(0.4, 0.3, 0.2, 0.1))

CONTINUOUS = {
    "gaussian": (Gaussian(second_moment=1.3), stats.norm(scale=math.sqrt(1.3))),
    "uniform": (Uniform(second_moment=1.1), stats.uniform(-math.sqrt(3.3), 2 * math.sqrt(3.3))),
    "laplace": (Laplace(second_moment=1.2), stats.laplace(scale=math.sqrt(0.6))),
    "student_t, 2.1": (StudentT(degrees_of_freedom=2.1), stats.t(2.1, scale=math.sqrt(0.1 / 2.1))),
    "student_t, 5": (StudentT(degrees_of_freedom=5.0, second_moment=2.0), stats.t(5, scale=math.sqrt(6 / 5))),
    "student_t, 150": (StudentT(degrees_of_freedom=150.0), stats.t(150, scale=math.sqrt(148 / 150))),
    "scale, lognormal": (LogNormal(deviation=0.7), stats.lognorm(0.7, scale=math.exp(-0.49))),
}
ATOMIC = {
    "three_point": (ThreePoint(second_moment=1.1, fourth_moment=6.05), [-math.sqrt(5.5), 0, math.sqrt(5.5)], [1, 8, 1]),
    "no zero": (ThreePoint(second_moment=1.5, fourth_moment=2.25), [-math.sqrt(1.5), math.sqrt(1.5)], [5, 5]),
    "two_point": (TwoPoint(values=(-0.5, 2.0), probability=0.8), [-0.5, 2], [8, 2]),
    "rademacher": (Rademacher(second_moment=1.7), [-math.sqrt(1.7), math.sqrt(1.7)], [5, 5]),
    "discrete": (Discrete(values=(-1.0, 0.5, 2.0, 0.5), probabilities=(0.3, 0.1, 0.1, 0.5)), [-1, 0.5, 2], [3, 6, 1]),
    "unlikely": (Discrete(values=(9.0, 1.0, 8.0, 2.0, 7.0), probabilities=(0, 0.25, 0, 0.75, 0)), [1, 2], [2.5, 7.5]),
    "many": (Discrete(values=range(40), probabilities=np.arange(1, 41) / 820), range(40), range(1, 41)),
    "certain": (Discrete(values=(1.5,), probabilities=(1.0,)), [1.5], [10]),
}


class Numbers:
    """The numbers of consecutive batches, laid out as in steps of SGD, and what is drawn from them."""

    def __init__(self, laws, count=SAMPLES, first=0, replica=0):
        self.draws = hidden_draws(laws)
        width, wide = int(self.draws.uniforms[-1]), int(self.draws.normals[-1])
        self.uniforms, self.normals = np.empty(count * width), np.empty(count * wide)
        fill_uniforms(KEY, replica, UNIFORMS, first * width, self.uniforms)
        fill_normals(KEY, replica, NORMALS, first * wide, self.normals)
        batches = np.empty((count // BATCH, int(self.draws.features[-1]), BATCH))
        draw_all(self.draws, KEY, replica, first, self.uniforms, self.normals, batches)
        self.c = batches.swapaxes(1, 2).reshape(count, -1)


def draw(*laws, **more):
    return Numbers(laws, **more).c


@numba.njit(cache=True, error_model="numpy")
def draw_all(draws, key, replica, first, uniforms, normals, c):
    width, wide, groups = draws.uniforms[-1] * BATCH, draws.normals[-1] * BATCH, draws.box.size
    chosen = np.empty(BATCH, np.int64)
    for i in range(len(c)):
        slot = (first + i * BATCH) * groups
        draw_hidden(draws, key, replica, slot, uniforms[i * width :], normals[i * wide :], chosen, c[i])


def frequencies(sample, values, probabilities):
    """P-value of the counts of values, which are all that there are."""
    counts = [np.count_nonzero(np.all(np.abs(sample - value) < 1e-12, axis=-1)) for value in values]  # rounding
    assert sum(counts) == len(sample)
    return stats.chisquare(counts, np.array(probabilities) * len(sample) / sum(probabilities)).pvalue


@pytest.mark.parametrize("law", CONTINUOUS)
def test_laws_with_a_density(law):
    law, right = CONTINUOUS[law]
    c = draw(law)[:, 0]
    check(law=stats.kstest(c, right.cdf).pvalue, neighbours=independent(c[1:], c[:-1]))


def test_scale_of_noise_of_student():
    r = draw(MIXTURE, StudentScale(degrees_of_freedom=5.0))[:, 1]
    check(law=stats.kstest(3.0 / r**2, stats.chi2(5.0).cdf).pvalue, neighbours=independent(r[1:], r[:-1]))


@pytest.mark.parametrize("law", ATOMIC)
def test_laws_with_atoms(law):
    law, values, weights = ATOMIC[law]
    c = draw(law)
    p = {"law": frequencies(c, np.array(values)[:, None], weights)} if len(values) > 1 else {}
    if len(values) > 1:
        p["neighbours"] = independent(c[1:, 0], c[:-1, 0])
    else:
        assert np.all(c == values[0])
    check(**p)


def test_a_mixture_with_an_atom():
    """One of its Gaussians has no width: its value has its probability, and the others share the rest."""
    c = draw(MIXTURE)[:, 0]
    atom = c == 1.3
    rest = c[~atom]

    def distribution(x):
        return (0.5 * stats.norm.cdf(x, -0.7, math.sqrt(0.5)) + 0.2 * stats.norm.cdf(x, 0.2, math.sqrt(1.2))) / 0.7

    check(
        atom=stats.binomtest(int(atom.sum()), SAMPLES, 0.3).pvalue,
        law=stats.kstest(rest, distribution).pvalue,
        neighbours=independent(c[1:], c[:-1]),
    )


def test_samples_in_a_file(tmp_path):
    file = tmp_path / "samples.npy"
    np.save(file, np.repeat(VALUES, [4, 3, 2, 1], axis=0))
    c = draw(Empirical(file=str(file), column=1), JointEmpirical(file=str(file), columns=(1, 0)))
    check(
        one=frequencies(c[:, :1], np.array(VALUES)[:, 1:], (4, 3, 2, 1)),
        joint=frequencies(c[:, 1:], np.array(VALUES)[:, ::-1], (4, 3, 2, 1)),
        groups=independent(c[:, 0], c[:, 1]),
        neighbours=independent(c[1:, 2], c[:-1, 2]),
    )


def test_dependent_variables_are_drawn_together():
    c = draw(JOINT)
    check(law=frequencies(c, VALUES, (4, 3, 2, 1)), neighbours=independent(c[1:, 0], c[:-1, 1]))


GROUPS = {
    "densities": ("laplace", "student_t, 2.1", "gaussian", "uniform"),
    "gammas alone": ("student_t, 5", "student_t, 5", "laplace"),
    "mixed": ("three_point", "student_t, 5", "two_point"),
    "no uniforms": ("gaussian", "certain", "gaussian"),
}


@pytest.mark.parametrize(
    "names",
    # gammas are drawn in two of the other groups, too
    [pytest.param(names, marks=pytest.mark.slow if names == "gammas alone" else ()) for names in GROUPS],
)
def test_several_groups(names):
    """Each has its law, and they are independent of each other and of the samples before."""
    laws = [(CONTINUOUS | ATOMIC)[name] for name in GROUPS[names]]
    c = draw(*(law for law, *_ in laws))
    p = {}
    for k, (_, *right) in enumerate(laws):
        if len(right) == 1:
            p[f"law {k}"] = stats.kstest(c[:, k], right[0].cdf).pvalue
        elif len(right[0]) > 1:
            p[f"law {k}"] = frequencies(c[:, k : k + 1], np.array(right[0])[:, None], right[1])
    wide = c[:, np.ptp(c, axis=0) > 0]
    now_and_before = np.hstack([wide[1:], wide[:-1]])
    sizes = np.abs(now_and_before)
    for name, x in (("values", now_and_before), ("sizes", sizes[:, np.ptp(sizes, axis=0) > 1e-12])):  # rounding
        ranks = stats.spearmanr(x).pvalue  # of all pairs at once: each column is ranked once
        count = x.shape[1] // 2
        pairs = [*combinations(range(count), 2), *product(range(count), range(count, 2 * count))]
        p |= {f"{name} {i} and {j}": ranks[i, j] for i, j in pairs}
    check(**p)


def test_a_joint_group_between_others():
    c = draw(Laplace(), JOINT, MIXTURE)
    check(
        first=stats.kstest(c[:, 0], stats.laplace(scale=math.sqrt(0.5)).cdf).pvalue,
        joint=frequencies(c[:, 1:3], VALUES, (4, 3, 2, 1)),
        last=stats.binomtest(int((c[:, 3] == 1.3).sum()), SAMPLES, 0.3).pvalue,
        groups=independent(c[:, 0], c[:, 1]),
        others=independent(c[:, 2], c[:, 3]),
        outer=independent(c[:, 0], c[:, 3]),
    )


def test_recipes_agree_with_samplers():
    """The compiled draws and the reference sampler of every law, by two samples."""
    p = {}
    for name, (law, *_) in (CONTINUOUS | ATOMIC | {"mixture": (MIXTURE,)}).items():
        sample = law.sample(np.random.default_rng(32), (SAMPLES,))
        p[name] = stats.ks_2samp(*np.round([draw(law)[:, 0], sample[:, 0]], 12), method="asymp").pvalue
    check(**p)


def test_samples_take_numbers_by_address():
    """A batch is a function of its own numbers: pieces in any order give what all give at once."""
    laws = [StudentT(degrees_of_freedom=2.1), JOINT, Uniform(), Laplace(), MIXTURE, Gaussian()]
    whole = draw(*laws, count=4096)
    for first in (4000, 32, 2048, 0):
        assert np.array_equal(draw(*laws, count=96, first=first), whole[first : first + 96])
    other = draw(*laws, count=4096, replica=1)
    assert np.all(other[:, [0, 3, 4, 5, 6]].std(axis=0) > 0)
    assert np.all(other[:, [0, 3, 4, 6]] != whole[:, [0, 3, 4, 6]])


def test_rejections_of_one_group_do_not_move_the_others():
    """A group with other rejections, and nothing else that is drawn changes."""
    first, second = (
        draw(TwoPoint(values=(-1.0, 2.0)), StudentT(degrees_of_freedom=nu), Laplace(), Gaussian())
        for nu in (2.1, 300.0)
    )
    assert np.array_equal(first[:, [0, 2, 3]], second[:, [0, 2, 3]])
    assert np.all(first[:, 1] != second[:, 1])


def test_no_two_rejections_share_numbers():
    """Widths G^-1/2 of Student's t in two groups: all different, where 5 in 100 are drawn again."""
    nu = 2.1
    found = Numbers([StudentT(degrees_of_freedom=nu)] * 2, count=4000)
    normals = found.normals.reshape(-1, 2, 2, BATCH).transpose(0, 3, 1, 2).reshape(4000, 2, 2)
    width = np.sort((found.c / normals[:, :, 0]).ravel())
    first = (nu / 2 - 1 / 3) * (1 + normals[:, :, 1] / math.sqrt(9 * (nu / 2 - 1 / 3))) ** 3
    again = np.abs((found.c / normals[:, :, 0]) ** -2 * (nu / 2 - 1) - first) > 1e-6 * np.abs(first)  # rounding
    assert 100 < again.sum() < 800
    assert np.diff(width).min() > 1e-14 * width[0]  # rounding; chance comes that close once in 1e5 times
