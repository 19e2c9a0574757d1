"""Equations that update rules print, evaluated by SymPy, against rules, rates, and averages over samples."""

import re
from itertools import product

import numpy as np
import pytest

import meanfield
from meanfield.explanation.equations import Equation, equations_of
from meanfield.explanation.formulas import entry, rate_of
from meanfield.families.update_rule.hidden_variables import hidden_of
from meanfield.families.update_rule.model import RULES
from meanfield.families.update_rule.order_parameters.equations import Equations
from meanfield.families.update_rule.particles.start import draw_vectors
from meanfield.families.update_rule.rates import State, normalisation, packed, unpacked
from tests.families.update_rule.particles import naive
from tests.families.update_rule.problems import feature
from tests.families.update_rule.test_draws import gan
from tests.printed_equations import counted, evaluate, lines_of, section, stacks, unsaid

ROUNDING = 1e-12
"""Largest error of a formula, relative to the largest value: sums of some hundred terms in double precision."""

POINTS = 100


def committee(y, s, rate):
    return rate * (y.sum() - s.sum()) * (1 - s**2 / 3)


def bends(s, rate):
    return rate * s if s > 0 else 0.0


def linear(s, y, rate):
    return rate * (2 * y - s)


def cubic(s, rate):
    return rate * s**3


def oja(s, rate):
    return rate * s


def along(s, gain, Q, rate):
    return -rate * gain * s**2 / Q


def adaptive(s, gain, Q):
    return gain * s / Q


def gain_step(s, gain):
    return gain * (1 - gain * s**2)


def labelled(label, s, rate, eps, flip):
    return rate * ((label - s) * (1 - 2 * flip) + 0.3 * eps)


def output(s):
    return s**2


def first(s1, s2, mean2, rate):
    return rate * s1 * (s2**2 - mean2)


def second(s1, s2, mean1, rate):
    return rate * s2 * (s1**2 - mean1)


def toward_second(s2, rate):
    return 0.5 * rate * s2


def toward_first(s1, rate):
    return 0.5 * rate * s1


def centred(s, rate):
    return rate * (s - s.mean())


def up(w, rate):
    return rate * w


def down(w, rate):
    return -rate * w


def teach(w, c, rate):
    return 0.5 * rate * w * c


def hold(Q, rate):
    return -rate * (Q[0, 0] - 1)


def hold_generator(Q, rate):
    return -0.5 * rate * (Q[1, 1] - 1)


def problem(rule=None, size=1, model=None, hidden=None, **keys):
    """Problem with as many features as students."""
    model = {"rule_parameters": {"rate": 0.7}} | ({} if rule is None else {"rule": rule}) | (model or {})
    given = {"students": [{"initial_norm": 0.5 + 0.3 * k} for k in range(size)], "time": {"stop": 1.0}}
    return meanfield.Problem(
        family="update_rule", model=model, features=[feature(0.2, hidden) for _ in range(size)], **given | keys
    )


