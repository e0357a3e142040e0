"""MLX, on the CPU."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final

import mlx.core as mx
import numpy as np
from mlx import nn

from tensorplug.plugin import DType
from tensorplug.plugin import dtypes as dt
from tensorplug_referee.base import Library, equal, functions, hooks, refuse, spatial

linalg, fft = mx.linalg, mx.fft
mx.set_default_device(mx.cpu)


def _m(dtype: DType) -> Any:
    return mx.bool_ if dtype is dt.bool_ else getattr(mx, dtype.name)


def _of_host(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype == dt.bfloat16.numpy:
        x = mx.array(array.view(np.uint16)).view(mx.bfloat16)
    else:
        x = mx.array(array, dtype=_m(dt.of(array.dtype)))
    mx.eval(x)
    return x


def _to_host(x: Any) -> Any:
    if x.dtype == mx.bfloat16:
        return np.array(mx.view(x, mx.uint16)).view(dt.bfloat16.numpy)
    return np.array(x)


def _waited(x: Any) -> Any:
    mx.eval(x)
    return x


LIBRARY: Final = Library(
    "referee_mlx",
    version("mlx"),
    dt.BOOL | dt.INTEGER | dt.FLOATING | {dt.complex64},
    mx.array,
    _of_host,
    _to_host,
    lambda x: str(x.dtype).rpartition(".")[2].rstrip("_"),
    wait=_waited,
    lacks=lambda error: any(
        phrase in str(error).lower()
        for phrase in ("not support", "unsupported", "not implemented", "not yet", "invalid type")
    ),
)


def _over(function: Any) -> Any:
    return lambda x, *, axis, keep_dims, out: function(x, axis, keepdims=keep_dims).astype(
        _m(out.dtype)
    )


def _scanned(function: Any) -> Any:
    return lambda x, *, axis, exclusive, reverse, out: function(
        x, axis=axis, reverse=reverse, inclusive=not exclusive
    ).astype(_m(out.dtype))


# Windows ------------------------------------------------------------------------------------


def _conv(x: Any, filter: Any, *, strides: Any, pad: Any, dilations: Any, data_format: str) -> Any:
    if data_format[-1] != "C":
        refuse("channels in front")
    pairs = spatial(pad, data_format)
    return mx.conv_general(
        x,
        mx.moveaxis(filter, -1, 0),
        strides,
        ([before for before, _ in pairs], [after for _, after in pairs]),
        dilations,
        groups=x.shape[-1] // max(filter.shape[-2], 1),
    )


def _depthwise(
    x: Any, filter: Any, *, strides: Any, pad: Any, dilations: Any, data_format: str
) -> Any:
    *taps, channels, times = filter.shape
    filter = filter.reshape(*taps, 1, channels * times)
    given = {"strides": strides, "pad": pad, "dilations": dilations}
    return _conv(x, filter, **given, data_format=data_format)


def _pooled(pool: Any) -> Any:
    def run(x: Any, *, filter_size: Any, strides: Any, pad: Any) -> Any:
        padding = equal(spatial(pad, "NHWC"))
        if any(padding) and pool is nn.AvgPool2d:
            refuse("padding that does not count")
        return pool(tuple(filter_size), tuple(strides), tuple(padding))(x)

    return run


# The others ---------------------------------------------------------------------------------


def _at(indices: Any, updates: Any, shape: Any) -> Any:
    depth = indices.shape[-1]
    if tuple(updates.shape) != (*indices.shape[:-1], *shape[depth:]) or not depth:
        refuse("other forms of updates")
    return tuple(indices[..., number] for number in range(depth))


def _scatter(indices: Any, updates: Any, *, shape: Any) -> Any:
    return mx.zeros(shape, updates.dtype).at[_at(indices, updates, shape)].add(updates)


def _stable(function: Any) -> Any:
    """MLX sorts upwards, and says nothing of equal elements."""
    return lambda x, *, axis, descending, stable: (
        function(x, axis=axis)
        if not descending and (not stable or function is mx.sort)
        else refuse("no such order")
    )


def _search(side: str) -> Any:
    return lambda sorted_sequence, values: (
        mx.searchsorted(sorted_sequence, values, side=side).astype(mx.int32)
        if sorted_sequence.ndim == 1
        else refuse("batches of sequences")
    )


def _layer_norm(x: Any, scale: Any, offset: Any, *, axis: Any, epsilon: float) -> Any:
    if tuple(axis) != (x.ndim - 1,):
        refuse("other axes than the last")
    if any(each is not None and each.shape != x.shape[-1:] for each in (scale, offset)):
        refuse("parameters of another shape")
    return mx.fast.layer_norm(x, scale, offset, epsilon)


def _svd(x: Any, *, compute_uv: bool, full_matrices: bool) -> Any:
    if not compute_uv or not full_matrices:
        refuse("all vectors or none")
    u, s, vh = linalg.svd(x)
    return s, u, vh


def _of_vectors(both: Any) -> Any:
    return lambda x, *, compute_v: both(x) if compute_v else refuse("without vectors")


def _grad(function: Any) -> Any:
    return lambda dy, x: mx.vjp(function, [x], [dy])[1][0]


KERNELS: Final[dict[str, Any]] = {
    **functions(
        "Abs=abs Acos=arccos Acosh=arccosh Add=add Asin=arcsin Asinh=arcsinh Atan=arctan "
        "Atan2=arctan2 Atanh=arctanh BitwiseAnd=bitwise_and BitwiseOr=bitwise_or "
        "BitwiseXor=bitwise_xor Ceil=ceil ComplexAbs=abs Conj=conjugate Cos=cos Cosh=cosh "
        "Equal=equal Erf=erf Erfinv=erfinv Exp=exp Expm1=expm1 Floor=floor FloorDiv=floor_divide "
        "Greater=greater GreaterEqual=greater_equal Imag=imag Invert=bitwise_invert "
        "IsFinite=isfinite IsInf=isinf IsNan=isnan LeftShift=left_shift Less=less "
        "LessEqual=less_equal Log=log Log10=log10 Log1p=log1p Log2=log2 LogAddExp=logaddexp "
        "LogicalAnd=logical_and LogicalNot=logical_not LogicalOr=logical_or "
        "LogicalXor=logical_xor Maximum=maximum Minimum=minimum Mod=remainder Multiply=multiply "
        "Neg=negative NotEqual=not_equal OnesLike=ones_like Pow=power Real=real RealDiv=divide "
        "Reciprocal=reciprocal RightShift=right_shift Round=round Rsqrt=rsqrt Select=where "
        "Sigmoid=sigmoid Sign=sign Sin=sin Sinh=sinh Sqrt=sqrt Square=square Sub=subtract "
        "Tan=tan Tanh=tanh Trunc=trunc ZerosLike=zeros_like",
        mx,
    ),
    **functions("Relu=relu Relu6=relu6 Selu=selu Silu=silu Softplus=softplus Elu=elu", nn),
    **functions(
        "Cholesky=cholesky MatrixDeterminant=det LogMatrixDeterminant=slogdet Lu=lu_factor", linalg
    ),
    "All": _over(mx.all),
    "Any": _over(mx.any),
    "ArgMax": lambda x, *, axis: mx.argmax(x, axis).astype(mx.int32),
    "ArgMin": lambda x, *, axis: mx.argmin(x, axis).astype(mx.int32),
    "ArgSort": lambda x, *, axis, descending, stable: _stable(mx.argsort)(
        x, axis=axis, descending=descending, stable=stable
    ).astype(mx.int32),
    "AvgPool": _pooled(nn.AvgPool2d),
    "BatchMatMul": lambda a, b, *, transpose_a, transpose_b: mx.matmul(
        mx.swapaxes(a, -1, -2) if transpose_a else a, mx.swapaxes(b, -1, -2) if transpose_b else b
    ),
    "Bitcast": lambda x, *, dtype: (
        mx.view(x, _m(dtype)) if _m(dtype).size == x.itemsize else refuse("other shapes")
    ),
    "BroadcastTo": lambda x, *, shape: mx.broadcast_to(x, shape),
    "Cast": lambda x, *, dtype: x.astype(_m(dtype)),
    "ClipByValue": lambda x, *, clip_value_min, clip_value_max: mx.clip(
        x, mx.array(clip_value_min, x.dtype), mx.array(clip_value_max, x.dtype)
    ),
    "Concat": lambda xs, *, axis: mx.concatenate(xs, axis),
    "Conv2D": _conv,
    "Conv3D": _conv,
    "Cumprod": _scanned(mx.cumprod),
    "Cumsum": _scanned(mx.cumsum),
    "DepthwiseConv2dNative": _depthwise,
    "Diag": lambda x: mx.diag(x) if x.ndim == 1 else refuse("matrices"),
    "Eig": _of_vectors(linalg.eig),
    "Einsum": lambda xs, *, equation, out: mx.einsum(equation, *xs).astype(_m(out.dtype)),
    "ExpandDims": lambda x, *, dim: mx.expand_dims(x, dim),
    "Eye": lambda *, n_rows, n_cols, k, out: mx.eye(n_rows, n_cols, k, _m(out.dtype)),
    "FFT": fft.fft,
    "Fill": lambda *, value, out: mx.full(out.shape, mx.array(value, _m(out.dtype))),
    "GatherNd": lambda params, indices: params[
        tuple(indices[..., number] for number in range(indices.shape[-1]))
    ],
    "GatherV2": lambda x, indices, *, axis, batch_dims: (
        mx.take(x, indices, axis) if not batch_dims else refuse("batches of indices")
    ),
    "Gelu": lambda x, *, approximate: (nn.gelu_approx if approximate else nn.gelu)(x),
    "IFFT": fft.ifft,
    "IRFFT": lambda x, *, fft_length: fft.irfft(x, fft_length),
    "Identity": lambda x: x,
    "LayerNorm": _layer_norm,
    "LeakyRelu": lambda x, *, alpha: nn.leaky_relu(x, alpha),
    "LinSpace": lambda *, start, stop, num, endpoint, out: (
        mx.linspace(start, stop, num, _m(out.dtype)) if endpoint else refuse("an open end")
    ),
    "LogSoftmax": lambda x, *, axis: nn.log_softmax(x, axis),
    "LowerBound": _search("left"),
    "MatrixInverse": lambda x, *, adjoint: linalg.inv(x) if not adjoint else refuse("adjoint"),
    "MatrixSolve": lambda a, b, *, adjoint: (
        linalg.solve(a, b) if not adjoint else refuse("adjoint")
    ),
    "MatrixTriangularSolve": lambda a, b, *, lower, adjoint, unit_diagonal: (
        linalg.solve_triangular(a, b, upper=not lower)
        if not (adjoint or unit_diagonal)
        else refuse("adjoint")
    ),
    "Max": lambda x, *, reduction_indices, keep_dims: mx.max(
        x, reduction_indices, keepdims=keep_dims
    ),
    "MaxPool": _pooled(nn.MaxPool2d),
    "Mean": _over(mx.mean),
    "Min": _over(mx.min),
    "Pack": lambda xs, *, axis: mx.stack(xs, axis),
    "PadV2": lambda x, *, paddings, constant_value: mx.pad(
        x, paddings, constant_values=mx.array(constant_value, x.dtype)
    ),
    "Prod": _over(mx.prod),
    "PseudoInverse": lambda x, rtol: linalg.pinv(x) if rtol is None else refuse("rtol"),
    "Qr": lambda x, *, full_matrices: linalg.qr(x) if not full_matrices else refuse("full"),
    "RFFT": lambda x, *, fft_length: fft.rfft(x, fft_length),
    "Range": lambda *, start, stop, step, out: mx.arange(start, stop, step, _m(out.dtype)),
    "Repeat": lambda x, *, repeats, axis: mx.repeat(x, repeats, axis),
    "Reshape": lambda x, *, shape: mx.reshape(x, shape),
    "Reverse": lambda x, *, dims: mx.flip(x, dims),
    "ScatterNd": _scatter,
    "SelfAdjointEigV2": _of_vectors(linalg.eigh),
    "SigmoidGrad": _grad(mx.sigmoid),
    "SiluGrad": _grad(nn.silu),
    "Slice": lambda x, *, begin, size: x[
        tuple(slice(at, at + n) for at, n in zip(begin, size, strict=True))
    ],
    "Softmax": lambda x, *, dim: mx.softmax(x, dim),
    "Sort": _stable(mx.sort),
    "SplitV": lambda x, *, axis, num_or_size_splits: mx.split(
        x, np.cumsum(num_or_size_splits)[:-1].tolist(), axis
    ),
    "Sum": _over(mx.sum),
    "Svd": _svd,
    "Tile": lambda x, *, reps: mx.tile(x, reps),
    "Transpose": lambda x, *, perm: mx.transpose(x, perm),
    "Triangle": lambda x, *, upper, k: mx.triu(x, k) if upper else mx.tril(x, k),
    "Unpack": lambda x, *, axis: mx.unstack(x, axis),
    "UpperBound": _search("right"),
}

tensorplug_create_backend, tensorplug_kernels = hooks(LIBRARY, KERNELS)
