"""Dispatch: the way from an op to a kernel.

A call whose plan is in the current context's cache runs at once (the fast path). The context's
engine handles every other call (the slow path).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from tensorplug.contract.dtypes import is_numpy_scalar
from tensorplug.dispatch.commitment import commit
from tensorplug.dispatch.context import (
    Context,
    current_context,
    engine_of,
    innermost,
    use_context,
)
from tensorplug.dispatch.keys import freeze_attributes
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.device import Device


F = TypeVar("F", bound="Callable[..., Any]")

MULTIPLE_OUTPUTS: Final = "multiple outputs"
"""Part of the keys of plans with multiple outputs, so that ``dispatch`` does not find them."""

_LISTS: Final = (list, tuple)
_NUMBERS: Final = (bool, int, float, complex)

HOST: Final = "host"  # the device name of host memory
_new: Final = object.__new__  # skips Tensor.__init__, whose checks a kernel's result does not need


def dispatch(spec: KernelSpec, /, *inputs: Any, **attributes: Any) -> Tensor:
    """Run the kernel of ``spec``, which has one output, on the current device.

    ``inputs``: one per declared input: a tensor or anything ``as_tensor`` accepts, a list for a
    variadic input, None for an absent optional input. ``attributes``: by name; others take their
    defaults.
    """
    context = innermost()
    # By trying, since a look at each operand would cost every warm call.
    try:
        placements = [operand._placement for operand in inputs]
        options = freeze_attributes(attributes) if attributes else ()
    except (AttributeError, TypeError):  # not only tensors, or unhashable attributes
        return _dispatch_lists(context, spec, inputs, attributes)
    plan = context.plans.get((spec, *placements, *options))
    if plan is None:
        return _slow_path(spec, inputs, attributes)
    try:
        buffer = plan.call(*[operand._buffer for operand in inputs])
    except BaseException as error:
        plan.annotate(error)
        raise
    tensor: Tensor = _new(plan.tensor)
    tensor._buffer = buffer
    tensor._placement = plan.output
    tensor._node = None
    if context.watched:
        context.record(plan, inputs, (tensor,))
    return tensor


def _dispatch_lists(
    context: Context, spec: KernelSpec, inputs: tuple[Any, ...], attributes: Mapping[str, Any]
) -> Tensor:
    """Do the same as ``dispatch`` if inputs are lists of tensors, or absent."""
    try:
        placements = placements_of(inputs)
        options = freeze_attributes(attributes) if attributes else ()
    except (AttributeError, TypeError):  # not tensors yet, or unhashable attributes
        return _slow_path(spec, inputs, attributes)
    plan = context.plans.get((spec, *placements, *options))
    if plan is None:
        return _slow_path(spec, inputs, attributes)
    try:
        buffer = plan.call(*buffers_of(inputs))
    except BaseException as error:
        plan.annotate(error)
        raise
    tensor: Tensor = _new(plan.tensor)
    tensor._buffer = buffer
    tensor._placement = plan.output
    tensor._node = None
    if context.watched:
        context.record(plan, _copy_lists(inputs), (tensor,))
    return tensor


def dispatch_multiple(spec: KernelSpec, /, *inputs: Any, **attributes: Any) -> list[Tensor]:
    """Run the kernel of ``spec``, which has multiple outputs; see ``dispatch``.

    ``inputs``: one per declared input; ``attributes``: by name.
    """
    if not spec.multiple_outputs:
        raise ArgumentError(f"{spec.name} has one output; call dispatch")
    context = innermost()
    plan = None
    try:
        placements = placements_of(inputs)
        options = freeze_attributes(attributes) if attributes else ()
    except (AttributeError, TypeError):
        pass
    else:
        plan = context.plans.get((spec, MULTIPLE_OUTPUTS, *placements, *options))
    if plan is None:
        context = current_context()
        tensors: list[Tensor] = engine_of(context).run(context, spec, inputs, attributes)
        return tensors
    try:
        buffers = plan.call(*buffers_of(inputs))
    except BaseException as error:
        plan.annotate(error)
        raise
    result: list[Tensor] = []
    for buffer, placement in zip(buffers, plan.outputs, strict=True):
        tensor: Tensor = _new(plan.tensor)
        tensor._buffer = buffer
        tensor._placement = placement
        tensor._node = None
        result.append(tensor)
    if context.watched:
        context.record(plan, _copy_lists(inputs), result)
    return result


def placements_of(inputs: Sequence[Any]) -> list[Any]:
    """Return the placements of inputs for a plan's key: a tuple for a list, None if absent."""
    return [
        tuple([tensor._placement for tensor in operand])
        if operand.__class__ in _LISTS
        else None
        if operand is None
        else operand._placement
        for operand in inputs
    ]


