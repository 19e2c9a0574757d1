"""Coefficients of Rodas5P, a linearly implicit Runge-Kutta method of order 5 (Steinebach, BIT 63, 27, 2023).

It is L-stable and stiffly accurate, with an embedded method of order 4 and dense output of order 4. Increments u_j of
a step of length h from y are the solutions of

    (1/(h GAMMA) - J) u_i = f(y + sum_{j<i} A[i, j] u_j) + sum_{j<i} C[i, j] u_j / h,    J = df/dy at y,

for a right-hand side f that does not depend on time. One that does is such a function of y and t: the increments of t
itself are h TIME_INCREMENTS, and stage i is taken at t + h TIMES[i]. The step ends at y + sum_j B[j] u_j, the last
increment is the estimated error, and at t + x h

    y(x) = (1 - x) y + x [y_end + (1 - x) (d_1 + x (d_2 + x d_3))],    d_k = sum_j DENSE[k, j] u_j.
"""

from __future__ import annotations

import numpy as np

STAGES = 8
ORDER = 5
GAMMA = 0.21193756319429014

_A6 = [-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946]


def _lower(*rows: list[float]) -> np.ndarray:
    """Strictly lower triangular matrix from its rows."""
    matrix = np.zeros((STAGES, STAGES))
    for i, row in enumerate(rows):
        matrix[i + 1, : len(row)] = row
    return matrix


A = _lower(
    [3.0],
    [2.849394379747939, 0.45842242204463923],
    [-6.954028509809101, 2.489845061869568, -10.358996098473584],
    [2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641],
    _A6,
    [*_A6, 1.0],
    [*_A6, 1.0, 1.0],
)
B = np.array([*_A6, 1.0, 1.0, 1.0])

C = _lower(
    [-14.155112264123755],
    [-17.97296035885952, -2.859693295451294],
    [147.12150275711716, -1.41221402718213, 71.68940251302358],
    [165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306],
    [24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471],
    [
        30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783, -19.097331116725623,
        -28.087943162872662,
    ],
    [
        37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047, -40.06618937091002,
        -54.66780262877968, -9.48861652309627,
    ],
)  # fmt: skip

TIME_INCREMENTS = np.zeros(STAGES)
for _i in range(STAGES):
    TIME_INCREMENTS[_i] = GAMMA * (1.0 + C[_i] @ TIME_INCREMENTS)
TIMES = A @ TIME_INCREMENTS

DENSE = np.array([
    [
        25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204, 0.524948541321073,
        1.1241088310450404, 0.4272876194431874, -0.17202221070155493,
    ],
    [
        -9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796, 20.176138334709044,
        15.98066361424651, -6.789040303419874, -6.710236069923372,
    ],
    [
        11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643, -52.072871366152654,
        -59.78993625266729, -0.15582684282751913, 4.883087185713722,
    ],
])  # fmt: skip
