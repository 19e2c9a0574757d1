"""Averages P, D and Lambda over a batch in compiled code, exact where sensitivities are polynomials.

Nodes are those of a rule for one sample (`one_sample`). The law of sums over the other samples of the batch enters by
its moments, which follow from those of one sample.
"""

from __future__ import annotations

import numpy as np

from meanfield.families.contrastive.channels.one_sample import centre_outputs, fill_nodes, fill_outputs
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba

BLOCK = 2048
"""Number of nodes whose monomials are held at once: they stay in the cache."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def exact_averages(batch, terms, rule, q, M):  # type: ignore[no-untyped-def]
    """P, D and Lambda / tau^2 in one vector.

    Parameters
    ----------
    batch : BatchLaw
    terms : Terms
    rule : Rule
    q : ndarray, shape (d1, d2)
    M : ndarray, shape (d2, d2)

    Returns
    -------
    ndarray, shape (d1 d2 + 2 d2^2,)
    """
    d1, d2 = q.shape
    weight, theta, x = call(fill_nodes, batch.sample, rule, q, M)
    y, s = fill_outputs(batch.activation, theta)
    if batch.centred:
        centre_outputs(weight, y)
    moments = np.zeros(terms.parent.size)
    block = np.empty((terms.parent.size, min(BLOCK, weight.size)))
    if terms.pairs.size:
        for start in range(0, weight.size, BLOCK):
            size = min(BLOCK, weight.size - start)
            _fill_monomials(terms, y, start, size, block)
            for i in range(moments.size):
                for n in range(size):
                    moments[i] += weight[start + n] * block[i, n]
    polynomials = _given_one_sample(terms, _moments_of_sums(terms, moments, batch.size - 1.0))
    plain = np.count_nonzero(polynomials) <= terms.polynomials  # without a penalty most of the matrix is empty
    result = np.zeros(d1 * d2 + 2 * d2 * d2)
    values = np.empty((terms.polynomials, block.shape[1]))
    for start in range(0, weight.size, BLOCK):
        size = min(BLOCK, weight.size - start)
        if weight.size > BLOCK or not terms.pairs.size:
            _fill_monomials(terms, y, start, size, block)
        if plain:
            _fill_products(polynomials, block, values)
        else:
            np.dot(polynomials, block, values)
        add_averages(weight, theta, x, s, values, batch.factors, start, size, d1, d2, result)
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill_monomials(terms, y, start, size, block):  # type: ignore[no-untyped-def]
    """Monomials of the outputs at some nodes; columns behind them are 0."""
    block[0, :size] = 1.0
    for i in range(1, terms.parent.size):
        below, output = block[terms.parent[i]], y[terms.factor[i]]
        row = block[i]
        for n in range(size):
            row[n] = below[n] * output[start + n]
    block[:, size:] = 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill_products(polynomials, block, values):  # type: ignore[no-untyped-def]
    """Products of a matrix that is almost empty with the monomials of a block."""
    values[:] = 0.0
    for i in range(polynomials.shape[0]):
        for k in range(polynomials.shape[1]):
            if polynomials[i, k] != 0.0:
                for n in range(block.shape[1]):
                    values[i, n] += polynomials[i, k] * block[k, n]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _moments_of_sums(terms, moments, others):  # type: ignore[no-untyped-def]
    """Moments of the sums over the other samples: coefficients of a power of the series of moments of one sample.

    For f = a^n with a_0 = 1 the identity f' a = n a' f gives deg(k) f_k = sum_i ((n + 1) deg(i) - deg(k)) a_i f_(k-i)
    in any number of variables.
    """
    count = terms.sum_monomial.size
    one = np.empty(count)
    for i in range(count):
        one[i] = moments[terms.sum_monomial[i]] / terms.sum_factorial[i]
    power = np.zeros(count)
    power[0] = 1.0
    for pair in range(len(terms.pairs)):
        whole, part, rest = terms.pairs[pair]
        share = ((others + 1.0) * terms.degree[part] - terms.degree[whole]) / terms.degree[whole]
        power[whole] += share * one[part] * power[rest]
    return power * terms.sum_factorial


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _given_one_sample(terms, sums):  # type: ignore[no-untyped-def]
    """Coefficients of the polynomials in the outputs of one sample, averaged over the others."""
    result = np.zeros((terms.polynomials, terms.parent.size))
    for i in range(terms.coefficient.size):
        result[terms.polynomial[i], terms.monomial[i]] += terms.coefficient[i] * sums[terms.sums[i]]
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_averages(weight, theta, x, s, values, factors, start, size, d1, d2, result):  # type: ignore[no-untyped-def]
    """Add what some nodes give P, D and Lambda / tau^2.

    Parameters
    ----------
    weight, theta, x, s : ndarray
        Of all nodes; see `one_sample`.
    values : ndarray, shape (polynomials, block)
        Sensitivities without s at these nodes, averaged over the other samples, then their products.
    factors : ndarray, shape (3,)
    start, size : int
        First node and number of nodes.
    d1, d2 : int
    result : ndarray
        See `exact_averages`.
    """
    outputs = s.shape[0]
    views = outputs // d2
    twice = 2.0 / views
    pair = outputs
    for v in range(outputs):
        view, k = v // d2, v % d2
        slope = np.empty(size)
        for n in range(size):
            slope[n] = weight[start + n] * s[v, start + n]
        for f in range(d1):
            result[f * d2 + k] += twice * _sum_of_products(slope, values[v], x[view * d1 + f], start)
        for l in range(d2):  # noqa: E741
            at = d1 * d2 + k * d2 + l
            result[at] += twice * _sum_of_products(slope, values[v], theta[view * d2 + l], start)
        for w in range(v, outputs):
            other, l = w // d2, w % d2  # noqa: E741
            found = _sum_of_products(slope, values[pair], s[w], start)
            pair += 1
            factor = factors[2] if view != other else factors[view] if views == 2 else factors.sum() + factors[2]
            at = d1 * d2 + d2 * d2
            result[at + k * d2 + l] += factor * found
            if v != w:
                result[at + l * d2 + k] += factor * found


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _sum_of_products(first, second, third, start):  # type: ignore[no-untyped-def]
    """Sum of first second third[start:]; the order of its additions is the compiler's choice."""
    total = 0.0
    for n in range(first.size):
        total += first[n] * second[n] * third[start + n]
    return total
