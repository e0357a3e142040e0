"""Attributes reach kernels complete: None is replaced by what it means, paddings are numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.catalogue_calls import KERNELS, cases

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.contract.tables import KernelTable
from tensorplug.plugin import specs

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec

MAY_BE_NONE = {("QuantizedMatMul", "b_packed"): "b is not packed"}  # kernel, attribute -> why
NOT_ACCEPTED_AGAIN = {"Draw": "takes TensorFlow.js's options, delivers the alpha in them"}

_BY_NAME = {spec.name: spec for spec in specs}


def types_of(spec: KernelSpec, inputs: Any) -> list[Any]:
    """Return the types that a kernel sees: after promotion."""

    def type_of(value: Any) -> Any:
        if isinstance(value, list):
            return [type_of(part) for part in value]
        return None if value is None else tp.asarray(value).type

    types = [type_of(value) for value in inputs]
    common = spec.promoted(types)

    def promoted(type_: Any) -> Any:
        if isinstance(type_, list):
            return [promoted(part) for part in type_]
        return TensorType(common, type_.shape) if type_ is not None else None

    return [
        promoted(type_) if name in spec.promote else type_
        for name, type_ in zip(spec.input_names, types, strict=True)
    ]


def is_pairs(value: Any) -> bool:
    """Return whether ``value`` is a tuple of pairs of ints."""
    return isinstance(value, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 and all(type(size) is int for size in pair)
        for pair in value
    )


def test_every_spec_is_checked() -> None:
    missing = {spec.name for spec in specs if spec.attributes} - set(KERNELS)
    assert not missing


@pytest.mark.parametrize("kernel", KERNELS)
def test_canonical_attributes_are_complete(kernel: str) -> None:
    for spec, case in cases(kernel):
        types = types_of(spec, case.inputs)
        attributes, outputs = spec.resolve(types, case.attributes)
        for name, value in attributes.items():
            assert value is not None or (kernel, name) in MAY_BE_NONE, name
        if "pad" in attributes:
            assert is_pairs(attributes["pad"]), attributes["pad"]
        if kernel not in NOT_ACCEPTED_AGAIN:  # gradients and compiled programs pass them on
            assert spec.resolve(types, attributes) == (attributes, outputs)


IMAGE, FILTER = (1, 5, 6, 2), (3, 2, 2, 3)
CASES = [  # kernel, shapes of the inputs, attributes given, of the canonical ones these
    ("Conv2D", [IMAGE, FILTER], {"pad": "valid"}, {"pad": ((0, 0),) * 4}),
    ("Conv2D", [IMAGE, FILTER], {"pad": "same"}, {"pad": ((0, 0), (1, 1), (0, 1), (0, 0))}),
    ("Conv2D", [IMAGE, FILTER], {"pad": 2}, {"pad": ((0, 0), (2, 2), (2, 2), (0, 0))}),
    (
        "Conv2D",
        [(1, 2, 5, 6), FILTER],
        {"pad": "same", "data_format": "NCHW", "strides": 2},
        {"pad": ((0, 0), (0, 0), (1, 1), (0, 0)), "strides": (2, 2), "dilations": (1, 1)},
    ),
    (
        "Conv2D",
        [IMAGE, FILTER],
        {"pad": "same", "dilations": (2, 3)},
        {"pad": ((0, 0), (2, 2), (1, 2), (0, 0)), "dim_rounding_mode": "floor"},
    ),
    (  # what rounding adds is part of the padding
        "Conv2D",
        [IMAGE, FILTER],
        {"pad": 0, "strides": 3, "dim_rounding_mode": "ceil"},
        {"pad": ((0, 0), (0, 1), (0, 2), (0, 0)), "dim_rounding_mode": "ceil"},
    ),
    (
        "Conv2DBackpropInput",
        [(1, 3, 3, 3), FILTER],
        {"pad": "same", "strides": 2, "input_shape": IMAGE},
        {"pad": ((0, 0), (1, 1), (0, 0), (0, 0))},
    ),
    (
        "DepthwiseConv2dNativeBackpropFilter",
        [IMAGE, (1, 3, 3, 6)],
        {"pad": "same", "strides": 2, "filter_shape": FILTER},
        {"pad": ((0, 0), (1, 1), (0, 0), (0, 0))},
    ),
    (
        "MaxPool",
        [IMAGE],
        {"filter_size": 3, "strides": 2, "pad": "same"},
        {"pad": ((0, 0), (1, 1), (0, 1), (0, 0)), "dim_rounding_mode": "floor"},
    ),
    (
        "AvgPool3DGrad",
        [(1, 1, 2, 2, 2), (1, 1, 3, 3, 3)],
        {"filter_size": 2, "strides": 2, "pad": 1, "data_format": "NCDHW"},
        {"pad": ((0, 0), (0, 0), (1, 1), (1, 1), (1, 1))},
    ),
    (
        "Pool",
        [(2, 7, 3)],
        {"window_shape": 3, "pooling_type": "max", "pad": "same", "strides": None},
        {"pad": ((0, 0), (1, 1), (0, 0)), "strides": (1,), "dilations": (1,)},
    ),
    (
        "Dilation2D",
        [IMAGE, (2, 2, 2)],
        {"pad": "same", "strides": 1},
        {"pad": ((0, 0), (0, 1), (0, 1), (0, 0))},
    ),
    ("Fill", [], {"shape": 2, "value": 1}, {"dtype": dt.int32}),
    ("Fill", [], {"shape": 2, "value": "a"}, {"dtype": dt.string}),
    ("Eye", [], {"n_rows": 3}, {"n_cols": 3}),
    ("BroadcastTo", [(3,)], {"shape": (2, 3)}, {"input_shape": (3,)}),
    ("ResizeBilinearGrad", [IMAGE, (1, 7, 8, 2)], {}, {"size": (7, 8)}),
    ("ResizeNearestNeighborGrad", [IMAGE, (1, 7, 8, 2)], {}, {"size": (7, 8)}),
    ("Transform", [IMAGE, (1, 8)], {}, {"output_shape": (5, 6)}),
    ("RotateWithOffset", [IMAGE], {"radians": 1}, {"fill_value": (0, 0), "center": (0.5, 0.5)}),
    ("Sum", [IMAGE], {"axis": None}, {"axis": (0, 1, 2, 3)}),
    ("Transpose", [IMAGE], {}, {"perm": (3, 2, 1, 0)}),
    ("Slice", [(4, 5)], {"begin": 1}, {"begin": (1, 0), "size": (3, 5)}),
]


@pytest.mark.parametrize(("kernel", "shapes", "given", "expected"), CASES)
def test_canonical_forms(kernel, shapes, given, expected):
    spec = _BY_NAME[kernel]
    needed = {"strides": 1} if "strides" in spec.attributes else {}
    types = [TensorType(dt.float32, shape) for shape in shapes]
    canonical, _ = spec.resolve(types, {**needed, **given})
    assert {name: canonical[name] for name in expected} == expected


def test_ragged_rank() -> None:
    splits = [TensorType(dt.int32, (3,)), TensorType(dt.int32, (5,))]
    types = [splits, TensorType(dt.float32, (9,)), TensorType(dt.int32, (2, 2))]
    assert _BY_NAME["RaggedGather"].resolve(types, {})[0] == {"output_ragged_rank": 3}


def test_kernels_see_numbers() -> None:
    seen: list[Any] = []
    table = KernelTable()

    @table.register(specs.MAX_POOL)
    def max_pool(x, *, pad, dim_rounding_mode, out):
        seen.append((pad, dim_rounding_mode))
        return np.zeros(out.shape, out.dtype.numpy)

    with engines.using(engines.make({"memory": [engines.basic_kernels(), table]})):
        for pad in ("same", 1, [[0, 0], [0, 1], [1, 0], [0, 0]]):
            tp.nn.max_pool(np.zeros((1, 4, 4, 1), "f4"), 2, 1, pad)
    assert seen == [
        (((0, 0), (0, 1), (0, 1), (0, 0)), "floor"),
        (((0, 0), (1, 1), (1, 1), (0, 0)), "floor"),
        (((0, 0), (0, 1), (1, 0), (0, 0)), "floor"),
    ]
