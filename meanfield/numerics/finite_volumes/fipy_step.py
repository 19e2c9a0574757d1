"""Implicit step in FiPy, the reference that the compiled kernel is tested against. Slow: for small cases only."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from meanfield.numerics.finite_volumes.grid import Grid
from meanfield.typing import FloatArray


def import_fipy() -> Any:
    """Import FiPy where it is needed, because it takes seconds, and with an empty `sys.argv`, which it reads."""
    os.environ.setdefault("FIPY_SOLVERS", "scipy")
    arguments, sys.argv = sys.argv, sys.argv[:1]
    try:
        import fipy
    finally:
        sys.argv = arguments
    return fipy


class FiPyStep:
    """Implicit step of all nodes on one two-dimensional mesh, cells in w times nodes, with no flux between nodes.

    FiPy has backward Euler only: half a step of it, then P <- 2 P_mid - P, is the midpoint rule.
    """

    def __init__(self, grid: Grid) -> None:
        fipy = self._fipy = import_fipy()
        nodes, cells = grid.shape
        self._h = grid.h
        mesh = fipy.Grid2D(nx=cells, ny=nodes, dx=grid.h, dy=1.0)
        self._P = fipy.CellVariable(mesh=mesh, hasOld=True)
        self._velocity = fipy.FaceVariable(mesh=mesh, rank=1)
        self._diffusion = fipy.FaceVariable(mesh=mesh)
        # Between two cells of one node; everything else is a boundary or lies between nodes, where nothing flows.
        inner = np.asarray(mesh.interiorFaces.value) & (np.abs(np.asarray(mesh.faceNormals[0])) > 0.5)
        self._faces = np.flatnonzero(inner)
        x, y = np.asarray(mesh.faceCenters)
        self._face_index = np.rint(x[self._faces] / grid.h).astype(int) - 1
        self._face_node = np.floor(y[self._faces]).astype(int)
        # The default tolerance (1e-5) is tested before solving: small steps would silently change nothing.
        self._solver = fipy.LinearLUSolver(tolerance=1e-13, criterion="initial")

    def __call__(self, P: FloatArray, faces: FloatArray, tilts: FloatArray, diffusion: float, dt: float) -> FloatArray:
        """Return the density after the step; see `Step`."""
        velocity = np.zeros(self._velocity.shape)
        velocity[0, self._faces] = (faces[self._face_index] + tilts[self._face_node]) * diffusion / self._h
        self._velocity.setValue(velocity)
        # Between nodes there is no diffusion, but for a zero FiPy would compute a Peclet number 0/0.
        diffusion_at_faces = np.full(self._diffusion.shape, 1e-30)
        diffusion_at_faces[self._faces] = diffusion
        self._diffusion.setValue(diffusion_at_faces)
        # A convection term keeps the diffusion coefficient that it met first, so terms do not outlive a step.
        equation = self._fipy.TransientTerm() == self._fipy.DiffusionTerm(
            coeff=self._diffusion
        ) - self._fipy.ExponentialConvectionTerm(coeff=self._velocity)
        self._P.setValue(P.ravel())
        self._P.updateOld()
        equation.solve(var=self._P, dt=0.5 * dt, solver=self._solver)
        return np.asarray(2.0 * self._P.value.reshape(P.shape) - P)
