"""tinygrad, on the CPU: its kernels are C, which clang compiles."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final

import numpy as np
from tinygrad import Tensor, dtypes

from tensorplug.plugin import DType
from tensorplug.plugin import dtypes as dt
from tensorplug_referee.base import Library, equal, functions, hooks, refuse, spatial

_DTYPES: Final = {getattr(dtypes, each.name): each for each in dt.BOOL | dt.INTEGER | dt.FLOATING}


def _g(dtype: DType) -> Any:
    return getattr(dtypes, dtype.name)


def _of_host(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype == dt.bfloat16.numpy:
        return Tensor(array.view(np.uint16)).bitcast(dtypes.bfloat16).realize()
    return Tensor(array).realize()


def _to_host(x: Any) -> Any:
    if x.dtype == dtypes.bfloat16:
        return x.bitcast(dtypes.uint16).numpy().view(dt.bfloat16.numpy)
    return x.numpy()


LIBRARY: Final = Library(
    "referee_tinygrad",
    version("tinygrad"),
    frozenset(_DTYPES.values()),
    Tensor,
    _of_host,
    _to_host,
    lambda x: _DTYPES[x.dtype].name,
    wait=lambda x: x.contiguous().realize(),
)


def _over(name: str) -> Any:
    return lambda x, *, axis, keep_dims, out: getattr(x, name)(axis, keepdim=keep_dims).cast(
        _g(out.dtype)
    )


def _summed(name: str) -> Any:
    return lambda x, *, axis, keep_dims, out: getattr(x, name)(
        axis, keepdim=keep_dims, dtype=_g(out.dtype)
    )


def _scanned(name: str) -> Any:
    def run(x: Any, *, axis: int, exclusive: bool, reverse: bool, out: Any) -> Any:
        if exclusive or reverse:
            refuse("no such scan")
        return getattr(x, name)(axis).cast(_g(out.dtype))

    return run


def _conv(x: Any, filter: Any, *, strides: Any, pad: Any, dilations: Any, data_format: str) -> Any:
    groups = x.shape[data_format.index("C")] // max(filter.shape[-2], 1)
    count, last = filter.ndim - 2, data_format[-1] == "C"
    filter = filter.permute(count + 1, count, *range(count))
    padding = tuple(n for pair in reversed(spatial(pad, data_format)) for n in pair)
    x = x.permute(0, count + 1, *range(1, count + 1)) if last else x
    y = x.conv2d(filter, None, groups, tuple(strides), tuple(dilations), padding)
    return y.permute(0, *range(2, count + 2), 1) if last else y


def _pooled(name: str, **given: Any) -> Any:
    def run(x: Any, *, filter_size: Any, strides: Any, pad: Any) -> Any:
        padding = tuple(equal(spatial(pad, "NHWC")))
        pool = getattr(x.permute(0, 3, 1, 2), name)
        return pool(tuple(filter_size), tuple(strides), padding=padding, **given).permute(
            0, 2, 3, 1
        )

    return run


def _top_k(x: Any, *, k: int) -> Any:
    values, indices = x.topk(k)
    return values, indices.cast(dtypes.int32)


def _gather(x: Any, indices: Any, *, axis: int, batch_dims: int) -> Any:
    return x[(slice(None),) * axis + (indices,)] if not batch_dims else refuse("batches")


KERNELS: Final[dict[str, Any]] = {
    **functions(
        "Abs=abs Acos=acos Acosh=acosh Add=add Asin=asin Asinh=asinh Atan=atan Atanh=atanh "
        "BitwiseAnd=bitwise_and BitwiseOr=bitwise_or BitwiseXor=bitwise_xor Ceil=ceil "
        "CopySign=copysign Cos=cos Cosh=cosh Elu=elu Equal=eq Erf=erf Exp=exp Floor=floor "
        "Greater=__gt__ GreaterEqual=__ge__ Invert=bitwise_not IsFinite=isfinite IsInf=isinf "
        "IsNan=isnan Less=__lt__ LessEqual=__le__ Log=log Log10=log10 Log2=log2 "
        "LogAddExp=logaddexp LogicalNot=logical_not Maximum=maximum Minimum=minimum Mod=mod "
        "Multiply=mul Neg=neg "
        "NotEqual=ne OnesLike=ones_like Pow=pow RealDiv=div Reciprocal=reciprocal Relu=relu "
        "Relu6=relu6 Round=round Rsqrt=rsqrt Select=where Selu=selu Sigmoid=sigmoid Sign=sign "
        "Silu=silu Sin=sin Sinh=sinh Softplus=softplus Sqrt=sqrt Square=square Sub=sub Tan=tan "
        "Tanh=tanh Trunc=trunc ZerosLike=zeros_like",
        Tensor,
    ),
    "All": _over("all"),
    "Any": _over("any"),
    "ArgMax": lambda x, *, axis: x.argmax(axis).cast(dtypes.int32),
    "ArgMin": lambda x, *, axis: x.argmin(axis).cast(dtypes.int32),
    "ArgSort": lambda x, *, axis, descending: x.sort(axis, descending)[1].cast(dtypes.int32),
    "AvgPool": _pooled("avg_pool2d", count_include_pad=False),
    "BatchMatMul": lambda a, b, *, transpose_a, transpose_b: (
        a.transpose(-1, -2) if transpose_a else a
    ).matmul(b.transpose(-1, -2) if transpose_b else b),
    "Bitcast": lambda x, *, dtype: (
        x.bitcast(_g(dtype)) if dtype.itemsize == x.dtype.itemsize else refuse("other shapes")
    ),
    "BroadcastTo": lambda x, *, shape: x.expand(shape),
    "Cast": lambda x, *, dtype: x.cast(_g(dtype)),
    "ClipByValue": lambda x, *, clip_value_min, clip_value_max: x.clip(
        clip_value_min, clip_value_max
    ),
    "Concat": lambda xs, *, axis: xs[0].cat(*xs[1:], dim=axis),
    "Conv2D": _conv,
    "Conv3D": _conv,
    "Cumprod": _scanned("cumprod"),
    "Cumsum": _scanned("cumsum"),
    "Einsum": lambda xs, *, equation: Tensor.einsum(equation, *xs),
    "ExpandDims": lambda x, *, dim: x.unsqueeze(dim),
    "Fill": lambda *, value, out: Tensor.full(out.shape, value, dtype=_g(out.dtype)),
    "FloorDiv": lambda a, b: a.div(b, rounding_mode="floor"),
    "GatherV2": _gather,
    "Gelu": lambda x, *, approximate: x.gelu() if approximate else refuse("erf"),
    "Identity": lambda x: x,
    "LayerNorm": lambda x, scale, offset, *, axis, epsilon: (
        x.layernorm(axis, epsilon) if scale is None and offset is None else refuse("parameters")
    ),
    "LeakyRelu": lambda x, *, alpha: x.leaky_relu(alpha),
    "LogSoftmax": lambda x, *, axis: x.log_softmax(axis),
    "Max": lambda x, *, reduction_indices, keep_dims: x.max(reduction_indices, keepdim=keep_dims),
    "MaxPool": _pooled("max_pool2d"),
    "Mean": _over("mean"),
    "Min": _over("min"),
    "Pack": lambda xs, *, axis: xs[0].stack(*xs[1:], dim=axis),
    "PadV2": lambda x, *, paddings, constant_value: x.pad(paddings, value=constant_value),
    "Prod": _summed("prod"),
    "Range": lambda *, start, stop, step, out: Tensor.arange(
        start, stop, step, dtype=_g(out.dtype)
    ),
    "Reshape": lambda x, *, shape: x.reshape(shape),
    "Reverse": lambda x, *, dims: x.flip(dims),
    "Slice": lambda x, *, begin, size: x.shrink(
        tuple((at, at + n) for at, n in zip(begin, size, strict=True))
    ),
    "Softmax": lambda x, *, dim: x.softmax(dim),
    "Sort": lambda x, *, axis, descending: x.sort(axis, descending)[0],
    "SplitV": lambda x, *, axis, num_or_size_splits: x.split(list(num_or_size_splits), axis),
    "Sum": _summed("sum"),
    "Tile": lambda x, *, reps: x.repeat(reps) if len(reps) >= x.ndim else refuse("fewer axes"),
    "TopK": _top_k,
    "Transpose": lambda x, *, perm: x.permute(perm),
    "Triangle": lambda x, *, upper, k: x.triu(k) if upper else x.tril(k),
}

tensorplug_create_backend, tensorplug_kernels = hooks(LIBRARY, KERNELS)
