"""Commands: one module each, with its arguments and its action; `meanfield NAME` and the scripts run them."""
