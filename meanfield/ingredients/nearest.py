"""Suggestions for misspelt words, names of other packages and papers, and numbers: what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

SYNONYMS = (
    # methods and commands
    "particles sgd simulate_sgd simulate simulation train training train_on_images",
    "order_parameters ode odes macroscopic",
    "density pde fokker_planck mckean_vlasov mean_field",
    "stationary equilibrium rest at_rest",
    "validate explain check",
    # laws
    "gaussian normal gauss",
    "gaussian_mixture gmm mixture mixture_of_gaussians",
    "laplace laplacian double_exponential",
    "rademacher sign spin binary bernoulli",
    "student_t student t t_distribution",
    "empirical samples data csv npy file",
    "points atoms discrete categorical",
    # activations
    "linear identity id",
    "quadratic square squared",
    "cubic cube",
    "abs absolute absolute_value",
    "relu rectifier rectified_linear",
    "hard_tanh clip hardtanh",
    "sigmoid logistic expit",
    "silu swish",
    "sin sine",
    "step heaviside indicator",
    "sign sgn",
    # priors, penalties, losses and keys
    "l1 lasso laplace absolute abs",
    "l2 ridge tikhonov weight_decay gaussian quadratic",
    "learning_rate lr eta step_size rate",
    "none no off flat uniform zero",
    "smooth_l1 huber",
    "log_cosh logcosh",
    "infonce info_nce simclr nt_xent ntxent",
)
"""Groups of names of one thing, here and elsewhere; where several are known, the first one of a group is suggested."""

GROUPS_OF_SYNONYMS = tuple(tuple(group.split()) for group in SYNONYMS)


def meant_word(word: str, known: Iterable[str]) -> str | None:
    """The known word that differs from `word` in its case and hyphens alone, or is another name of the same thing."""
    ours = {_plain(other): other for other in known}
    given = _plain(word)
    same = [given, *(other for group in GROUPS_OF_SYNONYMS if given in group for other in group)]
    return next((ours[other] for other in same if other in ours), None)


def nearest(word: str, known: Iterable[str]) -> str:
    """Suggestion of the known word that was meant or is closest to `word`, or the list of all known words."""
    words = list(known)
    meant, (head, _, last) = meant_word(word, words), word.rpartition(".")
    if meant is None and head:  # a key within a table
        beside = [other.removeprefix(f"{head}.") for other in words if other.startswith(f"{head}.")]
        meant = next((f"{head}.{other}" for other in [meant_word(last, beside)] if other), None)
    if meant is None:
        folded = {other.casefold(): other for other in reversed(words)}
        meant = next((folded[close] for close in get_close_matches(word.casefold(), folded, n=1, cutoff=0.5)), None)
    return f"did you mean '{meant}'?" if meant is not None else f"known: {', '.join(sorted(words))}"


def _plain(word: str) -> str:
    return word.casefold().replace("-", "_").replace(" ", "_")


_SLIP = re.compile(r"([-+]?)([\d.,]*\d[\d.,]*)((?:[eE][-+]?\d+)?)\s*([A-Za-zµ]*)")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d+)?")


def meant_number(text: str) -> str | None:
    """Remedy that names the number that a text was probably meant as, in TOML; None if it was meant as none.

    >>> meant_number("0,5")
    'write 0.5, with a decimal point'
    """
    found = _SLIP.fullmatch(text.strip())
    if found is None:
        return None
    sign, digits, exponent, unit = found.groups()
    grouped = _THOUSANDS.fullmatch(digits) is not None
    plain = digits.replace(",", "" if grouped else ".")
    if plain.count(".") > 1:
        return None
    whole, point, fraction = plain.partition(".")
    number = f"{sign}{whole.lstrip('0') or '0'}{point and f'.{fraction or 0}'}{exponent}"
    reasons = ["without commas"] if grouped else ["with a decimal point"] if "," in digits else []
    reasons += ["without a unit, since all quantities are dimensionless"] if unit else []
    return ", ".join([f"write {number}", *reasons])
