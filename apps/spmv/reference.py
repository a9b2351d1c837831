"""The product of a sparse matrix with a vector in SciPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse


def matrix_of(facts: dict, folder: Path) -> scipy.sparse.csr_array:
    """The matrix that the program used: the user's file, or what the program wrote."""
    if facts["matrix"]:
        return scipy.sparse.csr_array(scipy.io.mmread(facts["matrix"]))
    begin, column, value = (
        np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("begin", "column", "value")
    )
    n = begin.size - 1
    return scipy.sparse.csr_array((value, column.astype(np.int64), begin.astype(np.int64)), (n, n))


def largest_error(matrix: scipy.sparse.csr_array, b: np.ndarray, x: np.ndarray) -> float:
    """The largest error of x = A b, as a part of the bound that rounding has.

    An element that sums m products is wrong by at most m eps |A| |b|, in any order of the sums.
    """
    entries = np.diff(matrix.indptr)
    bound = (entries + 1) * np.finfo(float).eps * (abs(matrix) @ abs(b))
    error = abs(x - matrix @ b)
    if not np.all(np.isfinite(x)):
        return np.inf
    return float(
        np.max(np.divide(error, bound, out=np.where(error > 0, np.inf, 0), where=bound > 0))
    )