GENERATOR = {
    "groups": [{"name": "w"}, {"name": "V"}],
    "students": [{"group": "w"}, {"group": "V", "hidden": {"law": "gaussian", "second_moment": 2.5}}],
    "draws": [
        {"along": "u", "noise": 0.8, "gain": {"w": up}, "move": {"w": {"w": hold}, "V": {"V": hold_generator}}},
        {"along": "V", "gain": {"w": down}, "batch_size": 2},
        {"along": "V", "move": {"V": {"w": teach}}},
    ],
}
ORTHONORMAL = {"students": [{}, {}]}
MASKED = {"views": 2, "observed": [0.6, 0.9], "view_covariance": [[0.4, 0.1], [0.1, 0.2]]}
CLASSES = [{"probability": 0.4, "mean": [1.5], "noise": 0.5}, {"probability": 0.6, "mean": [-0.5], "noise": 2.0}]
SCALE = {"law": "discrete", "values": [0.5, 1.2], "probabilities": [0.3, 0.7], "of": "sample"}
CASES = {
    "committee": lambda **d: problem(committee, 2, {"batch_size": 4}, prior={"name": "l2", "strength": 0.1}, data=d),
    "subspace": lambda **d: problem(
        oja, 2, {"constraint": "gram_schmidt", "batch_size": 3}, 1.5, **ORTHONORMAL, data={"signal": "spiked"} | d
    ),
    "missing beside features": lambda **d: problem(
        cubic, 1, {"constraint": "sphere"}, 2.0, data={"signal": "orthogonal", "observed": 0.6, "noise": 0.7} | d
    ),
    "moves and a side variable": lambda **d: problem(
        meanfield.Rule(adaptive, along=along),
        1,
        None,
        2.0,
        data={"signal": "spiked", "observed": 0.4} | d,
        side={"gain": {"start": 0.5, "step": gain_step}},
    ),
    "classes": lambda **d: problem(
        labelled, data={"signal": "spiked", "classes": CLASSES, "coins": {"flip": 0.1}, "normals": ["eps"]} | d
    ),
    "scale": lambda **d: problem(cubic, 1, None, 2.0, data={"signal": "orthogonal", "scale": SCALE} | d),
    "generator": lambda **d: problem(None, 1, None, 3.0, **GENERATOR, data=d),
    "masked views": lambda **d: problem(
        None,
        1,
        None,
        2.0,
        draws=[MASKED | {"gain": {"s": [toward_second, toward_first]}}],
        data={"signal": "orthogonal"} | d,
    ),
    "views less means": lambda **d: problem(
        None,
        1,
        None,
        2.0,
        draws=[{"views": 2, "means": [output], "gain": {"s": [first, second]}}],
        data={"signal": "spiked"} | d,
    ),
    "samples of a batch": lambda **d: problem(
        None, 1, None, 2.0, draws=[{"samples": 2, "gain": {"s": centred}}], data={"signal": "spiked"} | d
    ),
}
"""Problems by names, with more keys of their data."""

QUICK = "missing beside features", "classes"
"""Problems that are quick with a spectrum, too."""

SPECTRUM = {"law": "atoms", "eigenvalues": [0.5, 1.7], "weights": [0.6, 0.4]}


def states_of(equations, M, K, S):
    """Overlaps of random vectors, where there is a spectrum at each of its eigenvalues, and side variables."""
    rng, nodes = np.random.default_rng(0), equations.nodes
    w = rng.normal(size=(POINTS, *(() if nodes is None else (len(nodes.rho),)), K, M + K + 3)) / 2
    R = w[..., :M] * (1.0 if nodes is None else np.sqrt(nodes.teacher)[:, None, None])
    return State(R, w @ w.swapaxes(-1, -2), rng.uniform(0.5, 1.5, (POINTS, S)))


def nodes_of(kind, data, nodes):
    """Nodes of the hidden variables, normals, coins and noise of a kind of sample, a row each, and their weights."""
    law, x = hidden_of(kind.laws), np.polynomial.hermite_e.hermegauss(nodes)
    wide = np.flatnonzero(law.covariance.diagonal(axis1=1, axis2=2).any(axis=0))
    others = kind.samples * len(data.normals)

    def rows(noises):
        axes = [(np.arange(len(law.probability)), law.probability)]
        axes += [([0.0, 1.0], [1 - p, p]) for p in data.coins.values() for _ in range(kind.samples)]
        axes += [(x[0], x[1] / x[1].sum())] * (len(wide) + others + noises)
        grids = [grid.ravel() for grid in np.meshgrid(*(values for values, _ in axes), indexing="ij")]
        weight = np.ones(1)
        for _, each in axes:
            weight = np.multiply.outer(weight, each)
        component, coins = grids[0].astype(int), grids[1 : 1 + kind.samples * len(data.coins)]
        z, hidden = grids[1 + len(coins) :], law.mean[component].T.copy()
        for place, each in zip(wide, z, strict=False):
            hidden[place] += np.sqrt(law.covariance[component, place, place]) * each
        return (
            hidden,
            np.array(z[len(wide) : len(wide) + others]),
            np.array(coins),
            np.array(z[len(wide) + others :]),
            weight.ravel(),
        )

    return rows


