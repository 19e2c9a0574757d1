"""What is learnt vanishes at a stroke as the prior grows.

A prior that is not linear has no differential equation of overlaps, but its densities at rest can be followed as its
strength grows. A sparse prior helps a sparse feature up to a strength of 15; at 26 the state that is learnt is gone.
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
model = { activation = "quadratic", learning_rate = 0.05, batch_size = 10 }
prior = { name = "l1", strength = 6.0 }
time = { stop = 40.0 }
[[features]]
hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }
coordinate = { law = "three_point", fourth_moment = 10.0 }
initial_overlap = 0.5
""")
branches = meanfield.contrastive.continue_stationary_states(problem, "prior.strength", 0.0, 28.0, points=15)
print(f"the branch turns at {branches['parameter'].values[branches['turning'].values == 1].max():.2f}")

for stability, mark, label in ((1, "C0o", "stable"), (-1, "C1x", "unstable")):
    learnt = (branches["stability"] == stability) & (branches["q"][..., 0] > 0.5)
    plt.plot(branches["parameter"].where(learnt), branches["q"][..., 0], mark, label=label)
plt.gca().set(xlabel="strength of the prior", ylabel="overlap at rest $q$")
plt.legend()
plt.show()
# prints: the branch turns at 26.09
