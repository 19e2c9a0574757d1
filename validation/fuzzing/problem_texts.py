"""Random problem files: tables that are nearly right, and real files that were mangled.

Tables come from hypothesis: every law, activation and prior with numbers that are mostly allowed, and then edge values,
wrong types and misspelt keys in a few places. Mangled files are drawn from a seed.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import tomli_w
from hypothesis import strategies as st

from meanfield.ingredients.activations import ACTIVATIONS
from meanfield.ingredients.penalties import PENALTIES
from meanfield.ingredients.priors import PRIORS
from validation import ROOT

_NAMES = (
    *("augmented_views", "committee", "committee_machine", "competing_features", "curriculum", "digits"),
    *("hidden_manifold", "latent_tree", "nine_points", "no_prior", "random_start", "sparse_prior", "tokens"),
    *("two_channels", "two_features", "warm_up"),
)
EXAMPLES = [ROOT / "data" / "problems" / f"{name}.toml" for name in _NAMES]
"""Real files to mangle: a list of its own, so that a new example does not change what each seed tries."""

EDGES: list[Any] = [
    *(float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e308, -1e308, 5e-324, 1e-300, 1e154, 1.0, -1.0),
    *(0, 1, -1, 2**31, 2**63, 2**64, -(2**63), 10**400, True, False),
    *("", "nan", "1.0", "random", "é\u200bλ", "os:system", ":", "a" * 10_000, "../x.npy", "\x00"),
    *([], [[]], [1.0], [float("nan")], ["x"], [0.5, 0.5], [1e308, 1e308], list(range(300)), {}, {"law": "gaussian"}),
    *({"law": ["gaussian"]}, {"law": "empirical", "file": "x.npy"}, {"": 1}, [{}], [{"law": 1}]),
    *(datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), datetime.time(1)),
]
"""Extreme values that are allowed in few places or none."""

KEYS = ["Law", "laws", "", "hidden.law", "é", "initial_overlap ", "__class__", "model_config", "[key]", "0"]
"""Keys that no table has."""


def number(low: float, high: float) -> st.SearchStrategy[float]:
    """Mostly in the middle, at times at the ends."""
    return st.floats(low, high) | st.sampled_from([low, high])


def table(law: str, **keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"law": st.just(law), **keys})


MOMENT = number(1e-3, 20.0)
VALUES = st.lists(number(-3.0, 3.0), min_size=2, max_size=2)
HALVES = st.just([0.5, 0.5])
HIDDEN = st.one_of(
    *(table(law, second_moment=MOMENT) for law in ("gaussian", "rademacher", "uniform", "laplace")),
    table("student_t", second_moment=MOMENT, degrees_of_freedom=number(2.5, 40.0)),
    table("two_point", values=VALUES, probability=number(0.01, 0.99)),
    table("discrete", values=VALUES, probabilities=HALVES),
    table("gaussian_mixture", means=VALUES, variances=st.lists(MOMENT, min_size=2, max_size=2), probabilities=HALVES),
    MOMENT.flatmap(lambda m: table("three_point", second_moment=st.just(m), fourth_moment=number(m * m, 9 * m * m))),
)
COORDINATE = st.one_of(
    *(table(law) for law in ("gaussian", "rademacher", "uniform", "laplace")),
    table("three_point", fourth_moment=number(1.0, 30.0)),
)
RESIDUAL = st.one_of(
    table("gaussian"),
    table("uniform", smoothing=number(0.05, 0.5)),
    table("rademacher", smoothing=number(0.05, 0.5)),
)
FEATURE = st.fixed_dictionaries(
    {"hidden": HIDDEN, "initial_overlap": number(-0.6, 0.6)}, optional={"coordinate": COORDINATE}
)
PENALTY = st.sampled_from(["square", "square", *sorted(PENALTIES)])
ONE_CHANNEL = st.fixed_dictionaries(
    {
        "model": st.fixed_dictionaries(
            {
                "activation": st.sampled_from(sorted(ACTIVATIONS)),
                "learning_rate": number(1e-6, 3.0),
                "batch_size": st.integers(1, 20),
            },
            optional={"centering": st.sampled_from(["none", "population", "batch"])},
        ),
        "features": st.lists(FEATURE, min_size=1, max_size=2),
        "time": st.fixed_dictionaries({"stop": number(1e-3, 10.0)}, optional={"outputs": st.integers(2, 5)}),
    },
    optional={
        "title": st.text(max_size=20),
        "initial_residual": RESIDUAL,
        "augmentation": st.fixed_dictionaries(
            {"variance": st.lists(number(0.0, 2.0), min_size=2, max_size=2)},
            optional={"correlation": number(-1.0, 1.0)},
        ),
        "prior": st.fixed_dictionaries({"name": st.sampled_from(sorted(PRIORS))}, optional={"strength": MOMENT}),
        "density": st.fixed_dictionaries(
            {}, optional={"cells": st.just(16), "half_width": number(4.0, 9.0), "order": st.sampled_from([2, 4])}
        ),
        "particles": st.fixed_dictionaries(
            {},
            optional={
                "method": st.sampled_from(["auto", "plain", "projected", "chain"]),
                "record": st.sampled_from(["replicas", "statistics"]),
                "escape_overlap": number(0.01, 1.0),
                "seed": st.integers(0, 2**70),
            },
        ),
    },
)


@st.composite
def several_channels(draw: st.DrawFn) -> dict[str, Any]:
    """The data of a problem of two or three channels, which may start from overlaps that no channels have."""
    data: dict[str, Any] = deepcopy(draw(ONE_CHANNEL))
    data.pop("initial_residual", None)  # always refused beside channels
    overlap, channels = number(-0.6, 0.6), draw(st.integers(2, 3))
    data["model"]["channels"] = channels
    for feature in data["features"]:
        feature["initial_overlap"] = draw(st.lists(overlap, min_size=channels, max_size=channels))
    if draw(st.booleans()):
        a, b, c = (draw(overlap) for _ in range(3))
        matrix = [[1.0, a, b], [a, 1.0, c], [b, c, 1.0]]
        data["model"]["initial_channel_overlap"] = draw(
            st.sampled_from([a, [row[:channels] for row in matrix[:channels]]])
        )
    if draw(st.booleans()):
        data["decorrelation"] = {"penalty": draw(PENALTY), "strength": draw(number(0.0, 3.0))}
    return data


PROBLEM = st.one_of(ONE_CHANNEL, ONE_CHANNEL, ONE_CHANNEL, several_channels())
"""Problems of one channel, and of several about one time in four."""


@st.composite
def spoilt_tables(draw: st.DrawFn, most: int = 3) -> dict[str, Any]:
    """The data of a problem with up to `most` edge values, misspelt or lost keys in random places."""
    data = deepcopy(draw(PROBLEM))  # of what is drawn, parts are the same objects each time
    for _ in range(draw(st.integers(0, most))):
        holder, key = draw(st.sampled_from(_places(data)))
        what = draw(st.sampled_from(["edge", "edge", "edge", "lose", "misspell"]))
        if what == "edge":
            holder[key] = deepcopy(draw(st.sampled_from(EDGES)))
        elif what == "lose":
            del holder[key]
        elif isinstance(holder, dict):
            holder[draw(st.sampled_from([*KEYS, f"{key}s"]))] = holder.pop(key)
    return data


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Every table or list with each of its keys or indices."""
    steps = list(data.items()) if isinstance(data, dict) else list(enumerate(data)) if isinstance(data, list) else []
    inner = [place for _, value in steps for place in _places(value)]
    return [*((data, key) for key, _ in steps), *inner] or [({"": 0}, "")]


