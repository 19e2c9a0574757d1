"""Formulas of named functions in x and their parameters, as SymPy reads them; compiled code has forms of its own."""

ACTIVATIONS = {
    "linear": "x",
    "quadratic": "x**2",
    "cubic": "x**3",
    "relu": "Max(x, 0)",
    "leaky_relu": "Max(x, 0) + slope*Min(x, 0)",
    "abs": "Abs(x)",
    "hard_tanh": "(Abs(x + 1) - Abs(x - 1))/2",
    "erf": "erf(x)",
    "scaled_erf": "erf(x/sqrt(2))",
    "tanh": "tanh(x)",
    "sigmoid": "1/(1 + exp(-x))",
    "softplus": "log(1 + exp(x))",
    "gelu": "x*(1 + erf(x/sqrt(2)))/2",
    "silu": "x/(1 + exp(-x))",
    "sin": "sin(x)",
}
"""Activations sigma(x)."""

PRIORS = {
    "none": "0*x",
    "l2": "x",
    "l1": "sign(x)",
    "elastic_net": "ratio*sign(x) + (1 - ratio)*x",
    "smooth_l1": "(Abs(x + width) - Abs(x - width))/(2*width)",
    "log_cosh": "tanh(x)",
    "quartic": "x**3",
    "cauchy": "x/(1 + x**2)",
    "double_well": "x**3 - x",
}
"""Forces phi(x) of priors of unit strength."""

PENALTIES = {"square": "x**2", "absolute": "Abs(x)", "smooth_absolute": "sqrt(x**2 + width**2) - width"}
"""Penalties psi(x) on covariances of channels."""
