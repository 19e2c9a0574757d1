"""Suggestions for misspelt words, and for names that other packages and papers use: the known word that was meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SAME = (
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
    # priors, penalties and losses
    "l1 lasso laplace absolute abs",
    "l2 ridge tikhonov weight_decay gaussian quadratic",
    "none no off flat uniform zero",
    "smooth_l1 huber",
    "log_cosh logcosh",
    "infonce info_nce simclr nt_xent ntxent",
)
"""Groups of names of one thing, here and elsewhere; where several are known, the first one of a group is suggested."""

GROUPS = tuple(tuple(group.split()) for group in SAME)


def meant_word(word: str, known: Iterable[str]) -> str | None:
    """The known word that differs from `word` in its case and hyphens alone, or is another name of the same thing."""
    ours = {_plain(other): other for other in known}
    given = _plain(word)
    same = [given, *(other for group in GROUPS if given in group for other in group)]
    return next((ours[other] for other in same if other in ours), None)


def nearest(word: str, known: Iterable[str]) -> str:
    """Suggestion of the known word that was meant or is closest to `word`, or the list of all known words."""
    words = list(known)
    meant = meant_word(word, words)
    if meant is None:
        folded = {other.casefold(): other for other in reversed(words)}
        meant = next((folded[close] for close in get_close_matches(word.casefold(), folded, n=1, cutoff=0.5)), None)
    return f"did you mean '{meant}'?" if meant is not None else f"known: {', '.join(sorted(words))}"


def _plain(word: str) -> str:
    return word.casefold().replace("-", "_").replace(" ", "_")
