"""Phase retrieval: a long time in which nothing is known.

The answer is y^2, and the student does not know its sign. An overlap grows exponentially from what little there is, so
that each start that is three times smaller costs the same time.

L. Arnaboldi, F. Krzakala, B. Loureiro and L. Stephan, Escaping mediocrity, arXiv:2305.18502 (2023).
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "update_rule"
model = { rule = "phase_retrieval", rule_parameters = { rate = 0.08 }, constraint = "sphere" }
features = [{}]
time = { stop = 50.0, outputs = 26 }
particles = { dimension = 10_000, replicas = 4 }
""")
for start, mark in ((0.3, "C0o"), (0.1, "C1s"), (0.03, "C2^")):
    made = meanfield.with_value(problem, "features[0].initial_overlap", start)
    limit, sgd = meanfield.solve_order_parameters(made), meanfield.simulate_sgd(made)
    print(f"from {start:g}:", meanfield.compare(limit, sgd).attrs["verdict"])
    plt.plot(limit["time"], limit["R"].squeeze(), mark[:2], label=f"from {start:g}")
    runs = sgd["R"].squeeze().isel(time=slice(None, None, 2))
    plt.errorbar(runs["time"], runs.mean("replica"), 2 * runs.std("replica", ddof=1) / 4**0.5, fmt=mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="overlap $R$")
plt.legend()
plt.show()
# prints: from 0.3: AGREES
# prints: from 0.1: AGREES
# prints: from 0.03: AGREES
