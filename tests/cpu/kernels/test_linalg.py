"""Matrix products: narrow floats are summed in float32."""

from __future__ import annotations

import numpy as np

from tensorplug.ops import matrix_products as ops


def test_float16_is_rounded_once(call):
    """A sum in float16 would stop at 2048, where 1 is less than half an ulp."""
    x = np.ones((1, 4096), "float16")
    result = call(ops.BATCH_MAT_MUL, x, x, transpose_b=True)
    assert (result.dtype, result.tolist()) == (np.dtype("float16"), [[4096.0]])
