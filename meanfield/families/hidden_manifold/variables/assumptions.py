"""Variables of reports on the assumptions of the conventional theory."""

from __future__ import annotations

from meanfield.families.hidden_manifold.variables.order_parameters import ORDER_PARAMETERS
from meanfield.mckean_vlasov.declarations import POSITIVE
from meanfield.problems.variable import Variable

_THEORIES = {
    "conventional": "by the theory of standard Gaussian latents",
    "matched": "by one Gaussian with the mean and covariance of the latents",
}

ASSUMPTIONS = {
    "regime": Variable(
        (),
        "kind of latents: Gaussian, I component per coordinate, II per sample, III means of length sqrt(N)",
        words=True,
        choices=("Gaussian", "I", "II", "III"),
    ),
    "component_mean_norm": Variable(
        ("component",), "length of the mean of latents in a component", range=POSITIVE, gaps="never"
    ),
    "teacher_field_mean": Variable(
        ("component", "teacher"), "mean of the teacher's fields in a component", gaps="never"
    ),
    "input_mean": Variable(
        ("component",), "root mean square of the means of inputs in a component", range=POSITIVE, gaps="never"
    ),
    "f_slope": Variable(("component",), "b = E[u f(s u)] in a component", gaps="never"),
    "f_square": Variable(("component",), "c = E[f(s u)^2] in a component", range=POSITIVE, gaps="never"),
    "radius_variance": Variable((), "variance of |C|^2/D from sample to sample, in the limit", range=POSITIVE),
    "kurtosis": Variable(("time", "student"), "kurtosis of the student's fields, 3 if Gaussian", range=POSITIVE),
    "teacher_kurtosis": Variable(("teacher",), "kurtosis of the teacher's fields, 3 if Gaussian", range=POSITIVE),
} | {
    f"{name}_{theory}": Variable(
        ORDER_PARAMETERS[name].dims,
        f"{ORDER_PARAMETERS[name].long_name.partition(',')[0]} {words}",
        gaps="unfinished",
    )
    for theory, words in _THEORIES.items()
    for name in ("Q", "R", "generalisation_error")
}
