"""Equations that hidden-manifold problems print, evaluated by SymPy, against expectations, rates, starts and steps."""

import re

import numpy as np
import pytest
import sympy as sp

import meanfield
from meanfield.ensembles.streams import fill_normals
from meanfield.errors import InputError
from meanfield.explanation.equations import Equation, equations_of
from meanfield.explanation.formulas import latex_of
from meanfield.families.hidden_manifold.density import conditional_law
from meanfield.families.hidden_manifold.expectations.choice import expectations
from meanfield.families.hidden_manifold.field_equations import NONLINEARITIES as FORMULAS
from meanfield.families.hidden_manifold.order_parameters.averaging.fast_chain import NORMALS, Law, advance, no_sums
from meanfield.families.hidden_manifold.order_parameters.companions import _rate
from meanfield.families.hidden_manifold.order_parameters.legs import driven, legs_of
from meanfield.families.hidden_manifold.order_parameters.rates import fields_at
from meanfield.families.hidden_manifold.order_parameters.system import State, make_system, packed, start_of, unpacked
from meanfield.families.hidden_manifold.particles.steppers import Plain
from meanfield.ingredients.activations import ACTIVATIONS
from meanfield.ingredients.nonlinearities import NONLINEARITIES
from tests.families.hidden_manifold.particles.test_plain import sample_of
from tests.families.hidden_manifold.problems import problem
from tests.printed_equations import Stack, counted, evaluate, lines_of, section, stacks, unsaid

ROUNDING = 1e-12
"""Largest error of a formula, relative to the largest value: sums of some ten terms in double precision."""

TRAINING = {
    "learning_rate": 0.3,
    "output_learning_rate": 0.2,
    "batch_size": 3,
    "label_noise": 0.4,
    "weight_decay": 0.05,
    "momentum": 0.5,
}
ATOMS = {"law": "atoms", "eigenvalues": [0.4, 1.6]}
SCALES = [{"weight": 0.4, "scale": 0.3}, {"weight": 0.6, "scale": 1.6}]
MEANS = [
    {"weight": 0.3, "scale": 0.7, "mean": [1.4, 0.2], "mean_elsewhere": 1.5},
    {"weight": 0.5, "scale": 1.2},
    {"weight": 0.2, "mean": [-2.1, -0.3]},
]
CASES = {
    "one Gaussian": {"nonlinearity": "tanh"},
    "scales": {"components": SCALES},
    "means": {"nonlinearity": "tanh", "components": MEANS, "centered": False},
}
RANDOM = {"initial": "random", "variance": 0.7, "on_teacher": None, "elsewhere": None}


def made(name, activation="scaled_erf", **student):
    network = {"activation": activation}
    return problem(
        inputs={"spectrum": ATOMS, **CASES[name]}, teacher=network, student=network | student, training=TRAINING
    )


def close(found, right):
    return np.abs(found - right).max() <= ROUNDING * np.abs(right).max()


def system_of(given):
    return make_system(given, given.inputs.eigenvalues.nodes(2), 4)


@pytest.mark.parametrize("activation", ["scaled_erf", "linear"])
def test_closed_forms_are_the_expectations(activation):
    given, rng, points = made("one Gaussian", activation), np.random.default_rng(0), 100
    factor, u = rng.normal(size=(4, 4, points)), rng.normal(size=(4, points))
    C = np.einsum("abp,cbp->acp", factor, factor)
    lines = [line for line in section(given, "Averages") if isinstance(line, Equation) and line.closed]
    found = evaluate(lines, {"C": counted(C, "ab"), "u": counted(u, "a")}, None, {"k": 2, "j": 2, "a": 4, "b": 4})
    right = {"A": np.zeros((points, 2, 4)), "H": np.zeros((points, 2, 2)), "F": np.zeros((points, 2))}
    right[r"\epsilon_g"], system, m, G = np.zeros(points), system_of(given), np.zeros(4), np.zeros(2)
    for i in range(points):
        out = right["A"][i], right["H"][i], G, right["F"][i]
        right[r"\epsilon_g"][i] = expectations(system.kind, 2, C[..., i], m, u[:, i], 0.4, system.rule, *out)
    for name, values in right.items():
        (printed,) = found[name]
        assert close(np.moveaxis(printed, -1, 0), values), name


