"""Least squares on a power-law spectrum.

Variances of inputs fall like 1/rank. Small ones are learnt late, and the error falls like a power, not exponentially.

E. Paquette, C. Paquette, L. Xiao and J. Pennington, 4+3 phases of compute-optimal neural scaling laws (2024).
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "update_rule"
model = { rule = "regression", rule_parameters = { rate = 0.3 } }
features = [{}]
students = [{ initial_norm = 0.01 }]
time = { stop = 20.0, outputs = 16, spacing = "log" }
particles = { replicas = 16 }
""")
power = {"law": "power_law", "exponent": 1.0, "range": 100.0}
for name, spectrum, mark in (("power law", power, "C0o"), ("all variances 1", None, "C1s")):
    made = meanfield.with_value(problem, "data.spectrum", spectrum)
    limit, sgd = meanfield.solve_order_parameters(made), meanfield.simulate_sgd(made)
    print(f"{name}: error {limit['observables'][-1].item():.5f},", meanfield.compare(limit, sgd).attrs["verdict"])
    plt.loglog(limit["time"][1:], limit["observables"][1:], mark[:2], label=name)
    runs = sgd["observables"][:, 1:, 0]
    plt.errorbar(runs["time"], runs.mean("replica"), 2 * runs.std("replica", ddof=1) / 16**0.5, fmt=mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="error", ylim=(1e-4, 1))
plt.legend()
plt.show()
# prints: power law: error 0.00330, AGREES
# prints: all variances 1: error 0.00002, AGREES
