"""Channels last between convolutions: Transposes move past other calls, until they cancel out.

Backends compute convolutions on images with channels last. One with channels first becomes one
with channels last between two Transposes. These, and the function's own, are put off as long as
calls can run in the other order of axes: elementwise calls, joining, slicing, padding, reductions,
and Reshapes that only split or merge axes. Most meet another Transpose there and vanish. A matrix
product takes transposed matrices as they are.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final, TypeAlias

from tensorplug.compile.fusion.arrangements import (
    Arrangements,
    composed,
    inverse,
    is_identity,
    shape_of,
)
from tensorplug.compile.fusion.reshapes import moved
from tensorplug.compile.fusion.steps import Composite, Elementwise, Steps
from tensorplug.compile.tracing.calls import Call
from tensorplug.compile.tracing.values import Constant, Value
from tensorplug.contract.windows import channel_axis
from tensorplug.ops import extents, joining, matrix_products, movement, reduction
from tensorplug.ops.indexing import slicing
from tensorplug.ops.nn import fused
from tensorplug.ops.nn.convolution import convolution, depthwise, dilated_pooling, volumes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.compile.tracing.calls import Operand as Input
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.engine.engine import Engine


Operand: TypeAlias = Value | Constant
Rule: TypeAlias = "Callable[[Arrangements, Call], bool]"

_FAMILIES: Final = (convolution.FAMILY, depthwise.FAMILY, volumes.FAMILY)
_CONVOLUTIONS: Final[dict[KernelSpec, tuple[int, bool]]] = {
    **{family.forward: (1, True) for family in _FAMILIES},
    **{family.backprop_input: (1, True) for family in _FAMILIES},
    **{family.backprop_filter: (2, False) for family in _FAMILIES},
    fused.FUSED_CONV2D: (1, True),
    fused.FUSED_DEPTHWISE_CONV2D: (1, True),
}
"""How many of the first inputs are images, and whether the output is one."""


def choose_layouts(
    engine: Engine, calls: Sequence[Call], wanted: Sequence[Operand]
) -> tuple[list[Call], list[Operand]]:
    """Return a program's calls and results with fewer Transposes; the same ones if there are none.

    In programs without convolutions and pooling, only products take Transposes.
    """
    unchanged = list(calls), list(wanted)
    windowed = find_windowed(calls)
    rules = _RULES if windowed else _OF_PRODUCTS
    decisive = windowed or [
        call for call in calls if call.plan.spec is matrix_products.BATCH_MAT_MUL
    ]
    if not decisive:
        return unchanged
    new = Arrangements(engine, decisive[0].plan.device)
    steps = Steps(engine)
    for call in calls:
        rule = rules.get(call.plan.spec)
        if rule is None and windowed and _is_elementwise(steps, call):
            rule = _elementwise
        if rule is None or not rule(new, call):
            inputs = [_plain(new, operand) for operand in call.inputs]
            new.calls.append(Call(call.plan, inputs, call.outputs, call.site))
    results = [new.plain(value) for value in wanted]
    # A Transpose that is put off may end up where it moves more elements, so all are counted.
    if new.cost >= sum(map(_cost, calls)):
        return unchanged
    return new.calls, results


def find_windowed(calls: Sequence[Call]) -> list[Call]:
    """Return the convolutions and poolings, for which layouts are chosen, by sizes."""
    return [call for call in calls if call.plan.spec in _WINDOWED]


def _plain(new: Arrangements, operand: Input) -> Input:
    if isinstance(operand, list):
        return [new.plain(member) for member in operand]
    return None if operand is None else new.plain(operand)


def _cost(call: Call) -> int:
    """Return how many elements a call moves to another order, in itself or for the kernel."""
    spec = call.plan.spec
    if spec is movement.TRANSPOSE:
        return prod(shape_of(call.outputs[0]))
    if spec not in _CONVOLUTIONS or _is_channels_last(call):
        return 0
    count, is_image = _CONVOLUTIONS[spec]
    images = [*call.operands()[:count], *(call.outputs if is_image else ())]
    return sum(prod(shape_of(image)) for image in images)


def _is_channels_last(call: Call) -> bool:
    data_format = call.plan.attributes["data_format"]
    return channel_axis(data_format) == len(data_format) - 1


def _transpose(new: Arrangements, call: Call) -> bool:
    (x,) = call.operands()
    source, perm = new.form(x)
    new.define(call.outputs[0], source, composed(perm, call.plan.attributes["perm"]))
    return True


def _convolution(new: Arrangements, call: Call) -> bool:
    plan = call.plan
    if _is_channels_last(call):
        return False
    count, is_image = _CONVOLUTIONS[plan.spec]
    for end in call.inputs[2:]:  # a vector has one number for each channel, in either order
        if isinstance(end, Value | Constant) and len(shape_of(end)) > 1:
            return False
    data_format = plan.attributes["data_format"]
    rank = len(data_format)
    to_first = (0, rank - 1, *range(1, rank - 1))  # of channels that are last
    to_last = inverse(to_first)
    inputs: list[Input] = []
    for at, operand in enumerate(call.inputs):
        if at < count and isinstance(operand, Value | Constant):
            inputs.append(new.turned(operand, to_first))
        else:
            inputs.append(_plain(new, operand))
    attributes = {**plan.attributes, "data_format": data_format.replace("C", "") + "C"}
    for name in ("pad", "input_shape"):
        if name in attributes:
            attributes[name] = tuple(attributes[name][axis] for axis in to_last)
    outputs = new.emit(
        plan.spec, inputs, attributes, None if is_image else call.outputs, like=call, how=plan.how
    )
    if outputs and is_image:
        new.define(call.outputs[0], outputs[0], to_first)
    return bool(outputs)


def _is_elementwise(steps: Steps, call: Call) -> bool:
    """Return whether a call computes each element from those that broadcast to its place."""
    if call.plan.spec is movement.BROADCAST_TO:  # whose shape is an attribute
        return False
    step = steps.find(call.plan)
    if isinstance(step, Composite):
        return all(isinstance(inner, Elementwise) for _, inner in step.calls)
    return isinstance(step, Elementwise)


def _elementwise(new: Arrangements, call: Call) -> bool:
    shape = shape_of(call.outputs[0])
    operands = call.operands()
    whole = [x for x in operands if shape_of(x) == shape and new.is_turned(x)]
    if not whole or len(operands) != len(call.inputs):
        return False
    perm = new.form(whole[0]).perm
    # To turn the other operands must not cost more than the Transposes that it spares.
    if sum(new.price(x, perm) for x in operands) > len(whole) * prod(shape):
        return False
    return _run(new, call, [new.fitted(x, perm) for x in operands], perm)


def _run(
    new: Arrangements,
    call: Call,
    inputs: Sequence[Input],
    perm: tuple[int, ...],
    **changes: object,
) -> bool:
    """Add a call on sources, whose results have the same ``perm``."""
    plan = call.plan
    outputs = new.emit(plan.spec, inputs, {**plan.attributes, **changes}, like=call)
    for value, made in zip(call.outputs, outputs, strict=True):
        new.define(value, made, perm)
    return True


def _concat(new: Arrangements, call: Call) -> bool:
    operands = call.operands()
    turned = [x for x in operands if new.is_turned(x)]
    if not turned:
        return False
    perm = new.form(max(turned, key=lambda x: prod(shape_of(x)))).perm
    others = sum(prod(shape_of(x)) for x in operands if new.form(x).perm != perm)
    if 2 * others > sum(prod(shape_of(x)) for x in operands):
        return False
    inputs: list[Operand] = [new.turned(x, perm) for x in operands]
    return _run(new, call, [inputs], perm, axis=perm[call.plan.attributes["axis"]])


def _split(new: Arrangements, call: Call) -> bool:
    (x,) = call.operands()
    source, perm = new.form(x)
    if is_identity(perm):
        return False
    return _run(new, call, [source], perm, axis=perm[call.plan.attributes["axis"]])


def _by_axis(*names: str) -> Rule:
    """Return the rule of a call with attributes that hold one entry per axis."""

    def rule(new: Arrangements, call: Call) -> bool:
        (x,) = call.operands()
        source, perm = new.form(x)
        if is_identity(perm):
            return False
        numbered = {name: call.plan.attributes[name] for name in names}
        back = inverse(perm)
        changes = {name: tuple(value[axis] for axis in back) for name, value in numbered.items()}
        return _run(new, call, [source], perm, **changes)

    return rule


def _reduction(name: str) -> Rule:
    """Return the rule of a reduction over the axes in attribute ``name``."""

    def rule(new: Arrangements, call: Call) -> bool:
        (x,) = call.operands()
        source, perm = new.form(x)
        if is_identity(perm):
            return False
        axes = call.plan.attributes[name]
        over = tuple(sorted(perm[axis] for axis in axes))
        if call.plan.attributes["keep_dims"]:
            return _run(new, call, [source], perm, **{name: over})
        left = [axis for at, axis in enumerate(perm) if at not in axes]
        rest = tuple(sorted(left).index(axis) for axis in left)
        return _run(new, call, [source], rest, **{name: over})

    return rule


def _reshape(new: Arrangements, call: Call) -> bool:
    (x,) = call.operands()
    source, perm = new.form(x)
    way = None if is_identity(perm) else moved(shape_of(source), perm, shape_of(call.outputs[0]))
    if way is None:
        return False
    split = new.reshaped(source, way.split)
    ordered = new.turned(split, inverse(way.order))
    new.define(call.outputs[0], new.reshaped(ordered, way.merged), way.perm)
    return True


def _product(new: Arrangements, call: Call) -> bool:
    """Take matrices whose last two axes are exchanged as they are."""
    inputs, attributes = [], dict(call.plan.attributes)
    for operand, flag in zip(call.operands(), ("transpose_a", "transpose_b"), strict=True):
        source, perm = new.form(operand)
        *lead, row, column = range(len(perm))
        is_exchanged = perm == (*lead, column, row)
        inputs.append(source if is_exchanged else new.plain(operand))
        attributes[flag] ^= is_exchanged
    if attributes == call.plan.attributes:
        return False
    new.emit(call.plan.spec, inputs, attributes, call.outputs, like=call)
    return True


_OF_PRODUCTS: Final[dict[KernelSpec, Rule]] = {
    movement.TRANSPOSE: _transpose,
    matrix_products.BATCH_MAT_MUL: _product,
}
_RULES: Final[dict[KernelSpec, Rule]] = {
    **_OF_PRODUCTS,
    joining.CONCAT: _concat,
    movement.RESHAPE: _reshape,
    movement.EXPAND_DIMS: _reshape,
    extents.PAD_V2: _by_axis("paddings"),
    extents.SLICE: _by_axis("begin", "size"),
    slicing.SPLIT_V: _split,
    **dict.fromkeys((reduction.SUM, reduction.MEAN, reduction.MIN), _reduction("axis")),
    reduction.MAX: _reduction("reduction_indices"),
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
}
_WINDOWED: Final = {*_CONVOLUTIONS, dilated_pooling.POOL}
