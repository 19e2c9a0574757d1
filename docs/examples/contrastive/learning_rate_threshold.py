"""The learning rate above which nothing is learnt.

A rate above a threshold makes so much noise that a start with no knowledge stays there; from it to a larger one a
feature that is known already is kept.

L. Meng and C. Wang, Training dynamics of nonlinear contrastive learning model, arXiv:2406.06909 (2024).
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
model = { activation = "quadratic", learning_rate = 0.05, batch_size = 10 }
features = [{ hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }, initial_overlap = 0.5 }]
time = { stop = 1.0 }
""")
key = "model.learning_rate"
branches = meanfield.contrastive.continue_fixed_points(problem, key, 0.02, 0.25, points=24)
threshold = meanfield.contrastive.critical_values(problem, key, 0.02, 0.25).values[0]
print(f"nothing is learnt from nothing above {threshold:.4f}")

for stability, mark, label in ((1, "C0o", "stable"), (-1, "C1x", "unstable")):
    states = branches.where(branches["stability"] == stability, drop=True)
    plt.plot(states["parameter"], states["q"], mark, label=label)
plt.axvline(threshold, color="0.6")
plt.gca().set(xlabel="learning rate", ylabel="overlap at rest $q$")
plt.legend(loc="upper right")
plt.show()
# prints: nothing is learnt from nothing above 0.1000
