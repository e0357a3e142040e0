"""What kernels do with padding: rules that compare a call with the same call at padded sizes.

A padded value holds the exact one as its first elements along each axis, followed by anything at
all: axes are padded where the two sizes differ. A rule says whether the results of the padded call
begin with those of the exact call, and which inputs must first be masked along an axis, because
their padding would take part. Kernels without a rule are judged by their decompositions
(``compile.dynamic.alignment``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tensorplug.contract.expressions import parameter
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.keys import freeze_attributes
from tensorplug.engine.operands import flatten
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tensorplug.contract.dtypes import Scalar
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.engine.plans import Plan


Pair: TypeAlias = tuple[int, int]
"""An exact size and the padded one."""


class Mask(NamedTuple):
    """Padding of one input along one axis that must become ``neutral``.

    ``input``: its position among the tensors of the call, those in lists included.
    """

    input: int
    axis: int
    neutral: Scalar


class RefusedError(Exception):
    """A call does not allow padding; the message says why."""


class Case:
    """A call at exact sizes, and the same call at padded sizes.

    ``inputs``, ``outputs``: the sizes of each tensor that is given or returned, by axis.
    ``known``: reads the data of an input at exact sizes; None if they depend on arguments.

    Raises:
        RefusedError: tensors differ in dtype or rank.

    """

    def __init__(
        self, exact: Plan, padded: Plan, known: Sequence[Callable[[], Any] | None]
    ) -> None:
        self.exact = exact
        self.padded = padded
        self.attributes: dict[str, Any] = exact.attributes
        self.known = known
        self.types: list[TensorType] = flatten(exact.inputs)
        both = zip(self.types, flatten(padded.inputs), strict=True)
        self.inputs: list[list[Pair]] = [_pairs(a, b) for a, b in both]
        outputs = zip(exact.outputs, padded.outputs, strict=True)
        self.outputs: list[list[Pair]] = [_pairs(a.type, b.type) for a, b in outputs]

    def are_places(self, at: int, axes: Sequence[Pair]) -> bool:
        """Return whether an input is known to hold indices within the exact sizes of ``axes``."""
        read = self.known[at]
        if read is None:
            return False
        data, sizes = read(), np.array([exact for exact, _ in axes])
        return bool(((data >= 0) & (data < sizes)).all())


Rule: TypeAlias = "Callable[[Case], list[Mask] | None]"
Rules: TypeAlias = "Mapping[KernelSpec, tuple[Rule, Collection[str]]]"
"""A rule for each kernel, and the attributes that may differ between the calls."""


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


def judge(case: Case, rules: Rules) -> list[Mask] | None:
    """Return the masks that a call needs; None if its decomposition must tell.

    Raises:
        RefusedError: the results do not begin with the exact ones, whatever is masked.

    """
    exact = case.exact
    rule, sizes = rules.get(exact.spec, (None, ()))
    if rule is None and _is_elementwise(exact):
        rule = elementwise
    if rule is None:
        return _by_batching(case)
    if not _same_attributes(exact, case.padded, sizes):
        raise RefusedError("an attribute depends on the size")
    return rule(case)


def _is_elementwise(plan: Plan) -> bool:
    """Return whether a kernel has an expression, or Jacobians that are diagonal."""
    rule = plan.spec.expression_rule
    if plan.spec.multiple_outputs:
        return False
    if rule is None:
        found = [plan.state.tangent(plan.spec.name, name) for name in plan.spec.input_names]
        return bool(found) and all(
            owned is not None and owned.entry.kind == "elementwise" for owned in found
        )
    operands = [
        [parameter(0, member.dtype) for member in type_]
        if isinstance(type_, list)
        else type_ and parameter(0, type_.dtype)
        for type_ in plan.inputs
    ]
    return rule(operands, plan.attributes, plan.output.type) is not None


def differ(sizes: Sequence[Pair]) -> list[int]:
    """Return the padded axes."""
    return [axis for axis, (exact, padded) in enumerate(sizes) if exact != padded]


def elementwise(case: Case) -> list[Mask]:
    """Allow a call in which each element depends on those in its place, which broadcast."""
    for sizes in case.inputs:
        check_broadcast(sizes, case.outputs[0])
    return []


def check_broadcast(sizes: Sequence[Pair], out: Sequence[Pair]) -> None:
    """Check that each axis of an input broadcasts to that of the output in the same way.

    Raises:
        RefusedError: an axis of one size has length 1, that of the other has not.

    """
    for pair, whole in zip(reversed(sizes), reversed(out), strict=False):
        if pair not in (whole, (1, 1)):
            raise RefusedError("an axis broadcasts at one of the sizes only")


# What the batching rules state ----------------------------------------------------------------


def _by_batching(case: Case) -> list[Mask] | None:
    """Judge a call by axes along which its kernel does the same; None if that is not enough."""
    exact, inputs, outputs = case.exact, case.inputs, case.outputs
    owned = exact.state.batching(exact.spec.name)
    if owned is None or not _same_attributes(exact, case.padded, ()):
        return None
    entry = owned.entry
    if entry.kind == "folded":
        batch = {at for at, name in enumerate(exact.spec.input_names) if name in entry.names}
        return [] if folds(case, batch) else None
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
        given = attributes[name]
        numbers = given if isinstance(given, tuple) else (given,)
        if any(axis < depth for axis in numbers):
            return False
        moved = tuple(axis - depth for axis in numbers)
        attributes[name] = moved if isinstance(given, tuple) else moved[0]
    try:
        _, found = plan.spec.resolve([inner(type_) for type_ in plan.inputs], attributes)
    except ArgumentError:
        return False
    return list(found) == [inner(output.type) for output in plan.outputs]


def folds(case: Case, batch: Collection[int]) -> bool:
    """Return whether no more than axis 0 of the inputs at the positions ``batch`` is padded."""
    given = case.exact.inputs
    if None in given or len(case.inputs) != len(given):
        return False  # positions of tensors are not those of inputs
    return all(
        not differ(sizes) or (differ(sizes) == [0] and at in batch)
        for at, sizes in enumerate(case.inputs)
    )
