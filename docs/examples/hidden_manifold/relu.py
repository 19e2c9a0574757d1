"""ReLU students and erf students of the same teacher.

The teacher is a ReLU unit on the latents, of which students see signs of random features. Any activation will do.

S. Goldt, M. Mezard, F. Krzakala and L. Zdeborova, Physical Review X 10, 041044 (2020).
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "hidden_manifold"
inputs = { nonlinearity = "sign", aspect_ratio = 0.5 }
teacher = { activation = "relu", output_weights = [1.0], overlap = [[1.0]] }
student = { output_weights = [1.0], on_teacher = [[0.3]], elsewhere = [[0.5]] }
training = { learning_rate = 0.2, output_learning_rate = 0.0 }
time = { stop = 40.0, outputs = 21 }
particles = { dimension = 400 }
""")
for activation, mark in (("relu", "C0o"), ("scaled_erf", "C1s")):
    made = meanfield.with_value(problem, "student.activation", activation)
    limit, sgd = meanfield.solve_order_parameters(made), meanfield.simulate_sgd(made)
    print(f"{activation}:", meanfield.compare(limit, sgd).attrs["verdict"])
    plt.plot(limit["time"], limit.generalisation_error, mark[:2], label=f"student of {activation}")
    runs = sgd.generalisation_error.isel(time=slice(None, None, 2))
    plt.errorbar(runs["time"], runs.mean("replica"), 2 * runs.std("replica", ddof=1) / 8**0.5, fmt=mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="generalisation error")
plt.legend()
plt.show()
# prints: relu: AGREES
# prints: scaled_erf: AGREES