def fields_of(given, number, lines, grams, nodes):
    """Fields of a kind of sample by the law that is printed, at nodes of the spectrum, and what else functions read.

    Returns
    -------
    fields : ndarray, shape (spectrum nodes + 1, samples, views, vectors, points, draws)
        The last are those of all coordinates.
    read : dict
    weight : ndarray, shape (draws,)
    """
    kind, (per_node, rho, _, G, hat, beside) = given.kinds[number], grams
    n, L, m, M = G.shape[-1], kind.views, kind.samples, len(given.features)
    hidden, normals, coins, noise, weight = nodes_of(kind, given.data, nodes)(n * L * m)
    factor, signal = (hidden[list(which)].prod(axis=0) for which in (kind.scales_noise, kind.scales_signal))
    tags = tags_of(given, number)
    psi = [rf"\psi^{{({tag})}}" if tag else r"\psi" for tag in tags]
    spectrum = given.data.spectrum is not None

    def printed(left, **values):
        (line,) = lines_of(lines, left)
        names = {str(each): each for each in line.right.free_symbols} if hasattr(line.right, "free_symbols") else {}
        return evaluate([line], {name: values.get(name, values.get("other", 0.0)) for name in names})[left][0]

    fields = np.empty((len(rho) + 1, m, L, n, len(G), len(weight)))
    place = slice(kind.along.start, kind.along.stop)
    c = hidden.reshape(m, -1, len(weight))[:, : len(kind.along)]
    for value in np.unique(factor):
        chosen = factor == value
        at = {"varsigma": value}
        cov, of_node = np.empty((len(G), L, n, L, n)), np.empty((len(rho), len(G), L, n, L, n))
        for a, b in product(range(L), repeat=2):
            pair = psi[min(a, b)] + (f", {psi[max(a, b)]}" if a != b else "")
            left = rf"\mathrm{{Cov}}[{pair} | c]"
            white = G if not spectrum else hat
            cov[:, a, :, b] = printed(left, G=white, Ghat=white, **{r"G_\perp": beside, r"\hat G_\perp": beside}, **at)
            for i, each in enumerate(rho):
                if not spectrum:
                    of_node[i] = cov
                    continue
                turned = beside_features(G, M)
                other = (each * per_node[:, i] - per_node[:, i][..., :M] @ hat[:, :M]) @ turned
                left_node = rf"\mathrm{{Cov}}[{{{psi[min(a, b)]}}}_\rho, {psi[max(a, b)]} | c]"
                of_node[i, :, a, :, b] = printed(left_node, rho=each, G__rho=per_node[:, i], other=other, **at)
        cov, of_node = cov.reshape(len(G), n * L, n * L), of_node.reshape(len(rho), len(G), n * L, n * L)
        values, vectors = np.linalg.eigh(cov)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
        inverse = (vectors / np.where(values > 1e-12, values, np.inf)[:, None]) @ vectors.swapaxes(1, 2)
        for b in range(m):
            own = root @ noise.reshape(m, n * L, -1)[b][:, chosen]  # (points, views vectors, draws)
            for i in range(len(rho) + 1):
                deviation = own if i == len(rho) else of_node[i] @ inverse @ own
                along = (G if i == len(rho) else per_node[:, i])[..., place] @ c[b][:, chosen]
                for view in range(L):
                    p = printed(rf"E[{psi[view]} | c]", varsigma=signal[chosen], other=1.0)
                    part = deviation.reshape(len(G), L, n, -1)[:, view] + p * along
                    fields[i, b, view][..., chosen] = part.swapaxes(0, 1)
    read = dict(zip(given.data.coins, coins.reshape(-1, m, len(weight)), strict=True))
    read |= dict(zip(given.data.normals, normals.reshape(-1, m, len(weight)), strict=True))
    read |= {"c": c.swapaxes(0, 1)} if len(kind.along) else {}
    read |= {name: hidden[i][None, None] for name, i in kind.others.items()}
    return fields, read, weight


def under(name, tag):
    """Name of a symbol with a tag."""
    return f"{name}__{tag}" if tag else name


def tags_of(given, number):
    kind = given.kinds[number]
    return [str(number + 1) * (len(given.kinds) > 1) + str(view + 1) * (kind.views > 1) for view in range(kind.views)]


def beside_features(G, M):
    turned = np.broadcast_to(np.eye(G.shape[-1]), G.shape).copy()
    turned[:, :M, M:] = -np.linalg.solve(G[:, :M, :M], G[:, :M, M:])
    turned[:, :M, :M] = 0.0
    return turned