def units(given):
    """Activations of a problem with their slopes, as it prints them."""
    lines = [line for line in section(given, "Step") if isinstance(line, Equation) and str(line.left).startswith("g")]
    functions = {}
    evaluate(lines, {}, functions)
    return functions


def fields(own, taught, u):
    """Fields of students and teachers, and their second layers, by their names in print."""
    known = {"lambda": own, "nu": taught, "v": u[: len(own)], r"\tilde v": -u[len(own) :]}
    return {name: counted(each, "k") for name, each in known.items()}


def test_averages_are_the_expectations():
    """One student and one teacher with tanh; quadratures of both sides resolve it to rounding."""
    given = problem(
        inputs={"nonlinearity": "tanh"},
        teacher={"activation": "tanh", "output_weights": [1.0], "overlap": [[1.0]]},
        student={"activation": "tanh", "output_weights": [1.0], "on_teacher": [[0.3]], "elsewhere": [[0.5]]},
        training=TRAINING,
    )
    x, weight = np.polynomial.hermite_e.hermegauss(150)
    nodes, weights = np.array(np.meshgrid(x, x)).reshape(2, -1), np.outer(weight, weight).ravel() / weight.sum() ** 2
    C, u = np.array([[0.5, 0.2], [0.2, 0.3]]), np.array([0.8, -1.1])
    h = np.linalg.cholesky(C) @ nodes
    functions, known = {"average_of": lambda of: of @ weights} | units(given), fields(h[:1], h[1:], u)
    known |= {"Delta": evaluate(lines_of(section(given, "Step"), "Delta"), known, functions)["Delta"][0]}
    found = evaluate(section(given, "Averages"), known, functions, {"k": 1, "j": 1, "m": 1})
    system = make_system(given, given.inputs.eigenvalues.nodes(2), 60)
    A, H, G, F = np.zeros((1, 2)), np.zeros((1, 1)), np.zeros(1), np.zeros(1)
    error = expectations(system.kind, 1, C, np.zeros(2), u, 0.4, system.rule, A, H, G, F)
    printed = [np.ravel(found[name][0])[-1] for name in ("A_S", "A_T", "H", "F", r"\epsilon_g")]
    assert close(np.array(printed), np.array([*A[0], H[0, 0], F[0], error]))


def products(system, r, sigma, t, mark="", of=""):
    """Products of students and columns by their names in print: all columns, those of the teacher, and each mean.

    Those of velocities, `of` = "p", have names of their own, and averages those of LaTeX with a mark.
    """
    own = {str(q + 1): slice(at, at + 1) for q, at in enumerate(system.column) if at >= 0}
    columns = {"": slice(None), "T": slice(0, system.teachers)} | own
    found = {("sigma", of): sigma}
    for name, at in columns.items():
        found["r", of + name * bool(own)] = r[..., at]
        for other, beside in columns.items():
            found["t", (name + other) * bool(own)] = t[..., at, :][..., beside]
    plain = {letter + f"_{below}" * bool(below): value for (letter, below), value in found.items()}
    return {mark.format(latex_of(sp.Symbol(name))): value for name, value in plain.items()} if mark else plain


def of_components(**arrays):
    """Matrices of components, along the second axis, by their names in print; those of one have no number."""
    found = {}
    for name, values in arrays.items():
        symbol, _, view = name.partition("_")
        for q in range(values.shape[1]):
            labels = [rf"\{view}" if len(view) > 1 else view, str(q + 1) if values.shape[1] > 1 else ""]
            above = ",".join(filter(None, labels))
            found[f"{symbol}^{{({above})}}" if above else symbol] = values[:, q]
    return found


