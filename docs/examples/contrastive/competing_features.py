"""Which of two features wins.

A neuron learns one feature of two. The plane of both overlaps shows which start leads to which, with three runs of SGD
from one start. Feature 2 attracts four fifths, and yet feature 1 wins from nothing, because it grows faster near 0.
"""

import matplotlib.pyplot as plt

import meanfield
from meanfield.plotting import plot_portrait

problem = meanfield.parse_problem("""
model = { activation = "quadratic", learning_rate = 0.04, batch_size = 20 }
time = { stop = 40.0 }
particles = { dimension = 500, replicas = 3 }
features = [
    { hidden = { law = "gaussian", second_moment = 1.2 }, initial_overlap = 0.3 },
    { hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }, initial_overlap = 0.3 },
]
""")
portrait = meanfield.contrastive.phase_portrait(problem)
stable = portrait.isel(state=portrait["stability"].values == 1)
print("stable", stable["q"].values.round(3).tolist(), "attract", stable["region_share"].values.round(3))

axes = plt.figure().subplots()
plot_portrait(portrait, axes)
for q1, q2 in meanfield.simulate_sgd(problem)["q"].transpose("replica", "feature", "time").values:
    axes.plot(q1**2, q2**2, "C1")  # its axes are squares
axes.legend(loc="upper right", fontsize=7)
plt.show()
# prints: stable [[0.0, 0.975], [0.929, 0.0]] attract [0.812 0.188]
