"""Matrices with a NaN or an infinity: algorithms that iterate refuse them, others propagate them.

LAPACK's divide and conquer never returns from a singular value decomposition of some of them, and
an interrupt does not end it: a process of its own asks, which is ended if it takes too long.
"""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import itertools, json, math
import numpy as np
import tensorplug as tp
from tensorplug.errors import LinAlgError

L = tp.linalg
FUNCTIONS = {
    "svd": L.svd, "reduced svd": lambda x: L.svd(x, full_matrices=False), "svdvals": L.svdvals,
    "pinv": L.pinv, "matrix_rank": L.matrix_rank, "norm 2": lambda x: L.matrix_norm(x, ord=2),
    "norm -2": lambda x: L.matrix_norm(x, ord=-2),
    "norm nuc": lambda x: L.matrix_norm(x, ord="nuc"),
    "lstsq": lambda x: L.lstsq(x, np.ones(len(x))), "eigh": L.eigh, "eigvalsh": L.eigvalsh,
    "eig": L.eig, "eigvals": L.eigvals, "cholesky": L.cholesky,
}
answers = []
for dtype, n, bad in itertools.product(
    ("float16", "float32", "float64", "complex64", "complex128"), (1, 2, 3, 4, 9),
    (math.inf, -math.inf, math.nan),
):
    for row in {0, n - 1}:
        x = (np.eye(n) * n + np.tri(n)).astype(dtype)
        x[row, 0] = bad
        for name, function in FUNCTIONS.items():
            try:
                function(tp.asarray(x))
                answer = "a result"
            except LinAlgError as error:
                answer = str(error)
            answers.append((name, f"{dtype}[{n},{n}] with {bad} in row {row}", answer))
print(json.dumps(answers))
"""


def test_algorithms_that_iterate_refuse() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=15
    )
    answers = json.loads(done.stdout)
    assert len(answers) > 1000
    words = {"cholesky": "not positive definite"}
    wrong = [row for row in answers if words.get(row[0], "NaN or infinit") not in row[2]]
    assert wrong == []
    assert done.stderr == ""  # LAPACK writes there of illegal values
