"""Wording of hidden-manifold problems: sentences about inputs, networks, training and time."""

from __future__ import annotations

import numpy as np

from meanfield.families.hidden_manifold.inputs import CENTRED, Component, Inputs
from meanfield.families.hidden_manifold.problem import Network, Problem
from meanfield.families.hidden_manifold.spectra import Atoms, SpectrumFile
from meanfield.ingredients.user_functions import is_address

Statement = tuple[str, str]
"""Label of a sentence, and the sentence."""


def in_words(problem: Problem, look_up: bool = True) -> list[Statement]:
    """Sentences about a problem, in the order of its file.

    Parameters
    ----------
    problem : Problem
    look_up : bool
        Whether modules and files that the problem names may be opened: not for a problem that is stored in a result.

    Returns
    -------
    list of (str, str)
        Labels and sentences.
    """
    inputs = problem.inputs
    return [
        ("inputs", _nonlinearity(inputs, look_up or not is_address(inputs.nonlinearity))),
        ("spectrum", _spectrum(inputs, look_up)),
        ("latents", _latents(inputs)),
        ("teacher", f"{_network(problem.teacher)}, on the latents"),
        ("student", f"{_network(problem.student)}, on the inputs; {_start(problem)}"),
        ("training", _training(problem)),
        ("time", _time(problem)),
    ]


def _nonlinearity(inputs: Inputs, known: bool) -> str:
    what = f"x = f(F'C/sqrt D), D/N = {inputs.aspect_ratio:g}, f = {inputs.nonlinearity}"
    if not known:
        return f"{what} (a user's own, not looked up)"
    f = inputs.function.moments(1.0)
    has_mean = abs(f.mean) > CENTRED
    centred = " less its mean" if inputs.centered and has_mean else ""
    share = f.slope**2 / (f.square - f.mean**2)
    left = f"; its mean {f.mean:.4g} is left in" if has_mean and not inputs.centered else ""
    return f"{what}{centred}: {share:.3g} of its variance is linear in the latents, the rest acts as noise{left}"


def _spectrum(inputs: Inputs, look_up: bool) -> str:
    spectrum = inputs.spectrum
    if isinstance(spectrum, SpectrumFile):
        known = f"{len(spectrum.atoms.rho)} eigenvalues" if look_up else "eigenvalues (not opened)"
        return f"{known} of F F'/N from {spectrum.path}"
    if isinstance(spectrum, Atoms):
        rho = spectrum.atoms.rho
        uneven = ", of which the teacher prefers some" if spectrum.teacher is not None else ""
        return f"{len(rho)} eigenvalues of F F'/N from {rho.min():.4g} to {rho.max():.4g}{uneven}"
    root = float(np.sqrt(inputs.aspect_ratio))
    atom = f", and 0 with the share {1 - 1 / inputs.aspect_ratio:.3g}" if inputs.aspect_ratio > 1 else ""
    ends = f"{(1 - root) ** 2:.4g} to {(1 + root) ** 2:.4g}"
    return f"Marchenko-Pastur, independent features: eigenvalues of F F'/N from {ends}{atom}"


def _latents(inputs: Inputs) -> str:
    if not inputs.components:
        return "standard Gaussian"
    listed = "; ".join(_component(component) for component in inputs.components)
    if inputs.components_drawn == "coordinate":
        ((_, scale),) = inputs.gaussians
        return (
            f"each latent draws its own component ({listed}), so that fields are those of one Gaussian with the "
            f"standard deviation {scale:.4g}"
        )
    return f"all latents of a sample have one component ({listed})"


def _component(component: Component) -> str:
    parts = [f"{component.weight:g}: s = {component.scale:g}"]
    if not isinstance(component.mean, tuple):
        parts.append(f"mean {component.mean:g}")
    elif any(component.mean):
        parts.append(f"mean along the teacher {', '.join(f'{x:g}' for x in component.mean)}")
    if component.mean_elsewhere:
        parts.append(f"mean elsewhere {component.mean_elsewhere:g}")
    return ", ".join(parts)


def _network(network: Network) -> str:
    units = len(network.output_weights)
    weights = ", ".join(f"{v:g}" for v in network.output_weights[:8])
    return f"{units} unit{'s' * (units > 1)} with {network.activation} and output weights {weights}"


def _start(problem: Problem) -> str:
    if problem.student.initial == "random":
        return f"starts at random with the variance {problem.student.rest[0, 0]:g}"
    return "starts with a part along the teacher's features"


def _training(problem: Problem) -> str:
    eta, eta_v = problem.training.learning_rate, problem.training.second_layer
    second = "the second layer is fixed" if eta_v == 0 else f"eta_v = {eta_v:g} of the second layer"
    return f"one-pass SGD, one sample per step, eta = {eta:g}, {second}"


def _time(problem: Problem) -> str:
    stop, N = problem.time.stop, problem.particles.dimension
    return (
        f"t = 0 to {stop:g} in {problem.time.outputs} outputs; t = k/N, so that SGD with N = {N:,} "
        f"takes {round(stop * N):,} steps"
    )
