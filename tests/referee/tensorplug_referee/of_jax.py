"""JAX, eager, on the CPU."""

from __future__ import annotations

import functools
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax, nn
from jax.scipy import special
from jax.scipy.linalg import solve_triangular

from tensorplug.plugin import dtypes as dt
from tensorplug_referee.base import Library, functions, hooks, refuse, spatial

jax.config.update("jax_enable_x64", True)  # of JAX
linalg, fft = jnp.linalg, jnp.fft

LIBRARY: Final = Library(
    "referee_jax",
    jax.__version__,
    dt.BOOL | dt.INTEGER | dt.FLOATING | dt.COMPLEX,
    jax.Array,
    lambda array: jnp.array(array).block_until_ready(),
    jax.device_get,
    lambda x: x.dtype.name,
    owner=lambda x: x.unsafe_buffer_pointer() if x.nbytes else id(x),
    wait=lambda x: x.block_until_ready(),
    lacks=lambda error: isinstance(error, TypeError | NotImplementedError),
    flushes_subnormals=frozenset({dt.float32}),
)


def _over(function: Any) -> Any:
    return lambda x, *, axis, keep_dims: function(x, axis=axis, keepdims=keep_dims)


def _typed(function: Any) -> Any:
    return lambda x, *, axis, keep_dims, out: function(
        x, axis=axis, keepdims=keep_dims, dtype=out.dtype.numpy
    )


def _scanned(function: Any) -> Any:
    def run(x: Any, *, axis: int, exclusive: bool, reverse: bool, out: Any) -> Any:
        if exclusive:
            refuse("no exclusive scans")
        return function(x.astype(out.dtype.numpy), axis=axis, reverse=reverse)

    return run


# Windows ------------------------------------------------------------------------------------


def _form(data_format: str) -> Any:
    axes = "".join(each for each in data_format if each not in "NC")
    return data_format, f"{axes}IO", data_format


def _conv(x: Any, filter: Any, *, attributes: Any) -> Any:
    form = attributes["data_format"]
    return lax.conv_general_dilated(
        x,
        filter,
        attributes["strides"],
        spatial(attributes["pad"], form),
        rhs_dilation=attributes["dilations"],
        dimension_numbers=_form(form),
        feature_group_count=x.shape[form.index("C")] // max(filter.shape[-2], 1),
    )


def _depthwise(x: Any, filter: Any, *, attributes: Any) -> Any:
    *taps, channels, times = filter.shape
    return _conv(x, filter.reshape(*taps, 1, channels * times), attributes=attributes)


def _of_x(forward: Any) -> Any:
    """The transpose of a convolution, as JAX differentiates it."""

    def run(dy: Any, filter: Any, *, attributes: Any) -> Any:
        x = jnp.zeros(attributes["input_shape"], dy.dtype)
        return jax.vjp(lambda x: forward(x, filter, attributes=attributes), x)[1](dy)[0]

    return run


def _of_filter(forward: Any) -> Any:
    def run(x: Any, dy: Any, *, attributes: Any) -> Any:
        taps = jnp.zeros(attributes["filter_shape"], dy.dtype)
        return jax.vjp(lambda taps: forward(x, taps, attributes=attributes), taps)[1](dy)[0]

    return run


def _largest(x: Any, *, filter_size: Any, strides: Any, pad: Any) -> Any:
    least = -jnp.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
    window, steps = (1, *filter_size, 1), (1, *strides, 1)
    return lax.reduce_window(x, jnp.array(least, x.dtype), lax.max, window, steps, pad)


def _resized(method: str) -> Any:
    def run(x: Any, *, size: Any, align_corners: bool, half_pixel_centers: bool) -> Any:
        if align_corners or not half_pixel_centers:
            refuse("no other centers than halves")
        return jax.image.resize(x, (x.shape[0], *size, x.shape[-1]), method, antialias=False)

    return run


# The others ---------------------------------------------------------------------------------


def _grad(function: Any) -> Any:
    """A gradient of a function of one input, as JAX differentiates it."""
    return lambda dy, x, **given: jax.vjp(functools.partial(function, **given), x)[1](dy)[0]


