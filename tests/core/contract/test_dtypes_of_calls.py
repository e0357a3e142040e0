"""The dtype of a call, with which ``dtypes=`` of a kernel or a decomposition is compared."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import expect, using

import tensorplug as tp
from tensorplug.contract.spec import TensorType
from tensorplug.plugin import KernelTable, dtypes, specs

OF = {  # spec: dtypes of the inputs, of the outputs, of the call
    "IS_NAN": (["float32"], ["bool"], "float32"),
    "REAL": (["complex64"], ["float32"], "complex64"),
    "COMPLEX": (["float64", "float64"], ["complex128"], "float64"),
    "CAST": (["int32"], ["float32"], "int32"),
    "SELECT": (["bool", "float16", "float16"], ["float16"], "float16"),
    "GATHER_V2": (["float32", "int32"], ["float32"], "float32"),
    "SCATTER_ND": (["int32", "float64"], ["float64"], "float64"),
    "LESS": (["int8", "int8"], ["bool"], "int8"),
    "LOGICAL_NOT": (["bool"], ["bool"], "bool"),
    "ARG_MAX": (["float32"], ["int32"], "float32"),
    "RANGE": ([], ["int64"], "int64"),
    "RANDOM_NORMAL": (["uint32"], ["float32"], "float32"),
    "CONCAT": ([["float32", "float32"]], ["float32"], "float32"),
}


def type_of(name):
    return (
        [type_of(one) for one in name]
        if isinstance(name, list)
        else TensorType(dtypes.of(name), (2,))
    )


@pytest.mark.parametrize("name", OF)
def test_the_dtype_of_a_call(name):
    inputs, outputs, expected = OF[name]
    result = getattr(specs, name).dtype_of(type_of(inputs), type_of(outputs))
    assert str(result) == expected


def test_a_kernel_whose_output_has_another_dtype_is_registered_for_its_inputs():
    table = KernelTable()

    @table.register(specs.IS_NAN, dtypes=[dtypes.float32])
    def is_nan(x):
        return np.isnan(x)

    engine = engines.make({"memory": [engines.basic_kernels(), table]})
    with using(engine):
        x = tp.asarray([1.0, float("nan")])
        expect(tp.isnan(x), "bool", (2,), [False, True])
        assert tp.explain("IsNan", [x]).how == "native"
        double = tp.explain("IsNan", [tp.astype(x, "float64")])
        assert ("native", "the kernel of memory-distribution 2.0 does not take float64") in (
            double.steps
        )
