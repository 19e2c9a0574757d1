"""How fast Hebb, perceptron and Adatron forget their errors.

Each learns the labels of a teacher. Errors fall like t^(-1/2), t^(-1/3) and 1/t, after a time in which the order is
another one. Bars are two standard errors of 16 runs of SGD.

C. W. H. Mace and A. C. C. Coolen, Statistics and Computing 8, 55 (1998).
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "update_rule"
model = { rule = "hebb", rule_parameters = { rate = 1.0 } }
features = [{ initial_overlap = 0.0 }]
time = { stop = 100.0, outputs = 21, spacing = "log", first = 0.1 }
particles = { dimension = 500, replicas = 16 }
""")
for rule, mark in (("hebb", "C0o"), ("perceptron", "C1s"), ("adatron", "C2^")):
    made = meanfield.with_value(problem, "model.rule", rule)
    limit, sgd = meanfield.solve_order_parameters(made), meanfield.simulate_sgd(made)
    print(f"{rule}: error {limit['observables'][-1].item():.4f},", meanfield.compare(limit, sgd).attrs["verdict"])
    plt.loglog(limit["time"][1:], limit["observables"][1:], mark[:2], label=rule)
    runs = sgd["observables"].isel(observable=0, time=slice(1, None, 2))
    plt.errorbar(runs["time"], runs.mean("replica"), runs.std("replica", ddof=1) / 2, fmt=mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="share of wrong answers")
plt.legend()
plt.show()
# prints: hebb: error 0.0399, AGREES
# prints: perceptron: error 0.0597, AGREES
# prints: adatron: error 0.0148, AGREES
