"""Bad input to every public function: the op, the argument, what was given, what is allowed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.core.support import bad_calls_functions, bad_calls_images, bad_calls_limits
from tests.core.support.valid_calls import BINARY, CALLS, FUNCTIONS, OTHER_TESTS, B, I, X

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.errors import ArgumentError, DTypeError, ShapeError, TensorplugError

pytestmark = pytest.mark.usefixtures("cpu")


@pytest.fixture
def cpu():
    """Use the CPU; check afterwards that everything still works and that no tape is on."""
    with tp.use_backend("cpu"):
        yield
        assert current_context().recording is None
        assert tp.add(1, 1)._node is None
        x = tp.asarray([1.0, 2.0])
        assert tp.grad(lambda x: tp.sum(x * x))(x).tolist() == [2, 4]


KERNELS = {  # where the kernel's name in messages is not the op's in capitals
    **bad_calls_images.KERNELS,
    "avg_pool3d": "AvgPool3D",
    "batch_norm": "FusedBatchNorm",
    "multiply_add": "MultiplyAdd",
    "layer_norm": "LayerNorm",
    "batch_to_space_nd": "BatchToSpaceND",
    "empty_like": "ZerosLike",
    "flip": "Reverse",
    "full_like": "Fill",
    "space_to_batch_nd": "SpaceToBatchND",
    "local_response_normalization": "LRN",
    "log_sigmoid": "Neg",
    "max_pool3d": "MaxPool3D",
    "moments": "Mean",
    "moving_average": "Sub",
    "split": "SplitV",
    "tril": "Triangle",
    "triu": "Triangle",
    "unstack": "Unpack",
    "subtract": "Sub",
    "negative": "Neg",
    "divide": "RealDiv",
    "floor_divide": "FloorDiv",
    "remainder": "Mod",
    "astype": "Cast",
    "permute_dims": "Transpose",
    "argwhere": "Where",
    "gather": "GatherV2",
    "nonzero": "Where",
    "take": "GatherV2",
    "pad": "PadV2",
    "topk": "TopK",
    "argmax": "ArgMax",
    "argmin": "ArgMin",
    "argpartition": "ArgPartition",
    "argsort": "ArgSort",
    "array_equal": "Equal",
    "partition": "ArgPartition",
    "count_nonzero": "Cast",
    "cumulative_prod": "Cumprod",
    "cumulative_sum": "Cumsum",
    "diff": "Sub",
    "in_top_k": "TopK",
    "searchsorted": "SearchSorted",
    "any": "Cast",
    "all": "Cast",
    "where": "Select",
    "clip": "ClipByValue",
    "conv1d": "Conv2D",
    "conv2d": "Conv2D",
    "conv2d_transpose": "Conv2DBackpropInput",
    "conv3d": "Conv3D",
    "conv3d_transpose": "Conv3DBackpropInputV2",
    "depthwise_conv2d": "DepthwiseConv2dNative",
    "dilation2d": "Dilation2D",
    "fused_conv2d": "FusedConv2D",
    "fused_depthwise_conv2d": "FusedDepthwiseConv2D",
    "fused_matmul": "_FusedMatMul",
    "scaled_dot_product_attention": "ScaledDotProductAttention",
    "separable_conv2d": "DepthwiseConv2dNative",
    "bitwise_invert": "Invert",
    "bitwise_left_shift": "LeftShift",
    "bitwise_right_shift": "RightShift",
    "copysign": "CopySign",
    "isfinite": "IsFinite",
    "isinf": "IsInf",
    "isnan": "IsNan",
    "logaddexp": "LogAddExp",
    "nextafter": "NextAfter",
    "positive": "Identity",
    "signbit": "SignBit",
    "quantized_matmul": "QuantizedMatMul",
}


def test_every_function_of_the_tables_is_public():
    assert set(FUNCTIONS) == set(CALLS) | OTHER_TESTS


@pytest.mark.parametrize("name", CALLS)
def test_the_good_call_works(name):
    """A new op that needs other arguments than X gets a line in a table of valid_calls."""
    tensors, rest = CALLS[name]
    FUNCTIONS[name](*tensors, *rest)


def names(op):
    kernel = KERNELS.get(op, "".join(part.capitalize() for part in op.split("_")))
    return {op, kernel}


BAD_VALUES = {
    "ragged": ([[1.0], [1.0, 2.0]], ShapeError, "nested lists must be rectangular"),
    "objects": (np.array([{}, None]), DTypeError, "has elements of object"),
    "set": ({1.0}, DTypeError, "has elements of object"),
    "dates": (np.array(["2020"], "M8[D]"), DTypeError, "datetime64"),
    "too large": ([2**70], DTypeError, "has elements of object"),
}
SLOTS = [(op, at) for op, (tensors, _) in CALLS.items() for at in range(len(tensors))]


@pytest.mark.parametrize("kind", list(BAD_VALUES))
@pytest.mark.parametrize(("op", "at"), SLOTS)
def test_arguments_that_are_no_tensors(op, at, kind):
    bad, error, message = BAD_VALUES[kind]
    tensors, rest = CALLS[op]
    given = [bad if position == at else tensor for position, tensor in enumerate(tensors)]
    with pytest.raises(error, match=message) as caught:
        FUNCTIONS[op](*given, *rest)
    assert re.split(r"[:(]", str(caught.value))[0] in names(op), caught.value


NOT_ASARRAY = [(op, at) for op, at in SLOTS if op != "asarray"]


@pytest.mark.parametrize(("op", "at"), NOT_ASARRAY)
def test_none_for_a_tensor_is_refused_by_name(op, at):
    tensors, rest = CALLS[op]
    given = [None if position == at else tensor for position, tensor in enumerate(tensors)]
    with pytest.raises(TensorplugError) as caught:
        FUNCTIONS[op](*given, *rest)
    assert re.split(r"[:(]", str(caught.value))[0] in names(op), caught.value


@pytest.mark.parametrize(("op", "at"), NOT_ASARRAY)
def test_strings_are_no_numbers(op, at):
    tensors, rest = CALLS[op]
    text = np.full(np.shape(tensors[at]), "a")
    given = [text if position == at else tensor for position, tensor in enumerate(tensors)]
    if op in TAKE_STRINGS or (op, at) in TAKE_STRINGS_AT:
        assert isinstance(FUNCTIONS[op](*given, *rest), tp.Tensor | tuple)
        return
    with pytest.raises(DTypeError, match="string") as caught:
        FUNCTIONS[op](*given, *rest)
    head = re.split(r"[:(]", str(caught.value))[0]
    assert head in names(op) | {"BatchMatMul", "Conv2D", "LogSoftmax", "Multiply"}, caught.value


TAKE_STRINGS = bad_calls_images.TAKE_STRINGS | {  # they move elements and do not look at them
    *("flip", "diag", "unstack", "broadcast_arrays", "split", "strided_slice"),
    *("depth_to_space", "space_to_depth", "batch_to_space_nd", "space_to_batch_nd", "pad"),
    *("ensure_shape", "meshgrid", "mirror_pad", "moveaxis", "repeat", "roll", "tile"),
    *("identity", "expand_dims", "reshape", "broadcast_to", "slice", "squeeze"),
    *("matrix_transpose", "permute_dims", "positive", "copy", "diagonal", "flatten", "ravel"),
    *("atleast_1d", "atleast_2d", "atleast_3d", "swapaxes"),
    *("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
}
TAKE_STRINGS_AT = {  # likewise, but not all of their arguments
    *(("gather", 0), ("gather_nd", 0), ("take", 0), ("take_along_axis", 0), ("boolean_mask", 0)),
    *(("sparse_to_dense", 1), ("dynamic_slice", 0)),
}


@pytest.mark.parametrize("op", list(BINARY))
def test_shapes_that_do_not_broadcast(op):
    value = BINARY[op]
    dtype = "bool" if value is B else "float32"
    message = rf"\(a={dtype}\[3,4\], b={dtype}\[2,4\]\): shapes \[3, 4\] and \[2, 4\] cannot be br"
    with pytest.raises(ShapeError, match=message):
        FUNCTIONS[op](value, value[:2])


AXES = ["sum", "prod", "mean", "max", "min", "any", "all", "argmax", "softmax", "log_softmax"]


@pytest.mark.parametrize("axis", [2, -3, 99])
@pytest.mark.parametrize("op", [*AXES, "gather", "expand_dims", "squeeze", "concat", "stack"])
def test_axes_out_of_range(op, axis):
    rank, extra = 2, {"expand_dims": 1, "stack": 1}.get(op, 0)
    axis = axis + (extra if axis > 0 else -extra)
    arguments = {
        "gather": [X, I],
        "concat": [[tp.asarray(X)]],
        "stack": [[tp.asarray(X)]],
    }.get(op, [B if op in ("any", "all") else X])
    allowed = f"axis {axis} is out of range for rank {rank + extra}: it must be from "
    low, high = -rank - extra, rank + extra - 1
    with pytest.raises(ShapeError, match=re.escape(f"{allowed}{low} to {high}")) as caught:
        FUNCTIONS[op](*arguments, axis=axis)
    assert re.search(r"(float32|bool)\[3,4\]", str(caught.value))


@pytest.mark.parametrize("axis", [1.0, "0", True, [0.5], None])
@pytest.mark.parametrize("op", AXES)
def test_axes_that_are_no_integers(op, axis):
    if axis is None and op not in ("softmax", "log_softmax"):
        return
    shown = (
        axis[0]
        if isinstance(axis, list) and op not in ("argmax", "softmax", "log_softmax")
        else axis
    )
    with pytest.raises(ArgumentError, match=re.escape(f"axis must be an integer, got {shown!r}")):
        FUNCTIONS[op](B if op in ("any", "all") else X, axis=axis)


DTYPED = {
    "asarray": lambda dtype: tp.asarray(X, dtype=dtype),
    "astype": lambda dtype: tp.astype(X, dtype),
    "full": lambda dtype: tp.full((2,), 1, dtype=dtype),
    "zeros": lambda dtype: tp.zeros((2,), dtype=dtype),
    "ones": lambda dtype: tp.ones((2,), dtype=dtype),
    "empty": lambda dtype: tp.empty((2,), dtype=dtype),
    "eye": lambda dtype: tp.eye(2, dtype=dtype),
    "full_like": lambda dtype: tp.full_like(X, 1, dtype=dtype),
    "linspace": lambda dtype: tp.linspace(0, 1, 2, dtype=dtype),
    "zeros_like": lambda dtype: tp.zeros_like(X, dtype=dtype),
    "arange": lambda dtype: tp.arange(3, dtype=dtype),
    "one_hot": lambda dtype: tp.one_hot(I, 3, dtype=dtype),
    "sum": lambda dtype: tp.sum(X, dtype=dtype),
    "prod": lambda dtype: tp.prod(X, dtype=dtype),
    "explain": lambda dtype: tp.explain("Neg", dtype=dtype),
}


@pytest.mark.parametrize("dtype", ["real", "", 0, object, np.longdouble])
@pytest.mark.parametrize("op", list(DTYPED))
def test_unknown_dtypes(op, dtype):
    message = f"{op}: unknown dtype {dtype!r}; dtypes are bfloat16, bool"
    with pytest.raises(DTypeError, match=re.escape(message)):
        DTYPED[op](dtype)


BAD_CALLS = [
    (call, error, message)
    for module in (bad_calls_functions, bad_calls_images, bad_calls_limits)
    for error, rows in module.CASES.items()
    for call, message in rows
]


@pytest.mark.parametrize(("call", "error", "message"), BAD_CALLS)
def test_a_bad_call_is_explained(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize("where", ["in the function", "in its backward function"])
def test_bad_input_on_the_tape_leaves_no_tape_on(where):
    def backward(dy):
        return tp.reshape(dy, (7,))

    @tp.custom_grad
    def g(x):
        return x * 1.0, backward

    function = (
        (lambda x: tp.sum(x + X[:2])) if where == "in the function" else lambda x: tp.sum(g(x))
    )
    with pytest.raises(ShapeError):
        tp.grad(function)(X)
    with pytest.raises(ShapeError):
        tp.grad(lambda x: tp.sum(tp.grad(function)(x)))(X)
