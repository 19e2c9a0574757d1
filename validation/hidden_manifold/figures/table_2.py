"""Table 2 of the paper: discrepancies of every order parameter with ReLU units, m = 2, standardised, alpha = 0 to 9.

As table 1. Here the printed numbers are nearer to those of SGD, and those of v agree with them; all are close to those
of an ODE that starts from the overlaps of the limit. The two entries off the diagonal of Q, which is symmetric, have
different means in print.
"""

from functools import partial

from validation.hidden_manifold.figures.printed_tables import RELU
from validation.hidden_manifold.figures.tables import draw_table, table_numbers, table_statements
from validation.study import Study

STUDY = Study(
    partial(table_numbers, "relu", RELU),
    partial(table_statements, place="table 2"),
    draw_table,
)