def as_text(data: dict[str, Any]) -> bytes:
    """TOML, also of text that it cannot hold."""
    return tomli_w.dumps(data).encode("utf-8", "surrogatepass")


def _flip_bytes(text: bytes, random: Random) -> bytes:
    changed = bytearray(text)
    for _ in range(random.randint(1, 4)):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _cut(text: bytes, random: Random) -> bytes:
    return text[: random.randrange(len(text))]


def _encode(text: bytes, random: Random) -> bytes:
    decoded = text.decode()
    kinds = ["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "cp037"]
    return random.choice([*(decoded.encode(kind) for kind in kinds), b"\x00" + text, text.replace(b"\n", b"\r")])


def _change_lines(text: bytes, random: Random) -> bytes:
    lines = text.splitlines(keepends=True)
    for _ in range(random.randint(1, 3)):
        i, j = random.randrange(len(lines)), random.randrange(len(lines))
        change = random.choice(["drop", "repeat", "swap", "copy"])
        if change == "drop" and len(lines) > 1:
            del lines[i]
        elif change == "repeat":
            lines[i] *= 2
        elif change == "swap":
            lines[i], lines[j] = lines[j], lines[i]
        else:
            lines.insert(i, lines[j])
    return b"".join(lines)


def _replace_word(text: bytes, random: Random) -> bytes:
    """A number, a name or a key becomes another of the file, or an edge value."""
    words = [i for i, word in enumerate(text.split(b" ")) if word.strip()]
    parts = text.split(b" ")
    others = [parts[random.choice(words)], *(tomli_w.dumps({"x": edge})[4:].strip().encode() for edge in EDGES)]
    parts[random.choice(words)] = random.choice(others)
    return b" ".join(parts)


def _misspell(text: bytes, random: Random) -> bytes:
    i = random.randrange(len(text) - 1)
    swapped = text[:i] + text[i + 1 : i + 2] + text[i : i + 1] + text[i + 2 :]
    return random.choice([swapped, text[:i] + text[i + 1 :], text[:i] + b"x" + text[i:]])


def _bury(text: bytes, random: Random) -> bytes:
    """Very deep, very wide or very long."""
    deep = random.choice([50, 5_000, 100_000])
    return random.choice(
        [
            b"title = " + b"[" * deep + b"]" * deep + b"\n" + text,
            b"title = " + b"{a=" * deep + b"1" + b"}" * deep + b"\n" + text,
            b"[" + b".".join([b"a"] * (deep // 10)) + b"]\nb = 1\n",
            b"title = '" + b"x" * 10 * deep + b"'\n" + text,
            b"#" + b"y" * 10 * deep + b"\n" + text,
            text + b"".join(b"[[features]]\ninitial_overlap = 0.0\n" for _ in range(min(deep, 300))),
            b"".join(b"k%d = 1\n" % i for i in range(min(deep, 3000))) + text,
            b"title = 1" + b"0" * min(deep, 5_000) + b"\n" + text,
        ]
    )


MANGLINGS: list[Callable[[bytes, Random], bytes]] = [
    *(_flip_bytes, _cut, _encode, _change_lines, _change_lines, _replace_word, _replace_word, _replace_word),
    *(_misspell, _misspell, _bury),
]


def mangled_file(seed: int) -> tuple[str, bytes]:
    """How an example was mangled, and what came of it."""
    random = Random(seed)
    text = random.choice(EXAMPLES).read_bytes()
    mangle = random.choice(MANGLINGS)
    return mangle.__name__.strip("_").replace("_", " "), mangle(text, random)
