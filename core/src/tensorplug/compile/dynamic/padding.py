"""What padding does to a call: by the spec's rule, by its other facts, or by the decomposition.

See ``contract.padding``, and ``compile.dynamic.alignment`` for decompositions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.padding import (
    PaddedCall,
    Padding,
    RefusedError,
    differ,
    elementwise,
    folds,
)
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.keys import freeze_attributes
from tensorplug.engine.operands import flatten
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tensorplug.contract.padding import Mask, Pair
    from tensorplug.engine.plans import Plan


def _pairs(exact: TensorType, padded: TensorType) -> list[Pair]:
    """Return the sizes of both types by axis.

    Raises:
        RefusedError: they differ in dtype or rank.

    """
    if exact.dtype is not padded.dtype or exact.rank != padded.rank:
        raise RefusedError("a dtype or a rank depends on the size")
    return list(zip(exact.shape, padded.shape, strict=True))


def same_call(exact: Plan, padded: Plan) -> bool:
    """Return whether two calls of one kernel are the same, with the same types."""
    return (
        exact.inputs == padded.inputs
        and [output.type for output in exact.outputs] == [output.type for output in padded.outputs]
        and _same_attributes(exact, padded, ())
    )


def _same_attributes(exact: Plan, padded: Plan, sizes: Collection[str]) -> bool:
    """Return whether all attributes are equal but ``sizes``."""

    def rest(plan: Plan) -> Any:
        return freeze_attributes({k: v for k, v in plan.attributes.items() if k not in sizes})

    try:
        return bool(rest(exact) == rest(padded))
    except TypeError:  # a value that is not hashable
        return False


def judge(
    exact: Plan, padded: Plan, known: Sequence[Callable[[], Any] | None]
) -> list[Mask] | None:
    """Return the masks that a call needs; None if its decomposition must tell.

    ``known``: reads the data of an input at exact sizes; None if they depend on arguments.

    Raises:
        RefusedError: tensors differ in dtype or rank, or the results do not begin with the exact
            ones, whatever is masked.

    """
    types: list[TensorType] = flatten(exact.inputs)
    call = PaddedCall(
        exact.attributes,
        padded.attributes,
        types,
        [_pairs(a, b) for a, b in zip(types, flatten(padded.inputs), strict=True)],
        [_pairs(a.type, b.type) for a, b in zip(exact.outputs, padded.outputs, strict=True)],
        known,
    )
    padding = exact.spec.padding_rule
    if padding is None and _is_elementwise(exact):
        padding = Padding(elementwise)
    if padding is None:
        return _by_batching(exact, padded, call)
    if not _same_attributes(exact, padded, padding.sizes):
        raise RefusedError("an attribute depends on the size")
    return padding.rule(call)


def _is_elementwise(plan: Plan) -> bool:
    """Return whether all Jacobians are stated to be diagonal."""
    tangents = [plan.state.tangent(plan.spec.name, name) for name in plan.spec.input_names]
    return bool(plan.spec.elementwise) or (
        bool(tangents)
        and all(owned is not None and owned.entry.kind == "elementwise" for owned in tangents)
    )


def _by_batching(exact: Plan, padded: Plan, call: PaddedCall) -> list[Mask] | None:
    """Judge a call by axes along which its kernel does the same; None if that is not enough."""
    inputs, outputs = call.inputs, call.outputs
    owned = exact.state.batching(exact.spec.name)
    if owned is None or not _same_attributes(exact, padded, ()):
        return None
    entry = owned.entry
    if entry.kind == "folded":
        if None in exact.inputs or len(inputs) != len(exact.inputs):
            return None  # positions of tensors are not those of inputs
        batch = {at for at, name in enumerate(exact.spec.input_names) if name in entry.names}
        return [] if folds(call, batch) else None
    decomposition = exact.state.decomposition(exact.spec.name)
    if entry.kind != "leading" or decomposition is None or decomposition.entry.on_host:
        return None  # a function of the host may refuse what the padding holds
    depth = 1 + max(axis for sizes in (*inputs, *outputs) for axis in differ(sizes))
    front = outputs[0][:depth]
    if any(len(sizes) < depth or sizes[:depth] != front for sizes in (*inputs, *outputs)):
        return None
    return [] if _is_leading(exact, entry.names, depth) else None


def _is_leading(plan: Plan, axes: Collection[str], depth: int) -> bool:
    """Return whether the kernel takes the same call without the first axes, ``depth`` of them."""

    def inner(type_: Any) -> Any:
        if isinstance(type_, list):
            return [inner(member) for member in type_]
        return type_ and TensorType(type_.dtype, type_.shape[depth:])

    attributes = dict(plan.attributes)
    for name in axes:
        axis_or_axes = attributes[name]
        numbers = axis_or_axes if isinstance(axis_or_axes, tuple) else (axis_or_axes,)
        if any(axis < depth for axis in numbers):
            return False
        moved = tuple(axis - depth for axis in numbers)
        attributes[name] = moved if isinstance(axis_or_axes, tuple) else moved[0]
    try:
        _, types = plan.spec.resolve([inner(type_) for type_ in plan.inputs], attributes)
    except ArgumentError:
        return False
    return list(types) == [inner(output.type) for output in plan.outputs]
