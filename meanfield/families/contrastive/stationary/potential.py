"""Potential of a stationary state: a Lyapunov function of the dynamics, where one is known.

The drift gain is a gradient, g = -tau grad <s1 s2>, for every centring: <s_l> vanishes where outputs are centred, so
that it does not matter whether ybar is differentiated. If Lambda did not depend on q, the equation would be the
constrained gradient flow of F[P] = -tau <s1 s2>(q) + tau E[Phi(w)] + (Lambda/2) E[log P]. It does: Lambda is an average
of the same pre-activations. Then dF/dt holds (1/2) grad Lambda . dq/dt E[log P], of either sign, and F is no Lyapunov
function; none is known that is one, and none is claimed.

For one feature and a linear prior, though, dq/dt = b(q) closes whatever the density is, and V(q) = -int_0^q b falls
along every solution. With several features b = q (q.g - Lambda/2) - g is a gradient flow, in the metric of the sphere,
only where Lambda depends on |q| alone.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad

from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.order_parameters import rate
from meanfield.typing import FloatArray


def potential_of(limit: Limit, q: FloatArray) -> dict[str, float]:
    """Variable `potential` of a state; empty where no Lyapunov function of the dynamics is known.

    For one feature and a linear prior it is V(q) = -int_0^q b with b = dq/dt.
    """
    if len(limit.coordinates) > 1 or not limit.prior.functions.linear:
        return {}
    value, _ = quad(
        lambda x: -float(rate(limit.closure, np.array([x]))[0]), 0.0, float(q[0]), epsabs=1e-11, epsrel=1e-11
    )
    return {"potential": float(value)}
