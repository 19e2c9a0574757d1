"""Results are plain xarray.

A density is P(w) given u, with weights of the nodes in u, so that averages and figures need no function of this
library. Drawn is the mean weight given the coordinate of the feature at three times.
"""

import matplotlib.pyplot as plt

import meanfield
from meanfield.plotting import curve_style

problem = meanfield.parse_problem("""
model = { activation = "quadratic", learning_rate = 0.05, batch_size = 10 }
prior = { name = "l1", strength = 2.0 }
time = { stop = 8.0, outputs = 9 }
[[features]]
hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }
initial_overlap = 0.5
""")
density = meanfield.solve_density(problem)
h = density["w_bnds"].diff("bounds").squeeze()
mean = (density["P"] * density["w"] * h).sum("w")  # E[w | u]
q = (mean * density["u"] * density["u_weight"]).sum("u")
print(f"q(8) = {q[-1].item():.4f} by hand, {density['q'][-1].item():.4f} in the result")

for number, time in enumerate((0.0, 3.0, 8.0)):
    plt.plot(density["u"], mean.sel(time=time), **curve_style(number), label=f"$t = {time:g}$")
plt.gca().set(xlabel="coordinate $u$ of the feature", ylabel="mean weight given $u$", xlim=(-3, 3), ylim=(-3, 3))
plt.legend()
plt.show()
# prints: q(8) = 0.9110 by hand, 0.9110 in the result
