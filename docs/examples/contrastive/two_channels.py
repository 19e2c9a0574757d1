"""Two channels in the plane of their weights.

Under a sparse prior the limit of two channels is a density of both weights: lines have 50, 90 and 99 % of it within.
"""

import matplotlib.pyplot as plt

import meanfield
from meanfield.plotting.plane import plot_joint_density

problem = meanfield.parse_problem("""
model = { activation = "quadratic", centering = "population", learning_rate = 0.01, batch_size = 10, channels = 2 }
decorrelation = { strength = 0.05 }
prior = { name = "l1", strength = 2.0 }
time = { stop = 4.0, outputs = 3 }
particles = { dimension = 1000, snapshots = [4.0] }
[[features]]
hidden = { law = "three_point", second_moment = 1.2, fourth_moment = 7.2 }
coordinate = { law = "rademacher" }
initial_overlap = [0.5, 0.3]
[[features]]
hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }
coordinate = { law = "rademacher" }
initial_overlap = [0.3, 0.5]
""")
(density, joint), sgd = meanfield.contrastive.solve_joint_density(problem), meanfield.simulate_sgd(problem)
print(f"M12 = {density['M'].values[-1, 0, 1]:.3f},", meanfield.compare(density, sgd).attrs["verdict"])

plot_joint_density(joint, plt.figure().subplots(), particles=sgd.isel(replica=[0])).set_title("")
plt.show()
# prints: M12 = 0.298, AGREES