@pytest.mark.parametrize("pace", [None, 1.5], ids=["at once", "velocity"])
@pytest.mark.parametrize("name", CASES)
def test_fields_and_rates_are_those_of_the_code(name, pace):
    """Of random students, with velocities where these last, whose products with columns are those of the problem."""
    given, rng, count, K = made(name), np.random.default_rng(0), 20, 2  # states of some fifty numbers
    if pace is not None:
        given = meanfield.with_values(given, {"training.momentum": 0.0, "training.momentum_rate": pace})
    parts = ("",) if pace is None else ("", "_p")
    (leg,) = legs_of(driven(given), system_of)
    system, wide = leg.system, K * len(parts)
    both = system._replace(students=wide, training=system.training.copy())
    S = rng.normal(size=(count, 2, wide, system.t.shape[1] + 3)) / 2  # along eigenvectors, beside columns, too
    squares, axes = np.linalg.eigh(system.t)
    columns = np.pad(axes * np.sqrt(np.maximum(squares, 0.0))[:, None], ((0, 0), (0, 0), (0, 3)))
    Omega, sigma = (each @ each.swapaxes(-1, -2) for each in (rng.normal(size=(count, wide, 5)) / 2, S))
    state = State(S @ columns.swapaxes(1, 2), sigma, Omega, rng.normal(size=(count, wide)))
    rate = _rate(leg, both, None, pace)
    right = unpacked(both, np.array([rate(0.0, row) for row in packed(state)]))
    A, H, G, F = (np.zeros((count, len(system.chance), *of)) for of in ((K, 2 * K), (K, K), (K,), (K,)))
    own = packed(State(state.r[..., :K, :], sigma[..., :K, :K], Omega[..., :K, :K], state.v[..., :K]))
    C, m, u = (np.array(each) for each in zip(*(fields_at(system, row) for row in own), strict=True))
    for i, q in np.ndindex(A.shape[:2]):
        out = A[i, q], H[i, q], G[i, q], F[i, q]
        expectations(system.kind, K, C[i, q], m[i, q], u[i], 0.4, system.rule, *out)
    law = of_components(
        Q=C[..., :K, :K], R=C[..., :K, K:], T=C[..., K:, K:], m_lambda=m[..., :K, None], m_nu=m[..., K:, None]
    )
    t = np.broadcast_to(system.t, (count, *system.t.shape))
    known = of_components(A_S=A[..., :K], A_T=A[..., K:], H=H, G=G[..., None], F=F[..., None])
    rows = {p: np.s_[..., i * K : i * K + K, :] for i, p in enumerate(parts)}
    blocks = {"": np.s_[..., :K, :K], "_p": np.s_[..., :K, K:], "_pp": np.s_[..., K:, K:]}
    blocks = {p: at for p, at in blocks.items() if pace is not None or not p}
    known |= {f"Omega{p}": Omega[at] for p, at in blocks.items()} | {f"v{p}": state.v[..., None][rows[p]] for p in rows}

    def at_node(of, mark=""):
        found = {}
        for p in rows:
            found |= products(system, of(state.r[rows[p]]), of(sigma[blocks[p]]), of(t), mark, p[1:])
        return found

    known |= at_node(lambda of: np.einsum("n,sn...->s...", system.weight, of), r"\langle {} \rangle_{{\rho}}")
    known |= {left: value for left, (value,) in evaluate(section(given, "Fields"), stacks(known)).items()}
    assert all(close(known[left], value) for left, value in law.items() if left in known)
    said = "".join(line for line in section(given, "Fields") if isinstance(line, str))
    assert all((name in said) == (pace is not None) for name in ("$v_p = ", "$m^{(p)}$"))
    for n, rho in enumerate(system.rho):
        at = at_node(lambda of, n=n: of[:, n]) | {"sigma_pp": sigma[:, n, K:, K:], "rho": np.full((count, 1, 1), rho)}
        found = order_parameters(given, system, stacks(known | at))
        assert all(close(found[f"r{p}"], right.r[:, n][at]) for p, at in rows.items())
        assert all(close(found[f"sigma{p}"], right.sigma[:, n][at]) for p, at in blocks.items())
    assert all(close(found[f"Omega{p}"], right.Omega[at]) for p, at in blocks.items())
    assert all(close(found[f"v{p}"], right.v[..., None][at]) for p, at in rows.items())


def order_parameters(given, system, known):
    """Rates of change as they are printed, by the quantities that change."""
    lines = section(given, "Order")
    rows = {symbol for symbol, _, _ in equations_of(given).symbols}
    assert not rows & {str(line.left) for line in lines if isinstance(line, Equation)}  # one meaning of each letter
    pull = evaluate([line for line in lines if isinstance(line, Equation) and str(line.left)[0] == "B"], known)
    known["B"] = np.zeros((*known["Omega"].shape[:2], system.t.shape[1])).view(Stack)
    known["B"][..., : system.teachers] = pull.get("B_T", pull.get("B"))[0]
    for q in np.flatnonzero(system.column >= 0):
        known["B"][..., system.column[q]] = pull[f"B_{q + 1}"][0][..., 0]
    found = evaluate([line for line in lines if str(line.left)[0] != "B"], known)
    return {re.sub(r"\\frac{\\mathrm d|}{\\mathrm dt}|[\\\\{}]", "", left): of for left, (of,) in found.items()}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("start", [{}, RANDOM], ids=["informed", "random"])
