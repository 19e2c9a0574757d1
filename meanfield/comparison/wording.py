"""Comparisons in words: the verdict on each pair, its reason with a remedy, and the largest differences."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr

from meanfield.comparison.judgement import FALSE_ALARMS, FEWEST_RUNS, Judgement, Place
from meanfield.comparison.rotations import FEWEST_WEIGHTS
from meanfield.problems.known_families import family_of
from meanfield.problems.variable import (
    AGREES,
    BY_ROTATIONS,
    BY_STANDARD_ERRORS,
    BY_STATED_ERRORS,
    CANNOT_TELL,
    DIFFERS,
    VERDICTS,
)
from meanfield.results.result import Result
from meanfield.results.text import index_text, plain

GROUPS = {"group": "u", "eigenvalue_group": "rho"}
"""Dims of groups of weights, and the symbol of what weights of a group have in common."""

DISTANCES = {
    "W1": "W1 distance of w",
    "KS": "KS distance of w",
    "W1_given_u": "W1 distance of w given u",
    "KS_given_u": "KS distance of w given u",
    "W1_given_rho": "W1 distance of w given the eigenvalue",
    "KS_given_rho": "KS distance of w given the eigenvalue",
    "W1_diagonal": "W1 distance of w1 +- w2",
    "KS_diagonal": "KS distance of w1 +- w2",
    "P_l1": "L1 distance of P",
}
"""Distances in words, in the order of tables; others go by their names."""

NOTHING_IN_COMMON = "The two hold no quantity in common that could be judged."

BEYOND = (
    r"the mean difference $D$ of the two at a time and of a component, less half a step of SGD where that is allowed, "
    r"its standard error $s$, and the $d$ that chance alone exceeds as often as chance and stated errors $\epsilon$ "
    r"exceed $|D|$: $2 S(d/s) = S((|D| - \epsilon)/s) + S((|D| + \epsilon)/s)$ with Student's $S(x) = "
    r"\mathrm P[t_\nu > x]$"
)

IN_MATHS = {
    BY_ROTATIONS: (
        rf"Judged is $T = \max d/s$ of each quantity, with {BEYOND}, $\nu$ the number of runs, or of batches of many, "
        "less one for each set of runs. Of distribution functions $d$ and $s$ are integrals over $w$ (W1) or largest "
        "values (KS).",
        r"By chance $T$ is that of the same runs $r$ after a random rotation, $r \to O r$. With the share $P(T)$ of "
        r"rotations whose $T$ is as large, $p = \mathrm P_O[\min P(T(O r)) \le \min P(T(r))]$, over all quantities.",
    ),
    BY_STANDARD_ERRORS: (
        rf"Judged is $T = \max d/s$ over all $n$ numbers, with {BEYOND}, $\nu$ of Welch.",
        r"Whatever the dependence of numbers is, $p = \min(1, n \min 2 S(d/s))$ is too large rather than too small.",
    ),
    BY_STATED_ERRORS: (
        r"Judged is $\max |a - b|/\epsilon$ of two predictions $a$ and $b$, with what both state as their errors, "
        r"$\epsilon = \epsilon_a + \epsilon_b + 10^{-9} \max |a|$. AGREES means that it is at most 1; nothing is "
        r"left to chance.",
    ),
}
"""What is judged, its law by chance, and what is allowed besides, with formulas between dollars."""

OTHER_DATA = (
    "data of own runs that the limit does not assume, such as heavy tails with a common radius, repeated samples or "
    "correlated inputs."
)
"""Causes besides errors of a difference that stays."""


def overall(verdicts: Sequence[str]) -> str:
    """Verdict on all pairs together: the worst one."""
    return next(word for word in (DIFFERS, CANNOT_TELL, AGREES) if word in verdicts)


def reason(judgement: Judgement, pair: Result, is_open: bool = True) -> str:
    """What decides a judgement, and what to change, in a sentence or two.

    Parameters
    ----------
    judgement : Judgement
    pair : Result
        The pair in a comparison that needs no verdict yet.
    is_open : bool
        Whether nothing else tells where a difference beyond chance comes from.
    """
    name, size = _worst(judgement.worst, pair) if judgement.worst else ("", "")
    limits = "chance and stated errors allow" if judgement.p_value >= 0 else "the stated errors allow"
    shown = ", or ".join(f"{size:.2g} in {name}" for name, size in judgement.resolution.items())
    more_runs = f"take {FEWEST_RUNS} or more, better {2 * FEWEST_RUNS}"
    text = {
        "chance": f"The largest difference, {name}, is {size} what chance allows. The test would have detected a "
        f"difference of {shown}, at any time.",
        "errors": f"The largest difference, {name}, is {size} what {limits}.",
        "beyond": f"The largest difference, {name}, is {size} what {limits}."
        + (f" {_what_to_change(judgement, pair)}" if is_open else ""),
        "start": f"The largest difference, {name}, is {size} what {limits}, which may be that of the starts. "
        f"{judgement.starts}",
        "few": f"The largest difference, {name}, is {size} what chance allows, but so few runs would hide a large one: "
        f"{more_runs}.",
        "few weights": f"The largest difference, {name}, is {size} what chance allows Gaussian numbers, which averages "
        f"over fewer than {FEWEST_WEIGHTS} weights of all runs together are not: take more runs.",
        "no scatter": f"There are no runs whose scatter could judge: {more_runs}, or add order parameters to the "
        "comparison, which predict the scatter.",
        "coarse": "Differences as large as the quantities themselves are allowed: take more runs, "
        f"{_toward_limit(pair)}, or a lower tolerance.",
        "imprecise": "The difference is larger than chance allows, and a stated error is large enough to explain it: "
        "lower the tolerance of the prediction.",
        "unstated": f"The largest difference, {name}, is {size} what the stated errors allow, and one of the two "
        "results has no error estimate: solve that one on a finer discretisation, and see whether the difference "
        "falls.",
        "nothing": NOTHING_IN_COMMON,
    }[judgement.why]
    steps = judgement.by_steps
    if steps is None:
        return text
    name, _ = _worst(steps, pair)
    return (
        f"{text} Half a step of SGD is allowed besides, and explains {steps.deviation:.2g} of {name}, where the "
        f"standard error is {steps.allowed:.2g}."
    )


def _what_to_change(judgement: Judgement, pair: Result) -> str:
    """What to change where a difference is beyond chance and stated errors."""
    if np.isnan(judgement.p_value):
        return "Lower the tolerances of both: the result that is wrong moves."
    causes = f"an error of one of the two, which changes with the discretisation of that one, or {OTHER_DATA}"
    # a bias of a finite N is of order 1/N, and the scatter of order 1/sqrt(N): two scatters are hardly a bias
    if judgement.scatters > 2.0 and "dimension" in pair.problem.labels:
        return (
            f"It is {judgement.scatters:.2g} times the scatter of single runs, more than a finite N explains but a "
            f"small one: look for {causes} Only the distance of SGD from its limit falls with {_toward_limit(pair)}."
        )
    return (
        f"Repeat with {_toward_limit(pair)}: what falls with it is the distance of SGD from its limit; what stays is "
        f"{causes}"
    )


def _toward_limit(pair: Result) -> str:
    """What brings SGD closer to the limit, by the part of the family that the problem of a pair belongs to."""
    return family_of(pair.problem).advice(pair.problem)


def _worst(place: Place, pair: Result) -> tuple[str, str]:
    """Name of the largest difference, and its size in units of what is allowed."""
    ratio = place.deviation / place.allowed if place.deviation else 0.0  # of quantities that vanish, nothing is allowed
    what = DISTANCES.get(place.name, place.name)
    name = f"{what}{_component(pair, place.name, place.position)}{_at(pair, place.name, place.position)}"
    return name, f"{ratio:.2f} of" if ratio <= 1 else f"{ratio:.3g} times"


def _component(pair: Result, name: str, index: tuple[int, ...]) -> str:
    """Number of the component of a quantity that has several, from 1; with words where dims have values."""
    dims = _dims(pair, name)
    inner = {dim: i for dim, i in zip(dims, index, strict=True) if dim not in ("time", "snapshot_time", *GROUPS)}
    if not GROUPS.keys().isdisjoint(dims) or not any(pair.dataset.sizes[dim] > 1 for dim in inner):
        return ""
    if name in DISTANCES:
        return "".join(f", {dim} {_word(pair, dim, i)}" for dim, i in inner.items())
    if any(dim in pair.family.variables for dim in inner):
        return "".join(f", {dim} {_word(pair, dim, i)}" for dim, i in inner.items() if pair.dataset.sizes[dim] > 1)
    return index_text(inner.values(), (pair.dataset.sizes[dim] for dim in inner))


def _word(pair: Result, dim: str, number: int) -> str:
    """Word for a place along a dim: the value of its variable, or, without one, a number from 1."""
    return plain(float(pair.dataset[dim][number])) if dim in pair.family.variables else str(number + 1)


def _at(pair: Result, name: str, index: tuple[int, ...]) -> str:
    """Time and group of a position in a quantity or distance."""
    held = pair.dataset
    position = dict(zip(_dims(pair, name), index, strict=True))
    parts = [f"t = {plain(float(held[dim][i]))}" for dim, i in position.items() if dim in ("time", "snapshot_time")]
    for name in (f"group_{symbol}" for dim, symbol in GROUPS.items() if dim in position):
        if name in held:
            group = held[name].isel({dim: i for dim, i in position.items() if dim in held[name].dims})
            number = position["feature"] + 1 if "feature" in position and held.sizes["feature"] > 1 else ""
            parts.append(f"{name.removeprefix('group_')}{number} = {plain(float(group))}")
    return f" at {', '.join(parts)}" if parts else ""


def _dims(pair: Result, name: str) -> tuple[str, ...]:
    """Dims of a quantity in a pair."""
    known = pair.family.compared.get(name) or pair.family.variables[name]
    return tuple(dim for dim in (*known.dims, *known.behind(pair.dataset.sizes)) if dim != "pair")


def format_comparison(report: xr.Dataset) -> str:
    """Comparison as text: for each pair the verdict with its reason, and the largest difference of each quantity.

    Parameters
    ----------
    report : xarray.Dataset
        From `compare`.
    """
    lines = []
    for name, pair in pairs_of(Result.of(report)):
        judged = pair.dataset
        lines.append(f"{name}{': ' + verdict_of_pair(judged) if 'verdict' in judged else ''}")
        if "reason" in judged:
            text = " ".join([str(judged["reason"].values), *(f"Left out: {words}." for words in _left_out(judged))])
            lines += textwrap.wrap(text, width=100, initial_indent="  ", subsequent_indent="  ")
        lines += [f"  {name:<44} {value}" for name, value in summary_of_pair(pair)]
    return "\n".join(lines)


def in_maths(pair: xr.Dataset) -> list[str]:
    """Which statistic of a pair is judged, its law by chance, and what is allowed besides; nothing of older versions.

    Parameters
    ----------
    pair : xarray.Dataset
        One pair of what `compare` returns. Formulas are in LaTeX, between dollars.
    """
    if "test" not in pair:
        return []
    lines, p_value = [*IN_MATHS.get(str(pair["test"].values), ())], float(pair["p_value"])
    if np.isnan(p_value):
        return lines
    known = {str(name): pair[name] for name in pair if str(name).endswith("_chance") and pair[name].ndim == 0}
    name = {key: key.removesuffix("_chance").replace("_", " ") for key in known}
    levels = [rf"T_\text{{{name[key]}}} \le {float(at):.2f}" for key, at in known.items() if np.isfinite(at)]
    shown = f" Of true pairs 95 in 100 have ${', '.join(levels)}$." if levels else ""
    sign = ">" if p_value > FALSE_ALARMS else r"\le"
    digits, _, power = f"{p_value:.2g}".partition("e")
    p = digits + (rf" \cdot 10^{{{int(power)}}}" if power else "")
    here = rf"$p = {p} {sign} {FALSE_ALARMS}$"
    asked = (
        rf"$p > {FALSE_ALARMS}$, also with $\epsilon = 0$, of {FEWEST_RUNS} or more runs that would show a difference "
        "as large as the quantity"
    )
    return [*lines, f"AGREES means {asked}; here {here}.{shown}"]


def pairs_of(report: Result) -> list[tuple[str, Result]]:
    """Names of the pairs of a comparison, and the comparison of each."""
    names = report.dataset["pair"].values.tolist()
    return [(name, report.part(report.dataset.isel(pair=i))) for i, name in enumerate(names)]


def _left_out(pair: xr.Dataset) -> list[str]:
    """What a pair leaves out, an empty list if that is nothing, or if an older version did not say it."""
    return [words for words in [str(pair["left_out"].values)] if words] if "left_out" in pair else []


def verdict_of_pair(pair: xr.Dataset) -> str:
    """Verdict on a pair and its p value, such as "AGREES (p = 0.31)".

    Parameters
    ----------
    pair : xarray.Dataset
        One pair of what `compare` returns, from a version that gives verdicts.
    """
    p_value = float(pair["p_value"])
    return str(pair["verdict"].values) + ("" if np.isnan(p_value) else f" (p = {p_value:.2g})")


def verdicts_of(comparison: xr.Dataset) -> list[str]:
    """Verdicts pair by pair if these are few; else how many pairs agree, and those that differ. For titles of figures.

    Parameters
    ----------
    comparison : xarray.Dataset
        From `compare`, or from a version of it that gave no verdicts: then there are none.
    """
    if "verdict" not in comparison:
        return []
    pairs = [comparison.isel(pair=i) for i in range(comparison.sizes["pair"])]
    lines = [f"{pair['pair'].values}: {verdict_of_pair(pair)}" for pair in pairs]
    if len(pairs) <= 3:  # so many verdicts fit a figure one by one
        return lines
    words = comparison["verdict"].values.tolist()
    differing = [line for line, word in zip(lines, words, strict=True) if word == DIFFERS]
    return [", ".join(f"{words.count(word)} pairs: {word}" for word in VERDICTS if word in words), *differing]


def rows_of_pair(pair: Result) -> list[tuple[str, str]]:
    """Rows of a table: the verdict on a pair with its reason, and the largest differences; see `pairs_of`."""
    held = pair.dataset
    judged = [("verdict", verdict_of_pair(held)), ("why", str(held["reason"].values))] if "verdict" in held else []
    return [*judged, *(("left out", words) for words in _left_out(held)), *summary_of_pair(pair)]


def summary_of_pair(pair: Result) -> list[tuple[str, str]]:
    """Largest differences of a pair of results, where they are, and what chance allows, as names and values."""
    return [*_differences(pair), *_distances(pair)]


def _differences(pair: Result) -> Iterator[tuple[str, str]]:
    held = pair.dataset
    for name in (name for name in pair.family.compared if f"{name}_difference" in held):
        difference = np.abs(held[f"{name}_difference"].values)
        deviation = difference / held[f"{name}_standard_error"].values
        if np.isfinite(difference).any():
            yield f"max |difference of {name}|", _largest(pair, name, difference, difference, "{:.2e}", np.nan)
        if np.isfinite(deviation).any():
            level = float(held.get(f"{name}_chance", np.nan))
            yield "  in standard errors, max", _largest(pair, name, deviation, deviation, "{:.2f}", level)


def _distances(pair: Result) -> Iterator[tuple[str, str]]:
    held = pair.dataset
    names = [name for name in pair.family.distances if name in DISTANCES and name in held]
    for name in sorted(names, key=list(DISTANCES).index):
        value = held[name].values
        allowed = held[f"{name}_chance"].values if f"{name}_chance" in held else np.full(value.shape, np.nan)
        if np.isfinite(value).any():
            relative = value / allowed if np.isfinite(allowed).any() else value
            yield DISTANCES[name], _largest(pair, name, relative, value, "{:.4f}", allowed)


def _largest(
    pair: Result, name: str, relative: np.ndarray, value: np.ndarray, form: str, allowed: np.ndarray | float
) -> str:
    """Value where it is largest in relative terms, where that is, and what chance allows there."""
    at = tuple(map(int, np.unravel_index(np.nanargmax(relative), relative.shape)))
    level = float(np.broadcast_to(allowed, value.shape)[at])
    chance = "" if np.isnan(level) else f"  (chance: up to {form.format(level)})"
    if value[at] == 0:
        return form.format(0.0)
    return f"{form.format(value[at])}{_component_at(pair, name, at)}{chance}"


def _component_at(pair: Result, name: str, index: tuple[int, ...]) -> str:
    """Where a row of a table is from: the component of a quantity that has several, and the time."""
    component = _component(pair, name, index)
    words = component if component[:1] in ("", ",") else f" in {name}{component}"
    return f"{words}{_at(pair, name, index)}"
