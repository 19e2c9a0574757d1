"""Table 1 of the paper: discrepancies of every order parameter with erf units, m = 2, standardised, alpha = 0 to 9.

The paper prints the same numbers for all alpha, up to rounding and chance. So do runs in which each latent draws its
own component; those in which a sample has one do not. The printed numbers themselves are not those of SGD with
N = 1000, which is nearer to an accurate ODE by far. (18) as it is printed takes roots of differences of squares, which
makes small differences larger; with absolute values under the root it gives the printed size of some entries and not of
others. Nearest to print comes the difference from an ODE that starts from the overlaps that random weights have in
the limit, Q_kl = delta_kl and R = 0, instead of those of the run, which are off by 1/sqrt(N). Either way the tables
have an error of their own, which is the same in all rows, and cannot show effects below it.

Points are means over all starts with standard errors, at alpha = 9 or with N(0, 1). Q_01 and Q_10 are one number.
"""

from functools import partial

from validation.hidden_manifold.figures.printed_tables import ERF
from validation.hidden_manifold.figures.tables import draw_table, table_numbers, table_statements
from validation.study import Study

STUDY = Study(
    partial(table_numbers, "scaled_erf", ERF),
    partial(table_statements, place="table 1"),
    draw_table,
)