def buffers_of(inputs: Sequence[Any]) -> list[Any]:
    """Return the buffers of inputs for a native kernel: a list for a list, None if absent."""
    return [
        [tensor._buffer for tensor in operand]
        if operand.__class__ in _LISTS
        else None
        if operand is None
        else operand._buffer
        for operand in inputs
    ]


def _copy_lists(inputs: tuple[Any, ...]) -> list[Any]:
    """Return the inputs with copies of lists, which the caller could change later."""
    return [list(operand) if operand.__class__ in _LISTS else operand for operand in inputs]


_NONE: Final[Mapping[str, Any]] = {}

# The next two functions specialize `dispatch` for the most frequent calls: a hit in the plan
# cache costs one dictionary look-up.


def dispatch_unary(spec: KernelSpec, x: Any, /) -> Tensor:
    """Run a kernel of one input and no attributes."""
    context = innermost()
    try:
        plan = context.plans.get((spec, x._placement))
    except AttributeError:  # not a tensor yet
        plan = None
    if plan is None:
        return _slow_path(spec, (x,))
    try:
        buffer = plan.call(x._buffer)
    except BaseException as error:
        plan.annotate(error)
        raise
    tensor: Tensor = _new(plan.tensor)
    tensor._buffer = buffer
    tensor._placement = plan.output
    tensor._node = None
    if context.watched and (x._node is not None or context.scope is not None):
        context.record(plan, (x,), (tensor,))
    return tensor


def dispatch_binary(spec: KernelSpec, a: Any, b: Any, /) -> Tensor:
    """Run a kernel of two inputs and no attributes."""
    context = innermost()
    try:
        plan = context.plans.get((spec, a._placement, b._placement))
    except AttributeError:  # one of them is not a tensor yet
        return _dispatch_scalar(context, spec, a, b)
    if plan is None:
        return _slow_path(spec, (a, b))
    try:
        buffer = plan.call(a._buffer, b._buffer)
    except BaseException as error:
        plan.annotate(error)
        raise
    tensor: Tensor = _new(plan.tensor)
    tensor._buffer = buffer
    tensor._placement = plan.output
    tensor._node = None
    if context.watched and (
        a._node is not None or b._node is not None or context.scope is not None
    ):
        context.record(plan, (a, b), (tensor,))
    return tensor


def dispatch_cached(key: Hashable, /, *inputs: Any) -> Tensor | None:
    """Run the plan that ``Device.add_key`` stored under ``key``; return None without one."""
    context = innermost()
    plan = context.plans.get(key)
    return None if plan is None else dispatch_planned(context, plan, inputs)


def dispatch_planned(context: Context, plan: Any, inputs: Sequence[Any]) -> Tensor:
    """Run a native plan with one output on ``inputs``, which have the plan's types."""
    try:
        buffer = plan.call(*[operand._buffer for operand in inputs])
    except BaseException as error:
        plan.annotate(error)
        raise
    tensor: Tensor = _new(plan.tensor)
    tensor._buffer = buffer
    tensor._placement = plan.output
    tensor._node = None
    if context.watched:
        context.record(plan, inputs, (tensor,))
    return tensor


def _dispatch_scalar(context: Context, spec: KernelSpec, a: Any, b: Any) -> Tensor:
    """Run a kernel of a tensor and a scalar, which becomes a constant."""
    engine = engine_of(context)
    if b.__class__ in _NUMBERS and hasattr(a, "_placement"):
        return dispatch_binary(spec, a, engine.constant(context, spec, 1, b, a))
    if a.__class__ in _NUMBERS and hasattr(b, "_placement"):
        return dispatch_binary(spec, engine.constant(context, spec, 0, a, b), b)
    if is_numpy_scalar(b) and hasattr(a, "_placement"):
        return dispatch_binary(spec, a, engine.constant(context, spec, 1, b, a))
    if is_numpy_scalar(a) and hasattr(b, "_placement"):
        return dispatch_binary(spec, engine.constant(context, spec, 0, a, b), b)
    return _slow_path(spec, (a, b))


