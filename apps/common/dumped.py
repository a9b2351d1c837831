"""Sparse matrices that the studies used, for their references."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse


def matrix_of(facts: dict, folder: Path) -> scipy.sparse.csr_array:
    """The matrix of a run: SciPy reads the user's file, or what the program wrote by --dump."""
    if facts["matrix"]:
        return scipy.sparse.csr_array(scipy.io.mmread(facts["matrix"]))
    begin, column, value = (
        np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("begin", "column", "value")
    )
    rows = begin.size - 1
    index = (column.astype(np.int64), begin.astype(np.int64))
    return scipy.sparse.csr_array((value, *index), (rows, rows))
