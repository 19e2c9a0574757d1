"""Infinitely many nodes come to rest at their kinks.

Nodes that start on a sphere have a density by angle. They turn until one of their inputs is about to become inactive,
and a share of them stays there; Delta, what the root makes of the output, grows meanwhile.
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "latent_tree"
tree = { depth = 2, polarity = [[0.8, 0.5], [0.9, 0.6, 0.8, 0.7]] }
training = { learning_rate = 0.1, batch_size = 64 }
time = { stop = 8.0, outputs = 5 }
particles = { common_start = false }
[network]
nodes_per_latent = 200
initial = { law = "sphere", positive = 0.75, fixed_lengths = true }
""")
density, sgd = meanfield.solve_density(problem), meanfield.simulate_sgd(problem)
print("verdict:", meanfield.compare(density, sgd).attrs["verdict"])

plt.plot(density["time"], density["Delta"], label="limit")
runs = sgd["Delta"]
plt.errorbar(runs["time"], runs.mean("replica"), 2 * runs.std("replica", ddof=1) / 8**0.5, fmt="C1o", label="SGD")
plt.gca().set(xlabel="time $t$", ylabel=r"difference of mean outputs $\Delta$")
plt.legend()
plt.show()
# prints: verdict: AGREES
