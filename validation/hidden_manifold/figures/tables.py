"""Discrepancies of each entry of Q, R and v, for m = 2 and standardised mixtures: what tables 1 and 2 share."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS
from validation.hidden_manifold.figures.discrepancy import (
    STANDARD_ERRORS,
    above,
    alike,
    mean_and_error,
    ratio_with_error,
    statement,
    with_error,
    written,
)
from validation.hidden_manifold.figures.laws import GAUSSIAN, STANDARDISED
from validation.hidden_manifold.figures.measured import METRICS, discrepancies
from validation.hidden_manifold.figures.printed_tables import ENTRIES
from validation.hidden_manifold.figures.sweep import READINGS
from validation.pages import markdown_table
from validation.study import Statement

MIXTURES_KEPT = 10
"""Number of mixtures over which the paper takes its means."""


def table_numbers(activation: str, printed: np.ndarray) -> xr.Dataset:
    """Discrepancies by start, law, alpha and entry, beside the printed ones."""
    numbers = discrepancies(activation)
    gaussian = {
        kind: _entries(numbers, f"sgd_{{}}_{kind}").mean("run") for kind in (GAUSSIAN, "printed", "real", "limit")
    }
    mixtures = _entries(numbers, "sgd_{}").sel(m=2, drop=True)
    return xr.Dataset(
        {
            "sgd_rmse": mixtures,
            "sgd_gaussian": gaussian[GAUSSIAN],
            "sgd_printed_form": gaussian["printed"],
            "sgd_real": gaussian["real"],
            "sgd_limit": gaussian["limit"],
            "scale": _entries(numbers, "scale_{}"),
            "printed": (("row", "entry"), printed[:-1]),
            "printed_scale": ("entry", printed[-1]),
        },
        {"row": np.arange(len(printed) - 1)},
        numbers.attrs,
    )


def _entries(numbers: xr.Dataset, name: str) -> xr.DataArray:
    """The entries of Q, R and v along one dim, in the order of the tables."""
    parts = []
    for metric in METRICS:
        values = numbers[name.format(metric)]
        dims = [dim for dim in ("student", "student_", "teacher") if dim in values.dims]
        parts.append(values.stack(entry=dims).reset_index("entry", drop=True).reset_coords(drop=True))
    return xr.concat(parts, "entry").assign_coords(entry=list(ENTRIES))


def table_statements(numbers: xr.Dataset, place: str) -> list[Statement]:
    """Statements of the paper on its tables, and on how they were made."""
    found = [_same_for_all_alpha(numbers, law, place) for law in READINGS]
    gaussian, printed = numbers.sgd_gaussian, numbers.printed
    coordinate = numbers.sgd_rmse.sel(law=STANDARDISED["coordinate"]).mean("alpha")
    off, on = coordinate.sel(entry=["Q01"]).mean("entry"), coordinate.sel(entry=["Q00", "Q11"]).mean("entry")
    less = above(on - off)
    found.append(
        Statement(
            "entries of Q off the diagonal have smaller discrepancies", f"paper, appendix F, {place}", less,
            f"{with_error(off)} off, {with_error(on)} on the diagonal",
        )
    )  # fmt: skip
    off, on = (coordinate.sel(entry=entries).mean("entry") for entries in (["R01", "R10"], ["R00", "R11"]))
    found.append(
        Statement(
            "entries of R on the diagonal have smaller discrepancies: a different numbering of students or teachers "
            "exchanges both", f"paper, appendix F, {place}",
            False if alike(on / off) else above(off - on),
            f"on the diagonal {ratio_with_error(on / off)} times those off it",
        )
    )  # fmt: skip
    column = printed.sel(entry=["Q01", "Q10"]).values
    found.append(
        Statement(
            "the columns of Q_01 and Q_10 are discrepancies of a symmetric matrix", f"paper, {place}",
            np.array_equal(column[:, 0], column[:, 1]), f"{column[0, 0]:.3f} and {column[0, 1]:.3f} at alpha = 0",
        )
    )  # fmt: skip
    sizes = {
        "sgd_gaussian": ("the root mean square difference", f"paper, {place}"),
        "sgd_printed_form": ("(18) as printed, with absolute values", f"paper, (18), {place}"),
    }
    found += [_is_size_of_noise(numbers, measure, *said) for measure, said in sizes.items()]
    found.append(_nearest_to_print(numbers))
    real = numbers.sgd_real
    found.append(
        Statement(
            "(18) as printed is a real number", f"paper, (18), {place}", bool((real == 1).all()),
            f"its root is real at {with_error(real)} of the times",
        )
    )  # fmt: skip
    spread = gaussian.std("start", ddof=1) / gaussian.mean("start") / np.sqrt(MIXTURES_KEPT)
    rows = printed.std("row", ddof=1) / printed.mean("row")
    found.append(
        Statement(
            "the printed rows share their starts: ten fresh starts for each would differ more", "ours",
            bool(float(rows.mean()) < 0.5 * float(spread.mean())),
            f"printed rows differ by {float(rows.mean()):.1%}, fresh starts by {float(spread.mean()):.1%}",
        )
    )  # fmt: skip
    found.append(_sizes(numbers))
    return found


def _same_for_all_alpha(numbers: xr.Dataset, law: str, place: str) -> Statement:
    """Whether discrepancies of a reading are those of N(0, 1)."""
    values = numbers.sgd_rmse.sel(law=STANDARDISED[law])
    far = {name: _of(values.sel(alpha=[7, 8, 9]).mean("alpha"), name) for name in METRICS}
    ratios = {name: far[name] / _of(numbers.sgd_gaussian, name) for name in METRICS}
    return statement(
        f"{READINGS[law]}: discrepancies are the same for all alpha",
        f"paper, {place}",
        {name: alike(ratio) for name, ratio in ratios.items()},
        {name: f"{ratio_with_error(ratio)} times as large at alpha = 7 to 9 as at 0" for name, ratio in ratios.items()},
    )


def _of(values: xr.DataArray, name: str) -> xr.DataArray:
    """Mean over the entries of Q, R or v."""
    return values.sel(entry=[entry for entry in ENTRIES if entry.startswith(name)]).mean("entry")


def _is_size_of_noise(numbers: xr.Dataset, measure: str, said: str, source: str) -> Statement:
    """Whether printed discrepancies under N(0, 1) are those of SGD and ODE from ten of our starts."""
    verdicts, shown = {}, {}
    for name in METRICS:
        ours, theirs = _of(numbers[measure], name), float(_of(numbers.printed.isel(row=0), name))
        mean, error = mean_and_error(ours)
        error *= np.sqrt(1.0 + ours.sizes["start"] / MIXTURES_KEPT)  # the printed mean is one over ten starts
        verdicts[name] = abs(theirs - mean) <= STANDARD_ERRORS * error
        shown[name] = f"printed {theirs:.4f}, here {written(mean, error)}"
    return statement(f"at alpha = 0 the printed discrepancies have the size of {said}", source, verdicts, shown)


def _nearest_to_print(numbers: xr.Dataset) -> Statement:
    """Whether an ODE that starts from the overlaps of the limit gives the printed sizes better than the paper's own."""
    measures = {
        "sgd_limit": "that ODE",
        "sgd_gaussian": "the ODE from the own start",
        "sgd_printed_form": "(18) as printed",
    }
    printed = numbers.printed.isel(row=0)
    factors = {
        said: np.exp(np.mean([abs(np.log(_of(numbers[measure], m).mean("start") / _of(printed, m))) for m in METRICS]))
        for measure, said in measures.items()
    }
    return Statement(
        "nearest to print is the difference from an ODE that starts from the overlaps of the limit", "ours",
        min(factors, key=lambda said: factors[said]) == measures["sgd_limit"],
        "Q, R and v are off by a mean factor of " + ", ".join(f"{x:.1f} by {said}" for said, x in factors.items()),
    )  # fmt: skip


