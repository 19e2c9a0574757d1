"""An average of the student as its teacher.

One sample in five has a label, with noise. On all others a student (first vector) may follow its own moving average
(second): both end with smaller errors than without that pull.

A. Tarvainen and H. Valpola, Mean teachers are better role models, NeurIPS (2017).
"""

import matplotlib.pyplot as plt
import numpy as np

import meanfield

rule = meanfield.Rule(
    lambda y, s, eps, seen, pull: 0.5 * np.array([seen * (y + eps - s[0]) + pull * (s[1] - s[0]), 0.0]),
    along=lambda: np.array([[0.0, 0.0], [0.0, 0.25], [0.0, -0.25]]),
    observables={"error": lambda y, s: 0.5 * (y - s[0]) ** 2},
)
data, students = {"coins": {"seen": 0.2}, "normals": ["eps"]}, [{}, {"initial_overlap": [1.0]}]
problem = {"family": "update_rule", "data": data, "features": [{}], "students": students, "time": {"stop": 200.0}}
for pull, mark in ((0.0, "C0o"), (1.8, "C1s")):
    made = meanfield.Problem(**problem, model={"rule": rule, "rule_parameters": {"pull": pull}})
    limit, sgd = meanfield.solve_order_parameters(made), meanfield.simulate_sgd(made)
    print(f"pull {pull}: error {limit['observables'][-1].item():.4f},", meanfield.compare(limit, sgd).attrs["verdict"])
    plt.semilogy(limit["time"], limit["observables"], mark[:2], label=f"pull {pull}")
    runs = sgd["observables"][:, ::4, 0]
    plt.errorbar(runs["time"], runs.mean("replica"), 2 * runs.std("replica", ddof=1) / 8**0.5, fmt=mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="error of the student")
plt.legend()
plt.show()
# prints: pull 0.0: error 0.1667, AGREES
# prints: pull 1.8: error 0.0660, AGREES
