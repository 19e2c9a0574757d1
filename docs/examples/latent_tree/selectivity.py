"""What a deep network comes to see of the latents of a tree.

Nodes are trained by a contrastive loss on the leaves, not to see their latents: here the root is seen better in time,
and its left child worse. The exact flow says so, and so do eight runs of SGD (two standard deviations).

Y. Tian, L. Yu, X. Chen and S. Ganguli, Understanding self-supervised learning with dual deep networks (2020).
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "latent_tree"
tree = { depth = 3, polarity = { law = "uniform", low = 0.7, high = 1.0, random_sign = true, seed = 1 } }
network = { nodes_per_latent = 2, bias = true, output_normalisation = true, epsilon = 0.5, initial.law = "uniform" }
training = { learning_rate = 0.2, batch_size = 64 }
time = { stop = 40.0, outputs = 21 }
""")
flow, sgd = meanfield.solve_population(problem), meanfield.simulate_sgd(problem)
print("verdict:", meanfield.compare(flow, sgd).attrs["verdict"])
for latent, label, mark in ((0, "root", "C0o"), (1, "left child", "C1s"), (2, "right child", "C2^")):
    seen, runs = (abs(found["correlation"]).max("node").isel(latent=latent) for found in (flow, sgd))
    plt.plot(flow["time"], seen, mark[:2], label=label)
    plt.errorbar(flow["time"], runs.mean("replica"), 2 * runs.std("replica", ddof=1), fmt=mark)
plt.gca().set(xlabel="time $t$", ylabel="largest |correlation| of a node")
plt.legend()
plt.show()
# prints: verdict: AGREES
