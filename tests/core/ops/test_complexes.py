"""Complex numbers: the dtypes of wholes and of parts."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.errors import DTypeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def test_dtypes():
    for real, imag, dtype in (
        *(("int32", "int32", "complex64"), ("float16", "float16", "complex64")),
        *(("float32", "float64", "complex128"), ("int8", "float64", "complex128")),
    ):
        expect(tp.complex(np.ones(2, real), np.ones((), imag)), dtype, (2,), [1 + 1j] * 2)
    expect(tp.complex(1, np.float64([2])), "complex128", (1,), [1 + 2j])
    whole = tp.run_kernel("Complex", {"real": np.float32(1), "imag": np.float32(-1)})
    expect(whole, "complex64", (), 1 - 1j)
    expect(tp.run_kernel("Real", {"input": whole}), "float32", (), 1)
    expect(tp.run_kernel("Imag", {"input": whole}), "float32", (), -1)
    with pytest.raises(DTypeError, match="input 'real' is complex64"):
        tp.complex(whole, 1)
