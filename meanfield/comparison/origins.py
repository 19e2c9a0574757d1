"""Functions and files that made results which are compared: two results of one problem may have different ones."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from meanfield.results.made_by import FINGERPRINTS, differences, to_json
from meanfield.results.schema import made_by_of


def different_origins(first: xr.Dataset, second: xr.Dataset, names: tuple[str, str]) -> str:
    """Sentences that say which functions and files two results do not have in common, or not for certain."""
    found, text = differences(made_by_of(first), made_by_of(second), names), ""
    certain = [change.words for change in found if change.certain]
    unsure = [change.words for change in found if not change.certain]
    if certain:
        text = f"They come from different versions of {'; '.join(certain)}: solve both again with what there is now. "
    if unsure:
        text += f"It is not known whether they come from one version of {'; '.join(unsure)}. "
    return text


def common_origins(results: Sequence[xr.Dataset]) -> dict[str, str]:
    """Attribute of a comparison with the fingerprints that all results have in common; none where they differ."""
    texts = {to_json(made_by_of(result)) for result in results}
    return {FINGERPRINTS: texts.pop()} if len(texts) == 1 else {}
