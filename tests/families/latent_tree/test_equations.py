"""Equations that latent-tree problems print, evaluated by SymPy, against losses, gradients, operators and tables."""

import numpy as np
import pytest
import sympy as sp

import meanfield
from meanfield.explanation.equations import Equation, equations_of
from meanfield.families.latent_tree import network
from meanfield.families.latent_tree.operators import operators
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.ring_tables import tables_of
from meanfield.networks.population import Views
from meanfield.networks.population import evaluate as loss_of
from meanfield.problems.problem_keys import with_value
from tests.families.latent_tree.enumeration import leaf_law as enumerated
from tests.families.latent_tree.problems import REGULAR, case_b, drawn, several
from tests.printed_equations import counted, evaluate, lines_of, section, unsaid

ROUNDING = 1e-12
"""Largest error of a formula, relative to the largest value: sums of some hundred terms in double precision."""

LOSSES = {
    "simple": {},
    "beta": {"beta": -0.4},
    "batch_ratio": {"temperature": 0.3},
    "exact": {"temperature": 0.3, "negatives": 2},
    "triplet": {"temperature": 0.4, "margin": 0.2},
    "infonce": {"temperature": 0.3, "negatives": 2},
    "nt_xent": {"temperature": 0.3},
}


def close(found, right):
    return np.abs(found - right).max() <= ROUNDING * np.abs(right).max()


def ring(bias=False, **loss):
    data = {"data": {"law": "ring_objects", "sites": 7}, "network": {"nodes_per_latent": 2, "bias": bias}}
    return Problem.model_validate(data | {"loss": loss, "time": {"stop": 1.0}})


def sphere(fixed_lengths, bias=False):
    start = {"law": "sphere", "positive": 0.5, "fixed_lengths": fixed_lengths, "seed": 1}
    tree = {"depth": 2, "root": [0.4, 0.6], "polarity": [[0.8, -0.5], [0.9, 0.8, 0.7, 0.6]]}
    data = {"tree": tree, "network": {"nodes_per_latent": 2, "bias": bias, "initial": start}}
    return Problem.model_validate(data | {"time": {"stop": 1.0}})


@pytest.mark.parametrize("given", [drawn([2, 2]), several(3)], ids=["two values", "three"])
def test_edges_are_those_of_the_tree(given):
    lines, m = lines_of(section(given, "Data"), "P[i, j]"), given.tree.values_at[0]
    for rho, edges in zip(given.tree.polarities, given.tree.edges, strict=True):
        for one, edge in zip(rho, edges, strict=True):
            (found,) = evaluate(lines, {"rho": one}, None, {"i": m, "j": m})["P"]
            assert close(found, edge)


@pytest.mark.parametrize("sites", [5, 8])
def test_patterns_of_a_ring_are_those_of_the_data(sites):
    given = with_value(ring(), "data.sites", sites)
    lines = [line for line in section(given, "Data") if isinstance(line, Equation)]
    found = np.array([float(line.right) for line in lines]).reshape(2, 4)
    assert [str(line.left) for line in lines[:2]] == ["P(00 | 0)", "P(01 | 0)"]
    assert close(found, given.data.given_object)


