"""Solve a problem for its order parameters: the overlaps q_t from the reduced ODEs.

They close for priors with linear phi (none, l2); other priors need `meanfield density` or `meanfield sgd`.
"""

from __future__ import annotations

from argparse import Namespace

from meanfield.commands.solving import add_problem_and_output, solve_and_save

add_arguments = add_problem_and_output


def run(arguments: Namespace) -> int:
    """Solve the reduced ODEs, and save the trajectory."""
    return solve_and_save(arguments, "order_parameters")