_gelu_grad = _grad(lambda x, approximate: nn.gelu(x, approximate=approximate))


def _at(indices: Any, updates: Any, shape: Any) -> Any:
    depth = indices.shape[-1]
    if tuple(updates.shape) != (*indices.shape[:-1], *shape[depth:]) or not depth:
        refuse("other forms of updates")
    return tuple(jnp.moveaxis(indices, -1, 0))


def _scatter(indices: Any, updates: Any, *, shape: Any) -> Any:
    at = _at(indices, updates, shape)
    return jnp.zeros(shape, updates.dtype).at[at].add(updates)


def _scattered(
    tensor: Any, indices: Any, updates: Any, *, reduction: str, include_self: bool
) -> Any:
    names = {"sum": "add", "prod": "multiply", "max": "max", "min": "min"}
    if not include_self or reduction not in names:
        refuse("other reductions")
    return getattr(tensor.at[_at(indices, updates, tensor.shape)], names[reduction])(updates)


def _search(side: str) -> Any:
    def run(sorted_sequence: Any, values: Any) -> Any:
        if sorted_sequence.ndim == 1:
            return jnp.searchsorted(sorted_sequence, values, side=side).astype(jnp.int32)
        return refuse("batches of sequences")

    return run


def _solve(matrix: Any, rhs: Any, *, adjoint: bool) -> Any:
    return linalg.solve(matrix.mT.conj() if adjoint else matrix, rhs)


def _triangular(matrix: Any, rhs: Any, *, lower: bool, adjoint: bool, unit_diagonal: bool) -> Any:
    return solve_triangular(
        matrix, rhs, trans=2 * adjoint, lower=lower, unit_diagonal=unit_diagonal
    )


def _svd(x: Any, *, compute_uv: bool, full_matrices: bool) -> Any:
    if not compute_uv:
        return linalg.svd(x, compute_uv=False), jnp.zeros(0, x.dtype), jnp.zeros(0, x.dtype)
    u, s, vh = linalg.svd(x, full_matrices=full_matrices)
    return s, u, vh


def _of_vectors(values: Any, both: Any) -> Any:
    def run(x: Any, *, compute_v: bool, out: Any) -> Any:
        return both(x) if compute_v else (values(x), jnp.zeros(0, out[1].dtype.numpy))

    return run


def _cross_entropy(labels: Any, logits: Any) -> Any:
    return -(labels * nn.log_softmax(logits, axis=-1)).sum(axis=-1)


