"""Tests of what a problem assumes of its samples, judged by their size beyond chance.

Each test names an assumption where a number is `CHANCE_ERRORS` standard errors, or a chance of `RARE`, away from what
the problem has. Whether that matters is a question of size: rates of training that change by less than 1/sqrt(N) move
overlaps by less than single runs scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2, ks_2samp, kurtosistest

from meanfield.errors import InputError
from meanfield.samples.evidence import Evidence
from meanfield.samples.statistics import CHANCE_ERRORS, FEWEST_SAMPLES, clipped, kurtosis
from meanfield.typing import IntArray

RARE = 1e-5
"""Chance of an outcome from which it counts as none, where it is known."""

REFERENCES = 100_000
"""Number of draws from the laws of a problem with which fields of features are held against."""


class Finding(NamedTuple):
    """Assumption that samples contradict beyond chance.

    Parameters
    ----------
    name : str
        One of the names of `TESTS`.
    size : float
        Relative change of what drives training.
    matters : bool
        Whether the size is more than 1/sqrt(N).
    words : str
        What was measured, beside what the problem has.
    remedy : str
    """

    name: str
    size: float
    matters: bool
    words: str
    remedy: str

    def __str__(self) -> str:
        """In words with the remedy, or, if it does not matter, with the size."""
        if self.matters:
            return f"does not hold, {self.name}: {self.words}; {self.remedy}"
        return f"too small to matter at this N, {self.name}: {self.words} (rates change by {self.size:.2g})"


Contradiction = Iterator[tuple[float, str, str]]
"""Size, words and remedy of a finding, if there is one."""


def findings_of(e: Evidence) -> tuple[Finding, ...]:
    """All that samples contradict beyond chance; what matters first."""
    tests = TESTS if e.is_enough else {"repeated samples": _repeats}
    found = []
    for name, test in tests.items():
        with suppress(InputError):  # of what a result names and nobody opens for it, and rules that are only simulated
            found += [Finding(name, size, size > e.N**-0.5, words, remedy) for size, words, remedy in test(e)]
    return tuple(sorted(found, key=lambda each: not each.matters))


def _repeats(e: Evidence) -> Contradiction:
    """Samples from a stock, whose size is as large as runs and repeats say."""
    uses, remedy = e.uses, "take fresh samples at each step, or fewer steps"
    if not e.is_enough:
        yield max(uses, 1.0), f"only {len(e.different)} of {len(e.x)} samples differ", remedy
    elif uses >= 1.5:
        yield uses, f"every sample was used {float(f'{uses:.2g}'):,g} times, and once in the problem", remedy
    elif uses > 1.0 / e.N:
        before = 1.0 - (1.0 - np.exp(-uses)) / uses
        yield uses, f"of the samples {before:.0%} had been used before, and none in the problem", remedy


def _found_in_them(e: Evidence) -> Contradiction:
    """Averages of f(field) times what is left, which are no smaller than by chance unless the features are fitted.

    Given the fields they are Gaussian with E|.|^2 = N E[f^2]/n. They vanish for principal components (f = c), for
    independent ones (c^3, tanh c), and for directions of regression (residuals of labels).
    """
    if not e.features_given:
        return
    freedom = e.N / (1.0 + max(e.statistics.anisotropy, 0.0))
    functions = [*e.fields.T, *(e.fields**3).T, *np.tanh(e.fields).T]
    if e.labels is not None:
        design = np.column_stack([np.ones(len(e.fields)), e.fields])
        functions.append(e.labels - design @ np.linalg.lstsq(design, e.labels, rcond=None)[0])
    rest = e.rest - e.rest.mean(axis=0)
    for f in functions:
        value = f - f.mean()
        chance = e.N * e.statistics.variance * float(value @ value)
        ratio = float(((value @ rest) ** 2).sum()) / max(chance, 1e-300)
        # Share of their size by chance below which averages of products of fields and inputs are too small: features
        # that were found in the same samples make them vanish.
        if ratio < 0.5 and chi2.cdf(ratio * freedom, freedom) < RARE:
            yield (
                1.0,
                "the features were found in these samples, to which they are fitted: laws and overlaps along them are "
                "too good",
                "find features in other samples",
            )
            return


def _radius(e: Evidence) -> Contradiction:
    s = e.statistics
    if not s.has_common_radius:
        return
    spread = np.sqrt(max(s.radius_spread, 0.0) + 2.0 * (1.0 + max(s.anisotropy, 0.0)) / e.N)
    yield (
        max(s.radius_spread, abs(s.field_kurtosis / 3.0 - 1.0)),
        f"|a|^2/N scatters by {spread:.2g} between samples ({np.sqrt(2.0 / e.N):.2g} in the problem), and the kurtosis "
        f"of fields is {s.field_kurtosis:.3g} (3)",
        "divide samples by their lengths, or take a problem of the family update_rule with data.scale",
    )


def _correlated(e: Evidence) -> Contradiction:
    """Inequality of variances beyond that of directions that features take away, a leading direction, and a mean."""
    s, d = e.statistics, e.fields.shape[1]
    uneven = (1.0 + s.anisotropy) * (1.0 - d / e.N) - 1.0
    leading, mean = s.leading_share * e.N, s.mean_share * e.N
    chances = (CHANCE_ERRORS * s.anisotropy_error, s.leading_chance, CHANCE_ERRORS * np.sqrt(2.0 * e.N) / s.samples)
    parts = (
        (uneven, f"variances of directions scatter by {max(uneven, 0.0) ** 0.5:.2g} of their mean (0 in the problem)"),
        (leading, f"beside the features one direction has {1.0 + leading:.2g} times the variance of others"),
        (mean, f"inputs have a mean of the length {max(mean, 0.0) ** 0.5:.2g} beside the features (0 in the problem)"),
    )
    beyond = [part for part, chance in zip(parts, chances, strict=True) if part[0] > chance]
    if beyond:
        yield (
            max(size for size, _ in beyond),
            " and ".join(words for _, words in beyond),
            "subtract the mean and whiten, or take a problem of the family update_rule with data.spectrum",
        )


def _variance(e: Evidence) -> Contradiction:
    variance, error = e.variance
    if abs(variance - e.assumed.noise) > CHANCE_ERRORS * error:
        yield (
            abs(variance / e.assumed.noise - 1.0),
            f"the variance of a coordinate is {variance:.4g}, and {e.assumed.noise:.4g} in the problem",
            "divide inputs by the root of their variance, or change the noise of the problem",
        )


def _tails(e: Evidence) -> Contradiction:
    s = e.statistics
    if s.has_common_radius:
        return
    is_direction = s.leading_share * e.N > s.leading_chance  # and not one of many along which there is nothing
    if is_direction and abs(s.leading_score) > CHANCE_ERRORS:
        yield (
            s.leading_tails,
            f"the kurtosis along the leading direction beside the features is {s.leading_kurtosis:.3g} (3)",
            "remove that direction",
        )
    yield from _along_weights(e)


def _along_weights(e: Evidence) -> Contradiction:
    """Kurtosis of fields beside the features, without large entries: weights turn to what is there."""
    beyond, words = 1e-6, ""  # less is of rounding, where weights are all along features
    for over, weights in e.path:
        rest = e.later_than(over)
        for w in weights.T if len(rest) >= FEWEST_SAMPLES else ():
            field = clipped(rest) @ w
            value = float(kurtosis(field[:, None])[0])
            share = field.var() / e.variance[0] / max(w @ w, 1e-300)  # of all of the field, beside that of features
            size = float(share**2 * abs(value / 3.0 - 1.0))
            if size > beyond and abs(float(kurtosistest(field).statistic)) > CHANCE_ERRORS:
                beyond = size
                words = f"fields of weights beside features have the kurtosis {value:.3g} (3) at {over:.0%} of a run"
    if words:
        yield beyond, words, "remove the direction that weights turn to, or make it a feature of the problem"


def _heavy_entries(e: Evidence) -> Contradiction:
    """Kurtosis of independent entries, of which 1/N is left in that of fields."""
    s = e.statistics
    beyond = s.coordinate_kurtosis - 3.0
    if beyond > CHANCE_ERRORS * s.coordinate_error and not s.has_common_radius:
        remedy = "clip large entries"
        yield beyond / e.N, f"entries of inputs have the kurtosis {s.coordinate_kurtosis:.3g} (3)", remedy


def _law(e: Evidence) -> Contradiction:
    """Moments and distribution functions of fields beside draws from the laws of the problem."""
    d, n = e.fields.shape[1], len(e.fields)
    if not d or not e.features_given:
        return
    drawn, rng = e.assumed.fields(e.rng, REFERENCES, d), np.random.default_rng(0)
    size, shown = 0.0, []
    for powers in _powers(d):
        own, other = (np.prod(c**powers, axis=1) for c in (e.fields, drawn))
        scale, apart = float(np.abs(other).mean()), abs(float(own.mean() - other.mean()))
        # Relative rounding of moments of samples in single precision, which decides where a moment does not scatter.
        error = max(other.std() * np.sqrt(1.0 / n + 1.0 / REFERENCES), 1e-6 * scale)
        if apart > CHANCE_ERRORS * error:
            size = max(size, apart / scale)
            factors = (f"c{k + 1 if d > 1 else ''}{f'^{p}' if p > 1 else ''}" for k, p in enumerate(powers) if p)
            shown.append(f"E[{' '.join(factors)}] = {own.mean():.3g} ({other.mean():.3g} in the problem)")
    for k in range(d):
        # Deviation of noise that is added to fields before their distribution functions are compared, in units of
        # theirs: rounding would part the values of discrete laws.
        width = 0.01 * drawn[:, k].std()
        few = (e.fields[:, k], drawn[: REFERENCES // 5, k])
        one, two = (values + width * rng.standard_normal(len(values)) for values in few)
        test = ks_2samp(one, two)
        if test.pvalue < RARE:
            size = max(size, float(test.statistic))
            shown.append(f"the distribution function of c{k + 1 if d > 1 else ''} is off by {test.statistic:.2g}")
    if shown:
        yield (
            size,
            f"the hidden variables have another law: {', '.join(shown)}",
            "take the law of the samples, as the problem of meanfield.problem_from does",
        )


def _powers(d: int) -> Iterator[IntArray]:
    """Powers of the hidden variables in the moments that are compared, of single ones and of pairs."""
    one = np.eye(d, dtype=int)
    for k in range(d):
        yield from (power * one[k] for power in (1, 2, 4))
        yield from (power * (one[k] + one[j]) for j in range(k) for power in (1, 2))


def _label_noise(e: Evidence) -> Contradiction:
    if e.labels is None or e.label_noise is None:
        return
    found, error = e.unexplained
    if abs(found - e.label_noise) > CHANCE_ERRORS * max(error, 1e-9):
        yield (
            abs(found - e.label_noise) / max(float(e.labels.var()), 1e-300),
            f"labels have the variance {found:.3g} besides what features explain ({e.label_noise:.3g} in the problem)",
            "take the noise of the samples",
        )


def _few_coordinates(e: Evidence) -> Contradiction:
    squares = next((w**2 for over, w in e.path if over == 0.0), None)
    if squares is None:
        return
    share = float(((squares**2).sum(axis=0) / squares.sum(axis=0) ** 2).max())
    if share > (3.0 + CHANCE_ERRORS * (24.0 / e.N) ** 0.5) / e.N:  # of Gaussian weights
        yield (
            share,
            f"the weights start with their length on about {1.0 / share:.0f} of {e.N} coordinates",
            "start from weights that are spread over all, or rotate inputs and weights at random",
        )


def _few_dimensions(e: Evidence) -> Contradiction:
    square = 0.0 if e.assumed.squared_step is None else e.assumed.squared_step()
    share = square / e.N / max(e.assumed.squared_length, 1.0)  # short weights grow before N counts
    if share > e.N**-0.5:
        yield (
            share,
            f"a step has {np.sqrt(share):.2g} of the length of weights, or of a longer feature: it is to be small",
            "lower the learning rate, or take larger batches or a larger N",
        )


TESTS: dict[str, Callable[[Evidence], Contradiction]] = {
    "repeated samples": _repeats,
    "features found in the same samples": _found_in_them,
    "mass on few coordinates": _few_coordinates,
    "N too small": _few_dimensions,
    "common radius": _radius,
    "correlated inputs": _correlated,
    "variance of inputs": _variance,
    "heavy tails": _heavy_entries,
    "fields that are not Gaussian": _tails,
    "hidden law": _law,
    "label noise": _label_noise,
}
"""Tests by what they name, causes before what they bring with them."""
