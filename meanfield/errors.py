"""Exceptions of the library: bad input, and a blow-up of the dynamics."""

from __future__ import annotations


class InputError(ValueError):
    """Error of the input: the message names the key, the value, what is allowed and the remedy."""


class BlowUpError(ArithmeticError):
    """Blow-up of the dynamics: it left the domain in which its numbers mean anything.

    Methods catch it, keep what was computed before it and write `status` into the attribute
    of that name.

    Parameters
    ----------
    time : float
        Time t = k/N (dimensionless) at which it was noticed.
    quantity : str
        Quantity that left its range, with its value.
    remedy : str
        Change of the problem file that avoids the blow-up.
    """

    def __init__(self, time: float, quantity: str, remedy: str) -> None:
        super().__init__(f"at t = {time:.6g}: {quantity}; {remedy}")
        self.time = time

    @property
    def status(self) -> str:
        """The text for a Dataset's `status` attribute."""
        return f"failed: {self}"
