"""onnxruntime, models of one node, on the CPU."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state as errors

from tensorplug.plugin import dtypes as dt
from tensorplug_referee.base import Library, hooks, refuse, spatial

VERSION: Final = 23  # of the operators
ort.set_default_logger_severity(4)

_NUMBERS: Final = {  # of dtypes in ONNX
    "bool": TensorProto.BOOL,
    "float16": TensorProto.FLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    **{f"int{bits}": getattr(TensorProto, f"INT{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": getattr(TensorProto, f"UINT{bits}") for bits in (8, 16, 32, 64)},
}
_NAMES: Final = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    **{f"tensor({name})": name for name in _NUMBERS if name not in {"float32", "float64"}},
}

LIBRARY: Final = Library(
    "referee_onnxruntime",
    ort.__version__,
    frozenset(map(dt.of, _NUMBERS)),
    ort.OrtValue,
    ort.OrtValue.ortvalue_from_numpy,
    lambda x: x.numpy(),
    lambda x: _NAMES[x.data_type()],
    lambda x: tuple(x.shape()),
    lacks=lambda error: isinstance(
        error, errors.NotImplemented | errors.InvalidGraph | errors.Fail
    ),
)


@functools.cache
def _session(
    op: str, inputs: tuple[tuple[int, int] | None, ...], outputs: int, given: Any
) -> ort.InferenceSession:
    names = [f"x{at}" if each else "" for at, each in enumerate(inputs)]
    declared = [
        helper.make_tensor_value_info(name, each[0], [None] * each[1])
        for name, each in zip(names, inputs, strict=True)
        if each
    ]
    results = [f"y{number}" for number in range(outputs)]
    node = helper.make_node(op, names, results, **dict(given))
    graph = helper.make_graph(
        [node], op, declared, [helper.make_empty_tensor_value_info(name) for name in results]
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", VERSION)], ir_version=10
    )
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _run(op: str, inputs: Any, outputs: int = 1, **given: Any) -> Any:
    """Run a model of one node; an input is a value, an array of constants, or None."""
    values = [
        ort.OrtValue.ortvalue_from_numpy(each) if isinstance(each, np.ndarray) else each
        for each in inputs
    ]
    types = tuple(
        None if each is None else (_NUMBERS[_NAMES[each.data_type()]], len(each.shape()))
        for each in values
    )
    session = _session(op, types, outputs, tuple(sorted(given.items())))
    feeds = {f"x{at}": each for at, each in enumerate(values) if each is not None}
    found = session.run_with_ort_values(None, feeds)
    return found[0] if outputs == 1 else found


def _op(name: str, **given: Any) -> Any:
    return lambda *inputs: _run(name, inputs, **given)


def _whole(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def _cast(x: Any, name: str) -> Any:
    return _run("Cast", [x], to=_NUMBERS[name])


def _reduced(op: str) -> Any:
    return lambda x, *, axis, keep_dims: _run(
        op, [x, _whole(*axis)], keepdims=int(keep_dims), noop_with_empty_axes=1
    )


def _extreme(op: str) -> Any:
    return lambda x, *, axis: _cast(_run(op, [x], axis=axis, keepdims=0), "int32")


def _typed(value: Any, x: Any) -> Any:
    return np.array(value, _NAMES[x.data_type()])


def _transposed(x: Any, *perm: int) -> Any:
    return _run("Transpose", [x], perm=perm)


def _convolved(
    x: Any, filter: Any, form: str, strides: Any, pad: Any, dilations: Any, groups: int
) -> Any:
    pairs = spatial(pad, form)
    if form[-1] == "C":
        x = _transposed(x, 0, len(pairs) + 1, *range(1, len(pairs) + 1))
    y = _run(
        "Conv",
        [x, filter],
        strides=tuple(strides),
        dilations=tuple(dilations),
        group=groups,
        pads=(*(before for before, _ in pairs), *(after for _, after in pairs)),
    )
    return _transposed(y, 0, *range(2, len(pairs) + 2), 1) if form[-1] == "C" else y


def _conv(x: Any, filter: Any, *, strides: Any, pad: Any, dilations: Any, data_format: str) -> Any:
    *taps, channels, _ = filter.shape()
    groups = x.shape()[data_format.index("C")] // max(channels, 1)
    count = len(taps)
    filter = _transposed(filter, count + 1, count, *range(count))
    return _convolved(x, filter, data_format, strides, pad, dilations, groups)


def _depthwise(
    x: Any, filter: Any, *, strides: Any, pad: Any, dilations: Any, data_format: str
) -> Any:
    height, width, channels, times = filter.shape()
    filter = _run(
        "Reshape", [_transposed(filter, 2, 3, 0, 1), _whole(channels * times, 1, height, width)]
    )
    return _convolved(x, filter, data_format, strides, pad, dilations, channels)


def _pooled(op: str, **given: Any) -> Any:
    def run(x: Any, *, filter_size: Any, strides: Any, pad: Any) -> Any:
        pairs = spatial(pad, "NHWC")
        y = _run(
            op,
            [_transposed(x, 0, 3, 1, 2)],
            kernel_shape=tuple(filter_size),
            strides=tuple(strides),
            pads=(*(before for before, _ in pairs), *(after for _, after in pairs)),
            **given,
        )
        return _transposed(y, 0, 2, 3, 1)

    return run


def _batch_norm(
    x: Any, scale: Any, offset: Any, mean: Any, variance: Any, *, variance_epsilon: float
) -> Any:
    given = (scale, offset, mean, variance)
    rank, wanted = len(x.shape()), x.shape()[-1:]
    if rank < 2 or any(each is None or each.shape() != wanted for each in given):
        refuse("parameters of other axes than the channels")
    x = _transposed(x, 0, rank - 1, *range(1, rank - 1))
    y = _run("BatchNormalization", [x, *given], epsilon=variance_epsilon)
    return _transposed(y, 0, *range(2, rank), 1)


def _layer_norm(x: Any, scale: Any, offset: Any, *, axis: Any, epsilon: float) -> Any:
    rank = len(x.shape())
    shape = x.shape()[rank - len(axis) :]
    if not axis or tuple(axis) != tuple(range(rank - len(axis), rank)):
        refuse("axes that are not the last")
    if scale is None or any(each and each.shape() != shape for each in (scale, offset)):
        refuse("parameters of another shape")
    return _run("LayerNormalization", [x, scale, offset], axis=axis[0], epsilon=epsilon)


def _scanned(x: Any, *, axis: int, exclusive: bool, reverse: bool) -> Any:
    return _run(
        "CumSum", [x, np.array(axis, np.int64)], exclusive=int(exclusive), reverse=int(reverse)
    )


def _padded(mode: str) -> Any:
    return lambda x, paddings, value: _run(
        "Pad",
        [x, _whole(*(a for a, _ in paddings), *(b for _, b in paddings)), value],
        mode=mode,
    )


def _resized(mode: str) -> Any:
    def run(x: Any, *, size: Any, align_corners: bool, half_pixel_centers: bool) -> Any:
        way = "align_corners" if align_corners else "asymmetric"
        way = "half_pixel" if half_pixel_centers and not align_corners else way
        if mode == "nearest" and way != "asymmetric":
            refuse("roundings of pixels")
        batch, _, _, channels = x.shape()
        y = _run(
            "Resize",
            [_transposed(x, 0, 3, 1, 2), None, None, _whole(batch, channels, *size)],
            mode=mode,
            coordinate_transformation_mode=way,
            **({"nearest_mode": "floor"} if mode == "nearest" else {}),
        )
        return _transposed(y, 0, 2, 3, 1)

    return run


def _scattered(reduction: str) -> Any:
    def run(tensor: Any, indices: Any, updates: Any) -> Any:
        depth = indices.shape()[-1]
        if list(updates.shape()) != [*indices.shape()[:-1], *tensor.shape()[depth:]] or not depth:
            refuse("other forms of updates")
        return _run("ScatterND", [tensor, _cast(indices, "int64"), updates], reduction=reduction)

    return run


def _gather(x: Any, indices: Any, *, axis: int, batch_dims: int) -> Any:
    return _run("Gather", [x, indices], axis=axis) if not batch_dims else refuse("batches")


def _top_k(x: Any, *, k: int) -> Any:
    values, indices = _run("TopK", [x, _whole(k)], 2)
    return values, _cast(indices, "int32")


def _split(x: Any, *, axis: int, num_or_size_splits: Any) -> Any:
    sizes = _whole(*num_or_size_splits)
    found = _run("Split", [x, sizes], len(sizes), axis=axis)
    return [found] if len(sizes) == 1 else found


def _names(text: str) -> dict[str, Any]:
    pairs = ((each.split("=") * 2)[:2] for each in text.split())
    return {kernel: _op(operator) for kernel, operator in pairs}


KERNELS: Final[dict[str, Any]] = {
    **_names(
        "Abs Acos Acosh Add Asin Asinh Atan Atanh BitwiseAnd BitwiseOr BitwiseXor Ceil Cos Cosh "
        "Equal Erf Exp Floor Gelu=Gelu Greater GreaterEqual=GreaterOrEqual Identity "
        "Invert=BitwiseNot IsInf IsNan=IsNaN Less LessEqual=LessOrEqual Log LogicalAnd=And "
        "LogicalNot=Not LogicalOr=Or LogicalXor=Xor MatrixDeterminant=Det Maximum=Max "
        "Minimum=Min Multiply=Mul Neg Pow RealDiv=Div Reciprocal Relu Round Select=Where Selu "
        "Sigmoid Sign Sin Sinh Softplus Sqrt Sub Tan Tanh Prelu=PRelu Elu"
    ),
    "ArgMax": _extreme("ArgMax"),
    "ArgMin": _extreme("ArgMin"),
    "AvgPool": _pooled("AveragePool", count_include_pad=0),
    "BatchMatMul": lambda a, b, *, transpose_a, transpose_b: (
        _run("MatMul", [a, b]) if not (transpose_a or transpose_b) else refuse("transposes")
    ),
    "BroadcastTo": lambda x, *, shape: _run("Expand", [x, _whole(*shape)]),
    "Cast": lambda x, *, dtype: (
        _cast(x, dtype.name) if dtype.name in _NUMBERS else refuse("other dtypes")
    ),
    "ClipByValue": lambda x, *, clip_value_min, clip_value_max: _run(
        "Clip", [x, _typed(clip_value_min, x), _typed(clip_value_max, x)]
    ),
    "Concat": lambda xs, *, axis: _run("Concat", xs, axis=axis),
    "Conv2D": _conv,
    "Conv3D": _conv,
    "Cumsum": _scanned,
    "DepthToSpace": lambda x, *, block_size, data_format: (
        _run("DepthToSpace", [x], blocksize=block_size, mode="DCR")
        if data_format == "NCHW"
        else refuse("channels last")
    ),
    "DepthwiseConv2dNative": _depthwise,
    "Einsum": lambda xs, *, equation: _run("Einsum", xs, equation=equation),
    "ExpandDims": lambda x, *, dim: _run("Unsqueeze", [x, _whole(dim)]),
    "Fill": lambda *, value, out: _run(
        "Expand", [np.array(value, out.dtype.numpy), _whole(*out.shape)]
    ),
    "FusedBatchNorm": _batch_norm,
    "GatherNd": lambda params, indices: _run("GatherND", [params, _cast(indices, "int64")]),
    "GatherV2": _gather,
    "Gelu": lambda x, *, approximate: _run(
        "Gelu", [x], approximate="tanh" if approximate else "none"
    ),
    "LRN": lambda x, *, depth_radius, bias, alpha, beta: _transposed(
        _run(
            "LRN",
            [_transposed(x, 0, 3, 1, 2)],
            size=2 * depth_radius + 1,
            alpha=alpha * (2 * depth_radius + 1),
            beta=beta,
            bias=bias,
        ),
        *(0, 2, 3, 1),
    ),
    "LayerNorm": _layer_norm,
    "LeakyRelu": lambda x, *, alpha: _run("LeakyRelu", [x], alpha=alpha),
    "LeftShift": lambda a, b: _run("BitShift", [a, b], direction="LEFT"),
    "LogSoftmax": lambda x, *, axis: _run("LogSoftmax", [x], axis=axis),
    "Max": lambda x, *, reduction_indices, keep_dims: _reduced("ReduceMax")(
        x, axis=reduction_indices, keep_dims=keep_dims
    ),
    "MaxPool": _pooled("MaxPool"),
    "Mean": _reduced("ReduceMean"),
    "Min": _reduced("ReduceMin"),
    "MirrorPad": lambda x, *, paddings, mode: (
        _padded("reflect")(x, paddings, None) if mode == "reflect" else refuse("symmetric")
    ),
    "Mod": lambda a, b: _run("Mod", [a, b], fmod=int("float" in _NAMES[a.data_type()])),
    "PadV2": lambda x, *, paddings, constant_value: _padded("constant")(
        x, paddings, _typed(constant_value, x)
    ),
    "Prod": _reduced("ReduceProd"),
    "Range": lambda *, start, stop, step, out: _run(
        "Range", [np.array(each, out.dtype.numpy) for each in (start, stop, step)]
    ),
    "Reshape": lambda x, *, shape: _run("Reshape", [x, _whole(*shape)], allowzero=1),
    "ResizeBilinear": _resized("linear"),
    "ResizeNearestNeighbor": _resized("nearest"),
    "RightShift": lambda a, b: _run("BitShift", [a, b], direction="RIGHT"),
    "Slice": lambda x, *, begin, size: _run(
        "Slice",
        [x, _whole(*begin), _whole(*(at + n for at, n in zip(begin, size, strict=True)))],
    ),
    "Softmax": lambda x, *, dim: _run("Softmax", [x], axis=dim),
    "SpaceToDepth": lambda x, *, block_size, data_format: (
        _run("SpaceToDepth", [x], blocksize=block_size)
        if data_format == "NCHW"
        else refuse("channels last")
    ),
    "SplitV": _split,
    "Sum": _reduced("ReduceSum"),
    "TensorScatterUpdate": _scattered("none"),
    "Tile": lambda x, *, reps: (
        _run("Tile", [x, _whole(*reps)]) if len(reps) == len(x.shape()) else refuse("other ranks")
    ),
    "TopK": _top_k,
    "Transpose": lambda x, *, perm: _transposed(x, *perm),
    "Triangle": lambda x, *, upper, k: _run("Trilu", [x, np.array(k, np.int64)], upper=int(upper)),
    "Where": lambda x: _cast(_transposed(_run("NonZero", [x]), 1, 0), "int32"),
}

tensorplug_create_backend, tensorplug_kernels = hooks(LIBRARY, KERNELS)
