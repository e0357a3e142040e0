"""Indices out of range."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.errors import ArgumentError
from tensorplug.ops.indexing import indexing as ops
from tensorplug.ops.indexing import writing

X = np.arange(1, 7, dtype="float32").reshape(2, 3)


@pytest.mark.parametrize(
    ("index", "dtype", "shown"),
    [(3, "int32", "3"), (-4, "int8", "-4"), (2**64 - 1, "uint64", str(2**64 - 1))],
)
@pytest.mark.parametrize("batch", [0, 1])
def test_gather_out_of_range(call, index, dtype, shown, batch):
    with pytest.raises(
        ArgumentError, match=f"index {shown} is out of range for axis 1 of length 3"
    ):
        call(
            ops.GATHER_V2,
            X,
            np.array([[0, index]] * 2, dtype),
            axis=1,
            batch_dims=batch,
        )


@pytest.mark.parametrize(
    ("index", "axis", "length"), [([0, 3], 1, 3), ([2, 0], 0, 2), ([-3, 0], 0, 2)]
)
def test_scatter_out_of_range(call, index, axis, length):
    outside = index[axis]
    with pytest.raises(
        ArgumentError, match=f"index {outside} is out of range for axis {axis} of length {length}"
    ):
        call(writing.SCATTER_ND, np.array([index]), np.ones(1, "float32"), shape=(2, 3))
