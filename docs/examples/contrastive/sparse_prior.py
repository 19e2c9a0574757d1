"""Weights under a sparse prior.

An l1 prior presses the weights of a neuron to 0 unless the feature holds them: those of the one coordinate in four at
which the feature is not 0 stand apart. The limit predicts the whole density.

L. Meng and C. Wang, Training dynamics of nonlinear contrastive learning model, arXiv:2406.06909 (2024).
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
model = { activation = "quadratic", learning_rate = 0.05, batch_size = 10 }
prior = { name = "l1", strength = 4.0 }
time = { stop = 8.0, outputs = 9 }
particles = { dimension = 4000, snapshots = [8.0] }
[[features]]
hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }
coordinate = { law = "three_point", fourth_moment = 4.0 }
initial_overlap = 0.5
""")
density, sgd = meanfield.solve_density(problem), meanfield.simulate_sgd(problem)
print("verdict:", meanfield.compare(density, sgd).attrs["verdict"])

plt.hist(sgd["weights"].values[:, -1].ravel(), bins=150, density=True, color="0.8", label="SGD, N = 4000")
plt.plot(density["w"], density["P_w"][-1], label="limit")
plt.gca().set(xlabel="weight $w$", ylabel="density at $t = 8$", xlim=(-4, 4))
plt.legend()
plt.show()
# prints: verdict: AGREES