def array_of(axes, values):
    """What a name of several stands for, which counts from 1 along axes of more than one."""
    kept = [size > 1 for size in values.shape[:axes]]
    values = values.reshape(
        [size for size, keep in zip(values.shape, kept, strict=False) if keep] + list(values.shape[axes:])
    )
    return counted(values, [keep for keep in kept if keep])


def printed_velocity(given, equations, states, nodes):
    """Rates of R, Q and v at states, as they are printed."""
    M, K, P = len(given.features), len(given.students), POINTS
    spectrum, at = equations.nodes, "__rho" if equations.nodes is not None else ""
    G = equations.stretches[0].system.gram(states.R, states.Q, spectrum)
    per_node = G[:, None] if spectrum is None else G
    rho, share = (np.ones(1), np.ones(1)) if spectrum is None else (spectrum.rho, spectrum.weight)
    G, hat = (np.einsum("b,pbij->pij", each, per_node) for each in (share, share * rho))
    turned = beside_features(G, M)
    grams = per_node, rho, share, G, hat, turned.swapaxes(1, 2) @ hat @ turned
    lines, step, rates = (section(given, title) for title in ("Fields", "Step", "Order"))
    of_side = [rate_of(entry(name)) for name in given.side]
    R, Q = G[:, M:, :M].transpose(1, 2, 0)[..., None], G[:, M:, M:].transpose(1, 2, 0)[..., None]
    shared = {"R": array_of(2, R), "Q": array_of(2, Q)}
    shared |= {name: each[:, None] for name, each in zip(given.side, states.v.T, strict=True)}
    weights, values, B, v = {}, [dict(shared) for _ in rho], np.zeros((M + K, K, P)), np.zeros((P, 0))
    groups = {"y" if name == "u" else name: each for name, each in given.vectors.items() if len(each)}
    average = {
        "average_of": lambda of: (
            np.broadcast_to(of, np.broadcast_shapes(of.shape, (P, 1))) @ weights[of.shape[-1]]
            if of.shape[-1] > 1
            else of[..., 0]
        )
    }
    for number, kind in enumerate(given.kinds):
        tags, own = tags_of(given, number), str(number + 1) * (len(given.kinds) > 1)
        fields, read, weight = fields_of(given, number, lines, grams, nodes)
        weights[len(weight)] = weight
        known = shared | {under(name, own): array_of(2, each[..., None, :]) for name, each in read.items()}
        for view, tag in enumerate(tags):
            for name, each in groups.items():
                whole = fields[-1, :, view, each.start : each.stop]
                known[under(name, tag)] = array_of(2, whole)
            for i in range(len(rho)):
                for name, each in (("y", range(M)), ("s", range(M, M + K))):
                    part = fields[i if at else -1, :, view, each.start : each.stop]
                    values[i][f"{name}{at}{tag}" if at else under(name, tag)] = array_of(2, part)
        F = {under("F", tag): np.zeros((kind.samples, K, P, len(weight))) for tag in tags}
        for line in [*step, *lines_of(rates, *of_side)]:
            if (
                not isinstance(line, Equation)
                or not hasattr(line.right, "free_symbols")
                or (hasattr(line.left, "args") and str(line.left).startswith("phi"))
            ):
                continue
            name = str(getattr(line.left, "base", line.left))
            indices = [int(each) - 1 for each in getattr(line.left, "indices", ())]
            mine = name.startswith("mean") and (name.partition("__")[2] or own) == own
            if mine:
                (found,) = next(iter(evaluate([line], known, average).values()))
                known[name] = np.asarray(found)[..., None]
            elif name in F:
                (found,) = next(iter(evaluate([line], known).values()))
                b, k = [0, 0, *indices][-2:] if kind.samples == 1 else [*indices, 0][:2]
                F[name][b, k] = found
            elif name == under("B", own):
                (found,) = next(iter(evaluate([line], known).values()))
                B[indices[0], indices[1]] += np.broadcast_to(found, (P, len(weight))) @ weight
            elif name in of_side and kind.side:
                (found,) = next(iter(evaluate([line], known, average).values()))
                v = np.asarray(found)[:, None]
        for each in values:
            each |= {name: array_of(2, of) for name, of in F.items()}
            each[under("varsigma", "")] = hidden_factor(kind, given, nodes, weight) if kind.scales_noise else 1.0
    found = [np.empty((P, len(rho), K, size)) for size in (M, K)]
    counts, S = {"k": K, "l": K, "j": M}, np.zeros((K, K, P))
    (Lambda,) = lines_of(rates, "Lambda", "Lambda[k, l]")
    Psi = lines_of(rates, *(f"Psi{at}{end}" for end in ("", "[k, l]")))
    total = np.zeros((K, K, P))
    for i, each in enumerate(values):
        each |= {
            f"R{at}": array_of(2, per_node[:, i, M:, :M].transpose(1, 2, 0)),
            f"Q{at}": array_of(2, per_node[:, i, M:, M:].transpose(1, 2, 0)),
        }
        each |= {f"G{at}": counted(per_node[:, i].transpose(1, 2, 0), "ij"), "Bbar": counted(B, "ij"), "rho": rho[i]}
        each |= {"Lambda": array_of(2, np.reshape(evaluate([Lambda], each, average, counts)["Lambda"][0], (K, K, P)))}
        if Psi:
            of_node = np.reshape(evaluate(Psi, each, average, counts)[f"Psi{at}"][0], (K, K, P))
            each |= {f"Psi{at}": array_of(2, of_node)}
            total += share[i] * of_node
    if Psi:
        S = np.array([normalisation(given.constraints, total[..., p], Q[..., p, 0]) for p in range(P)]).transpose(
            1, 2, 0
        )
    for i, each in enumerate(values):
        each |= {"S": array_of(2, S)}
        for which, array in zip("RQ", found, strict=True):
            (line,) = [
                line
                for line in rates
                if isinstance(line, Equation) and re.match(rf".frac..mathrm d(.)?{which}", str(line.left))
            ]
            for k, j in product(range(K), range(array.shape[-1])):
                (value,) = next(iter(evaluate([line], each | {"k": k + 1, "j": j + 1, "l": j + 1}, average).values()))
                array[:, i, k, j] = value
    return found[0], found[1], v


