"""Independent components: who starts too low learns nothing.

A feature that takes the values +1 and -1 is invisible in the covariance. A step along -s^3 finds it from an overlap
above 0.41 and loses it from below; both limits have SGD beside them.

C. Wang and Y. M. Lu, The scaling limit of high-dimensional online independent component analysis, NeurIPS (2017).
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "update_rule"
data = { signal = "orthogonal" }
model = { rule = "ica", rule_parameters = { rate = -0.04 }, constraint = "sphere" }
features = [{ hidden = { law = "discrete", values = [-1.0, 1.0], probabilities = [0.5, 0.5] } }]
time = { stop = 150.0, outputs = 31 }
particles = { dimension = 2000 }
""")
for start, mark in ((0.55, "C0o"), (0.3, "C1s")):
    made = meanfield.with_value(problem, "features[0].initial_overlap", start)
    limit, sgd = meanfield.solve_order_parameters(made), meanfield.simulate_sgd(made)
    print(f"from {start}: {limit['R'][-1].item():.4f},", meanfield.compare(limit, sgd).attrs["verdict"])
    plt.plot(limit["time"], limit["R"].squeeze(), mark[:2], label=f"from $q = {start}$")
    runs = sgd["R"].squeeze().isel(time=slice(None, None, 3))
    plt.errorbar(runs["time"], runs.mean("replica"), 2 * runs.std("replica", ddof=1) / 8**0.5, fmt=mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="overlap $q$")
plt.legend()
plt.show()
# prints: from 0.55: 0.9942, AGREES
# prints: from 0.3: 0.0747, AGREES