def _sizes(numbers: xr.Dataset) -> Statement:
    """Whether normal initial weights give the printed means of the order parameters."""
    verdicts, shown = {}, {}
    groups = {"Q_kk": ("Q00", "Q11"), "Q_01": ("Q01",), "R": ENTRIES[4:8], "v": ENTRIES[8:]}
    for name, entries in groups.items():
        ours = numbers.scale.sel(entry=list(entries)).mean("entry")
        theirs = float(numbers.printed_scale.sel(entry=list(entries)).mean())
        mean, error = mean_and_error(ours)
        error *= np.sqrt(1.0 + ours.sizes["start"] / MIXTURES_KEPT)
        verdicts[name] = abs(theirs - mean) <= STANDARD_ERRORS * error
        shown[name] = f"printed {theirs:.3f}, here {written(mean, error)}"
    return statement(
        "printed means of sizes are those of initial weights N(0, 1) in both layers", "ours", verdicts, shown
    )


def table_page(numbers: xr.Dataset) -> str:
    """The table of the paper at alpha = 0 and 9 beside ours."""
    laws = {STANDARDISED[law]: said for law, said in READINGS.items()}
    rows = [
        ["printed, alpha = 0", *(f"{x:.3f}" for x in numbers.printed[0].values)],
        ["printed, alpha = 9", *(f"{x:.3f}" for x in numbers.printed[-1].values)],
        ["N(0, 1)", *(with_error(numbers.sgd_gaussian.sel(entry=entry)) for entry in ENTRIES)],
        *(
            [f"{said}, alpha = 9", *(with_error(numbers.sgd_rmse.sel(law=law, alpha=9, entry=e)) for e in ENTRIES)]
            for law, said in laws.items()
        ),
        ["N(0, 1), ODE from the limit", *(with_error(numbers.sgd_limit.sel(entry=entry)) for entry in ENTRIES)],
        ["N(0, 1), (18) as printed", *(with_error(numbers.sgd_printed_form.sel(entry=entry)) for entry in ENTRIES)],
        ["printed mean of the size", *(f"{x:.3f}" for x in numbers.printed_scale.values)],
        ["mean of the size", *(with_error(numbers.scale.sel(entry=entry)) for entry in ENTRIES)],
    ]
    return markdown_table(("m = 2, standardised", *ENTRIES), rows)


