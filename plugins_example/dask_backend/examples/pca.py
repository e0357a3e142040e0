"""Principal components of a table, on whatever backend is installed.

The program, ``components``, knows nothing of Dask. With ``--backend dask`` the table is made
block by block while it is read, so it may be larger than memory; ``--memory`` sets the limit for
what the process may have beyond what it has when the computation begins::

    python pca.py --backend cpu --rows 20000
    python pca.py --backend dask --rows 8000000 --memory 1GiB  # 2 GB of data

The table has planted components, and the result is checked against them.
"""

from __future__ import annotations

import numpy as np
from outofcore import Table, main

import tensorplug as tp

FEATURES = 64
VARIANCES = (25.0, 16.0, 9.0)  # along the planted directions; 1 along all others


def components(x: tp.Tensor, count: int) -> tuple[tp.Tensor, tp.Tensor]:
    """Return the variances along the first principal components, and these as columns."""
    centred = x - tp.mean(x, axis=0)
    covariance = tp.matmul(centred, centred, transpose_a=True) / (x.shape[0] - 1)
    variances, directions = tp.linalg.eigh(covariance)
    return tp.flip(variances)[:count], tp.flip(directions, axis=1)[:, :count]


def planted() -> np.ndarray:
    """Return orthonormal directions as columns, one for each of ``VARIANCES``."""
    numbers = np.random.default_rng(1).normal(size=(FEATURES, len(VARIANCES)))
    return np.linalg.qr(numbers)[0]


def block(rows: int, seed: int) -> np.ndarray:
    """Return rows with mean 3, and large variances along the planted directions."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((rows, FEATURES), dtype=np.float32)
    directions = planted().astype(np.float32)
    stretch = np.sqrt(np.array(VARIANCES, np.float32)) - 1
    noise += (noise @ directions * stretch) @ directions.T
    noise += 3
    return noise


def run(x: tp.Tensor) -> str:
    """Compare what is found with what was planted; return what to print."""
    variances, directions = (component.numpy() for component in components(x, len(VARIANCES)))
    cosines = np.abs(np.sum(directions * planted(), axis=0))
    spread = 8 / np.sqrt(x.shape[0])  # a sample's variance and directions are off by about this
    np.testing.assert_allclose(variances, VARIANCES, rtol=spread)
    np.testing.assert_allclose(cosines, 1, atol=spread)
    return f"variances {variances.round(2)}, cosines with the planted directions {cosines}"


if __name__ == "__main__":
    main(run, Table(block, FEATURES))
