"""What the studies of figures decide: on their numbers without SGD, and, in the slow suite, with SGD."""

import pytest

VERDICTS = {
    "figure_2a": {
        "a start at Q = 0.1 goes to Q = 0 for m2 = 0.9 and 1.0": True,
        "a start at Q = 0.1 leaves it for m2 = 1.1": True,
    },
    "figure_2b": {
        "Q = 0 is stable at m2 = 0.9": True,
        "Q = 0 is stable at m2 = 1.0": True,
        "Q = 0 is unstable at m2 = 1.1": True,
        "no stable state near Q = 1 at m2 = 0.9": True,
        "a stable state near Q = 1 at m2 = 1.0": True,
        "a stable state near Q = 1 at m2 = 1.1": True,
    },
    "figure_4": {
        "x^2: independent noise makes the similarity smaller and smaller": True,
        "x^2: opposite noise makes it larger over a broad range, with an optimum": True,
        "x^2: recovery vanishes at a critical eta": True,
        "ReLU: independent noise makes the similarity smaller and smaller": True,
        "ReLU: opposite noise makes it larger over a broad range, with an optimum": True,
        "ReLU: recovery vanishes at a critical eta": True,
    },
    "figure_6a": {
        "recovery vanishes below m_l, between 0.9 and 1.0": True,
        "Q = 0 is unstable above m_u, between 1.0 and 1.1": True,
        "m_u is that of Proposition 3": True,
        "higher moments do not affect the stability of Q = 0, whatever the activation": True,
        "two fixed points at m2 = 1, Q = 0 and one near Q = 1": False,
        "the larger m2, the fewer starts end at Q = 0": True,
    },
    "figure_6b": {
        "from Q = 0.1, 1.1 of the second moments are retrieved, others are not": True,
        "from Q = 0.3, 1.0 and 1.1 of the second moments are retrieved, others are not": True,
        "the attraction region of Q = 0 shrinks as m2 grows": True,
    },
    "figure_10a": {
        "h falls with eta at every Q": True,
        "the fixed point near Q = 1 vanishes when eta > 0.2": True,
        "(S-55) verifies this, at a tau/m at which figures 2 and 6 hold": False,
        "noise raises the variance of the gradient": True,
        "h falls without m4 >= 3 and m6 >= 15, which Claim 3 asks for": True,
    },
    "figure_10b": {
        "as eta goes from 0 to 1, h first rises and then falls at every Q": True,
        "as h rises, the region that leads to Q = 0 shrinks and that of recovery grows": True,
        "as h rises, so does the Q of recovery": True,
        "negative correlation can lower the variance of the gradient": True,
        "weak noise raises h at every Q": True,
        "weak noise raises h without m4 > 3, which Claim 4 asks for": True,
        "the gain at first order is that of (S-56)": False,
    },
    "figure_11a": {
        "without centring: at m2 = 1.1 there is only Q = 0": True,
        "without centring: a larger m2 makes recovery emerge and then Q = 0 unstable, at some tau/m": False,
        "without centring: the larger m2, the easier to retrieve": True,
        "without centring: the threshold of m2 is larger than for x^2, at some tau/m": False,
        "with centring: at m2 = 1.1 there is only Q = 0": True,
        "with centring: a larger m2 makes recovery emerge and then Q = 0 unstable, at some tau/m": True,
        "with centring: the larger m2, the easier to retrieve": True,
        "with centring: the threshold of m2 is larger than for x^2, at some tau/m": False,
        "with centring: one tau/m has both, with recovery from an m2 above 1.1 on": True,
    },
    "figure_11b": {
        "without centring: the fixed point near Q = 1 emerges as eta grows": True,
        "without centring: its region expands as eta grows": True,
        "with centring: the fixed point near Q = 1 emerges as eta grows": True,
        "with centring: its region expands as eta grows": True,
    },
    "figure_3a": {
        "all stable fixed points lie on the axes: only one feature is learnt": True,
        "the fixed point with both overlaps is unstable": True,
        "Q1 = Q2 = 0 is an unstable fixed point": True,
        "the attraction region of the second feature is larger than that of the first": True,
    },
    "figure_3b": {
        "the feature with the highest second moment is not necessarily the one that is learnt": True,
        "only one feature is learnt, the other is discarded": True,
        "the first feature grows at first, where the second is learnt in the end": True,
    },
    "figure_7": {
        "equal laws give mirror images of dQ1/dt and dQ2/dt": True,
        "with Gaussian c and m2 = 1, m4 = 3, m6 = 15 a feature can be learnt": False,
        "with unequal laws both overlaps grow near the origin": True,
        "the Gaussian law with m2 = 1.2 has m6 = 25.95": False,
    },
    "figure_9": {
        "four fixed points in total, (a)": False,
        "the fixed point near (0, 0) is unstable, (a)": True,
        "the fixed point with both overlaps is unstable, (a)": True,
        "the fixed points near (1, 0) and (0, 1) are stable, (a)": True,
        "the attraction region of feature 2 is larger than that of feature 1, (a)": True,
        "four fixed points in total, (b)": True,
        "the fixed point near (0, 0) is unstable, (b)": True,
        "the fixed point with both overlaps is unstable, (b)": True,
        "the fixed points near (1, 0) and (0, 1) are stable, (b)": True,
        "the attraction region of feature 2 is larger than that of feature 1, (b)": True,
        "from a random start near the origin features are learnt in proportion to their regions, (b)": False,
    },
    "figure_8": {
        "four fixed points in total, gaussian, m2 = 1.0": False,
        "four fixed points in total, gaussian, m2 = 1.1": False,
        "the fixed point near (0, 0) is stable at m2 = 1.0 and unstable at m2 = 1.1, gaussian": True,
        "the fixed point near (0.5, 0.5) is unstable in both cases, gaussian": False,
        "the fixed points near (1, 0) and (0, 1) are stable in both cases, gaussian": False,
        "four fixed points in total, three-point, m2 = 1.0": False,
        "four fixed points in total, three-point, m2 = 1.1": True,
        "the fixed point near (0, 0) is stable at m2 = 1.0 and unstable at m2 = 1.1, three-point": True,
        "the fixed point near (0.5, 0.5) is unstable in both cases, three-point": True,
        "the fixed points near (1, 0) and (0, 1) are stable in both cases, three-point": True,
        "(S-50) as printed has four fixed points with the caption's Gaussian laws, m2 = 1.1": True,
    },
    "proposition_3": {
        "only the second moment of c matters, for c of mean 0 and ReLU": True,
        "only the second moment of c matters, whatever its mean, for centred tanh": False,
        "a larger second moment is easier to learn, whatever the activation": False,
        "independent noise raises the threshold of quadratic": True,
        "opposite noise lowers the threshold of quadratic": True,
        "independent noise raises the threshold of relu": True,
        "opposite noise lowers the threshold of relu": False,
        "independent noise raises the threshold of tanh": True,
        "opposite noise lowers the threshold of tanh": False,
        "independent noise raises the threshold of hard_tanh": False,
        "opposite noise lowers the threshold of hard_tanh": True,
    },
    "learnability_with_priors": {
        "Prop. 3's threshold is that of every prior with an even potential": True,
        "such priors slow down growth": True,
        "a potential that is not even raises the threshold": True,
    },
    "sparse_prior": {
        "l1 does no good to a Gaussian feature (u: Gaussian)": True,
        "l1 raises the similarity of a sparse feature (u: 1 in 5)": True,
        "l1 raises the similarity of a sparse feature (u: 1 in 20)": True,
        "the best strength is not the one with most weights near 0": True,
    },
    "condensation": {
        "the mean size of surviving weights grows like t under l1": True,
        "the flow of quantiles has the shares of the closed equation": True,
        "the share beyond w_c falls like 1/(e (1 + 2 s)) under cauchy": True,
        "the share beyond w_c falls like s^-4 under |w|^1.5": True,
        "the density has the shares of the flow under cauchy, at Lambda = 0.02 Lambda_c": True,
    },
    "selection": {
        "K of the separatrix is known to six digits": True,
        "the chance of the slower feature goes to 0 with N": True,
    },
}

