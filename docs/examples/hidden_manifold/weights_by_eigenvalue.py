"""Which directions of the data are learnt.

Inputs are signs of random features, whose covariance has a spectrum. Large eigenvalues are learnt first, small ones
hardly at all: lines are the overlap of weights and teacher at each eigenvalue.

S. Goldt, M. Mezard, F. Krzakala and L. Zdeborova, Physical Review X 10, 041044 (2020).
"""

import matplotlib.pyplot as plt

import meanfield
from meanfield.plotting import curve_style

problem = meanfield.parse_problem("""
family = "hidden_manifold"
inputs = { nonlinearity = "sign", aspect_ratio = 0.5 }
teacher = { output_weights = [1.0], overlap = [[1.0]] }
student = { output_weights = [1.0], on_teacher = [[0.3]], elsewhere = [[0.5]] }
training = { learning_rate = 0.5, output_learning_rate = 0.0 }
time = { stop = 100.0, outputs = 101 }
""")
limit = meanfield.solve_order_parameters(problem)
print(f"R(100) = {limit['R'][-1].item():.4f}")
for number, time in enumerate((0, 3, 10, 100)):
    at = limit.sel(time=time)
    plt.plot(limit["rho"], at["r"].squeeze(), **curve_style(number), label=f"$t = {time}$")
plt.gca().set(xlabel=r"eigenvalue $\rho$", ylabel=r"overlap per eigenvalue $r(\rho)$")
plt.legend()
plt.show()
# prints: R(100) = 0.6425
