"""Checks of several keys of a problem of an update rule: groups, kinds of samples, and names that functions read.

Each raises a ValueError with the key and the remedy.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from meanfield.families.update_rule.kinds import along_of
from meanfield.families.update_rule.places import FEATURES, names_of_mean, places_of
from meanfield.families.update_rule.rule import arguments_of
from meanfield.ingredients.laws.base import check_probabilities
from meanfield.ingredients.nearest import nearest
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.results import initial_state

if TYPE_CHECKING:
    from meanfield.families.update_rule.problem import Problem

OF_VECTORS = ("y", "s", "c", "t", "R", "Q")
"""Names that every rule may read: fields of features and students, hidden variables, time, and order parameters."""


def check_groups(problem: Problem) -> None:
    """Refuse groups without a name of their own, without students, or without draws that move them."""
    groups = [group.name for group in problem.groups or ()]
    if groups and problem.draws is None:
        raise ValueError("groups: model.rule moves all students as one group; add [[draws]] in its place")
    for number, name in enumerate(groups):
        if not name.isidentifier():
            raise ValueError(f"groups[{number}].name: '{name}' is no name that an argument can have; use letters")
        if name[-1].isdigit():
            raise ValueError(
                f"groups[{number}].name: '{name}' ends with a digit, as fields of views do; leave that out"
            )
        if name in (*(known for known in OF_VECTORS if known != "s"), FEATURES, "none"):
            raise ValueError(f"groups[{number}].name: '{name}' means something else already; take another name")
        if name in groups[:number]:
            raise ValueError(f"groups[{number}].name: '{name}' is there twice; rename one of the two")
        if name not in problem.vectors:
            raise ValueError(f"groups[{number}]: no student is in '{name}'; add [[students]] with group = '{name}'")
    before = None
    for k, student in enumerate(problem.students):
        if student.group is not None and student.group not in groups:
            raise ValueError(
                f"students[{k}].group: there is no group '{student.group}'; {_known(student.group, groups)}"
            )
        name = student.group or "s"
        if name != before and k > 0 and any((each.group or "s") == name for each in problem.students[:k]):
            raise ValueError(f"students[{k}].group: others stand between those of '{name}'; put these side by side")
        before = name


def check_draws(problem: Problem) -> None:
    """Refuse kinds of samples that name vectors which are not there, or nothing that reads them."""
    if (problem.model.rule is None) == (problem.draws is None):
        what = "is missing; name a rule, or add" if problem.draws is None else "stands beside [[draws]]; remove it, or"
        raise ValueError(f"model.rule: {what} [[draws]] with the functions of each kind of sample")
    trained = [name for name in problem.vectors if name != FEATURES]
    for number, sample in enumerate(problem.draws or ()):
        what = f"draws[{number}]"
        if sample.name is not None and sample.name in [each.name for each in (problem.draws or ())[:number]]:
            raise ValueError(f"{what}.name: '{sample.name}' is there twice; rename one of the two")
        if sample.along not in (None, "none", FEATURES, *trained):
            known = _known(sample.along, ["none", FEATURES, *trained])
            raise ValueError(f"{what}.along: there are no vectors '{sample.along}'; {known}")
        for key, moved in (("gain", [*(sample.gain or {})]), ("move", [*(sample.move or {})])):
            for name in moved:
                if name not in trained:
                    why = "features are not trained" if name == FEATURES else f"there is no group '{name}'"
                    raise ValueError(f"{what}.{key}: {why}; {_known(name, trained)}")
        for group, sources in (sample.move or {}).items():
            for name in sources:
                if name not in (FEATURES, *trained) or not len(problem.vectors[name]):
                    known = _known(name, [each for each in problem.vectors if len(problem.vectors[each])])
                    raise ValueError(f"{what}.move.{group}: there are no vectors '{name}'; {known}")
    names = [sample.name for sample in problem.draws or () if sample.name is not None]
    for key, side in problem.side.items():
        if side.draw is not None and side.draw not in names:
            raise ValueError(
                f"side.{key}.draw: no kind of sample has the name '{side.draw}'; {_known(side.draw, names)}"
            )
    random_size = [key for key in ("scale", "classes") if getattr(problem.data, key) is not None]
    for kind, sample in zip(problem.kinds, problem.draws or (), strict=False):
        if kind.samples > 1 and random_size:
            raise ValueError(
                f"{kind.what}.samples: of samples that see each other, all have noise of one size, and data."
                f"{random_size[0]} gives each its own; remove one of the two"
            )
        if not (sample.gain or sample.move or sample.observables or kind.side):
            raise ValueError(f"{kind.what}: nothing reads its samples; add gain, move or observables, or remove it")
    measured = problem.measured
    for name in measured:
        if measured.count(name) > 1:
            raise ValueError(f"draws: two observables have the name '{name}'; rename one of the two")


def _known(name: str | None, names: list[str]) -> str:
    return nearest(name or "", names) if names else "leave the key out"


def check_hidden_variables(problem: Problem) -> None:
    """Refuse vectors whose hidden variables are missing, or shown by no samples."""
    if problem.draws is None:
        shown = {FEATURES} if problem.data.signal != "none" else set()
    else:
        shown = {name for sample in problem.draws if (name := along_of(problem, sample)) is not None}
    said = f"data.signal = '{problem.data.signal}'"
    for k, feature in enumerate(problem.features):
        if FEATURES not in shown and feature.hidden is not None:
            remedy = "set it to 'spiked' or 'orthogonal', or remove features.hidden"
            remedy = remedy if problem.draws is None else "set along = 'u' in one of draws, or remove features.hidden"
            raise ValueError(f"features[{k}].hidden: {said} shows no hidden variable; {remedy}")
        if FEATURES in shown and feature.hidden is None and problem.hidden is None and problem.data.classes is None:
            by = said if problem.draws is None else "a sample along 'u'"
            raise ValueError(
                f"features[{k}].hidden: is missing, and {by} shows it; add it, or a [hidden] table with the joint law "
                "of all"
            )
        if problem.hidden is not None and feature.hidden is not None:
            raise ValueError(
                f"features[{k}].hidden: the [hidden] table is the joint law of all hidden variables already; "
                "remove one of the two"
            )
    if FEATURES in shown and not problem.features:
        by = said if problem.draws is None else "draws: along = 'u'"
        raise ValueError(f"features is empty, and {by} needs one; add [[features]]")
    if problem.hidden is not None and FEATURES not in shown:
        remedy = "set it to 'spiked' or 'orthogonal'" if problem.draws is None else "set along = 'u' in one of draws"
        raise ValueError(f"hidden: {said} shows no hidden variable; {remedy}, or remove the [hidden] table")
    if problem.hidden is not None and problem.hidden.dimension != len(problem.features):
        raise ValueError(
            f"hidden: a law of {problem.hidden.dimension} variable(s) for {len(problem.features)} feature(s); "
            "give one variable for each feature"
        )
    for k, student in enumerate(problem.students):
        name = student.group or "s"
        if name in shown and student.hidden is None:
            raise ValueError(f"students[{k}].hidden: is missing, and a sample along '{name}' shows it")
        if name not in shown and student.hidden is not None:
            raise ValueError(f"students[{k}].hidden: no sample is along '{name}', which would show it; remove it")


def check_classes(problem: Problem) -> None:
    """Refuse classes that are no mixture of samples along the features."""
    classes = problem.data.classes
    if classes is None:
        return
    if not any(kind.along == problem.vectors[FEATURES] and kind.others for kind in problem.kinds):
        raise ValueError(
            f"data.classes: data.signal = '{problem.data.signal}' shows no mean; set it to 'spiked' or 'orthogonal', "
            "or leave classes out"
        )
    check_probabilities(len(classes), [each.probability for each in classes], "class")
    own = [f"features[{k}].hidden" for k, feature in enumerate(problem.features) if feature.hidden is not None]
    if own or problem.hidden is not None:
        raise ValueError(
            f"data.classes: their means are the hidden variables, and {[*own, 'the [hidden] table'][0]} is another "
            "law of these; remove one of the two"
        )
    for number, each in enumerate(classes):
        if len(each.mean) != len(problem.features):
            raise ValueError(
                f"data.classes[{number}].mean has {len(each.mean)} number(s) for {len(problem.features)} feature(s); "
                "give one for each"
            )


def check_names(problem: Problem) -> None:
    """Refuse names that mean two things."""
    scale = problem.data.scale
    scales = [] if scale is None or scale.name is None else [scale.name]
    known: dict[str, str] = dict.fromkeys(OF_VECTORS, "what every rule may read")
    known |= {} if problem.data.classes is None else {"label": "the label of data.classes"}
    for kind in problem.kinds:
        taken = {*"tRQc", *problem.model.rule_parameters, *problem.data.coins, *problem.data.normals, *scales}
        known |= dict.fromkeys(kind.mean_names, f"an average of {kind.what}.means")
        fields = [name for name in places_of(problem, kind).names if name not in taken | {*problem.side}]
        known |= dict.fromkeys([name for name in fields if name not in known], "a field of draws")
    for key, names in (
        ("data.scale.name", scales),
        ("model.rule_parameters", problem.model.rule_parameters),
        ("data.coins", problem.data.coins),
        ("data.normals", problem.data.normals),
        ("side", problem.side),
    ):
        for name in names:
            if not name.isidentifier():
                raise ValueError(f"{key}: '{name}' is no name that an argument can have; use letters and digits")
            if name in known or name in problem.vectors:
                raise ValueError(f"{key}: '{name}' is also {known.get(name, 'one of groups')}; rename one of the two")
            known[name] = f"one of {key}"


def check_arguments(problem: Problem) -> None:
    """Refuse functions that read what is not there."""
    for kind in problem.kinds:
        names, of_means = places_of(problem, kind).names, {mean.what: mean for mean in kind.means}
        for what, function in problem.functions_of(kind):
            known = names_of_mean(problem, kind, of_means[what].view) if what in of_means else names
            for name in arguments_of(function, what):
                if name not in known:
                    missing = {"y": "features", "c": "data.signal"}.get(name, "")
                    there = (name == "y" and problem.features) or kind.views > 1 or problem.draws is not None
                    hint = f"there is none without {missing}" if missing and not there else nearest(name, [*known])
                    if kind.views > 1 and f"{name}1" in known:
                        hint = f"of {kind.views} views it is {name}1 to {name}{kind.views}"
                    if what in of_means and re.fullmatch(r"mean\d*", name):
                        hint = "averages follow from samples alone; let it read fields"
                    raise ValueError(f"{what} reads '{name}'; {hint}")


def check_parameters(problem: Problem) -> None:
    """Check that what a file says has an effect: a misspelt name would have none."""
    if not problem.at_hand:
        return
    functions = [each for kind in problem.kinds for each in problem.functions_of(kind)]
    read = sorted({name for what, function in functions for name in arguments_of(function, what)})
    known = ", ".join(read) or "nothing"
    scale = problem.data.scale
    for key, names in (
        ("data.scale.name", [] if scale is None or scale.name is None else [scale.name]),
        ("model.rule_parameters", problem.model.rule_parameters),
        ("data.coins", problem.data.coins),
        ("data.normals", problem.data.normals),
    ):
        for name in names:
            if name not in read:
                raise ValueError(f"{key}: the rule reads no '{name}'; it reads {known}; remove it")
    for kind in problem.kinds:
        used = {name for what, function in problem.functions_of(kind) for name in arguments_of(function, what)}
        for name, mean in zip(kind.mean_names, kind.means, strict=True):
            if name not in used:
                raise ValueError(f"{mean.what}: no function of {kind.what} reads '{name}'; remove it, or let one do so")
    for name in re.findall(r"[A-Za-z_]\w*", " ".join(kink for kind in problem.kinds for kink in kind.kinks)):
        if isinstance(problem.model.rule_parameters.get(name), Schedule):
            raise ValueError(
                f"model.rule_parameters: a kink reads '{name}', and does not move; give it a number, or some in phases"
            )


def check_start(problem: Problem) -> None:
    """Refuse a start that is said twice or not at all, or that no students have."""
    if problem.initial is not None:
        initial_state.check_start(problem)
        return
    for name, side in problem.side.items():
        if side.start is None:
            raise ValueError(f"side.{name}.start: is missing; add it")
    K = len(problem.students)
    for m, feature in enumerate(problem.features):
        given = feature.initial_overlap
        if isinstance(given, tuple) and len(given) != K:
            raise ValueError(
                f"features[{m}].initial_overlap has {len(given)} number(s) for {K} student(s); give one for each"
            )
    for k, student in enumerate(problem.students):
        if len(student.initial_overlap) not in (0, k):
            raise ValueError(
                f"students[{k}].initial_overlap has {len(student.initial_overlap)} number(s), and there are {k} "
                "student(s) before it; give one for each, or leave it out"
            )
    Q, R = problem.initial_Q, problem.initial_R
    least = float(np.linalg.eigvalsh(Q - R @ R.T)[0])
    if least < -1e-12 * np.abs(Q).max():  # rounding
        raise ValueError(
            f"features.initial_overlap: no students have them, as Q - R R^T has the eigenvalue {least:.4g}; "
            "lower initial_overlap, or raise students.initial_norm"
        )
    for name, group in problem.constraints:
        own = Q[group.start : group.stop, group.start : group.stop]
        if name in ("gram_schmidt", "polar") and not np.array_equal(own, np.eye(len(group))):
            raise ValueError(
                f"model.constraint = '{name}' keeps students orthonormal, and they start otherwise; "
                "leave students.initial_norm and students.initial_overlap out"
            )
