"""Problems of update rules in words."""

from __future__ import annotations

from meanfield.explanation.explanation import Statement
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.rule import arguments_of
from meanfield.ingredients.schedules.shapes import in_words_of

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
    """Sentences about a problem, in the order of its file.

    Parameters
    ----------
    look_up : bool
        Whether modules that the problem names may be imported: not for a problem that is stored in a result.

    Returns
    -------
    list of (str, str)
        Labels and sentences.
    """
    found = [("rule", _rule(problem, look_up)), ("data", _data(problem, look_up)), ("start", _start(problem))]
    if problem.side:
        starts = ", ".join(f"{name} = {side.start:g}" for name, side in problem.side.items())
        found.append(("side variables", f"{starts} at the start"))
    if problem.prior.name != "none":
        strength = in_words_of(problem.prior.strength)
        found.append(("prior", f"w loses phi(w)/N in a step, phi = {problem.prior.in_words} of strength {strength}"))
    return [*found, ("time", _time(problem))]


def _rule(problem: Problem, look_up: bool) -> str:
    model = problem.model
    numbers = [f"{name} = {in_words_of(value)}" for name, value in model.rule_parameters.items()]
    named = ", ".join([model.rule, *numbers])
    reads = " (not looked up)"
    if look_up and model.at_hand:
        rule = model.functions
        reads = f", reads {', '.join(arguments_of(rule.step, 'step'))}"
        reads += f"; bends or jumps where {', '.join(f'{kink} = 0' for kink in rule.kinks)}" if rule.kinks else ""
        reads += f"; measured: {', '.join(rule.measured)}" if rule.measured else ""
    samples = "one sample" if model.batch_size == 1 else f"{model.batch_size} samples"
    return f"{named}{reads}; {samples} per step; {AFTER_A_STEP[model.constraint]}"


def _data(problem: Problem, look_up: bool) -> str:
    data = problem.data
    size = f" of variance {data.noise:g}" if data.noise != 1.0 else ""
    kept = f"; {data.observed:.3g} of the coordinates are kept in a sample" if data.observed < 1.0 else ""
    coins = "".join(f"; {name} = 1 with probability {p:g}" for name, p in data.coins.items())
    normals = f"; standard normal numbers: {', '.join(data.normals)}" if data.normals else ""
    spectrum = "" if data.spectrum is None else f"; {data.spectrum.in_words('its covariance', look_up)}"
    laws = ", ".join(law.model_dump()["law"] for law in problem.hidden_laws)
    hidden = f"; {'joint law' if problem.hidden else 'law'} of c: {laws}" if laws else ""
    return f"{SIGNALS[data.signal]}{size}{spectrum}{hidden}{kept}{coins}{normals}"


def _start(problem: Problem) -> str:
    M, K = len(problem.features), len(problem.students)
    norms = ", ".join(f"{student.initial_norm:g}" for student in problem.students)
    what = f"{K} student{'s' * (K > 1)} with |w|^2/N = {norms}"
    if not M:
        return f"{what}, no features"
    overlaps = "; ".join(", ".join(f"{x:g}" for x in row) for row in problem.initial_R)
    return f"{what}, overlaps with {M} feature{'s' * (M > 1)}: {overlaps}"


def _time(problem: Problem) -> str:
    stop, N = problem.time.stop, problem.particles.dimension
    return f"{problem.time.in_words}; t = k/N, so that SGD with N = {N:,} takes {round(stop * N):,} steps"