def hidden_factor(kind, given, nodes, weight):
    hidden, *_ = nodes_of(kind, given.data, nodes)(
        (len(given.features) + len(given.students)) * kind.views * kind.samples
    )
    return hidden[list(kind.scales_noise)].prod(axis=0)


NODES = {
    "committee": 4,
    "missing beside features": 4,
    "scale": 4,
    "views less means": 4,
    "moves and a side variable": 3,
}


@pytest.mark.parametrize(
    ("name", "spectrum"),
    [
        *((name, None) for name in CASES),
        *(pytest.param(name, SPECTRUM, marks=[pytest.mark.slow] * (name not in QUICK)) for name in CASES),
    ],
)
def test_equations_are_the_rates_of_the_code(name, spectrum):
    """From the law of the fields to the rates at random overlaps; rules are polynomials, and nodes exact."""
    given = CASES[name](**({} if spectrum is None else {"spectrum": spectrum}))
    equations = Equations(given)
    M, K = len(given.features), len(given.students)
    states = states_of(equations, M, K, len(given.side))
    choices = equations.choose([(0.0, equations.start)], 1e-9, {})
    velocity = equations.velocity(0, equations.rules(choices, lambda each: each.rule))
    nodes = None if spectrum is None else len(equations.nodes.rho)
    right = [unpacked(velocity(0.0, packed(State(*each))), K, M, nodes) for each in zip(*states, strict=True)]
    found = printed_velocity(given, equations, states, NODES.get(name, 2))
    for which, of in zip(("R", "Q", "v"), found, strict=True):
        known = np.array([getattr(each, which) for each in right])
        assert np.abs(of.reshape(known.shape) - known).max(initial=0.0) <= ROUNDING * np.abs(known).max(initial=1.0)
    assert not unsaid(given)


