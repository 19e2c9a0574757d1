"""Commands: one module each, with its arguments and what it does; `meanfield NAME` and the scripts run them."""
