"""Numbers of a problem from its runs.

How large are the learning rate and the second moment behind eight runs? A fit of the limit, which knows how runs
scatter, says it with intervals. Bars are 95 %, dotted lines the true values.
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
model = { activation = "linear", learning_rate = 0.3, batch_size = 2 }
features = [{ hidden = { law = "gaussian", second_moment = 1.6 }, initial_overlap = 0.3 }]
time = { stop = 6.0, outputs = 7 }
particles = { dimension = 2000, replicas = 8, seed = 1 }
""")
runs = meanfield.simulate_sgd(problem)
keys = ["model.learning_rate", "features[0].hidden.second_moment"]
found = meanfield.fit(meanfield.with_values(problem, dict(zip(keys, (0.25, 1.5)))), runs, keys)
for key, value, low, high in zip(keys, found["estimate"].values, found["lower"].values, found["upper"].values):
    print(f"{key} = {value:.3f}, {low:.3f} to {high:.3f}")

ratio, error = found["estimate"] / [0.3, 1.6], (found["upper"] - found["lower"]) / 2 / [0.3, 1.6]
plt.errorbar(["learning rate", "second moment"], ratio, error, fmt="o", capsize=6)
plt.axhline(1.0, color="0.4", linestyle=":")
plt.gca().set(xlabel="number of the problem", ylabel="estimate / true value", xlim=(-0.5, 1.5))
plt.show()
# prints: model.learning_rate = 0.314, 0.287 to 0.340
# prints: features[0].hidden.second_moment = 1.592, 1.578 to 1.606
