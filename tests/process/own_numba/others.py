"""What another package might compile and keep: `python others.py FOLDER ORDER`, in a process with or without this one.

It writes the package `theirs` into the folder and prints, for each letter of ORDER, what its functions give (t), or
imports this package and compiles something (m); at the end how much was found on disk.
"""

import json
import sys
from pathlib import Path

THEIRS = """
import math
import numba
import numpy as np
from numba.experimental import jitclass, structref
from numba.extending import overload

@numba.njit(cache=True)
def inner(x):
    if x < 0.0:
        raise ValueError("negative", x)
    return math.sqrt(x) + 1.0

@numba.njit(cache=True)
def middle(x):
    return 2.0 * inner(x)

@numba.njit(cache=True)
def outer(x):
    out = np.zeros(3)
    out[:] = middle(x)
    return np.dot(out, out) + inner(x)

def chosen(x):
    raise NotImplementedError

@overload(chosen)
def _chosen(x):
    return (lambda x: x + 1) if isinstance(x, numba.types.Integer) else (lambda x: x + 0.5)

@numba.njit(cache=True, fastmath=True)
def overloaded(x):
    return chosen(x) + chosen(int(x))

@numba.vectorize(["float64(float64)"], cache=True)
def squares(x):
    return x * x

@numba.guvectorize(["void(float64[:], float64[:])"], "(n)->()", cache=True)
def total(x, out):
    out[0] = x.sum()

@numba.njit(cache=True, parallel=True)
def in_parallel(x):
    found = 0.0
    for i in numba.prange(x.size):
        found += inner(x[i])
    return found

@numba.cfunc("float64(float64)", cache=True)
def callback(x):
    return middle(x)

@jitclass([("x", numba.float64)])
class Point:
    def __init__(self, x):
        self.x = x

    def twice(self):
        return inner(self.x) * 2.0

@structref.register
class PairType(numba.types.StructRef):
    pass

class Pair(structref.StructRefProxy):
    def __new__(cls, a, b):
        return structref.StructRefProxy.__new__(cls, a, b)

structref.define_proxy(Pair, PairType, ["a", "b"])

@numba.njit(cache=True)
def of_pair(pair):
    return pair.a + pair.b

@numba.njit(cache=True)
def of_list(x):
    found = [x]
    found.append(inner(x))
    return sum(found)

def generated(n):
    source = f"def made(x):\\n    return x + {n}\\n"
    scope = {}
    exec(source, scope)
    return numba.njit(scope["made"])

def values():
    try:
        outer(-1.0)
    except ValueError as error:
        raised = list(error.args)
    x = np.arange(4.0)
    return [
        outer(4.0), raised, overloaded(2.0), squares(x).tolist(), float(total(x)), in_parallel(x), callback.ctypes(9.0),
        Point(4.0).twice(), of_pair(Pair(1.0, 2)), of_list(1.0), generated(3)(1.0), numba.njit(lambda x: outer(x))(1.0),
    ]

def hits():
    kept = [inner, middle, outer, overloaded, in_parallel, of_pair, of_list]
    return sum(sum(function.stats.cache_hits.values()) for function in kept) + callback.cache_hits
"""


def ours():
    """Import this package, and let its functions and those of others call each other."""
    import numba
    import numpy as np

    import meanfield  # noqa: F401
    from meanfield.numerics.compiled.scalar_functions import evaluate
    from meanfield.process import own_numba

    assert evaluate(lambda x: x * x + 1.0, np.ones(2)).tolist() == [2.0, 2.0]
    if "theirs" in sys.modules:
        inner, outer = sys.modules["theirs"].inner, sys.modules["theirs"].outer
        calls = own_numba.njit(lambda x: outer(x) + np.zeros(2).sum())
        assert calls(4.0) == outer(4.0)
        assert numba.njit(lambda x: calls(x) + np.dot(np.ones(2), np.ones(2)))(4.0) == outer(4.0) + 2.0
        assert evaluate(own_numba.njit(lambda x: inner(x)), np.array([4.0])).tolist() == [3.0]


def run(folder, order):
    """What the functions of the other package give each time, and how much was found on disk."""
    path = Path(folder) / "theirs.py"
    if not path.exists():
        path.write_text(THEIRS)
    sys.path.insert(0, str(folder))
    given = []
    for step in order:
        if step == "m":
            ours()
        else:
            import theirs

            given.append(theirs.values())
    return given, theirs.hits()


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:])))
