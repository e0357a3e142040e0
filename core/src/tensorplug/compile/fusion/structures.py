"""Programs that differ in sizes alone have the same groups, so these are found once (ADR 57).

The key of a program says all that its groups depend on: the calls and what connects them, dtypes,
which sizes are equal and which are 1, the order of the values by their numbers of elements, and
which of these reach the limits that ``groups`` asks for. A group of a program with a known key
takes its lengths and types from that program, and everything else from the known group, whose
expressions are the same objects: a backend finds by them what it has compiled.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.compile.fusion.arguments import make_count
from tensorplug.compile.fusion.forming import joined
from tensorplug.compile.fusion.reuse import LEAST
from tensorplug.compile.fusion.steps import describe, is_general
from tensorplug.compile.tracing.values import Constant
from tensorplug.contract.dtypes import STORAGE, string
from tensorplug.contract.groups import Group, GroupInput, GroupOutput
from tensorplug.errors import KernelRefusedError
from tensorplug.system.foreign_text import message_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

    from tensorplug.compile.fusion.steps import Steps
    from tensorplug.compile.tracing.calls import Call
    from tensorplug.compile.tracing.sizes import Sizes
    from tensorplug.contract.backend import CompilesGroups
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType

    Answer = tuple[Callable[..., Any] | None, str]

KEPT = 256
"""The number of programs of one device whose groups are known."""


class FusedCall(NamedTuple):
    """Calls that run as one, at the place of the last of them.

    ``run`` takes the buffers of ``inputs`` and returns those of ``outputs``. ``loops``: the shape
    whose axes are those of the group, some of them joined, as ``axes`` says.
    """

    group: Group
    members: list[int]
    inputs: list[Any]
    outputs: list[Any]
    run: Callable[..., Any]
    loops: Shape
    axes: list[list[int]]


class _Count(NamedTuple):
    """A number of elements: the product of the sizes with these numbers."""

    sizes: tuple[int, ...]
    dtype: DType


class _Known(NamedTuple):
    """A group without lengths; ``inputs``, ``outputs``: the numbers of operands.

    ``loops``: the number of an operand with the shape of the loops.
    """

    group: Group
    members: list[int]
    inputs: list[int | _Count]
    outputs: list[int]
    loops: int
    axes: list[list[int]]


class Structure(NamedTuple):
    """The groups of all programs with one key; ``alone``: why other calls are in none."""

    groups: list[_Known]
    alone: Mapping[int, str]

    def bind(self, backend: CompilesGroups, keyed: Keyed) -> list[FusedCall] | None:
        """Return the groups for the sizes of a program; None if the backend declines one."""
        operands = keyed.operands
        counts: dict[_Count, Constant] = {}
        for each in [source for known in self.groups for source in known.inputs]:
            if isinstance(each, _Count) and each not in counts:
                counts[each] = keyed.make(each)
        bound: list[FusedCall] = []
        asked: dict[Group, Answer] = {}
        for known in self.groups:
            inputs = [
                operands[each] if isinstance(each, int) else counts[each] for each in known.inputs
            ]
            outputs = [operands[at] for at in known.outputs]
            loops = operands[known.loops].placement.type.shape
            group = _with_types(known.group, joined(loops, known.axes), inputs, outputs)
            run, _ = ask(backend, group, asked)
            if run is None:
                return None
            bound.append(
                FusedCall(group, list(known.members), inputs, outputs, run, loops, known.axes)
            )
        return bound


def ask(backend: CompilesGroups, group: Group, asked: dict[Group, Answer]) -> Answer:
    """Return the function of a group, or None and why the backend declines it.

    ``asked``: the answers for a program's other groups. A model's layers have equal ones.
    """
    answer = asked.get(group)
    if answer is None:
        try:
            answer = backend.compile_group(group), "declined by the backend"
        except KernelRefusedError as error:
            answer = None, f"declined by the backend: {message_of(error)}"
        asked[group] = answer
    return answer


def _with_types(
    group: Group, shape: Shape, inputs: Sequence[Any], outputs: Sequence[Any]
) -> Group:
    """Return a group for other operands. ``dataclasses.replace`` takes thrice as long."""
    sources = [
        GroupInput(operand.placement.type, end.spans, end.index, end.outside)
        for end, operand in zip(group.inputs, inputs, strict=True)
    ]
    results = [
        GroupOutput(
            end.expression,
            operand.placement.type,
            end.spans,
            end.into,
            end.index,
            end.combine,
            end.initial,
        )
        for end, operand in zip(group.outputs, outputs, strict=True)
    ]
    return Group(group.name, shape, tuple(sources), group.reductions, tuple(results), group.folds)


class Keyed(NamedTuple):
    """The key of a program, and its operands in the order in which the key names them.

    ``sizes``: the number of each size.
    """

    key: Hashable
    operands: list[Any]
    sizes: Mapping[int, int]

    def at(self, sizes: Sizes, values: Mapping[Any, Any]) -> Keyed:
        """Return the same for other sizes; ``values``: the operands there."""
        operands = [values.get(operand, operand) for operand in self.operands]
        numbers = {sizes.new[size]: number for size, number in self.sizes.items()}
        return Keyed(self.key, operands, numbers)

    def make(self, of: _Count) -> Constant:
        """Return a number of elements of this program."""
        sizes = {number: size for size, number in self.sizes.items()}
        device = self.operands[0].placement.device
        return make_count(device, tuple([sizes[number] for number in of.sizes]), of.dtype)

    def structure(
        self,
        fused: Sequence[FusedCall],
        alone: Mapping[int, str],
        counts: Mapping[Any, Shape],
    ) -> Structure:
        """Return the groups that were found for this program, for all with its key.

        ``counts``: the sizes, each of an operand, whose products are inputs.
        """

        def number(source: Any) -> int | _Count:
            if source not in counts:
                return numbers[source]
            sizes = [self.sizes[size] for size in counts[source]]
            return _Count(tuple(sizes), source.placement.type.dtype)

        numbers = {operand: at for at, operand in enumerate(self.operands)}
        shapes: dict[Shape, int] = {}
        for at, operand in enumerate(self.operands):
            shapes.setdefault(operand.placement.type.shape, at)
        return Structure(
            [
                _Known(
                    each.group,
                    each.members,
                    [number(source) for source in each.inputs],
                    [numbers[operand] for operand in each.outputs],
                    shapes[each.loops],
                    each.axes,
                )
                for each in fused
            ],
            alone,
        )


def find_key(
    calls: Sequence[Call],
    wanted: Collection[Any],
    owned: Collection[Any],
    *,
    arguments: Mapping[Constant, Constant],
    least: int,
    small: bool,
) -> Keyed | None:
    """Return the key of a program; None if a size is 0, or an attribute is not hashable.

    ``arguments``: what ``find_arguments`` returns; ``least``: ``least_group`` of the backend; the
    others are those of ``groups.fuse``.
    """
    writer = _Writer(owned, arguments)
    key: list[Hashable] = []
    try:
        for call in calls:
            inputs = [
                tuple([writer.number(member) for member in operand])
                if isinstance(operand, list)
                else None
                if operand is None
                else writer.number(operand)
                for operand in call.inputs
            ]
            outputs = [writer.number(output) for output in call.outputs]
            key.append((describe(call.plan), *inputs, None, *outputs))
    except (TypeError, ValueError):
        return None
    results = tuple([at for at, operand in enumerate(writer.operands) if operand in wanted])
    whole = small, tuple(key), tuple(writer.described), results, order(writer.shapes(), least)
    return Keyed(whole, writer.operands, writer.sizes)


def has_step(steps: Steps, call: Call) -> bool:
    """Return whether a call may be part of a group."""
    keyed = find_key([call], (), (), arguments={}, least=0, small=False)
    known = call.plan.device.structures
    key = None if keyed is None else ("a step", keyed.key)  # among the structures of programs
    found: bool | None = None if key is None else known.get(key)
    if found is None:
        step = steps.find(call.plan)
        found = step is not None
        if key is not None and is_general(call.plan, step):
            call.plan.device.remember(known, key, found, KEPT)
    return found


class _Writer:
    """Numbers the operands of a program, and describes them without their sizes."""

    def __init__(self, owned: Collection[Any], arguments: Mapping[Any, Constant]) -> None:
        self.operands: list[Any] = []
        self.described: list[Hashable] = []
        self.sizes: dict[int, int] = {1: 1}
        self._owned, self._arguments = owned, arguments
        self._numbers: dict[Any, int] = {}
        self._patterns: dict[Shape, Hashable] = {}

    def number(self, operand: Any) -> int:
        """Return the number of an operand.

        Raises:
            ValueError: it has no elements.

        """
        at = self._numbers.get(operand)
        if at is None:
            at = self._numbers[operand] = len(self.operands)
            self.operands.append(operand)
            self.described.append(self._describe(operand))
        return at

    def _describe(self, operand: Any) -> Hashable:
        placement = operand.placement
        type_: TensorType = placement.type
        constant: Hashable = None
        if operand.__class__ is Constant:
            element = self._arguments.get(operand)
            if element is None:
                constant = read_number(operand)
            else:
                constant = "argument", element is operand or self.number(element)
        return (
            type_.dtype,
            self._pattern(type_.shape),
            placement.device.is_real and placement.device.name,
            type_.nbytes >= LEAST,
            operand in self._owned,
            constant,
        )

    def _pattern(self, shape: Shape) -> Hashable:
        """Return a shape with a number for each size: equal ones for equal sizes."""
        known = self._patterns.get(shape)
        if known is None:
            if 0 in shape:
                raise ValueError("an operand without elements")
            sizes = self.sizes
            known = tuple([sizes.setdefault(size, len(sizes) + 1) for size in shape])
            self._patterns[shape] = known
        return known

    def shapes(self) -> Iterable[Shape]:
        """Return the different shapes of the operands."""
        return self._patterns


def order(shapes: Iterable[Shape], least: int) -> Hashable:
    """Return the order of shapes by their numbers of elements, and which are large."""
    elements = [prod(shape) for shape in shapes]
    places = {size: at for at, size in enumerate(sorted({*elements}))}
    return tuple([(places[size], size >= least) for size in elements])


def read_number(constant: Constant) -> Hashable:
    """Return the number that all elements of a constant are, as it stands in expressions.

    True if they are no number, or not one.
    """
    if constant.placement.type.dtype in STORAGE or constant.placement.type.dtype is string:
        return True
    number = constant.number()
    return True if number is None else repr(number)