def over_triples(kind, r, q, both, negatives):
    """Averages over all views but two, and the distances of all triples, with the anchor and the positive first."""
    views, H = len(q), negatives
    positive = r.reshape(views, views, *[1] * H)
    away = [r.reshape(views, *[1] * (k + 1), views, *[1] * (H - 1 - k)) for k in range(H)]
    chance = (
        both.reshape(*[1] * 2, views, views)
        if kind == "nt_xent"
        else q.reshape(views, *[1] * (H - 1)) * (q if H == 2 else 1.0)
    )
    chance = np.reshape(chance, [1, 1] + [views] * H)
    shape = [views] * (H + 2)

    def given(of, c, e):
        return (np.broadcast_to(of, shape) * chance)[c - 1, e - 1].sum()

    def others(of, c, e):
        weighted = np.broadcast_to(of, shape) * chance * both.reshape(views, views, *[1] * H)
        return weighted[c - 1, :, e - 1].sum() / (q[c - 1] * q[e - 1])

    return positive, away, {"given": given, "others": others}


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("values", [2, 3])
def test_losses_and_their_slopes_are_those_of_the_code(values, kind):
    rng, views, outputs = np.random.default_rng(0), 4, 2
    given = several(values, normalised=kind == "nt_xent", kind=kind, **LOSSES[kind])
    given = meanfield.with_value(given, "training.batch_size", 2)
    lines = [line for line in section(given, "Loss") if isinstance(line, Equation)]
    counts = {"c": views, "e": views, "z": values, "v": values, "j": outputs}
    for _ in range(3):
        p, P = rng.dirichlet(np.ones(values)), rng.dirichlet(np.ones(views), values)
        y = rng.normal(size=(outputs, views))
        if kind == "nt_xent":
            y /= np.linalg.norm(y, axis=0)
        known = {
            "y": counted(y, "jc"),
            "p": counted(p, "z"),
            "P": counted(P, "zc"),
            "n_out": outputs,
            "C": views,
            "Z": values,
        }
        first = evaluate(lines[:3], known, None, counts)
        functions = {}
        if kind in ("triplet", "infonce", "nt_xent"):
            r, q, both = (first[name][0] for name in ("r", "q", "P_+"))
            H = 2 if kind == "nt_xent" else given.loss.negatives
            positive, away, functions = over_triples(kind, r, q, both, H)
            shares = evaluate(lines[3:7], {"r_+": positive, "r": [0.0, *away]})
            known |= {name: value for name, (value,) in shares.items()} | {r"\ell": shares[r"\ell"][0]}
        found = evaluate(
            [line for line in lines if str(line.left) not in ("S", r"\ell", "F_+", "F_1")], known, functions, counts
        )
        right = loss_of(given.contrast, Views(p, P[None]), y.T[None])
        slope, printed = right.slope[0].T, found["g"][0]
        if kind == "nt_xent":
            printed = printed - y * (y * printed).sum(axis=0)
            slope = slope - y * (y * slope).sum(axis=0)
        assert abs(found[r"\mathcal L"][0] - right.value) <= ROUNDING * max(abs(right.value), 1.0)
        assert np.abs(printed - slope).max() <= ROUNDING * np.abs(slope).max()


def walked(given, weights):
    """Network on all configurations as it is printed, level by level, and the velocities of all weights."""
    shape, lines = weights.shape, section(given, "Network")
    tables, ring = tables_of(given), given.data is not None
    width, views = shape.leaf_inputs, len(tables.inputs)
    below = tables.inputs.reshape(views, shape.latents[0], width).transpose(1, 2, 0)
    before, inputs = [], []
    for level in shape.levels:
        W, count = weights.W[level - 1].reshape(shape.latents[level], shape.width(level), -1), shape.width(level)
        inputs.append(below.reshape(shape.latents[level], -1, views))
        values = []
        for mu in range(shape.latents[level]):
            known = {"W": counted(W[mu], "jk"), "f": counted(inputs[-1][mu], "kc"), "n_in": shape.inputs[level - 1]}
            known["b"] = known_b(weights, level, mu)
            values.append(evaluate(lines_of(lines, "u[j, c]", "f[j, c]"), known, None, {"j": count, "c": views}))
        before.append(np.array([each["u"][0] for each in values]))
        below = np.array([each["f"][0] for each in values])
    last = below[0] if ring else before[-1][0]
    known = {"f" if ring else "u": counted(last, "jc"), "n_out": shape.width(shape.depth)}
    (y,) = evaluate(lines_of(lines, "y[j, c]"), known, None, {"j": len(last), "c": views})["y"]
    p = np.array([0.5, 0.5]) if ring else np.array(given.tree.root)
    slope = loss_of(given.contrast, Views(p, leaf_law(given)[None]), y.T[None]).slope[0].T
    flow = section(given, "Flow")
    known = {"g": counted(slope, "jc"), "u": counted(before[-1][0], "jc"), "n_out": shape.width(shape.depth)}
    by_root, by_below = lines_of(flow, "s[j, c]") if shape.depth > 1 else (*lines_of(flow, "s[j, c]"), None)
    signal = [evaluate([by_root], known, None, {"j": len(slope), "c": views})["s"][0][None]]
    for level in range(shape.depth, 1, -1):
        found, children = [], shape.children[level - 1]
        for mu in range(shape.latents[level]):
            W = weights.W[level - 1][mu]
            for child in range(children):
                own = before[level - 2][mu * children + child]
                known = {"W": counted(W[:, child], "kj"), "s": counted(signal[0][mu], "kc"), "u": counted(own, "jc")}
                counts = {"j": shape.width(level - 1), "c": views}
                found.append(evaluate([by_below], known | {"n_up": shape.width(level)}, None, counts)["s"][0])
        signal.insert(0, np.array(found))
    V, Vb = [], []
    for level in shape.levels:
        W = weights.W[level - 1].reshape(shape.latents[level], shape.width(level), -1)
        for mu in range(shape.latents[level]):
            known = {"s": counted(signal[level - 1][mu], "jc"), "f": counted(inputs[level - 1][mu], "kc"), "C": views}
            counts = {"j": W.shape[1], "k": W.shape[2]}
            moves = [evaluate([line], known, None, counts)["V"][0] for line in lines_of(flow, "V[j, k]")]
            at = level > 1 and len(moves) > 1
            V.append(moves[at].ravel())
            rates = []
            if weights.b:
                each = lines_of(flow, "V[j, 0]")
                at = level > 1 and len(each) > 1
                free = {name: value for name, value in known.items() if name != "f"}
                rates = [evaluate_at(each[at], free, W.shape[1])]
            if lines_of(flow, r"\dot W[j, k]"):
                known |= {"W": counted(W[mu], "jk"), "n_in": shape.inputs[level - 1], "b": known_b(weights, level, mu)}
                known["V"] = counted(np.column_stack([*(rates or [0.0 * W[mu, :, 0]]), moves[0]]), "j")
                (held,), of_b = lines_of(flow, r"\dot W[j, k]"), lines_of(flow, r"\dot b[j]")
                V[-1] = evaluate([held], known, None, counts)[r"\dot W"][0].ravel() if level == 1 else 0.0 * V[-1]
                rates = [evaluate([each], known, None, counts)[r"\dot b"][0] for each in of_b[level - 1 : level]]
            Vb.extend(rates)
    return np.concatenate([*V, *map(np.ravel, Vb)]), y