def test_starts_and_densities_are_those_of_the_code(start, name):
    given = made(name, **start)
    system, M = system_of(given), 2
    state, t = unpacked(system, start_of(given, system)), system.t
    means = np.flatnonzero(system.column >= 0)
    P = np.vstack([np.eye(M), *(given.component_means[q] for q in means)])
    E = np.diag([0.0] * M + [given.inputs.mixture[q].mean_elsewhere ** 2 for q in means])
    known = products(system, state.r, state.sigma, t) | {"T_0": given.teacher_overlap, "P": P, "E": E}
    known |= {"X": given.initial_on_teacher, "G_0": given.student.rest, "rho": system.rho[:, None, None]}
    both = r"\langle \rho t_{TT} \rangle_{\rho}" if len(means) else r"\langle \rho t \rangle_{\rho}"
    known[both] = np.einsum("n,nab->ab", system.weight * system.rho, t[:, :M, :M])
    lines = section(given, "Start")
    if start:
        rest = evaluate(lines_of(lines, "G_0"), {})["G_0"][0]
        assert np.allclose(rest, given.student.rest, rtol=ROUNDING)  # of one matrix
    found = evaluate([line for line in lines if line not in lines_of(lines, "G_0")], stacks(known))
    for left, right in (("t", t), ("r", state.r), (r"\sigma", state.sigma), (r"\Omega", state.Omega)):
        assert np.allclose(found[left][0], right, rtol=ROUNDING, atol=ROUNDING), left  # numbers of order 1
    if name == "one Gaussian":
        regression, spread = conditional_law(system, state)
        law = evaluate(section(given, "Density"), stacks(known | {"beta": regression}))
        assert np.allclose(law[r"\beta"][0], regression, rtol=ROUNDING, atol=ROUNDING)  # the same
        variance = np.einsum("nkk->nk", law[r"\Xi"][0])
        assert np.allclose(variance, spread**2, rtol=ROUNDING, atol=ROUNDING)  # the same


@pytest.mark.parametrize(
    "training",
    [TRAINING, {"learning_rate": 2.0}, {"momentum_rate": 1.5, "output_learning_rate": 0.2, "weight_decay": 0.05}],
    ids=["all", "one sample", "velocity"],
)
def test_steps_are_those_of_sgd(training):
    given = problem(inputs={"components": SCALES}, training=training, particles={"dimension": 64}, time={"stop": 1.0})
    plain, tau, N = Plain(given, range(1)), given.training.batch_size, 64
    W, v, before = plain._W.copy(), plain._v.copy(), np.random.default_rng(0).normal(size=plain._velocity.shape)
    plain._velocity[:] = before
    x, nu, xi = (np.array(each) for each in zip(*(sample_of(given, plain, 0, s) for s in range(tau)), strict=True))
    lines, functions, field = section(given, "Step"), units(given), W @ x.T / np.sqrt(N)
    (Delta,) = evaluate(lines_of(lines, "Delta"), fields(field, nu.T, np.append(v, [-1.0, -1.0])), functions)["Delta"]
    plain.advance(0, 1)
    for k in range(2):
        samples = {"Delta": Delta, "xi": xi, "x": x}
        samples = {name: counted(each, "k") if tau > 1 else each[0] for name, each in samples.items()}
        samples["lambda"] = counted(field, "ks") if tau > 1 else counted(field[:, 0], "k")
        own = {"k": k + 1, "N": N, "w_k": W[k], "v_k": v[k], r"\dot{w_k}": before[k, :N], r"\dot{v_k}": before[k, N:]}
        found = evaluate(lines_of(lines, "w_k", "v_k", r"\dot{w_k}", r"\dot{v_k}"), samples | own, functions)
        assert np.abs(found["w_k"][0] - plain._W[k]).max() <= ROUNDING
        assert abs(found.get("v_k", [v[k]])[0] - plain._v[k]) <= ROUNDING