WITH_SGD = {
    "figure_2a": {
        "simulations lie on the curves of the reduced ODE": True,
        "simulations lie on the curves of the printed equation (12)": False,
    },
    "figure_2b": {
        "the reduced ODE is the drift of SGD": True,
        "the printed equation (12) is the drift of SGD": False,
    },
    "figure_4": {
        "SGD has the similarity of the ODE's state, and none at the 4 eta beyond the critical ones": True,
    },
    "figure_6b": {"every run of SGD ends where the ODE does": True},
    "figure_10a": {
        "the reduced ODE is the drift of SGD": True,
        "the printed equation (S-62) is the drift of SGD": False,
        "h without noise minus the loss of Claim 3 is the drift of SGD": False,
    },
    "figure_10b": {
        "the reduced ODE is the drift of SGD": True,
        "the printed equation (S-65) is the drift of SGD": False,
        "h without noise plus the gain of (S-56), at eta = 0.1, is the drift of SGD": False,
    },
    "figure_11a": {
        "the reduced ODE without centring is the drift of SGD": True,
        "the reduced ODE with centring is the drift of SGD": True,
    },
    "figure_11b": {
        "the reduced ODE without centring is the drift of SGD": True,
        "the reduced ODE with centring is the drift of SGD": True,
    },
    "selection": {
        "the asymptotic chance is that of SGD within 3 standard errors and 60/N, N >= 1000": True,
        "the asymptotic chance is that of SGD at N = 100 within 3 standard errors": False,
        "with noise at finite N the chance is that of SGD within 3 standard errors, N >= 300": True,
        "escape times of one feature have the closed form's law at N >= 1000": True,
    },
}
"""Further statements. At the rates that the studies give, new seeds raise a false alarm once in 50 runs of all but
`selection`, where one seed in 8 would: there are seven looks at 3 standard errors and two at one in 100, and at
N = 100 the formula is 4.4 standard errors off, so that it is within 3 by chance for one seed in 12."""

TWO_FEATURES = ("figure_3a", "figure_3b", "figure_7", "figure_8", "figure_9")
"""Figures that show theory without SGD."""

SLOW = (
    *("figure_3a", "figure_4", "figure_6a", "figure_8", "figure_9", "figure_10a", "figure_10b", "figure_11a"),
    *("sparse_prior", "proposition_3", "learnability_with_priors", "condensation"),
)
"""Studies that take seconds. Others look for fixed points and for the effect of noise by the same functions; tests of
learnability and of condensation hold thresholds, shares and their limit laws against closed forms."""
ONE_FEATURE = [name for name in VERDICTS if name.startswith("figure") and name not in TWO_FEATURES]


def decided(statements):
    return {statement.text: statement.holds for statement in statements}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in VERDICTS])
def test_verdicts(study, name):
    found = study(name)
    numbers = found.theory()
    assert decided(found.judge(numbers)) == VERDICTS[name]
    if name in TWO_FEATURES:
        found.draw(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ONE_FEATURE, "selection"])
def test_verdicts_with_sgd(study, name):
    found = study(name)
    assert decided(found.judge(found.numbers())) == VERDICTS[name] | WITH_SGD.get(name, {})
