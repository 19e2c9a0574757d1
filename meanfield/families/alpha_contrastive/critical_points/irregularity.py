"""Irregularity of the data on the hyperplane that a filter switches at, which bounds its roughness (theorem 2).

For an importance with features phi_l >= 0 it is r(w) = sum_l z_l^2 max p_l(x) over x with w.x = 0, where
p_l = phi_l p/z_l and z_l = E phi_l. On the hyperplane outputs are h(0), so that features are constant there:
r = E K(h(0), h(y)) max p, with K = 1 or e^{-D/tau}. The largest density of a mixture of Gaussians on a hyperplane is
reached from means of components.
"""

from __future__ import annotations

import numpy as np

from meanfield.families.alpha_contrastive.critical_points.arrangement import null_space
from meanfield.families.alpha_contrastive.limit.kernel_mixture import KernelMixtureField
from meanfield.families.alpha_contrastive.limit.mixture import MixtureField
from meanfield.typing import FloatArray


def irregularity(field: MixtureField | KernelMixtureField, w: FloatArray) -> float:
    """Irregularity r of a filter; NaN for views, importances without such features, or h with no kink at 0 alone."""
    straight = (field.linear, field.rectified) if isinstance(field, MixtureField) else field.filter.straight
    if straight is None or straight[1] == 0.0 or field.augments:
        return np.nan
    if isinstance(field, MixtureField) or field.pairs.uniform:
        return largest_on_plane(field, w)
    if field.pairs.kernel is None:
        return np.nan
    nodes = field.nodes(w)
    share = float(nodes.weight @ field.pairs.kernel.value(0.5 * nodes.output**2))  # h(0) = 0
    return share * largest_on_plane(field, w)


def largest_on_plane(field: MixtureField | KernelMixtureField, w: FloatArray) -> float:
    """Largest density of the mixture on the hyperplane w.x = 0."""
    basis = null_space(w[None], len(w))
    v = field.covariance @ w
    variance, centre = v @ w, field.mean @ w
    mean = (field.mean - v * (centre / variance)[:, None]) @ basis
    within = np.einsum(
        "ia,cij,jb->cab", basis, field.covariance - v[:, :, None] * v[:, None] / variance[:, None, None], basis
    )
    height = field.weight * np.exp(-0.5 * centre**2 / variance) / np.sqrt(2.0 * np.pi * variance)
    height = height / np.sqrt(np.linalg.det(2.0 * np.pi * within))
    inverse = np.linalg.inv(within)
    return max(_climbed(mean, inverse, height, start) for start in mean)


def _climbed(mean: FloatArray, inverse: FloatArray, height: FloatArray, y: FloatArray) -> float:
    """Density at the maximum above a point, by means under the shares of components, which never step down."""
    density = 0.0
    for _ in range(1000):
        away = y - mean
        parts = height * np.exp(-0.5 * np.einsum("ca,cab,cb->c", away, inverse, away))
        if parts.sum() <= density * (1.0 + 1e-14):  # rounding
            break
        density = float(parts.sum())
        y = np.linalg.solve(np.einsum("c,cab->ab", parts, inverse), np.einsum("c,cab,cb->a", parts, inverse, mean))
    return density
