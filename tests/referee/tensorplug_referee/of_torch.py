"""PyTorch, eager, on the CPU."""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np
import torch
from torch import linalg
from torch.nn import functional as nn

from tensorplug.plugin import LinAlgError, OutOfRangeError
from tensorplug.plugin import dtypes as dt
from tensorplug_referee.base import Library, equal, functions, hooks, last, refuse, spatial

T: Final = {
    each.name: getattr(torch, each.name)
    for each in dt.BOOL | dt.FLOATING | dt.COMPLEX | dt.INTEGER
    if each.name not in {"uint16", "uint32", "uint64"}  # PyTorch has little more than conversions
}


def _of_host(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype == dt.bfloat16.numpy:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _to_host(x: Any) -> Any:
    x = x.resolve_conj().resolve_neg()
    if x.dtype is torch.bfloat16:
        return x.contiguous().view(torch.int16).numpy().view(dt.bfloat16.numpy)
    return x.numpy()


def _lacks(error: Exception) -> bool:
    said = str(error)
    phrases = ("not implemented", "not support", "Unsupported", "only support", "Expected float")
    return isinstance(error, NotImplementedError) or any(each in said for each in phrases)


LIBRARY: Final = Library(
    "referee_torch",
    torch.__version__,
    frozenset(map(dt.of, T)),
    torch.Tensor,
    _of_host,
    _to_host,
    lambda x: str(x.dtype).rpartition(".")[2],
    owner=lambda x: x.untyped_storage().data_ptr() or id(x),
    lacks=_lacks,
    raises={torch.linalg.LinAlgError: LinAlgError, IndexError: OutOfRangeError},
)


def _t(type_: Any) -> Any:
    return T[type_.dtype.name]


def _folded(x: Any, axis: tuple[int, ...]) -> Any:
    """Return ``x`` with the axes as one, the last: functions of one axis take that."""
    kept = last(x, axis)[: x.ndim - len(axis)]
    length = math.prod(x.shape[at] for at in axis)
    return x.permute(last(x, axis)).reshape(*(x.shape[at] for at in kept), length)


def _over(function: Any) -> Any:
    """Of functions that take several axes; without any, PyTorch would take all."""
    return lambda x, *, axis, keep_dims: function(
        *((x, axis) if axis else (x[None], 0)), keepdim=keep_dims and bool(axis)
    )


def _scanned(function: Any) -> Any:
    def run(x: Any, *, axis: int, exclusive: bool, reverse: bool, out: Any) -> Any:
        if exclusive:
            refuse("no exclusive scans")
        if reverse:
            return function(x.flip(axis), axis, dtype=_t(out)).flip(axis)
        return function(x, axis, dtype=_t(out))

    return run


CONVOLUTIONS: Final = {2: nn.conv2d, 3: nn.conv3d}


def _first(x: Any, data_format: str = "NHWC") -> Any:
    return x.movedim(-1, 1) if data_format[-1] == "C" else x


def _back(x: Any, data_format: str = "NHWC") -> Any:
    return x.movedim(1, -1) if data_format[-1] == "C" else x


def _convolved(x: Any, filter: Any, groups: int | None, attributes: Any) -> Any:
    form = attributes["data_format"]
    pairs = spatial(attributes["pad"], form)
    x = _first(x, form)
    groups = groups or x.shape[1] // max(filter.shape[1], 1)
    if any(before != after for before, after in pairs):
        x = nn.pad(x, [n for pair in reversed(pairs) for n in pair])
        pairs = [(0, 0)] * len(pairs)
    function, before = CONVOLUTIONS[len(pairs)], [before for before, _ in pairs]
    strides, dilations = attributes["strides"], attributes["dilations"]
    return _back(function(x, filter, None, strides, before, dilations, groups), form)


def _conv(x: Any, filter: Any, *, attributes: Any) -> Any:
    return _convolved(x, filter.movedim((-1, -2), (0, 1)), None, attributes)


def _depthwise(x: Any, filter: Any, *, attributes: Any) -> Any:
    height, width, channels, times = filter.shape
    filter = filter.permute(2, 3, 0, 1).reshape(channels * times, 1, height, width)
    return _convolved(x, filter, channels, attributes)


def _of_x(forward: Any) -> Any:
    """The transpose of a convolution, as PyTorch differentiates it."""

    def run(dy: Any, filter: Any, *, attributes: Any) -> Any:
        x = torch.zeros(attributes["input_shape"], dtype=dy.dtype, requires_grad=True)
        return torch.autograd.grad(forward(x, filter, attributes=attributes), x, dy)[0]

    return run


def _of_filter(forward: Any) -> Any:
    def run(x: Any, dy: Any, *, attributes: Any) -> Any:
        filter = torch.zeros(attributes["filter_shape"], dtype=dy.dtype, requires_grad=True)
        return torch.autograd.grad(forward(x, filter, attributes=attributes), filter, dy)[0]

    return run


def _pooled(pool: Any) -> Any:
    def run(x: Any, *, filter_size: Any, strides: Any, pad: Any) -> Any:
        padding = equal(spatial(pad))
        wide = any(2 * n > taps for n, taps in zip(padding, filter_size, strict=True))
        if wide or not x.numel():
            refuse("no elements, or wide paddings")
        return _back(pool(_first(x), filter_size, strides, padding))

    return run


def _resized(mode: str) -> Any:
    def run(x: Any, *, size: Any, align_corners: bool, half_pixel_centers: bool) -> Any:
        if mode == "bilinear":
            if not (align_corners or half_pixel_centers):
                refuse("corners of pixels")
            return _back(nn.interpolate(_first(x), size, mode=mode, align_corners=align_corners))
        if align_corners:
            refuse("aligned corners")
        exact = "nearest-exact" if half_pixel_centers else "nearest"
        return _back(nn.interpolate(_first(x), size, mode=exact))

    return run


def _batch_norm(
    x: Any, scale: Any, offset: Any, mean: Any, variance: Any, *, variance_epsilon: float
) -> Any:
    wanted = x.shape[-1:]
    if any(each is not None and each.shape != wanted for each in (scale, offset, mean, variance)):
        refuse("parameters of other axes than the channels")
    if x.ndim < 2:
        refuse("no batch")
    return nn.batch_norm(
        x.movedim(-1, 1), mean, variance, scale, offset, eps=variance_epsilon
    ).movedim(1, -1)


def _layer_norm(x: Any, scale: Any, offset: Any, *, axis: Any, epsilon: float) -> Any:
    shape = x.shape[x.ndim - len(axis) :]
    if not axis or tuple(axis) != tuple(range(x.ndim - len(axis), x.ndim)):
        refuse("axes that are not the last")
    if any(each is not None and each.shape != shape for each in (scale, offset)):
        refuse("parameters of another shape")
    return nn.layer_norm(x, shape, scale, offset, epsilon)


def _cross_entropy(labels: Any, logits: Any) -> Any:
    flat = logits.reshape(-1, logits.shape[-1])
    dense = labels.is_floating_point()
    labels = labels.reshape(flat.shape) if dense else labels.reshape(-1).long()
    return nn.cross_entropy(flat, labels, reduction="none").reshape(logits.shape[:-1])


def _grad(function: Any) -> Any:
    """A gradient of a function of one input, as PyTorch differentiates it."""

    def run(dy: Any, x: Any, *, attributes: Any) -> Any:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(function(x, **attributes), x, dy)[0]

    return run


def _gelu(x: Any, *, approximate: bool) -> Any:
    return nn.gelu(x, approximate="tanh" if approximate else "none")


def _at(indices: Any, updates: Any, shape: Any) -> Any:
    depth = indices.shape[-1]
    if tuple(updates.shape) != (*indices.shape[:-1], *shape[depth:]) or not depth:
        refuse("other forms of updates")
    return tuple(indices.long().unbind(-1))


def _scatter(indices: Any, updates: Any, *, shape: Any) -> Any:
    at = _at(indices, updates, shape)
    return torch.zeros(shape, dtype=updates.dtype).index_put(at, updates, accumulate=True)


def _top_k(x: Any, *, k: int) -> Any:
    values, indices = torch.topk(x, k)
    return values, indices.int()


def _triangular(matrix: Any, rhs: Any, *, lower: bool, adjoint: bool, unit_diagonal: bool) -> Any:
    matrix = matrix.tril() if lower else matrix.triu()
    return linalg.solve_triangular(
        matrix.mH if adjoint else matrix,
        rhs,
        upper=lower == adjoint,
        unitriangular=unit_diagonal,
    )


def _svd(x: Any, *, compute_uv: bool, full_matrices: bool) -> Any:
    if not compute_uv:
        return linalg.svdvals(x), x.new_empty(0), x.new_empty(0)
    u, s, vh = linalg.svd(x, full_matrices=full_matrices)
    return s, u, vh


def _of_vectors(values: Any, both: Any) -> Any:
    return lambda x, *, compute_v, out: (
        both(x) if compute_v else (values(x), torch.empty(0, dtype=_t(out[1])))
    )


KERNELS: Final[dict[str, Any]] = {
    **functions(
        "Abs=abs Acos=acos Acosh=acosh Add=add Asin=asin Asinh=asinh Atan=atan Atan2=atan2 "
        "Atanh=atanh BitwiseAnd=bitwise_and BitwiseOr=bitwise_or BitwiseXor=bitwise_xor Ceil=ceil "
        "ComplexAbs=abs Conj=conj_physical CopySign=copysign Cos=cos Cosh=cosh "
        "Equal=eq Erf=erf Erfc=erfc Exp=exp Expm1=expm1 Floor=floor FloorDiv=floor_divide "
        "Greater=gt GreaterEqual=ge Hypot=hypot Invert=bitwise_not IsFinite=isfinite IsInf=isinf "
        "IsNan=isnan LeftShift=bitwise_left_shift Less=lt LessEqual=le Log=log Log10=log10 "
        "Log1p=log1p Log2=log2 LogAddExp=logaddexp LogicalAnd=logical_and LogicalNot=logical_not "
        "LogicalOr=logical_or LogicalXor=logical_xor Maximum=maximum Minimum=minimum "
        "Mod=remainder Multiply=multiply Neg=neg NextAfter=nextafter NotEqual=ne "
        "OnesLike=ones_like Pow=pow RealDiv=true_divide Reciprocal=reciprocal "
        "RightShift=bitwise_right_shift "
        "Round=round Rsqrt=rsqrt Select=where Sigmoid=sigmoid SignBit=signbit Sin=sin Sinh=sinh "
        "Sqrt=sqrt Square=square Sub=sub Tan=tan Tanh=tanh Trunc=trunc ZerosLike=zeros_like",
        torch,
    ),
    **functions("Elu=elu Relu=relu Relu6=relu6 Selu=selu Silu=silu Softplus=softplus", nn),
    **functions(
        "BesselI0e=i0e BesselI1e=i1e BesselJ0=bessel_j0 BesselJ1=bessel_j1 Digamma=digamma "
        "Erfcx=erfcx Erfinv=erfinv Igamma=gammainc Igammac=gammaincc Lgamma=gammaln Ndtri=ndtri",
        torch.special,
    ),
    "Polygamma": lambda x, *, n: torch.special.polygamma(n, x),
    **functions("Cholesky=cholesky MatrixDeterminant=det LogMatrixDeterminant=slogdet", linalg),
    "Sign": torch.sgn,
    "All": _over(torch.all),
    "Any": _over(torch.any),
    "ArgMax": lambda x, *, axis: torch.argmax(x, axis).int(),
    "ArgMin": lambda x, *, axis: torch.argmin(x, axis).int(),
    "ArgSort": lambda x, *, axis, descending, stable: torch.argsort(
        x, dim=axis, descending=descending, stable=stable
    ).int(),
    "AvgPool": _pooled(functools.partial(nn.avg_pool2d, count_include_pad=False)),
    "BatchMatMul": lambda a, b, *, transpose_a, transpose_b: torch.matmul(
        a.mT if transpose_a else a, b.mT if transpose_b else b
    ),
    "Bitcast": lambda x, *, dtype: (
        x.view(T[dtype.name]) if dtype.itemsize == x.itemsize else refuse("other shapes")
    ),
    "Complex": lambda real, imag: (
        torch.complex(real, imag) if real.dtype is not torch.float16 else refuse("complex32")
    ),
    "BroadcastTo": lambda x, *, shape: x.expand(shape),
    "Cast": lambda x, *, dtype: x.to(T[dtype.name]),
    "ClipByValue": lambda x, *, clip_value_min, clip_value_max: torch.clamp(
        x, clip_value_min, clip_value_max
    ),
    "Concat": lambda xs, *, axis: torch.cat(xs, axis),
    "Conv2D": _conv,
    "Conv2DBackpropFilter": _of_filter(_conv),
    "Conv2DBackpropInput": _of_x(_conv),
    "Conv3D": _conv,
    "Conv3DBackpropFilterV2": _of_filter(_conv),
    "Conv3DBackpropInputV2": _of_x(_conv),
    "Cumprod": _scanned(torch.cumprod),
    "Cumsum": _scanned(torch.cumsum),
    "DepthwiseConv2dNative": _depthwise,
    "DepthwiseConv2dNativeBackpropFilter": _of_filter(_depthwise),
    "DepthwiseConv2dNativeBackpropInput": _of_x(_depthwise),
    "Eig": _of_vectors(linalg.eigvals, linalg.eig),
    "Einsum": lambda xs, *, equation, out: torch.einsum(equation, *xs).to(_t(out)),
    "ExpandDims": lambda x, *, dim: x.unsqueeze(dim),
    "FFT": torch.fft.fft,
    "Fill": lambda *, value, out: torch.full(out.shape, value, dtype=_t(out)),
    "FusedBatchNorm": _batch_norm,
    "GatherNd": lambda x, indices: (
        x[tuple(indices.long().unbind(-1))] if indices.shape[-1] else refuse("no indices")
    ),
    "GatherV2": lambda x, indices, *, axis, batch_dims: (
        refuse("batches of indices")
        if batch_dims
        else x[(slice(None),) * axis + (indices.long(),)]
    ),
    "Gelu": _gelu,
    "GeluGrad": _grad(_gelu),
    "IFFT": torch.fft.ifft,
    "IRFFT": lambda x, *, fft_length: torch.fft.irfft(x, fft_length),
    "Identity": lambda x: x,
    "Imag": lambda x: torch.imag(x).clone(),
    "LRN": lambda x, *, depth_radius, bias, alpha, beta: _back(
        nn.local_response_norm(
            _first(x), 2 * depth_radius + 1, alpha * (2 * depth_radius + 1), beta, bias
        )
    ),
    "LayerNorm": _layer_norm,
    "LayerNormGrad": _grad(functools.partial(_layer_norm, scale=None, offset=None)),
    "LeakyRelu": lambda x, *, alpha: nn.leaky_relu(x, alpha),
    "LinSpace": lambda *, start, stop, num, endpoint, out: (
        torch.linspace(start, stop, num, dtype=_t(out)) if endpoint else refuse("no open end")
    ),
    "LogSoftmax": lambda x, *, axis: torch.log_softmax(x, axis),
    "LowerBound": lambda x, values: torch.searchsorted(x, values, out_int32=True),
    "MatrixInverse": lambda x, *, adjoint: linalg.inv(x.mH if adjoint else x),
    "MatrixSolve": lambda a, b, *, adjoint: linalg.solve(a.mH if adjoint else a, b),
    "MatrixTriangularSolve": _triangular,
    "Max": lambda x, *, reduction_indices, keep_dims: _over(torch.amax)(
        x, axis=reduction_indices, keep_dims=keep_dims
    ),
    "MaxPool": _pooled(nn.max_pool2d),
    "Mean": _over(torch.mean),
    "Min": _over(torch.amin),
    "Pack": lambda xs, *, axis: torch.stack(xs, axis),
    "PadV2": lambda x, *, paddings, constant_value: nn.pad(
        x, [n for pair in reversed(paddings) for n in pair], value=constant_value
    ),
    "Prod": lambda x, *, axis, out: torch.prod(_folded(x, axis), -1, dtype=_t(out)).reshape(
        out.shape
    ),
    "PseudoInverse": lambda x, rtol: linalg.pinv(x, rtol=rtol),
    "Qr": lambda x, *, full_matrices: linalg.qr(x, "complete" if full_matrices else "reduced"),
    "RFFT": lambda x, *, fft_length: torch.fft.rfft(x, fft_length),
    "Range": lambda *, start, stop, step, out: (
        torch.arange(start, stop, step, dtype=_t(out)) if out.size else refuse("empty ranges")
    ),
    "Real": lambda x: torch.real(x).clone(),
    "Repeat": lambda x, *, repeats, axis: torch.repeat_interleave(x, repeats, axis),
    "Reshape": lambda x, *, shape: x.reshape(shape),
    "ResizeBilinear": _resized("bilinear"),
    "ResizeNearestNeighbor": _resized("nearest"),
    "Reverse": lambda x, *, dims: torch.flip(x, dims),
    "ScatterNd": _scatter,
    "SelfAdjointEigV2": _of_vectors(linalg.eigvalsh, linalg.eigh),
    "SigmoidGrad": _grad(torch.sigmoid),
    "SiluGrad": _grad(nn.silu),
    "Slice": lambda x, *, begin, size: x[
        (..., *(slice(at, at + n) for at, n in zip(begin, size, strict=True)))
    ],
    "Softmax": lambda x, *, dim: torch.softmax(x, dim),
    "SoftmaxCrossEntropy": _cross_entropy,
    "Sort": lambda x, *, axis, descending, stable: (
        torch.sort(x, dim=axis, descending=descending, stable=stable).values
    ),
    "SparseSoftmaxCrossEntropy": _cross_entropy,
    "SplitV": lambda x, *, axis, num_or_size_splits: torch.split(x, num_or_size_splits, axis),
    "Sum": lambda x, *, axis, keep_dims, out: torch.sum(
        *((x, axis) if axis else (x[None], 0)), keepdim=keep_dims and bool(axis), dtype=_t(out)
    ),
    "Svd": _svd,
    "TensorScatterUpdate": lambda x, indices, updates: x.index_put(
        _at(indices, updates, x.shape), updates
    ),
    "Tile": lambda x, *, reps: torch.tile(x, reps),
    "TopK": _top_k,
    "Transpose": lambda x, *, perm: x.permute(perm),
    "Triangle": lambda x, *, upper, k: torch.triu(x, k) if upper else torch.tril(x, k),
    "Unpack": lambda x, *, axis: x.unbind(axis),
    "UpperBound": lambda x, values: torch.searchsorted(x, values, right=True, out_int32=True),
    "Where": lambda x: torch.nonzero(x).int(),
}

tensorplug_create_backend, tensorplug_kernels = hooks(LIBRARY, KERNELS)
