"""How much random nodes see of deep latents.

Before training, random ReLU nodes correlate with their latents, the less the further these are from the leaves and the
weaker the edges of the tree are. Drawn is the limit of many nodes.
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "latent_tree"
tree = { depth = 4, polarity = { law = "uniform", low = 0.9, high = 0.9, seed = 1 } }
network = { nodes_per_latent = 4, output_normalisation = true }
time = { stop = 1.0 }
""")
for polarity, mark in ((0.95, "C0o"), (0.9, "C1s"), (0.8, "C2^")):
    law = {"law": "uniform", "low": polarity, "high": polarity, "seed": 1}
    operator = meanfield.solve(meanfield.with_value(problem, "tree.polarity", law), "operator")
    limit = operator["correlation_limit"].groupby("latent_level").mean()
    print(f"polarity {polarity}: the root is seen with {limit[-1].item():.3f}")
    plt.plot(limit["latent_level"], limit, mark, linestyle="-", label=f"polarity {polarity}")
plt.gca().set(xlabel="level of the latent above leaves", ylabel="correlation, many nodes", xticks=range(1, 5))
plt.legend()
plt.show()
# prints: polarity 0.95: the root is seen with 0.829
# prints: polarity 0.9: the root is seen with 0.680
# prints: polarity 0.8: the root is seen with 0.441
