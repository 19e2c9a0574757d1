"""Variables of densities of filters on the circle and the sphere."""

from __future__ import annotations

from math import inf

from meanfield.mckean_vlasov.declarations import POSITIVE, SPHERE_CELLS, cell_variables
from meanfield.problems.variable import Variable

MOMENT = (-1.01, 1.01)
"""Range of a moment, with room for the correction of its average over cells."""

DENSITY = {
    "time": Variable(("time",), "time t = eta k after k steps", range=POSITIVE, gaps="never", increasing=True),
    **cell_variables("angle", "angle of a filter in radians", "middle of a cell, or at the wall if there is one"),
    "rho": Variable(
        ("time", "angle"),
        "density of filters on the circle, averaged over a cell",
        range=(-1e-9, inf),
        gaps="unfinished",
    ),
    "harmonic": Variable(("harmonic",), "order k of a moment", range=POSITIVE, gaps="never", increasing=True),
    "moment_cos": Variable(
        ("time", "harmonic"), "moment E[cos k theta] of the filters", range=MOMENT, gaps="unfinished", compared=True
    ),
    "moment_sin": Variable(
        ("time", "harmonic"), "moment E[sin k theta] of the filters", range=MOMENT, gaps="unfinished", compared=True
    ),
    "moment_cos_error": Variable(("time", "harmonic"), "estimated error of that moment", range=POSITIVE),
    "moment_sin_error": Variable(("time", "harmonic"), "estimated error of that moment", range=POSITIVE),
    "G_error": Variable(("time",), "estimated error of the objective G", range=POSITIVE),
}

SPHERE = {
    **SPHERE_CELLS,
    "rho_on_sphere": Variable(
        ("time", "polar", "azimuth"),
        "density of filters on the sphere, averaged over a cell",
        range=(0.0, inf),
        gaps="unfinished",
    ),
    "mean": Variable(("time", "coordinate"), "mean E[w] of the filters", range=MOMENT, gaps="unfinished"),
    "second_moment": Variable(
        ("time", "coordinate", "other_coordinate"),
        "second moment E[w w^T] of the filters",
        range=MOMENT,
        gaps="unfinished",
    ),
    "mean_error": Variable(("time", "coordinate"), "estimated error of that moment", range=POSITIVE),
    "second_moment_error": Variable(
        ("time", "coordinate", "other_coordinate"), "estimated error of that moment", range=POSITIVE
    ),
}
