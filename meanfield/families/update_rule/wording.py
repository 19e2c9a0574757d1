"""Problems of update rules in words."""

from __future__ import annotations

from meanfield.explanation.explanation import Statement, steps_in_words
from meanfield.families.update_rule.data import Data
from meanfield.families.update_rule.kinds import Kind, along_of
from meanfield.families.update_rule.places import FEATURES
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.rule import arguments_of
from meanfield.families.update_rule.samples import Sample
from meanfield.ingredients.schedules.shapes import Schedule, in_words_of

SIGNALS = {
    "none": "white noise",
    "spiked": "features times hidden variables, in white noise",
    "orthogonal": "features times hidden variables, and noise orthogonal to the features",
}

AFTER_A_STEP = {
    "none": "nothing follows a step",
    "sphere": "each student goes back to its length after a step",
    "gram_schmidt": "students are made orthonormal one after the other",
    "polar": "students are made orthonormal, all alike",
}


def in_words(problem: Problem, look_up: bool = True) -> list[Statement]:
    """Sentences about a problem, in the order of its file; see `meanfield.explanation.explanation.in_words`."""
    found = [("rule", _rule(problem, look_up))] if problem.draws is None else [("steps", _steps(problem))]
    found += [("data", _data(problem, look_up))]
    if problem.draws is not None:
        pairs = zip(problem.draws, problem.kinds, strict=True)
        found += [(kind.what, _sample(problem, sample, kind)) for sample, kind in pairs]
    found += [("start", _start(problem))]
    if problem.side and problem.initial is None:
        starts = ", ".join(f"{name} = {side.start:g}" for name, side in problem.side.items())
        found.append(("side variables", f"{starts} at the start"))
    if problem.prior.name != "none":
        strength = in_words_of(problem.prior.strength)
        found.append(("prior", f"w loses phi(w)/N in a step, phi = {problem.prior.in_words} of strength {strength}"))
    return [*found, ("time", steps_in_words(problem)), *_limit(problem, look_up)]


def _limit(problem: Problem, look_up: bool) -> list[Statement]:
    """Equations of the limit of one kind of sample: averages over the fields that a sample shows."""
    data, model, M, K = problem.data, problem.model, len(problem.features), len(problem.students)
    moves = isinstance(data.noise, Schedule) or isinstance(model.batch_size, Schedule)
    plain = problem.draws is None and data.spectrum is None and data.classes is None and data.scale is None
    white = data.signal != "orthogonal" or data.observed == 1.0  # masks leave a part of other noise along features
    if moves or not (plain and white) or problem.prior.name not in ("none", "l2"):
        return []
    size = data.noise * data.observed
    k, kl = ("", "") if K == 1 else ("_k", "_kl")
    factor = _times(size / model.batch_size)
    own = f"2 <s F> + {factor}<F^2>" if K == 1 else f"<s_k F_l> + <s_l F_k> + {factor}<F_k F_l>"
    of_m, km = "_m" if M > 1 else "", f"_{'k' * (K > 1)}{'m' * (M > 1)}".rstrip("_")
    lost, lost_of_Q = (" - lambda R", " - 2 lambda Q") if problem.prior.name == "l2" else ("", "")
    others = ", and G <B> of moves along vectors" * (look_up and model.at_hand and model.functions.along is not None)
    found = [f"dR{km}/dt = <y{of_m} F{k}>{lost}"] if M else []
    found += [f"dQ{kl}/dt = {own}{lost_of_Q}"]
    if model.constraint != "none":
        found.append("less what the constraint takes back, S^T R and Q S + S^T Q")
    mean = f" about {_times(data.observed)}G d(c)" if data.signal != "none" else ""
    gram = "G = (1, R^T; R, Q)" if M else "G = Q"
    noise = " without the part along features" if data.signal == "orthogonal" else ""
    over = f"<.> over samples with Gaussian fields{mean} of covariance {_times(size)}{gram}{noise}"
    return [("limit", f"{'; '.join(found)}{others}; {over}")]


def _times(number: float) -> str:
    return "" if number == 1.0 else f"{number:.3g} "


def _rule(problem: Problem, look_up: bool) -> str:
    model = problem.model
    numbers = [f"{name} = {in_words_of(value)}" for name, value in model.rule_parameters.items()]
    named = ", ".join([*([] if model.rule is None else [model.rule]), *numbers])
    reads = " (not looked up)"
    if look_up and model.at_hand:
        rule = model.functions
        reads = f", reads {', '.join(arguments_of(rule.step, 'step'))}"
        reads += f"; bends or jumps where {', '.join(f'{kink} = 0' for kink in rule.kinks)}" if rule.kinks else ""
        reads += f"; measured: {', '.join(rule.measured)}" if rule.measured else ""
    return f"{named}{reads}; {_samples(model.batch_size)} per step; {AFTER_A_STEP[model.constraint]}"