def as_constant(spec: KernelSpec, position: int, value: Any, peer: Any) -> Any:
    """Return a scalar as a constant tensor; return any other value unchanged.

    ``value`` is input ``position`` of a call. Its dtype follows that of ``peer``, another input.
    """
    if hasattr(peer, "_placement") and (value.__class__ in _NUMBERS or is_numpy_scalar(value)):
        context = innermost()
        if not context.plans:
            context = current_context()
        return engine_of(context).constant(context, spec, position, value, peer)
    return value


def _slow_path(
    spec: KernelSpec,
    inputs: tuple[Any, ...],
    attributes: Mapping[str, Any] = _NONE,
) -> Tensor:
    if spec.multiple_outputs:
        raise ArgumentError(f"{spec.name} has multiple outputs; call dispatch_multiple")
    tensors = _read_variables(inputs)
    if tensors is not None:
        if len(tensors) == 2 and not attributes:
            return dispatch_binary(spec, tensors[0], tensors[1])
        return dispatch(spec, *tensors, **attributes)
    context = current_context()  # not that of the fast path, which may have been left elsewhere
    result: Tensor = engine_of(context).run(context, spec, inputs, attributes)
    return result


def _read_variables(inputs: tuple[Any, ...]) -> list[Any] | None:
    """Return the inputs of a call with tensors for variables; None if there are no variables.

    Each variable is read once, since another thread may assign to it meanwhile.
    """
    read: dict[int, Any] = {}
    tensors = []
    for operand in inputs:
        tensor = operand
        if getattr(operand.__class__, "_reading", None) is not None:
            tensor = read.get(id(operand))
            if tensor is None:
                tensor = read[id(operand)] = operand._reading()
        tensors.append(tensor)
    return tensors if read else None


def as_tensor(value: Any, dtype: DType | None = None, *, what: str = "the argument") -> Tensor:
    """Return ``value`` as a tensor: on the current device, or where it is committed.

    ``dtype``: of the result; None leaves it to the value. ``what`` names the value in messages:
    ``"squeeze: x"``.

    Raises:
        DisposedError: the tensor was disposed.
        ArgumentError, DTypeError, ShapeError: the value is not an array of numbers.

    """
    if dtype is None and is_here(value):  # the most frequent case
        tensor: Tensor = value
        return tensor
    context = current_context()
    return engine_of(context).convert(context, value, dtype, what)


def is_here(value: Any) -> bool:
    """Return whether ``value`` is a live tensor that a call in this context takes as it is.

    It is on the current device, or committed to its own. With observers the answer may be False.
    """
    if value.__class__ is not Tensor:
        return False
    placement = value._placement
    device: Device | None = placement.device  # None: it was disposed
    if device is None or device.closed:
        return False
    context = innermost()
    return (
        device.plans is context.plans
        or placement.committed
        or (context.autocast is not None and device.caches(context.autocast)[0] is context.plans)
    )


def run_on(device: Any, make: Callable[[], Tensor]) -> Tensor:
    """Return the result of ``make`` as a tensor committed to ``device``.

    It is computed there; for ``"host"``, where no kernel runs, on the active device, as with None,
    which leaves the result where it is.
    """
    return make() if device is None else to_device(compute_at(device, make), device)


def compute_at(device: Any, make: Callable[[], Tensor]) -> Tensor:
    """Call ``make`` with ``device`` as the active device; this commits nothing."""
    if isinstance(device, str) and device == HOST:  # where no kernel runs
        return to_device(make(), device)
    context = current_context()
    with use_context(context.replace(device=engine_of(context).open(device))):
        return make()


def to_device(tensor: Tensor, device: str) -> Tensor:
    """Return ``tensor`` committed to ``device``, still connected to the tape."""
    context = current_context()
    return engine_of(context).convert(context, tensor, None, "to", device=device)


def run_near(x: Any, device: str | None, make: Callable[[], Tensor]) -> Tensor:
    """Call ``make`` on ``device``; None: where ``x`` is, if that is a tensor, and as committed."""
    placement = getattr(x, "_placement", None)
    if device is None and placement is not None and placement.device is not None:
        context = current_context()
        active = context.device or engine_of(context).open(None)
        made = make() if active.can_use(placement) else compute_at(x.device, make)
        return commit(made) if placement.committed else made
    return run_on(device, make)


def chained(function: F) -> F:
    """Mark ``function``, an op, as a method of ``Tensor``, which the package attaches."""
    function.__tensorplug_chained__ = True  # type: ignore[attr-defined]  # functions take attributes
    return function
