"""The plateau of a committee machine.

Two students of two teachers become alike at first and stay so for long; then each takes a teacher of its own. Bars are
two standard errors of eight runs of SGD.

D. Saad and S. A. Solla, Physical Review E 52, 4225 (1995).
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "hidden_manifold"
inputs = { nonlinearity = "linear", aspect_ratio = 1.0, spectrum = { law = "atoms", eigenvalues = [1.0] } }
teacher = { output_weights = [1.0, 1.0], overlap = [[1.0, 0.0], [0.0, 1.0]] }
student = { output_weights = [1.0, 1.0], on_teacher = [[0.01, 0.0], [0.0, 0.02]], elsewhere = [[0.2, 0.0], [0.0, 0.2]] }
training = { learning_rate = 1.0, output_learning_rate = 0.0 }
time = { stop = 200.0, outputs = 81 }
""")
limit, sgd = meanfield.solve_order_parameters(problem), meanfield.simulate_sgd(problem)
print("verdict:", meanfield.compare(limit, sgd).attrs["verdict"])

for m, mark, label in ((0, "C0o", "$R_{11}$"), (1, "C1s", "$R_{12}$")):
    plt.plot(limit["time"], limit["R"][:, 0, m], mark[:2], label=label)
    runs = sgd["R"].isel(student=0, teacher=m, time=slice(None, None, 5))
    plt.errorbar(runs["time"], runs.mean("replica"), 2 * runs.std("replica", ddof=1) / 8**0.5, fmt=mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="overlap of student 1 and teacher")
plt.legend()
plt.show()
# prints: verdict: AGREES
