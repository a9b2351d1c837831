"""The diffusion in NumPy, as the C++ program must compute it."""

import numpy as np

COEFFICIENT = 0.025  # c; without the limiter, steps are stable up to 2/64
HALO = 2  # cells on each side that no step changes: the radius of the stencil
TYPES = {"float": np.float32, "double": np.float64}


def step(u: np.ndarray, scheme: str = "gridtools") -> np.ndarray:
    """One step of COSMO's flux-limited horizontal diffusion, as in GridTools' example of that name.

    With i along columns (west to east) and j along rows:

        lap(i,j) = 4 u - ((u(i-1) + u(i+1)) + (u(j-1) + u(j+1)))
        flx(i,j) = lap(i+1) - lap(i), but 0 where flx (u(i+1) - u(i)) > 0
        fly(i,j) = lap(j+1) - lap(j), but 0 where fly (u(j+1) - u(j)) > 0
        out      = u - c ((flx - flx(i-1)) + (fly - fly(j-1))),  c = 0.025

    u: float32 or float64 of shape (..., rows, columns), both at least 5, in any unit. Returns a new
    array of the same shape, type and unit. Its outer two cells on each side are those of u.

    The C++ kernel has the same brackets. NumPy rounds every operation by itself, so a kernel
    compiled without fused multiply-adds gives the same bits.
    """
    west, east = u[..., 1:-1, :-2], u[..., 1:-1, 2:]
    south, north = u[..., :-2, 1:-1], u[..., 2:, 1:-1]
    lap = 4 * u[..., 1:-1, 1:-1] - ((west + east) + (south + north))
    if scheme == "cosmo":  # the opposite sign, exactly: this one smooths
        lap = -lap

    flx = lap[..., 1:-1, 1:] - lap[..., 1:-1, :-1]
    np.putmask(flx, flx * (u[..., 2:-2, 2:-1] - u[..., 2:-2, 1:-2]) > 0, 0)
    fly = lap[..., 1:, 1:-1] - lap[..., :-1, 1:-1]
    np.putmask(fly, fly * (u[..., 2:-1, 2:-2] - u[..., 1:-2, 2:-2]) > 0, 0)

    c = u.dtype.type(COEFFICIENT)
    out = u.copy()
    out[..., 2:-2, 2:-2] -= c * (
        (flx[..., :, 1:] - flx[..., :, :-1]) + (fly[..., 1:, :] - fly[..., :-1, :])
    )
    return out
