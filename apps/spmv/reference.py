"""The product of a sparse matrix with a vector in SciPy."""

from __future__ import annotations

import numpy as np
import scipy.sparse


def largest_error(matrix: scipy.sparse.csr_array, b: np.ndarray, x: np.ndarray) -> float:
    """The largest error of x = A b, as a part of the bound that rounding has.

    An element that adds m products is wrong by at most m eps |A| |b|, in any order of the sums. So
    two ways to add them differ by at most twice that.
    """
    if x.shape != b.shape or not np.all(np.isfinite(x)):
        return np.inf
    products = np.diff(matrix.indptr)
    bound = 2 * (products + 1) * np.finfo(float).eps * (abs(matrix) @ abs(b))
    error = abs(x - matrix @ b)
    without = np.where(error > 0, np.inf, 0.0)  # where the bound is 0
    return float(np.max(np.divide(error, bound, out=without, where=bound > 0)))
