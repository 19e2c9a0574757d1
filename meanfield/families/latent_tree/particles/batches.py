"""Batches of views, and the derivative of their loss by the outputs of the network (latent_tree.md, section 1.2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from meanfield.families.latent_tree.particles.samples import Sampler
from meanfield.families.latent_tree.problem import Problem
from meanfield.networks.contrast import TRIPLES, Contrast, nt_xent
from meanfield.typing import FloatArray

Slope = Callable[[Contrast, FloatArray], tuple[float, FloatArray]]
"""Mean loss of a batch, and its derivative, from outputs of shape (views of a sample, samples, outputs)."""


def draw_batch(problem: Problem, sampler: Sampler, rng: Generator) -> FloatArray:
    """Inputs of a batch: anchors, positives, negatives; and for `exact` the samples themselves.

    Returns
    -------
    ndarray, shape (views of a sample, anchors, leaves)
    """
    B, kind = problem.training.batch_size, problem.loss.kind
    roots = sampler.roots(rng, B)
    views = [roots, roots]
    if kind != "nt_xent":
        others = [sampler.roots(rng, B) for _ in range(problem.loss.negatives)]
        views += others
        if kind == "exact":
            views += [roots, *others]
    return sampler.views(rng, np.concatenate(views)).reshape(len(views), B, -1)


def batch_slope(contrast: Contrast, outputs: FloatArray) -> tuple[float, FloatArray]:
    """Mean loss of a batch, and its derivative by the outputs.

    Parameters
    ----------
    contrast : Contrast
    outputs : ndarray, shape (views of a sample, anchors, outputs)
        In the order of `draw_batch`.
    """
    B = outputs.shape[1]
    if contrast.kind == "nt_xent":
        value, slope = nt_xent(np.swapaxes(outputs, 0, 1), contrast.temperature)
        return value, np.swapaxes(slope, 0, 1)
    H = contrast.negatives
    gaps = outputs[0] - outputs[1 : 2 + H]  # to the positive, and to the negatives
    r = 0.5 * (gaps * gaps).sum(axis=-1)
    if contrast.kind in TRIPLES:
        found = contrast.of_triples(r[0], np.moveaxis(r[1:], 0, -1))
        value = float(found.value.mean())
        by_distance = np.stack([found.positive, *np.moveaxis(found.negative, -1, 0)]) / B
    elif contrast.kind == "exact":
        samples = outputs[2 + H :]
        apart = samples[0] - samples[1:]
        weight = contrast.weight(0.5 * (apart * apart).sum(axis=-1))
        value = float((weight * (r[0] - r[1:])).sum(axis=0).mean())
        by_distance = np.concatenate([weight.sum(axis=0, keepdims=True), -weight]) / B
    else:
        value, share = contrast.of_batch_means(float(r[0].mean()), float(r[1].mean()), outputs.shape[-1])
        by_distance = np.stack([np.full(B, share), np.full(B, -share)]) / B
    slope = np.zeros_like(outputs)
    pulls = by_distance[..., None] * gaps
    slope[0], slope[1 : 2 + H] = pulls.sum(axis=0), -pulls
    return value, slope
