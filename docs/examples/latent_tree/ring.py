"""Nodes that slide along a kink.

Objects lie anywhere on a ring of pixels, of which a node sees two. Its gradient jumps on the line w1 + w2 = 0: nodes
climb to it and slide outwards, in the exact flow and in SGD.
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "latent_tree"
data = { law = "ring_objects", sites = 8 }
time = { stop = 180.0, outputs = 61 }
training = { learning_rate = 1.0, batch_size = 512 }
network.nodes_per_latent = 4
network.initial = { law = "explicit", weights = [[[[0.4, -1.2], [1.2, -2.0], [-0.4, 1.2], [-2.0, 1.2]]]] }
""")
flow, sgd = meanfield.solve_population(problem), meanfield.simulate_sgd(problem)
w, noisy = flow["weights"].values.reshape(61, 4, 2), sgd["weights"].values[0].reshape(61, 4, 2)
print(f"furthest from the line at the end: {abs(w[-1].sum(axis=1)).max():.6f}")
plt.axline((0, 0), slope=-1, color="0.6", linestyle=":", label="$w_1 + w_2 = 0$")
for node in range(4):
    plt.plot(*noisy[:, node].T, "C1", linewidth=1, label=None if node else "SGD")
    plt.plot(*w[:, node].T, "C0", label=None if node else "flow")
    plt.plot(*w[0, node], "C0o")
plt.gca().set(xlabel="weight $w_1$", ylabel="weight $w_2$")
plt.legend()
plt.show()
# prints: furthest from the line at the end: 0.000000
