"""Conjugate gradients in NumPy, with SciPy's matrices and solver."""

from __future__ import annotations

import numpy as np
import scipy.io
import scipy.sparse
import scipy.sparse.linalg

from study import Wrong

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
DIRECT = 3000  # rows up to which a direct solver computes the solution, too
ENTRIES = 5_000_000  # of the largest matrix that is compared: about a second
WORK = 1e9  # entries times iterations up to which the iterations are repeated: some seconds
LEAST = 1e-100  # the program stops here with a smaller tolerance, too (outcome.hpp)
ROUNDED = 1e-12  # below this tolerance, rounding decides on the number of iterations


def mix(x: np.ndarray) -> np.ndarray:
    """Random bits from numbers, as apps/common/random.hpp makes them."""
    with np.errstate(over="ignore"):
        x = x + GOLDEN
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def right_side(n: int, seed: int) -> np.ndarray:
    """The b of the program: random numbers above 0 and at most 1."""
    with np.errstate(over="ignore"):
        bits = mix(mix(np.array([seed], dtype=np.uint64)) + np.arange(n, dtype=np.uint64))
    return ((bits >> np.uint64(11)) + np.uint64(1)).astype(np.float64) * 2.0**-53


def laplacian(points: int, extent: list[int]) -> scipy.sparse.csr_array:
    """The matrix of a grid, x fastest; beyond the boundary all is 0."""
    eyes = [scipy.sparse.eye_array(n) for n in extent]
    near = [scipy.sparse.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1]) for n in extent]

    def outer(x, y, z):
        return scipy.sparse.kron(z, scipy.sparse.kron(y, x))

    if points == 27:
        all_near = outer(*(eye + side for eye, side in zip(eyes, near, strict=True)))
        return scipy.sparse.csr_array(27 * outer(*eyes) - all_near)
    sides = (outer(*eyes[:d], near[d], *eyes[d + 1 :]) for d in range(3))
    return scipy.sparse.csr_array((points - 1) * outer(*eyes) - sum(sides))


def matrix_of(facts: dict) -> scipy.sparse.csr_array:
    """The matrix of a run."""
    if facts["matrix"]:
        matrix = scipy.sparse.csr_array(scipy.io.mmread(facts["matrix"]))
    else:
        extent = [int(n) for n in facts["grid"].split("x")]
        matrix = laplacian(facts["laplacian"], extent + [1] * (3 - len(extent)))
    if facts["shift"]:
        matrix = matrix + facts["shift"] * scipy.sparse.eye_array(matrix.shape[0])
    return scipy.sparse.csr_array(matrix)


def solve(matrix, b: np.ndarray, tolerance: float, limit: int) -> tuple[np.ndarray, int]:
    """Conjugate gradients; the solution and the number of iterations."""
    x, r, p = np.zeros_like(b), b.copy(), b.copy()
    rho = first = r @ r
    for iteration in range(limit):
        if rho <= max(tolerance, LEAST) ** 2 * first or rho == 0:
            return x, iteration
        q = matrix @ p
        alpha = rho / (p @ q)
        x += alpha * p
        r -= alpha * q
        rho, before = r @ r, rho
        p = r + rho / before * p
    return x, limit


def distance(found: np.ndarray, exact: np.ndarray) -> float:
    """How far two solutions are apart, as a part of the length of `exact`."""
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def least_eigenvalue(matrix) -> float:
    """Of a symmetric positive definite matrix."""
    if matrix.shape[0] <= 30:
        return float(np.min(np.linalg.eigvalsh(matrix.toarray())))
    about_zero = {"k": 1, "sigma": 0, "return_eigenvectors": False}
    return float(scipy.sparse.linalg.eigsh(scipy.sparse.csc_array(matrix), **about_zero)[0])


def compare_iterations(facts: dict, matrix, b: np.ndarray, found: np.ndarray) -> str:
    """Repeats the iterations. Returns what that found; throws Wrong."""
    most = max(run["iterations"] for run in facts["runs"])
    if most * facts["entries"] > WORK:
        return f"iterations not repeated: with {most} of them, NumPy would take long"
    x, iterations = solve(matrix, b, facts["tolerance"], facts["limit"])
    for one in facts["runs"]:
        if facts["tolerance"] >= ROUNDED and abs(one["iterations"] - iterations) > 1:
            raise Wrong(
                f"{one['iterations']} iterations in mode {one['mode']}; NumPy: {iterations}"
            )
    return f"x differs from NumPy's, of {iterations} iterations, by {distance(found, x):.2g} of it"


def check(facts: dict, found: np.ndarray) -> str:
    """Compares a run with the above. Returns what it found; throws Wrong."""
    if facts["entries"] > ENTRIES:
        return (
            f"skipped: {facts['entries']} entries, and SciPy compares up to {ENTRIES}; the program "
            "has compared its modes, and printed |b - A x|"
        )
    matrix = matrix_of(facts)
    b = right_side(matrix.shape[0], facts["seed"])
    if matrix.nnz != facts["entries"] and not facts["matrix"]:
        raise Wrong(f"the matrix has {facts['entries']} entries; SciPy's has {matrix.nnz}")
    run = facts["runs"][-1]
    # Rounding: that of a product with x, and of the recurrence of r, which is no b - A x.
    rounding = 1e-15 * (np.linalg.norm(abs(matrix) @ abs(found)) / np.linalg.norm(b) + 1)
    residual = np.linalg.norm(b - matrix @ found) / np.linalg.norm(b)
    limit = max(run["residuals"][-1], 0) + run["iterations"] * rounding
    if not residual <= limit * (1 + 1e-6):
        raise Wrong(f"|b - A x| is {residual:.3g} |b|; it should be {limit:.3g}")
    said = f"|b - A x| is {residual:.3g} |b|; " + compare_iterations(facts, matrix, b, found)
    if matrix.shape[0] > DIRECT:
        return said
    exact = scipy.sparse.linalg.spsolve(scipy.sparse.csc_array(matrix), b)
    off = np.linalg.norm(found - exact)
    # A (x - exact) = -(b - A x), so |x - exact| is at most |b - A x| over the least eigenvalue.
    bound = (limit + 10 * rounding) * np.linalg.norm(b) / least_eigenvalue(matrix)
    if not off <= bound * (1 + 1e-6):
        raise Wrong(f"x differs from that of a direct solver by {off:.3g}; at most {bound:.3g}")
    return f"{said}, from a direct solver's by {distance(found, exact):.2g}"