@pytest.mark.parametrize("spectrum", [None, SPECTRUM])
def test_coordinates_move_as_order_parameters_do(spectrum):
    """Of dw/dt = rho z.gamma' + z.gamma, the averages with z at each eigenvalue are the rates of R, with masks, too."""
    data = {"signal": "spiked", "observed": 0.6, "noise": 0.7} | ({} if spectrum is None else {"spectrum": spectrum})
    given = problem(cubic, 1, None, 2.0, data=data)
    equations = Equations(given)
    states, nodes = states_of(equations, 1, 1, 0), equations.nodes
    velocity = equations.velocity(
        0, equations.rules(equations.choose([(0.0, equations.start)], 1e-9, {}), lambda each: each.rule)
    )
    count = None if nodes is None else len(nodes.rho)
    right = [unpacked(velocity(0.0, packed(State(*each))), 1, 1, count).R for each in zip(*states, strict=True)]
    G = equations.stretches[0].system.gram(states.R, states.Q, nodes)
    per_node = G[:, None] if nodes is None else G
    rho, share = (np.ones(1), np.ones(1)) if nodes is None else (nodes.rho, nodes.weight)
    G, hat = (np.einsum("b,pbij->pij", each, per_node) for each in (share, share * rho))
    psi, read, weight = fields_of(given, 0, section(given, "Fields"), (per_node, rho, share, G, hat, 0 * G), 4)
    psi = psi[-1, 0, 0].swapaxes(0, 1)  # points, vectors, draws
    d = np.zeros_like(psi)
    d[:, 0] = 0.6 * read["c"][0, 0]
    F = 0.7 * psi[:, 1] ** 3
    averages = {"psi": psi, "xi": psi - G @ d, "d": d}
    known = {"G": G, r"\hat G": hat}
    for name, each in averages.items():
        symbol = name if name == "d" else rf"\{name}"
        known[rf"\langle {symbol} F^{{\mathsf T}} \rangle"] = np.einsum("pid,pd,d->pi", each, F, weight)[..., None]
    found = evaluate(section(given, "Coordinates"), stacks(known))
    moved = sum(found[name][0][:, None] * (rho[:, None, None] if "hat" in name else 1.0) for name in found)
    rates = (per_node @ moved)[:, :, 0]
    assert np.abs(rates.reshape(-1) - np.array(right).reshape(-1)).max() <= ROUNDING * np.abs(rates).max()


@pytest.mark.parametrize(
    ("name", "spectrum", "said"),
    [
        ("subspace", None, r"(w S)_k"),
        ("committee", None, r"\varphi(w_k) \right]"),
        ("scale", SPECTRUM, r"\langle C_z C^{+} \xi F_k \rangle"),
    ],
)
def test_coordinates_say_constraints_and_noise_beside_features(name, spectrum, said):
    lines = section(CASES[name](**({} if spectrum is None else {"spectrum": spectrum})), "Coordinates")
    assert any(said in str(line.right) for line in lines if isinstance(line, Equation))


def test_groups_of_samples_are_said():
    draws = [{"samples": 2, "batch_size": 3, "gain": {"s": centred}}]
    lines = section(problem(None, 1, None, 2.0, draws=draws, data={"signal": "spiked"}), "Step")
    assert any(isinstance(line, str) and "a group of 2 samples, and $3$ such groups" in line for line in lines)


def scaled(s, rho, m_1):
    return rho * s - m_1


def test_parameters_with_names_of_other_symbols_have_a_mark():
    model = {"rule_parameters": {"rho": 0.7, "m_1": 0.2}, "batch_size": 2}
    given = problem(scaled, 1, model, 2.0, data={"signal": "spiked", "spectrum": SPECTRUM})
    rows = {key: symbol for symbol, key, _ in equations_of(given).symbols}
    assert rows["data.spectrum"] != rows["model.rule_parameters.rho"]
    assert not unsaid(given, symbols=True)


def test_a_start_from_a_file_has_no_overlaps(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "start.npz", weights=rng.normal(size=(50, 1)), U=np.ones((50, 1)))
    given = meanfield.Problem(
        family="update_rule",
        model={"rule": oja, "rule_parameters": {"rate": 0.7}},
        features=[{}],
        initial={"from": str(tmp_path / "start.npz")},
        particles={"dimension": 50},
        time={"stop": 1.0},
    )
    rows = [(symbol, key) for symbol, key, _ in equations_of(given).symbols if "(0)" in symbol]
    assert rows == [("R(0), Q(0)", "initial")]


