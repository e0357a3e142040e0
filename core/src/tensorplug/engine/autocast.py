"""Mixed precision: in which dtype a kernel runs inside ``autocast`` (docs/adr/0035).

The rules replace the dtype to which the engine promotes the inputs of a call. They are for calls
that a program makes, not for what a kernel, a decomposition or a gradient rule consists of.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import flag
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.blocks import ContextBlock
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.exits import Exit
from tensorplug.engine.operands import types_of
from tensorplug.engine.promotion import Promotion
from tensorplug.errors import ArgumentError, DTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.registry import Registry, State
    from tensorplug.typing import DTypeLike


P = ParamSpec("P")
R = TypeVar("R")

IN_LOW_PRECISION: Final = {
    "products": ("BatchMatMul", "Einsum", "_FusedMatMul"),
    "convolutions": (
        *("Conv2D", "Conv3D", "DepthwiseConv2dNative", "FusedConv2D", "FusedDepthwiseConv2D"),
        *("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput"),
    ),
    "attention": ("ScaledDotProductAttention",),
    "recurrent layers": ("GRU", "LSTM"),
}
"""Kernels by family that run in the dtype of ``autocast``: most of the time is spent in these."""

IN_FLOAT32: Final = {
    "exponentials, logarithms and powers": (
        *("Exp", "Expm1", "Log", "Log10", "Log1p", "Log2", "LogAddExp", "Softplus"),
        *("Pow", "Reciprocal", "Rsqrt", "Cosh", "Sinh", "Tan", "Acos", "Asin"),
    ),
    "norms": ("FusedBatchNorm", "Hypot", "LayerNorm", "LRN"),
    "softmax": ("LogSoftmax", "Softmax"),
    "losses": ("SoftmaxCrossEntropy", "SparseSoftmaxCrossEntropy", "SquaredDifference"),
    "sums and products of elements": (
        *("AddN", "Mean", "Prod", "SparseSegmentMean", "SparseSegmentSum", "Sum"),
        "UnsortedSegmentSum",
    ),
    "cumulative": ("Cumprod", "Cumsum"),
    "matrix functions": (
        *("Cholesky", "Eig", "LogMatrixDeterminant", "Lu", "MatrixDeterminant", "MatrixInverse"),
        *("MatrixSolve", "MatrixTriangularSolve", "PseudoInverse", "Qr", "SelfAdjointEigV2"),
        "Svd",
    ),
}
"""Kernels by family that run in float32: rounded results would lose, or overflow in float16."""

_AS_OUTSIDE: Final = "as outside"  # in the caches
_LOW: Final = frozenset(name for names in IN_LOW_PRECISION.values() for name in names)
_WIDE: Final = frozenset(name for names in IN_FLOAT32.values() for name in names)


def find_promotion(
    spec: KernelSpec, types: Sequence[Any], low: DType, state: State
) -> Promotion | None:
    """Return the casts before a call inside ``autocast`` that the rules ask for; None without.

    Calls with float64, complex numbers or no floats at all are as outside.
    """
    if spec.name in _LOW or spec.autocast == "low":
        target = low
    elif spec.name in _WIDE or spec.autocast == "float32":
        target = dt.float32
    else:
        return None
    dtype, names = spec.promoted(types), spec.promote
    if dtype is None:  # a kernel of one array, such as Sum
        floats = {
            name: type_.dtype
            for name, type_ in zip(spec.input_names, types, strict=False)
            if isinstance(type_, TensorType) and type_.dtype in dt.FLOATING
        }
        if not floats:
            return None
        dtype, names = dt.promote(floats.values()), tuple(floats)
    if dtype not in dt.FLOATING or dtype.bits > dt.float32.bits:
        return None
    promotion = Promotion(spec, target, state, names)
    return promotion if promotion.needed(types) else None


def find_plan(
    registry: Registry,
    device: Device,
    low: DType,
    key: Hashable | None,
    spec: KernelSpec,
    tensors: Sequence[Any],
) -> Any:
    """Return the casts before a call, or its plan, which will be found by the fast path.

    None: there are no such casts, and the call goes on as outside.
    """
    fast, slow = device.caches(low)
    plan_or_casts: Any = slow.get(key)
    if plan_or_casts is None:
        state = registry.state
        plan_or_casts = find_promotion(spec, types_of(tensors), low, state) or _AS_OUTSIDE
        if isinstance(plan_or_casts, Promotion):
            plan_or_casts.published = True
        _remember(registry, device, slow, key, plan_or_casts, state)
    if isinstance(plan_or_casts, Promotion):
        return plan_or_casts
    plan = device.plans.get(key)
    if plan is not None:
        _remember(registry, device, fast, key, plan, plan.state)
    return plan


def _remember(
    registry: Registry, device: Device, cache: Any, key: Hashable | None, value: Any, state: State
) -> None:
    """Put what was found in a state of the registry into a cache, if it still holds."""
    with device.lock:
        if key is not None and state is registry.state and not device.closed:
            device.remember(cache, key, value)


class autocast(ContextBlock):  # noqa: N801  # a context manager, called like a function
    """Run products in a narrow float inside a ``with`` block, in this thread or task only.

    The parameters of a model stay float32. Inside the block, the family of a kernel decides to
    which dtype its inputs are cast:

    - products of matrices, convolutions, attention and recurrent layers run in ``dtype``;
    - exponentials, logarithms, powers, norms, softmax, losses, sums, cumulative, special and
      matrix functions run in float32;
    - all others run in the widest dtype of their inputs, as outside.

    Calls with float64 or complex numbers, and calls without floats, do not change. Casts are
    differentiable: the gradients of float32 parameters are float32. A backward pass runs in the
    dtypes of the forward pass, whether it is in the block or not. Compiled functions have a
    program of their own inside the block. Blocks may be nested; ``enabled=False`` ends the effect
    of outer ones.

    As a decorator, ``autocast`` runs each call of a function in a block. (docs/mixed_precision.md;
    the idea and most of the rules are PyTorch's.)

    Args:
        dtype: ``bfloat16`` or ``float16``; by default the first of these that the backend has
            when the block is entered. With float16, scale the loss (``train.LossScaled``).
        enabled: whether the block does anything.

    Raises:
        DTypeError: ``dtype`` is no float of 16 bits; when entered: the backend does not have it.
        ArgumentError: ``enabled`` is not a bool.
        RuntimeError: when entered: the same object is in use already, here or in another thread.

    Examples:
        >>> w, x = tp.ones((2, 2)), tp.ones((2, 2))
        >>> with tp.autocast(tp.float16):
        ...     y = x @ w
        ...     total = tp.sum(y)
        >>> y.dtype, total.dtype
        (tensorplug.float16, tensorplug.float32)
        >>> tp.grad(tp.autocast(tp.float16)(lambda w: tp.sum(x @ w)))(w).dtype
        tensorplug.float32

    """

    __slots__ = ("_chosen", "_dtype", "_enabled")

    _chosen: DType | None

    def __init__(self, dtype: DTypeLike | None = None, *, enabled: bool = True) -> None:
        super().__init__("autocast")
        flag(enabled, "autocast: enabled")
        self._enabled = enabled
        self._dtype = None if dtype is None else dt.of(dtype, "autocast: dtype")
        if self._dtype not in (None, *_NARROW):
            allowed = " or ".join(narrow.name for narrow in _NARROW)
            raise DTypeError(f"autocast: dtype is {self._dtype}, but must be {allowed}")

    def __enter__(self) -> None:
        self._chosen = self._choose() if self._enabled else None
        self._enter()

    @Exit
    def __exit__(self, *_error: object) -> None:
        self._leave()

    def __call__(self, f: Callable[P, R], /) -> Callable[P, R]:
        """Return a function that calls ``f`` in a block of its own.

        Raises:
            ArgumentError: ``f`` is not a function, or is one whose body does not run when it is
                called.

        """
        function: Any = f
        if (
            not callable(function)
            or inspect.iscoroutinefunction(f)
            or inspect.isgeneratorfunction(f)
            or inspect.isasyncgenfunction(f)
        ):
            raise ArgumentError(
                f"autocast: only a function that returns results can be decorated, got {f!r}"
            )

        @functools.wraps(f)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with autocast(self._dtype, enabled=self._enabled):
                return f(*args, **kwargs)

        return call

    def _derive(self, below: Context) -> Context:
        """Return ``below`` with the dtype of this block."""
        return below.replace(autocast=self._chosen)

    def _choose(self) -> DType:
        context = current_context()
        device = context.device or engine_of(context).open(None)
        candidates = _NARROW if self._dtype is None else (self._dtype,)
        for dtype in candidates:
            if device.home(dtype) is not None:
                return dtype
        names = " nor ".join(dtype.name for dtype in candidates)
        raise DTypeError(f"autocast: backend {device.name!r} has no {names}")


_NARROW: Final = sorted(
    (dtype for dtype in dt.FLOATING if dtype.bits == 16), key=lambda dtype: dtype.max, reverse=True
)
"""bfloat16, which does not overflow where float32 does not, and float16."""