def evaluate_at(line, known, nodes):
    """Values of a line for each of the nodes."""
    return [evaluate([line], known | {"j": j})[str(line.left)][0] for j in range(1, nodes + 1)]


def known_b(weights, level, mu):
    return counted(weights.b[level - 1][mu], "j") if weights.b else None


def leaf_law(given):
    """P(c|z) of all configurations, by listing all values of all latents."""
    return given.data.given_object if given.data is not None else enumerated(given)[1]


FLOWS = {
    "two levels": case_b(),
    "normalised": drawn([2, 2], normalised=True, bias=True),
    "three levels": drawn([2, 1, 2]),
    "three values": several(3, kind="triplet", temperature=0.5),
    "regular": several(3, edges=REGULAR, normalised=True),
    "ring": ring(bias=True),
    "many nodes": sphere(False, bias=True),
    "nodes of fixed length": sphere(True),
    "nodes of fixed length, biases": sphere(True, bias=True),
}


@pytest.mark.parametrize("name", FLOWS)
def test_the_network_and_its_flow_are_those_of_the_code(name):
    given = FLOWS[name]
    tables, weights = tables_of(given), given.initial_weights
    _, gradient = tables.loss_and_gradient(weights)
    found, _ = walked(given, weights)
    assert np.abs(found - given.motion.velocity(weights, gradient)).max() <= ROUNDING * np.abs(found).max()


SOME = 3
"""Number of weights of a latent whose operator is held."""


@pytest.mark.parametrize("name", ["two levels", "three values", "regular"])
def test_operators_are_those_of_the_code(name):
    given = FLOWS[name]
    tables, weights = tables_of(given), given.initial_weights
    passed = tables.forward(weights)
    activity = network.forward(weights, tables.inputs)
    last = activity.last
    unit = np.broadcast_to(np.eye(last.shape[-1])[:, None, :], (last.shape[-1], *last.shape))
    sides = [network.signals(weights, activity, given.output.back(last, unit))]
    sides.append(network.signals(weights, activity, given.output.gain(last) * unit))
    latents = [(level, mu) for level in reversed(weights.shape.levels) for mu in range(weights.shape.latents[level])]
    evaluation = tables.evaluate(passed)
    if evaluation.pull is None:
        p, P = np.array(given.tree.root), leaf_law(given)
        G = np.einsum("z,zc,ze->ce", p, P, P) - np.outer(p @ P, p @ P)
    else:
        pulled = evaluation.pull(np.eye(len(last)))
        G = 0.5 * pulled
    for (level, mu), right in list(zip(latents, operators(tables, passed, evaluation), strict=True))[:2]:
        x = activity.inputs[level - 1][mu]
        K, K_ = (
            np.einsum("ocj,ck->ojkc", side[level - 1][:, mu], x).reshape(len(side[level - 1]), -1, len(x))
            for side in sides
        )
        known = {"K": counted(K, "ihc"), "K'": counted(K_, "ihc"), "G": counted(G, "ce"), "n_out": len(K), "C": len(x)}
        found = evaluate(section(given, "Covariance"), known, None, {"h": SOME, "k": SOME})["O"][0]
        assert close(found, right.matrix[:SOME, :SOME])


