"""Products with one row or one column lose no more digits in other layouts than in dense ones."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp

INNER = 2000
EPS = float(np.finfo(np.float32).eps)

# One number everywhere: errors of a sum that is added up one by one all have one sign.
LAYOUTS = {
    "dense": lambda rows, columns: tp.full((rows, columns), 1.1),
    "stretched": lambda rows, columns: tp.broadcast_to(tp.asarray(1.1), (rows, columns)),
    "rows stretched": lambda rows, columns: tp.broadcast_to(
        tp.full((columns,), 1.1), (rows, columns)
    ),
    "columns stretched": lambda rows, columns: tp.broadcast_to(
        tp.full((rows, 1), 1.1), (rows, columns)
    ),
    "reversed": lambda rows, columns: tp.flip(tp.full((rows, columns), 1.1)),
    "every second": lambda rows, columns: tp.full((2 * rows, 2 * columns), 1.1)[::2, ::2],
    "transposed": lambda rows, columns: tp.full((columns, rows), 1.1).T,
}


@pytest.fixture(autouse=True)
def _on_cpu():
    with tp.use_backend("cpu"):
        yield


@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 40), (40, 1)])
def test_sums_are_not_added_up_one_by_one(left, right, rows, columns):
    a, b = LAYOUTS[left](rows, INNER), LAYOUTS[right](INNER, columns)
    meant = INNER * float(np.float32(1.1)) ** 2
    for found in (tp.matmul(a, b), tp.einsum("ij,jk->ik", a, b)):
        assert found.shape == (rows, columns)
        assert np.max(np.abs(found.numpy().astype(np.float64) / meant - 1)) < 20 * EPS


def test_products_of_vectors():
    x = tp.broadcast_to(tp.asarray(1.1), (INNER,))
    meant = INNER * float(np.float32(1.1)) ** 2
    for found in (x @ x, tp.vecdot(x, x), tp.einsum("i,i->", x, x)):
        assert found.shape == ()
        assert abs(found.item() / meant - 1) < 20 * EPS
