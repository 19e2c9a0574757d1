"""What the studies of learnability and priors decide, on their numbers without SGD."""

import pytest

VERDICTS = {
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
}


SLOW = ("proposition_3", "learnability_with_priors")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in VERDICTS])
def test_verdicts(study, name):
    found = study(name)
    statements = found.judge(found.theory())
    assert {statement.text: statement.holds for statement in statements} == VERDICTS[name]