def draw_table(numbers: xr.Dataset) -> Figure:
    """Discrepancies of all entries, with standard errors: printed rows, and both readings at alpha = 0 and 9."""
    figure, axis = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
    place = np.arange(len(ENTRIES))
    low, high = numbers.printed.min("row"), numbers.printed.max("row")
    axis.bar(place, (high - low) + 2e-4, 0.8, bottom=low - 1e-4, color="0.55", label="printed, alpha = 0 to 9")
    shown = {
        "N(0, 1)": (numbers.sgd_gaussian, "o", "0.2"),
        **{
            f"{said}, alpha = 9": (numbers.sgd_rmse.sel(law=STANDARDISED[law], alpha=9), marker, colour)
            for (law, said), marker, colour in zip(READINGS.items(), "s^", COLOURS, strict=False)
        },
        "N(0, 1), ODE from the limit": (numbers.sgd_limit, "D", COLOURS[3]),
        "N(0, 1), (18) as printed": (numbers.sgd_printed_form, "x", COLOURS[2]),
    }
    for i, (label, (values, marker, colour)) in enumerate(shown.items()):
        mean = values.mean("start")
        error = values.std("start", ddof=1) / np.sqrt(values.sizes["start"])
        at = place + 0.16 * (i - 2.0)
        axis.errorbar(at, mean, error, fmt=marker, color=colour, ms=5, capsize=2, label=label)
    axis.set_yscale("log")
    names = [f"${name[0]}_{{{name[1:]}}}$" for name in ENTRIES]
    axis.set_xticks(place, names)
    axis.set_ylabel("tLog-RMSE for m = 2, standardised")
    axis.grid(axis="y", color="0.92")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure
