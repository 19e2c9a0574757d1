"""What noise of labels leaves of an error.

A student that could learn its teacher does not while labels are noisy: an error that grows with the rate is left.

D. Saad and S. A. Solla, Learning with noise and regularizers in multilayer neural networks, NeurIPS (1997).
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "hidden_manifold"
inputs = { nonlinearity = "linear", aspect_ratio = 1.0, spectrum = { law = "atoms", eigenvalues = [1.0] } }
teacher = { output_weights = [1.0], overlap = [[1.0]] }
student = { output_weights = [1.0], on_teacher = [[0.3]], elsewhere = [[0.5]] }
training = { learning_rate = 1.0, output_learning_rate = 0.0, label_noise = 0.1 }
time = { stop = 40.0 }
""")
for rate, mark in ((1.0, "C0o"), (0.4, "C1s"), (0.2, "C2^")):
    made = meanfield.with_value(problem, "training.learning_rate", rate)
    limit, sgd = (meanfield.solve(made, name) for name in ("order_parameters", "particles"))
    name = "generalisation_error"
    print(f"rate {rate}: error {limit[name][-1].item():.4f},", meanfield.compare(limit, sgd).attrs["verdict"])
    plt.semilogy(limit["time"], limit[name], mark[:2], label=f"rate {rate}")
    runs = sgd[name].isel(time=slice(None, None, 4))
    plt.errorbar(runs["time"], runs.mean("replica"), 2 * runs.std("replica", ddof=1) / 8**0.5, fmt=mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="generalisation error")
plt.legend()
plt.show()
# prints: rate 1.0: error 0.0118, AGREES
# prints: rate 0.4: error 0.0041, AGREES
# prints: rate 0.2: error 0.0031, AGREES
