"""Twelve problems on which the accuracy of the density is measured, and the files of all references.

Six priors, with one feature and with two. The references are solutions of `spectral_elements.py`, and
`density_references.py` makes them. Problems that are hard to solve are in `hard_problems.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from meanfield.families.contrastive.problem import Problem
from meanfield.problems.file import parse_problem
from validation import ROOT
from validation.references.hard_problems import HARD
from validation.references.spectral_elements import Resolution

REFERENCES = ROOT / "data/reference"

MODEL = 'model = { activation = "quadratic", centering = "none", learning_rate = 0.02, batch_size = 10 }'
CENTRED = MODEL.replace('"none"', '"population"')
SPARSE = 'hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }'
GAUSSIAN = 'hidden = { law = "gaussian", second_moment = 1.2 }'
LONG = "time = { stop = 20.0, outputs = 21 }"
SHORT = "time = { stop = 10.0, outputs = 11 }"

TEXTS = {
    # the demo, data/problems/no_prior.toml, at fewer times
    "none_1": f"""
        {MODEL}
        features = [{{ {SPARSE}, initial_overlap = 0.5 }}]
        {LONG}
    """,
    # the demo, data/problems/sparse_prior.toml, at fewer times
    "l1_1": f"""
        {MODEL}
        features = [{{ {SPARSE}, initial_overlap = 0.5 }}]
        prior = {{ name = "l1", strength = 1.0 }}
        {LONG}
    """,
    "quartic_1": f"""
        {MODEL}
        features = [{{ {SPARSE}, initial_overlap = 0.5 }}]
        augmentation = {{ variance = [0.1, 0.1] }}
        prior = {{ name = "quartic", strength = 1.0 }}
        {LONG}
    """,
    "elastic_net_1": f"""
        {CENTRED}
        features = [{{ {GAUSSIAN}, initial_overlap = 0.4 }}]
        prior = {{ name = "elastic_net", strength = 2.0 }}
        {LONG}
    """,
    "double_well_1": f"""
        {MODEL}
        features = [{{ {SPARSE}, coordinate = {{ law = "rademacher" }}, initial_overlap = 0.3 }}]
        prior = {{ name = "double_well", strength = 3.0 }}
        {LONG}
    """,
    "cauchy_1": f"""
        {CENTRED}
        features = [{{ {SPARSE}, coordinate = {{ law = "uniform" }}, initial_overlap = 0.3 }}]
        augmentation = {{ variance = [0.2, 0.1], correlation = 0.5 }}
        prior = {{ name = "cauchy", strength = 2.0 }}
        {LONG}
    """,
    "none_2": f"""
        {MODEL}
        features = [{{ {GAUSSIAN}, initial_overlap = 0.3 }}, {{ {SPARSE}, initial_overlap = 0.45 }}]
        {SHORT}
    """,
    "l1_2": f"""
        {CENTRED}
        features = [{{ {GAUSSIAN}, initial_overlap = 0.3 }}, {{ {SPARSE}, initial_overlap = -0.4 }}]
        prior = {{ name = "l1", strength = 2.0 }}
        {SHORT}
    """,
    # data/problems/two_features.toml, at other times
    "quartic_2": f"""
        {MODEL}
        features = [{{ {GAUSSIAN}, initial_overlap = 0.3 }}, {{ {SPARSE}, initial_overlap = 0.45 }}]
        prior = {{ name = "quartic", strength = 0.5 }}
        {SHORT}
    """,
    "elastic_net_2": f"""
        {MODEL}
        features = [
            {{ {SPARSE}, coordinate = {{ law = "three_point", fourth_moment = 4.0 }}, initial_overlap = 0.4 }},
            {{ {SPARSE}, initial_overlap = 0.3 }},
        ]
        augmentation = {{ variance = [0.1, 0.1], correlation = -1.0 }}
        prior = {{ name = "elastic_net", strength = 1.0 }}
        {SHORT}
    """,
    "double_well_2": f"""
        {MODEL}
        features = [
            {{ {SPARSE}, initial_overlap = 0.3 }},
            {{ {GAUSSIAN}, coordinate = {{ law = "rademacher" }}, initial_overlap = 0.2 }},
        ]
        prior = {{ name = "double_well", strength = 1.0 }}
        {SHORT}
    """,
    "cauchy_2": f"""
        {CENTRED}
        features = [
            {{ {SPARSE}, coordinate = {{ law = "uniform" }}, initial_overlap = 0.3 }},
            {{ {GAUSSIAN}, initial_overlap = 0.4 }},
        ]
        prior = {{ name = "cauchy", strength = 2.0 }}
        {SHORT}
    """,
}

WIDE_PANELS = Resolution(width=0.75, panel=3.0, panel_nodes=11, tolerance=1e-11)
"""Resolution with wide panels in u, for problems in which no overlap comes close to 1: the mean of w then bends less
with u. There are 1600 nodes."""

RESOLUTIONS = {
    "double_well_1": Resolution(width=0.3),
    "none_2": WIDE_PANELS,
    "l1_2": WIDE_PANELS,
    "quartic_2": WIDE_PANELS,
    "cauchy_2": WIDE_PANELS,
}
"""Resolutions of the references that differ from the default."""


class StoredReference(NamedTuple):
    """q, shape (T, d1), and r, shape (T,), at the output times, with bounds of their errors of the same shapes."""

    times: np.ndarray
    q: np.ndarray
    r: np.ndarray
    q_error: np.ndarray
    r_error: np.ndarray


def accuracy_problem(name: str) -> Problem:
    """One of the problems of `TEXTS` or of `HARD`."""
    text = HARD[name].text if name in HARD else TEXTS[name]
    return parse_problem(f'title = "{name}"\n' + "\n".join(line.strip() for line in text.splitlines()))


def resolution_of(name: str) -> Resolution:
    """How finely the reference of a problem is solved."""
    return HARD[name].resolution if name in HARD else RESOLUTIONS.get(name, Resolution())


def reference_path(name: str) -> Path:
    """Where the reference of a problem is."""
    return REFERENCES / f"density_{name}.csv"


def load_reference(name: str) -> StoredReference:
    """The stored reference of a problem; what a second scheme gave, if the file has it, is left out."""
    times, *columns = np.loadtxt(reference_path(name), delimiter=",").T
    moments = len(accuracy_problem(name).features) + 1
    values, errors = np.array(columns[:moments]), np.array(columns[moments : 2 * moments])
    return StoredReference(times, values[:-1].T, values[-1], errors[:-1].T, errors[-1])