KERNELS: Final[dict[str, Any]] = {
    **functions(
        "Abs=abs Acos=acos Acosh=acosh Add=add Asin=asin Asinh=asinh Atan=atan Atan2=atan2 "
        "Atanh=atanh BitwiseAnd=bitwise_and BitwiseOr=bitwise_or BitwiseXor=bitwise_xor Ceil=ceil "
        "ComplexAbs=abs Conj=conj CopySign=copysign Cos=cos Cosh=cosh "
        "Equal=equal Exp=exp Expm1=expm1 Floor=floor FloorDiv=floor_divide "
        "Greater=greater GreaterEqual=greater_equal Hypot=hypot Imag=imag Invert=bitwise_not "
        "IsFinite=isfinite IsInf=isinf IsNan=isnan LeftShift=left_shift Less=less "
        "LessEqual=less_equal Log=log Log10=log10 Log1p=log1p Log2=log2 LogAddExp=logaddexp "
        "LogicalAnd=logical_and LogicalNot=logical_not LogicalOr=logical_or "
        "LogicalXor=logical_xor Maximum=maximum Minimum=minimum Mod=remainder Multiply=multiply "
        "Neg=negative NextAfter=nextafter NotEqual=not_equal OnesLike=ones_like Pow=power "
        "Real=real RealDiv=true_divide Reciprocal=reciprocal RightShift=right_shift Round=round "
        "Select=where Sign=sign SignBit=signbit Sin=sin Sinh=sinh Sqrt=sqrt Square=square "
        "Sub=subtract Tan=tan Tanh=tanh Trunc=trunc ZerosLike=zeros_like",
        jnp,
    ),
    **functions(
        "BesselI0e=i0e BesselI1e=i1e Betainc=betainc Digamma=digamma Erf=erf Erfc=erfc "
        "Erfcx=erfcx Erfinv=erfinv Igamma=gammainc Igammac=gammaincc Lgamma=gammaln Ndtri=ndtri",
        special,
    ),
    **functions(
        "Elu=elu Relu=relu Relu6=relu6 Selu=selu Sigmoid=sigmoid Silu=silu Softplus=softplus", nn
    ),
    **functions("MatrixDeterminant=det LogMatrixDeterminant=slogdet", linalg),
    **functions("Rsqrt=rsqrt Complex=complex", lax),
    "Polygamma": lambda x, *, n: special.polygamma(n, x),
    "All": _over(jnp.all),
    "Any": _over(jnp.any),
    "ArgMax": lambda x, *, axis: jnp.argmax(x, axis).astype(jnp.int32),
    "ArgMin": lambda x, *, axis: jnp.argmin(x, axis).astype(jnp.int32),
    "ArgSort": lambda x, *, axis, descending, stable: jnp.argsort(
        x, axis=axis, descending=descending, stable=stable
    ).astype(jnp.int32),
    "BatchMatMul": lambda a, b, *, transpose_a, transpose_b: jnp.matmul(
        a.mT if transpose_a else a, b.mT if transpose_b else b
    ),
    "Bitcast": lambda x, *, dtype: lax.bitcast_convert_type(x, dtype.numpy),
    "BroadcastTo": lambda x, *, shape: jnp.broadcast_to(x, shape),
    "Cast": lambda x, *, dtype: x.astype(dtype.numpy),
    "Cholesky": linalg.cholesky,
    "ClipByValue": lambda x, *, clip_value_min, clip_value_max: jnp.clip(
        x, clip_value_min, clip_value_max
    ),
    "Concat": lambda xs, *, axis: jnp.concatenate(xs, axis=axis),
    "Conv2D": _conv,
    "Conv2DBackpropFilter": _of_filter(_conv),
    "Conv2DBackpropInput": _of_x(_conv),
    "Conv3D": _conv,
    "Conv3DBackpropFilterV2": _of_filter(_conv),
    "Conv3DBackpropInputV2": _of_x(_conv),
    "Cumprod": _scanned(lax.cumprod),
    "Cumsum": _scanned(lax.cumsum),
    "DepthwiseConv2dNative": _depthwise,
    "DepthwiseConv2dNativeBackpropFilter": _of_filter(_depthwise),
    "DepthwiseConv2dNativeBackpropInput": _of_x(_depthwise),
    "DynamicSlice": lambda x, starts, *, sizes: (
        lax.dynamic_slice(x, starts, sizes) if starts.ndim == 1 else refuse("batches of starts")
    ),
    "Eig": _of_vectors(linalg.eigvals, linalg.eig),
    "Einsum": lambda xs, *, equation: jnp.einsum(equation, *xs),
    "ExpandDims": lambda x, *, dim: jnp.expand_dims(x, dim),
    "FFT": fft.fft,
    "Fill": lambda *, value, out: jnp.full(out.shape, value, out.dtype.numpy),
    "GatherNd": lambda x, indices: (
        x[tuple(jnp.moveaxis(indices, -1, 0))] if indices.shape[-1] else refuse("no indices")
    ),
    "GatherV2": lambda x, indices, *, axis, batch_dims: (
        x[(slice(None),) * axis + (indices,)] if not batch_dims else refuse("batches of indices")
    ),
    "Gelu": lambda x, *, approximate: nn.gelu(x, approximate=approximate),
    "GeluGrad": lambda dy, x, *, approximate: _gelu_grad(dy, x, approximate=approximate),
    "IFFT": fft.ifft,
    "IRFFT": lambda x, *, fft_length: fft.irfft(x, fft_length),
    "Identity": lambda x: x,
    "LeakyRelu": lambda x, *, alpha: nn.leaky_relu(x, alpha),
    "LinSpace": lambda *, start, stop, num, endpoint, out: jnp.linspace(
        start, stop, num, endpoint=endpoint, dtype=out.dtype.numpy
    ),
    "LogSoftmax": lambda x, *, axis: nn.log_softmax(x, axis=axis),
    "LowerBound": _search("left"),
    "MatrixInverse": lambda x, *, adjoint: linalg.inv(x.mT.conj() if adjoint else x),
    "MatrixSolve": _solve,
    "MatrixTriangularSolve": _triangular,
    "Max": lambda x, *, reduction_indices, keep_dims: jnp.max(
        x, axis=reduction_indices, keepdims=keep_dims
    ),
    "MaxPool": _largest,
    "Mean": _over(jnp.mean),
    "Min": _over(jnp.min),
    "MirrorPad": lambda x, *, paddings, mode: jnp.pad(x, paddings, mode=mode),
    "OneHot": lambda indices, *, depth, on_value, off_value, out: (
        nn.one_hot(indices, depth, dtype=out.dtype.numpy)
        if (on_value, off_value) == (1, 0)
        else refuse("other values")
    ),
    "Pack": lambda xs, *, axis: jnp.stack(xs, axis),
    "PadV2": lambda x, *, paddings, constant_value: jnp.pad(
        x, paddings, constant_values=constant_value
    ),
    "Prod": _typed(jnp.prod),
    "PseudoInverse": lambda x, rtol: linalg.pinv(x, rtol=rtol),
    "Qr": lambda x, *, full_matrices: linalg.qr(x, "complete" if full_matrices else "reduced"),
    "RFFT": lambda x, *, fft_length: fft.rfft(x, fft_length),
    "Range": lambda *, start, stop, step, out: jnp.arange(start, stop, step, out.dtype.numpy),
    "Repeat": lambda x, *, repeats, axis: jnp.repeat(x, repeats, axis=axis),
    "Reshape": lambda x, *, shape: x.reshape(shape),
    "ResizeBilinear": _resized("linear"),
    "ResizeNearestNeighbor": _resized("nearest"),
    "Reverse": lambda x, *, dims: jnp.flip(x, dims),
    "ScatterNd": _scatter,
    "SelfAdjointEigV2": _of_vectors(linalg.eigvalsh, linalg.eigh),
    "SigmoidGrad": _grad(nn.sigmoid),
    "SiluGrad": _grad(nn.silu),
    "Slice": lambda x, *, begin, size: lax.slice(
        x, begin, [at + n for at, n in zip(begin, size, strict=True)]
    ),
    "Softmax": lambda x, *, dim: nn.softmax(x, axis=dim),
    "SoftmaxCrossEntropy": _cross_entropy,
    "Sort": lambda x, *, axis, descending, stable: jnp.sort(
        x, axis=axis, descending=descending, stable=stable
    ),
    "SplitV": lambda x, *, axis, num_or_size_splits: lax.split(x, num_or_size_splits, axis),
    "Sum": _typed(jnp.sum),
    "Svd": _svd,
    "TensorScatterReduce": _scattered,
    "TensorScatterUpdate": lambda tensor, indices, updates: tensor.at[
        _at(indices, updates, tensor.shape)
    ].set(updates),
    "Tile": lambda x, *, reps: jnp.tile(x, reps),
    "TopK": lambda x, *, k: lax.top_k(x, k),
    "Transpose": lambda x, *, perm: jnp.transpose(x, perm),
    "Triangle": lambda x, *, upper, k: jnp.triu(x, k) if upper else jnp.tril(x, k),
    "Unpack": lambda x, *, axis: [jnp.take(x, at, axis=axis) for at in range(x.shape[axis])],
    "UpperBound": _search("right"),
    "Where": lambda x: jnp.argwhere(x).astype(jnp.int32),
}

tensorplug_create_backend, tensorplug_kernels = hooks(LIBRARY, KERNELS)
