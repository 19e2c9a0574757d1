"""Figure S2 of the paper: KL(P, N) of mixtures on a line against alpha, for several numbers m of components.

The paper says that KL grows monotonically with alpha, and falls as components are added. Of means over mixtures both
are true. If the means of a mixture are multiplied by alpha, KL of each grows as well: for x = alpha u + z it is
alpha^2 E[u^2]/2 - I(x; u), whose derivative alpha (E[u^2] - mmse(u | x)) is never negative, since the derivative of the
mutual information is alpha times the least mean square error of u. If means are drawn anew for each alpha, as by the
paper's (17), single mixtures need not.

KL of the standardised mixture is much smaller. It grows as well, so that nothing in the law of one latent says why
standardised mixtures learn as one Gaussian does. 200 mixtures for each m; lines before standardisation use that
E[u^2] is 1/3.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS, curve_style
from validation.hidden_manifold.figures.discrepancy import above, all_of, with_error
from validation.hidden_manifold.figures.measured import standardised_divergence
from validation.hidden_manifold.figures.mixtures import divergence
from validation.study import Statement, Study

ALPHAS, COMPONENTS, MIXTURES = np.arange(10.0), (2, 3, 5, 10), 200

TOLERANCE = 1e-9
"""Error of the integrals."""


def theory() -> xr.Dataset:
    """KL of mixtures whose means are proportional to alpha, before and after standardisation."""
    rng = np.random.default_rng(0)
    shape = (len(COMPONENTS), MIXTURES, len(ALPHAS))
    KL, standardised, information = np.empty((3, *shape))
    for i, m in enumerate(COMPONENTS):
        for j in range(MIXTURES):
            means = rng.uniform(-1.0, 1.0, m)
            KL[i, j] = [divergence(alpha * means) for alpha in ALPHAS]
            information[i, j] = 0.5 * ALPHAS**2 * (means**2).mean() - KL[i, j]
            standardised[i, j] = [standardised_divergence(alpha * means) for alpha in ALPHAS]
    dims = ("m", "start", "alpha")
    return xr.Dataset(
        {
            "KL": (dims, KL, {"long_name": "KL(P, N(0, 1))"}),
            "information": (dims, information, {"long_name": "mutual information of a latent and its component"}),
            "KL_standardised": (dims, standardised, {"long_name": "the same of the standardised mixture"}),
        },
        {"m": list(COMPONENTS), "alpha": ALPHAS},
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether KL is monotonic in alpha and in m, on average and for single mixtures."""
    KL = numbers.KL
    steps = KL.diff("alpha")
    drawn_anew = [
        float((KL.isel(alpha=a + 1).values[:, :, None] < KL.isel(alpha=a).values[:, None, :]).mean())
        for a in range(4, KL.sizes["alpha"] - 1)
    ]
    fewer, more = KL.sel(m=2), KL.sel(m=10)
    more_known = numbers.information.sel(m=10) - numbers.information.sel(m=2)
    crossed = (more.sel(alpha=9).values[:, None] > fewer.sel(alpha=9).values[None, :]).mean()
    far = numbers.KL_standardised.sel(alpha=9) - numbers.KL_standardised.sel(alpha=1)
    return [
        Statement(
            "KL grows with alpha, on average over mixtures", "paper, section III.1, figure S2",
            all_of([above(steps.sel(m=m).isel(alpha=a)) for m in COMPONENTS for a in range(steps.sizes["alpha"])]),
            f"m = 2: {with_error(KL.sel(m=2, alpha=1))} at alpha = 1, {with_error(KL.sel(m=2, alpha=9))} at 9",
        ),
        Statement(
            "KL grows with alpha, for every mixture whose means are multiplied", "ours, mutual information",
            float(steps.min()) > -TOLERANCE, f"by {float(steps.min()):.1e} at least from one alpha to the next",
        ),
        Statement(
            "KL grows with alpha, for every mixture whose means are drawn anew", "paper, section III.1",
            max(drawn_anew) == 0.0, f"from alpha = 4 on it falls in {np.mean(drawn_anew):.0%} of steps by 1",
        ),
        Statement(
            "KL falls as components are added, on average over mixtures", "paper, section IV, figure S2",
            all_of([above(more_known.sel(alpha=a)) for a in ALPHAS[1:]]),
            f"the mean is alpha^2/6 less that of I(x; u), which is larger by {with_error(more_known.sel(alpha=9))} for "
            "m = 10 than for 2 at alpha = 9",
        ),
        Statement(
            "KL falls as components are added, for every mixture", "paper, section IV",
            float(crossed) == 0.0, f"one with m = 10 has the larger KL in {crossed:.0%} of pairs at alpha = 9",
        ),
        Statement(
            "standardised mixtures are the farther from normal the larger alpha is", "ours",
            all_of([above(far.sel(m=m)) for m in COMPONENTS]),
            ", ".join(f"m = {m}: {with_error(numbers.KL_standardised.sel(m=m, alpha=9))}" for m in COMPONENTS)
            + " at alpha = 9",
        ),
    ]  # fmt: skip


def draw(numbers: xr.Dataset) -> Figure:
    """Means over mixtures, before standardisation with half of all mixtures of two and ten components, and after."""
    figure, (before, after) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    for i, m in enumerate(COMPONENTS):
        at, style = numbers.sel(m=m), curve_style(i)
        if m in (COMPONENTS[0], COMPONENTS[-1]):
            low, high = (at.KL.quantile(share, "start") for share in (0.25, 0.75))
            before.fill_between(ALPHAS, low, high, color=COLOURS[i], alpha=0.15, lw=0)
        before.plot(ALPHAS, ALPHAS**2 / 6 - at.information.mean("start"), label=f"m = {m}", **style)
        after.plot(ALPHAS, at.KL_standardised.mean("start"), **style)
    before.fill_between([], [], [], color="0.5", alpha=0.3, label="half of the mixtures, m = 2 and 10")
    before.set(title="as drawn", ylabel=r"KL$(P, \mathcal{N})$")
    after.set_title("standardised")
    for axis in (before, after):
        axis.set(xlabel=r"$\alpha$", xlim=(0, 9), ylim=(0, None))
    before.legend(frameon=False)
    return figure


STUDY = Study(theory, judge, draw)
