"""Running calls of narrow floats and small integers in a wider dtype (docs/adr/0033, 0088).

A kernel that only has float32 serves float16 and bfloat16 as well: its inputs are cast to the
dtype in which to compute, and its results are rounded once. Such a call is a decomposition into
the kernel Cast and the same kernel, so programs and groups hold its three steps.

Integers of 8 and 16 bits go through int32 on a backend that says so (``Widens``): results that are
cut to fewer bits wrap as they should. A kernel with a decomposition is decomposed instead, since
its definition may name limits of the dtype.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from tensorplug.contract import dtypes as dt
from tensorplug.contract.entries import DecompositionEntry
from tensorplug.contract.owner import Owner
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.engine.registry import Owned
from tensorplug.ops.elementwise.casting import CAST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.entries import KernelEntry
    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug.dispatch.device import Device, Placement
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.registry import State


_OWNER: Final = Owner("tensorplug")
_SMALL: Final = frozenset({dt.int8, dt.int16, dt.uint8, dt.uint16})


class Call(Protocol):
    """The members of a plan that matter here."""

    spec: KernelSpec
    attributes: dict[str, Any]
    device: Device
    inputs: list[Any]
    outputs: tuple[Placement, ...]
    state: State

    def operand_types(self) -> Sequence[TensorType]:
        """Return the types of the inputs and outputs."""


def find_decomposition(plan: Call) -> Owned[DecompositionEntry] | None:
    """Return how a call runs without a kernel of its own: in a wider dtype, or decomposed."""
    if wide_dtypes(plan):
        return Owned(DecompositionEntry(plan.spec, _widen(plan), (), reads=()), _OWNER)
    return plan.state.decomposition(plan.spec.name)


def unsupported_dtype(plan: Call, dtypes: frozenset[DType] | None) -> str:
    """Return the name of the call's dtype if an entry for ``dtypes`` does not serve it."""
    if dtypes is None:
        return ""
    dtype = plan.spec.dtype_of(plan.inputs, [placement.type for placement in plan.outputs])
    return "" if dtype in dtypes else dtype.name


def computed(spec: KernelSpec, device: Device, state: State, dtype: DType) -> DType:
    """Return the dtype in which a call computes with ``dtype`` without a kernel of its own.

    It is ``dtype`` itself where the call does not widen.
    """
    if spec.exact:
        return dtype
    wide = dtype.compute
    if dtype in _SMALL and dtype in device.capabilities.widens:
        wide = dt.int32 if state.decomposition(spec.name) is None else dtype
    return wide if wide in device.dtypes else dtype


def is_left(spec: KernelSpec, device: Device, state: State, dtype: DType) -> bool:
    """Return whether a backend leaves ``dtype`` to the core, but for kernels that name it."""
    return dtype in device.capabilities.widens and (
        (dtype in _SMALL and not spec.exact) or computed(spec, device, state, dtype) is not dtype
    )


def wide_dtypes(plan: Call) -> frozenset[DType]:
    """Return the dtypes in which a call computes without a kernel; none if it does not widen."""
    wide = set()
    for type_ in plan.operand_types():
        dtype = type_.dtype
        if dtype.compute is not dtype or dtype in _SMALL:
            chosen = computed(plan.spec, plan.device, plan.state, dtype)
            if chosen is not dtype:
                wide.add(chosen)
    return frozenset(wide)


def is_asked(
    entry: KernelEntry | None, plan: Call, types: Sequence[TensorType] | None = None
) -> bool:
    """Return whether a backend, by its kernel if it has one, may serve the dtypes of a call.

    ``types``: those of the call, where they are known.

    It may not if it leaves one of them to the core, unless the kernel names its dtypes.
    """
    if entry is not None and entry.dtypes is not None:
        return True
    known = plan.operand_types() if types is None else types
    left = plan.device.capabilities.widens
    for type_ in known:
        dtype = type_.dtype
        if dtype in left and is_left(plan.spec, plan.device, plan.state, dtype):
            return False
    return True


def _widen(plan: Call) -> Callable[..., Any]:
    """Return a function of tensors that runs a call in wider dtypes, and rounds its results."""
    spec, dtypes = plan.spec, [placement.type.dtype for placement in plan.outputs]
    wide = partial(computed, spec, plan.device, plan.state)
    attributes = {
        name: wide(value) if isinstance(value, dt.DType) else value
        for name, value in plan.attributes.items()
    }

    def cast_in(operand: Any) -> Any:
        if isinstance(operand, list):
            return [cast_in(member) for member in operand]
        return None if operand is None else _cast(operand, wide(operand.dtype))

    def widened(*operands: Any) -> Any:
        inputs = [cast_in(operand) for operand in operands]
        if spec.multiple_outputs:
            outputs = dispatch_multiple(spec, *inputs, **attributes)
            return [_cast(x, dtype) for x, dtype in zip(outputs, dtypes, strict=True)]
        return _cast(dispatch(spec, *inputs, **attributes), dtypes[0])

    return widened


def _cast(x: Tensor, dtype: DType) -> Tensor:
    return x if x.dtype is dtype else dispatch(CAST, x, dtype=dtype)