def test_a_mean_of_inputs_moves_students_as_the_chain_does():
    given = problem(inputs={"nonlinearity": "step", "centered": False}, training=TRAINING | {"momentum": 0.0})
    a, u, key = given.inputs.moments[0].mean, np.array([0.8, -0.5, -1.0, -0.7]), np.array([1, 2], dtype=np.uint64)
    rng = np.random.default_rng(0)
    root, omega = rng.normal(size=(1, 4, 4)), rng.normal(size=(1, 2))
    g, gt = given.student.activation_functions, given.teacher.activation_functions
    addresses, one = np.array([*g.addresses, *gt.addresses]), np.ones(1)
    law = Law(addresses, 2.0 * one, a * one, root, np.zeros((1, 4)), u, 0.3, 3, 0.4**0.5, 5)
    normals = np.empty(18)
    fill_normals(key, 0, NORMALS, 0, normals)
    h = root[0] @ normals.reshape(3, 6)[:, :4].T
    field = h[:2] + a * omega[0][:, None]
    functions = units(given)
    (Delta,) = evaluate(lines_of(section(given, "Step"), "Delta"), fields(field, h[2:], u), functions)["Delta"]
    found = []
    for k in range(2):
        samples = {"lambda_k": field[k], "Delta": Delta, "xi": normals.reshape(3, 6)[:, 4]}
        values = {name: counted(each, "k") for name, each in samples.items()} | {"v_k": u[k], "omega_k": omega[0, k]}
        found.append(evaluate(section(given, "Means"), values, functions)["omega_k"][0])
    advance(law, key, 0, 0, 1, omega, np.empty((1, 1, 2)), no_sums(1, 2, 4))
    assert close(np.array(found), omega[0])


@pytest.mark.parametrize("name", sorted(NONLINEARITIES.keys() - ACTIVATIONS))
def test_nonlinearities_are_what_they_print(name):
    u, functions = np.random.default_rng(0).normal(0.0, 3.0, 100), {}
    evaluate(lines_of(section(problem(inputs={"nonlinearity": name}), "Step"), "f"), {}, functions)
    right = [NONLINEARITIES[name].value(float(each)) for each in u]
    np.testing.assert_allclose(functions["f"](u), right, rtol=2e-15, atol=2e-15)  # some roundings
    assert set(FORMULAS) >= set(NONLINEARITIES)


def leaky(slope):
    return {"activation": "leaky_relu", "activation_parameters": {"slope": slope}}


DRAWN = {"components_drawn": "coordinate", "standardise": "latents", "random_means": {"components": 3, "half_width": 2}}


@pytest.mark.parametrize(
    "given",
    [
        *(made(name) for name in CASES),
        problem(inputs=DRAWN),
        problem(inputs={"nonlinearity": "step", "centered": False}, training={"average_rate": 2.0}),
        problem(teacher=leaky(0.3), student=leaky(0.2) | RANDOM),
    ],
    ids=[*CASES, "drawn", "average", "parameters"],
)
def test_each_number_has_a_row(given):
    assert unsaid(given) == []


def test_means_of_latents_have_no_equations():
    one = {"components_drawn": "coordinate", "components": [{"weight": 1.0, "mean": 2.0}]}
    with pytest.raises(meanfield.InputError, match="every latent has the mean 2"):
        problem(inputs={"centered": False} | one).latex()


def test_a_step_moves_averages_of_both_layers():
    """As `mean' = mean + a/N (new - mean)` of a moving average."""
    given, rng = problem(training=TRAINING | {"average_rate": 2.0}), np.random.default_rng(0)
    w, v, w_mean, v_mean = rng.normal(size=(4, 100))
    values = {"N": 64.0, "w_k": w, "v_k": v, "{w'_k}": w_mean, "{v'_k}": v_mean}
    found = evaluate(lines_of(section(given, "Step"), "{w'_k}", "{v'_k}"), values)
    for name, new, mean in (("w", w, w_mean), ("v", v, v_mean)):
        assert close(found[f"{{{name}'_k}}"][0], mean + 2.0 / 64.0 * (new - mean))


def test_momentum_with_a_mean_of_inputs_is_refused():
    given = problem(inputs={"nonlinearity": "step", "centered": False}, training={"momentum": 0.5})
    with pytest.raises(InputError, match=r"training.momentum = 0.5: the means of inputs move the student"):
        given.latex()