GAUSSIAN = CASES.keys() - {"classes", "scale"}  # of which a loop of NumPy draws the hidden variables
STEPS = {name: CASES[name]() for name in sorted(GAUSSIAN)} | {
    name: problem(name, 1, {"batch_size": 20}) for name in RULES
}
STEPS |= {
    "groups": problem(None, draws=[{"samples": 2, "batch_size": 3, "gain": {"s": centred}}]),
    "force": problem(committee, 2, {"batch_size": 2}, prior={"name": "l1", "strength": 0.4}),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_of_all_samples_are_those_of_sgd(name):
    """Against a loop of NumPy, which plain steps are held against, from what its samples show."""
    given = meanfield.with_values(STEPS[name], {"particles.dimension": 33, "particles.method": "plain"})
    shown = [[] for _ in given.kinds]
    (U, W), (_, right, _) = draw_vectors(given, 0), naive.run(given, 0, 1, shown)
    (N, K), lines, functions, moved, arrays = W.shape, section(given, "Step"), {}, W.copy(), {}
    evaluate(lines_of(lines, "phi"), {}, functions)
    (step,) = lines_of(lines, r"\tilde w", r"\tilde w_k")
    for number, (kind, samples) in enumerate(zip(given.kinds, shown, strict=True)):
        found = [printed_values(given, number, lines, seen) for _, seen in samples]
        for each in found:
            for (symbol, *at), value in each.items():
                if symbol[0] == "B":
                    moved[:, at[1] - 1] += np.hstack([U, W])[:, at[0] - 1] * value / (N * len(found))
        for view, tag in enumerate(tags_of(given, number)):
            F, x = under("F", tag), np.array([each[view] for each, _ in samples])  # (groups, samples, N)
            if kind.samples > 1:
                values = [[[each[F, b + 1] for b in range(kind.samples)]] for each in found]
            else:
                values, x = (
                    [[[each.get((F, *(k,) * (K > 1)), 0.0) for each in found] for k in range(1, K + 1)]],
                    x[None, :, 0],
                )
            arrays |= {F: np.array(values), under("x", tag): x}
    for group in range(len(x)):
        for k in range(K):
            at = {name: each[group] if K > 1 or name[0] == "x" else each[group, 0] for name, each in arrays.items()}
            at = {name: counted(each, "kb"[-1 if name[0] == "x" else -each.ndim :]) for name, each in at.items()}
            at |= {"w": counted(W.T, "k") if K > 1 else W[:, 0], "k": k + 1, "N": N}
            ((of_group,),) = evaluate([step], at, functions).values()
            moved[:, k] += of_group - W[:, k]
    for constraint, students in given.constraints:
        moved[:, students] = naive.constrained(moved[:, students], constraint, np.diag(given.initial_Q)[students])
    assert np.abs(moved - right).max() <= ROUNDING * np.abs(right).max()


def printed_values(given, number, lines, seen):
    """Values of F and B of a kind, by their names and places, from what functions see."""
    tags, own = tags_of(given, number), str(number + 1) * (len(given.kinds) > 1)
    known, found = {}, {}
    for read, value in seen.items():
        name = read.rstrip("0123456789")
        of_view = name == "y" or name in given.vectors
        tag = tags[int(read[len(name) :] or 1) - 1] if of_view else own * (read not in ("t", "R", "Q", *given.side))
        known[under(name if of_view else read, tag)] = counted(value, "i" * np.ndim(value))
    for line in lines:
        symbol = str(getattr(getattr(line, "left", None), "base", getattr(line, "left", "")))
        if symbol in (under("B", own), *(under("F", tag) for tag in tags)):
            ((value,),) = evaluate([line], known).values()
            found[symbol, *map(int, getattr(line.left, "indices", ()))] = value
    return found


def test_a_step_that_is_no_arithmetic_has_its_name():
    given = problem(bends)
    assert not lines_of(section(given, "Step"), "F")
    assert r"$F$ & \verb|model.rule|" in given.latex()


def test_each_function_that_is_no_arithmetic_has_a_row():
    rows = {key: words for _, key, words in equations_of(gan()).symbols}
    assert rows["draws[0].move.w.w"].endswith(":hold")
    assert rows["draws[0].move.V.V"].endswith(":hold_generator")
