"""Largest energy of a filter of a field, on the circle or the sphere: what certificates compare with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield.families.alpha_contrastive.critical_points.circle import circle_points
from meanfield.families.alpha_contrastive.critical_points.mixture import mixture_points
from meanfield.families.alpha_contrastive.critical_points.sphere import sphere_points
from meanfield.families.alpha_contrastive.laws import Tokens
from meanfield.families.alpha_contrastive.limit.circle import on_circle, tangential
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.fields import AnyField, scale_of_angles
from meanfield.families.alpha_contrastive.limit.networks import best_on_circle
from meanfield.families.alpha_contrastive.problem import Problem


def best_energy(problem: Problem) -> Callable[[AnyField], float]:
    """Function of a field of filters that returns the largest energy of one of them."""
    settings = problem.critical_points

    def in_plane(field: AnyField) -> float:
        longest = scale_of_angles(problem)
        if isinstance(field, DiscreteField):
            return float(best_on_circle(field, longest)[1].max(initial=0.0))
        points = circle_points(tangential(field), np.empty(0), longest)
        return float(field.energy(on_circle(np.array([point.angle for point in points]))).max(initial=0.0))

    def in_space(field: AnyField) -> float:
        if isinstance(field, DiscreteField):
            points = [point.w for point in sphere_points(field, settings.starts, settings.seed)[0]]
        else:
            points = [w for w, _ in mixture_points(field, settings.starts, settings.seed)]
        return float(field.energy(np.array(points).reshape(-1, 3)).max(initial=0.0))

    assert not isinstance(problem.data, Tokens)
    return in_plane if problem.data.dimension == 2 else in_space