CLOSED = {
    "two levels": case_b(),
    "three children, biases": drawn([2, 3], bias=True, leaves=(-1.0, 1.0)),
    "one level": drawn([3], bias=True),
    "ring": ring(),
    "ring with biases": ring(bias=True),
    "many nodes": sphere(False),
    "nodes of fixed length": sphere(True),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_are_those_of_the_tables(name):
    given, rng = CLOSED[name], np.random.default_rng(0)
    tables, like, lines = tables_of(given), given.initial_weights, section(given, "Closed")
    shape, points = like.shape, 100
    vectors = rng.normal(size=(points, len(like.vector)))
    weights = like.like(vectors)
    latents, nodes, depth = shape.latents[1], shape.nodes, shape.depth
    w = weights.W[0].reshape(points, latents, nodes, -1)
    names = [f"s_{mu + 1}" if latents > 1 else "s" for mu in range(latents)]
    s, slopes = np.zeros((points, latents, nodes)), np.zeros(w.shape)
    for mu, line in enumerate(lines_of(lines, *names)):
        known = {f"w_{k + 1}": w[:, mu, :, k] for k in range(w.shape[-1])}
        known["b"] = weights.b[0][:, mu] if weights.b else 0.0
        s[:, mu] = evaluate([line], known)[names[mu]][0]
        for k in range(w.shape[-1]):
            by = Equation(sp.Symbol("slope"), sp.diff(line.right, sp.Symbol(f"w_{k + 1}", real=True)))
            slopes[:, mu, :, k] = evaluate([by], known)["slope"][0]
    single = [like.like(row) for row in vectors]
    moments = [tables.moments(tables.forward(each)).selectivity[-latents:] for each in single]
    assert close(s, np.array(moments))
    right = [tables.loss_and_gradient(each) for each in single]
    moved = like.like(
        np.array([given.motion.velocity(each, grad) for each, (_, grad) in zip(single, right, strict=True)])
    )
    dw = moved.W[0].reshape(w.shape)
    if depth == 1:
        known = {"s": counted(s[:, 0].T, "i"), "n": nodes}
        (Delta,) = evaluate(lines_of(lines, "Delta[i]"), known, None, {"i": nodes})["Delta"]
        found = evaluate(lines_of(lines, RATE_W), {"s": s[..., None], r"{\nabla s}": slopes})[RATE_W][0]
    else:
        u = weights.W[1].reshape(points, -1, latents, nodes)
        outputs, averages = u.shape[1], given.averages_nodes
        known = {"u": counted(u.transpose(1, 2, 3, 0), "imj"), "s": counted(s.transpose(1, 2, 0), "mj"), "n": nodes}
        (Delta,) = evaluate(lines_of(lines, "Delta[i]"), known, None, {"i": outputs})["Delta"]
        found, du = np.zeros(w.shape), np.zeros(u.shape)
        for mu in range(latents):
            rho = float(given.tree.polarities[1][mu])
            for j in range(nodes):
                v = (nodes if averages else 1) * u[:, :, mu, j]
                known = {r"{\rho_{0\mu}}": rho, "v" if averages else "u": v.T, "Delta": Delta, "w": w[:, mu, j].T}
                known |= {r"{\nabla s}": slopes[:, mu, j].T, "s": s[:, mu, j]}
                rates = evaluate(lines_of(lines, "X", RATE_W, RATE_U, RATE_V), known)
                found[:, mu, j] = rates[RATE_W][0].T
                if RATE_U in rates or RATE_V in rates:
                    du[:, :, mu, j] = rates.get(RATE_U, rates.get(RATE_V))[0].T / (nodes if averages else 1)
        assert np.abs(du - moved.W[1].reshape(u.shape)).max() <= ROUNDING * max(np.abs(du).max(), 1.0)
    (L,) = evaluate(lines_of(lines, r"\mathcal L"), {"Delta": counted(Delta, "i"), "n_out": len(Delta)})[r"\mathcal L"]
    assert close(L, np.array([value for value, _ in right]))
    assert close(found, dw)


RATE_W, RATE_U, RATE_V = (rf"\frac{{\mathrm d{of}}}{{\mathrm dt}}" for of in "wuv")


def test_closed_operators_are_those_of_the_code():
    given = case_b()
    tables, weights, lines = tables_of(given), given.initial_weights, section(given, "Closed")
    passed = tables.forward(weights)
    root, *others = operators(tables, passed, tables.evaluate(passed))
    s, u = tables.moments(passed).selectivity[1:], weights.W[1][0]
    low, top = lines_of(lines, "O_{hk}")
    a = (np.array(given.tree.polarities[1])[:, None] * s).ravel()
    found = np.array([[evaluate([top], {"a_h": one, "a_k": other})["O_{hk}"][0] for other in a] for one in a])
    assert close(np.kron(np.eye(2), found), root.matrix)
    for mu, right in enumerate(others):
        rho, w = float(given.tree.polarities[1][mu]), weights.W[0][mu].reshape(2, -1)
        (line,) = lines_of(lines, f"s_{mu + 1}")
        by = [sp.diff(line.right, sp.Symbol(f"w_{k + 1}", real=True)) for k in range(2)]
        slopes = [
            [float(each.subs(dict(zip(sp.symbols("w_1 w_2", real=True), row, strict=True)))) for each in by]
            for row in w
        ]
        for j, h, i, k in np.ndindex(2, 2, 2, 2):
            known = {r"{\rho_{0\mu}}": rho, "u": u[:, mu, j], "{u'}": u[:, mu, i]}
            known |= {r"\partial_{h}s": slopes[j][h], r"\partial_{k}s'": slopes[i][k]}
            assert evaluate([low], known)["O_{hk}"][0] == pytest.approx(
                right.matrix[2 * j + h, 2 * i + k], rel=1e-12, abs=1e-15
            )


@pytest.mark.parametrize("given", [*FLOWS.values(), *CLOSED.values()])
@pytest.mark.parametrize("symbols", [False, True])
def test_each_number_has_a_row(given, symbols):
    assert unsaid(given, symbols) == []


def test_a_start_from_a_file_has_the_row_of_weights(tmp_path):
    """The law of starts that are drawn is not that of a run that goes on."""
    given, path = ring(), tmp_path / "start.npz"
    np.savez(path, weights=given.initial_weights.vector)
    given = with_value(given, "initial", {"from": str(path)})
    rows = {symbol: (key, words) for symbol, key, words in equations_of(given, True).symbols}
    assert rows["W(0)"] == ("initial", "from start.npz")


def test_directions_have_no_epsilon_and_averages_are_printed():
    given = with_value(several(2, normalised=True, kind="nt_xent", temperature=0.3), "network.epsilon", 0.1)
    given = with_value(given, "training.average_rate", 0.5)
    assert "epsilon" not in given.latex()
    theta, average = np.random.default_rng(0).normal(size=(2, 100))
    lines = lines_of(section(given, "Flow"), "thetaprime")
    (found,) = evaluate(lines, {"theta": theta, "thetaprime": average})["thetaprime"]
    right = average + 0.5 * given.training.learning_rate * (theta - average)
    assert np.abs(found - right).max() <= ROUNDING


@pytest.mark.parametrize("key", ["momentum", "momentum_rate"])
def test_momentum_is_printed_with_the_flow(key):
    """A velocity moves by what a step of SGD makes of it; a fixed share has the sum of its powers."""
    given = with_value(case_b(), f"training.{key}", 0.25)
    f, p = np.array([0.7, -1.2]), np.array([0.3, 0.9])
    found = evaluate(lines_of(section(given, "Momentum"), r"\dot p", r"\dot\theta"), {"f": f, "p": p})
    found = {name: values[0] for name, values in found.items()}
    if key == "momentum":
        assert found[r"\dot\theta"] == pytest.approx(f * (0.25 ** np.arange(40)).sum(), rel=1e-14)  # rounding
        return
    step = given.training.velocity(p, f) - p
    assert found[r"\dot p"] == pytest.approx(step / given.training.learning_rate, rel=1e-14)  # rounding
    assert found[r"\dot\theta"] == pytest.approx(p, rel=0)
