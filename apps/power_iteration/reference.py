"""The power iteration in SciPy, and the eigenvalue by other methods."""

from __future__ import annotations

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

SMALL = 300  # rows up to which all eigenvalues are computed


def iterate(
    matrix: scipy.sparse.csr_array, b: np.ndarray, iterations: int
) -> tuple[np.ndarray, np.ndarray]:
    """The vector after so many iterations, and |A b| of each."""
    lengths = np.empty(iterations)
    b = b / np.linalg.norm(b)
    for k in range(iterations):
        x = matrix @ b
        lengths[k] = np.linalg.norm(x)
        b = x / lengths[k]
    return b, lengths


def has_converged(lengths: np.ndarray) -> bool:
    """True if the last ten lengths are equal but for rounding."""
    last = lengths[-10:]
    return last.size == 10 and float(np.ptp(last)) <= 1e-13 * float(last[-1])


def dominant(matrix: scipy.sparse.csr_array) -> float:
    """The largest absolute value of an eigenvalue, by LAPACK or ARPACK."""
    if matrix.shape[0] <= SMALL:
        return float(np.max(abs(np.linalg.eigvals(matrix.toarray()))))
    start = np.random.default_rng(1).random(matrix.shape[0])
    values = scipy.sparse.linalg.eigs(
        matrix, k=1, which="LM", v0=start, return_eigenvectors=False, maxiter=10000
    )
    return float(abs(values[0]))