def _samples(count: int | Schedule) -> str:
    if isinstance(count, Schedule):
        return f"({count.in_words}) samples"
    return "one sample" if count == 1 else f"{count} samples"


def _steps(problem: Problem) -> str:
    """Groups with what follows a step, and numbers."""
    names = [name for name in problem.vectors if name != FEATURES]
    groups = [
        f"{name} ({len(students)} vector{'s' * (len(students) > 1)}): {AFTER_A_STEP[constraint]}"
        for name, (constraint, students) in zip(names, problem.constraints, strict=True)
    ]
    numbers = [f"{name} = {in_words_of(value)}" for name, value in problem.model.rule_parameters.items()]
    return "; ".join([*groups, ", ".join(numbers)] if numbers else groups)


def _sample(problem: Problem, sample: Sample, kind: Kind) -> str:
    """What samples of a kind show, and what reads them."""
    name = "" if sample.name is None else f"{sample.name}, "
    along, noise = along_of(problem, sample), "noise orthogonal to the features" if kind.projected else "white noise"
    shown = f"{along} times hidden variables, and {noise}" if along else noise
    size = f" of variance {in_words_of(kind.noise)}" if kind.noise != 1.0 else ""
    views = f" in {kind.views} views" * (kind.views > 1)
    own = " with noise of their own" * bool(kind.own.any())
    given = sample.observed if isinstance(sample.observed, tuple) else kind.observed[:1]
    shares = [f"{share:.3g}" for share in given]
    of_each = ", of each view its own," if len(shares) > 1 else ""
    kept = f"; {' and '.join(shares)} of the coordinates{of_each} are kept" if min(kind.observed) < 1.0 else ""
    reads = "; ".join(f"{key} = {address}" for key, address in sample.asked.items())
    count = _samples(kind.batch_size)
    if kind.samples > 1:
        count = f"{in_words_of(kind.batch_size)} times {kind.samples} samples that see each other"
    return f"{name}{count} per step{views}{own}: {shown}{size}{kept}; {reads}"


def _data(problem: Problem, look_up: bool) -> str:
    data = problem.data
    size = f" of variance {in_words_of(data.noise)}" if data.noise != 1.0 else ""
    kept = f"; {data.observed:.3g} of the coordinates are kept in a sample" if data.observed < 1.0 else ""
    coins = "".join(f"; {name} = 1 with probability {p:g}" for name, p in data.coins.items())
    normals = f"; standard normal numbers: {', '.join(data.normals)}" if data.normals else ""
    spectrum = "" if data.spectrum is None else f"; {data.spectrum.in_words('its covariance', look_up)}"
    own = [problem.hidden] if problem.hidden else [each.hidden for each in problem.features if each.hidden]
    hidden = f"; {'joint law' if problem.hidden else 'law'} of c: {', '.join(law.law for law in own)}" if own else ""
    return f"{SIGNALS[data.signal]}{size}{spectrum}{hidden}{_classes(data)}{_scale(data)}{kept}{coins}{normals}"


def _classes(data: Data) -> str:
    """Classes, one after the other."""
    if data.classes is None:
        return ""
    listed = (
        f"mean {', '.join(f'{m:g}' for m in each.mean)}, noise {each.noise:g}, label "
        f"{number if each.label is None else each.label:g} with probability {each.probability:g}"
        for number, each in enumerate(data.classes)
    )
    return f"; classes: {'; '.join(listed)}"


def _scale(data: Data) -> str:
    if data.scale is None:
        return ""
    what = "the noise" if data.scale.of == "noise" else "all"
    read = f", {data.scale.name}," if data.scale.name else ""
    return f"; {what} of a sample times a random factor{read} of the law {data.scale.law}"


def _start(problem: Problem) -> str:
    if problem.initial is not None:
        return f"training goes on {problem.initial.in_words}"
    M, K = len(problem.features), len(problem.students)
    norms = ", ".join(f"{student.initial_norm:g}" for student in problem.students)
    what = f"{K} student{'s' * (K > 1)} with |w|^2/N = {norms}"
    if not M:
        return f"{what}, no features"
    overlaps = "; ".join(", ".join(f"{x:g}" for x in row) for row in problem.initial_R)
    return f"{what}, overlaps with {M} feature{'s' * (M > 1)}: {overlaps}"
