"""Averages <f>, <z f> and <f f^T> of compiled row functions f of Gaussian rows x = mean + A z, with standard normal z.

A family compiles its functions once (`compiled.row_functions.compile_rows`), and chooses a rule at a typical state:

    law = Law(mean, semidefinite_factor(covariance))  # of slots that f reads; one a component
    choice = choose_rule(function, constants, laws, Kinks(normals, levels), names=slots)

`choose_rule` finds out whether the function is a polynomial, smooth, or has kinks, how fine the rule must be, and
refuses functions that jump or bend where no kink is declared, or whose averages do not exist. The rule then serves all
laws and constants along a trajectory:

    first, along, products = choice.rule.moments(function, constants, law)
    correlation = mean[a] * first + covariance_with_z[a] @ along     # <x_a f>, of slots that f does not read, too

Once at the start is not enough: at some later states `change` between `choice.rule` and `choice.coarser` tells whether
the rule still is fine enough, as does a second choice. A result computed with `choice.coarser` differs from that of
`choice.rule` by more than the error of the latter; with random points, the results of `choice.rule.randomisations()`
scatter by it. An average takes 10 ns a node and what the function takes: 20 us for two directions with kinks.
"""
