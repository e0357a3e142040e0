"""Values of a program in another order of axes than the function has them in.

A *form* of a value is another operand, ``source``, and a permutation ``perm``, such that the value
is ``permute_dims(source, perm)``. Calls that may run on the source do, and the value itself is
computed only where some other call needs it.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tensorplug.compile.tracing.calls import Call
from tensorplug.compile.tracing.values import Constant, Value
from tensorplug.dispatch.keys import freeze, freeze_attributes
from tensorplug.dispatch.tensor import Tensor
from tensorplug.ops import movement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import How, Plan


Operand: TypeAlias = Value | Constant
Permutation: TypeAlias = tuple[int, ...]


class Form(NamedTuple):
    """The value is ``permute_dims(source, perm)``."""

    source: Operand
    perm: Permutation


def shape_of(operand: Operand) -> Shape:
    """Return the shape of an operand."""
    return operand.placement.type.shape


def inverse(perm: Permutation) -> Permutation:
    """Return the permutation that undoes ``perm``."""
    return tuple(perm.index(axis) for axis in range(len(perm)))


def composed(perm: Permutation, then: Permutation) -> Permutation:
    """Return the permutation of ``permute_dims(permute_dims(x, perm), then)``."""
    return tuple(perm[axis] for axis in then)


def is_identity(perm: Permutation) -> bool:
    """Return whether ``perm`` moves no axis."""
    return perm == tuple(range(len(perm)))


class Arrangements:
    """The calls of a new program, and the forms of its values.

    ``cost``: the elements that its Transposes move.
    """

    def __init__(self, engine: Engine, device: Device) -> None:
        self.calls: list[Call] = []
        self.cost: int = 0
        self._engine, self._device = engine, device
        self._forms: dict[Value, Form] = {}
        self._made: set[Value] = set()  # those with a form that are computed, too
        self._turned: dict[tuple[Operand, Permutation], Operand] = {}
        self._shaped: dict[tuple[Operand, Shape], Operand] = {}
        self._unshaped: dict[Operand, Operand] = {}
        self._plans: dict[object, Plan] = {}

    def form(self, operand: Operand) -> Form:
        """Return the form of an operand; its own, by the identity, if it has no other."""
        known = self._forms.get(operand) if isinstance(operand, Value) else None
        return known or Form(operand, tuple(range(len(shape_of(operand)))))

    def is_turned(self, operand: Operand) -> bool:
        """Return whether an operand has a form in another order of axes."""
        return not is_identity(self.form(operand).perm)

    def define(self, value: Value, source: Operand, perm: Permutation) -> None:
        """Let ``value`` be ``permute_dims(source, perm)``."""
        self._forms[value] = Form(source, perm)

    def plain(self, operand: Operand) -> Operand:
        """Return an operand in the function's own order, computed if it was not."""
        source, perm = self.form(operand)
        if is_identity(perm):
            return source
        assert isinstance(operand, Value)  # constants have their own form
        if operand not in self._made:
            self._made.add(operand)
            self._transpose(source, perm, operand)
        return operand

    def turned(self, operand: Operand, perm: Permutation) -> Operand:
        """Return what ``operand`` is ``permute_dims(..., perm)`` of."""
        source, own = self.form(operand)
        needed = composed(own, inverse(perm))
        if is_identity(needed):
            return source
        known = self._turned.get((source, needed))
        if known is None:
            if isinstance(source, Constant):
                known = self._computed(movement.TRANSPOSE, source, {"perm": needed})
            else:
                known = self._transpose(source, needed)
            self._turned[source, needed] = known
        return known

    def _transpose(self, source: Operand, perm: Permutation, output: Value | None = None) -> Value:
        self.cost += prod(shape_of(source))
        outputs = None if output is None else [output]
        (made,) = self.emit(movement.TRANSPOSE, [source], {"perm": perm}, outputs)
        return made

    def reshaped(self, operand: Operand, shape: Shape) -> Operand:
        """Return a computed operand in another shape."""
        operand = self._unshaped.get(operand, operand)
        if shape == shape_of(operand):
            return operand
        known = self._shaped.get((operand, shape))
        if known is None:
            if isinstance(operand, Constant):
                known = self._computed(movement.RESHAPE, operand, {"shape": shape})
            else:
                (known,) = self.emit(movement.RESHAPE, [operand], {"shape": shape})
            self._shaped[operand, shape] = known
            self._unshaped[known] = operand
        return known

    def fitted(self, operand: Operand, perm: Permutation) -> Operand:
        """Return an operand that broadcasts to a value as ``turned`` broadcasts to its source.

        Axes of length 1 in front are left out: a vector by channel becomes a vector.
        """
        shape = shape_of(operand)
        if all(length == 1 for length in shape):
            return self.plain(operand)
        if len(shape) == len(perm) and self.form(operand).perm == perm:
            return self.form(operand).source
        padded = (1,) * (len(perm) - len(shape)) + shape
        target = tuple(padded[axis] for axis in inverse(perm))
        if sum(length != 1 for length in shape) == 1:
            made = self.plain(operand)
        else:
            if len(shape) < len(perm):
                operand = self.reshaped(self.plain(operand), padded)
            made = self.turned(operand, perm)
        begin = next(at for at, length in enumerate(target) if length != 1)
        return made if shape == padded and begin == 0 else self.reshaped(made, target[begin:])

    def price(self, operand: Operand, perm: Permutation) -> int:
        """Return how many elements ``fitted`` would move in each run."""
        shape = shape_of(operand)
        free = isinstance(operand, Constant) or sum(length != 1 for length in shape) <= 1
        if free or (len(shape) == len(perm) and self.form(operand).perm == perm):
            return 0
        return prod(shape)

    def emit(
        self,
        spec: KernelSpec,
        inputs: Sequence[Operand | list[Operand] | None],
        attributes: Mapping[str, Any],
        outputs: list[Value] | None = None,
        *,
        like: Call | None = None,
        how: How | None = None,
    ) -> list[Value]:
        """Add a call; return its outputs, which are new if they are not given.

        ``like``: the call in whose place it is. ``how``: it must run, or there is no call and no
        output.
        """
        types = [
            [member.placement.type for member in operand]
            if isinstance(operand, list)
            else operand and operand.placement.type
            for operand in inputs
        ]
        plan = self._plan(spec, types, dict(attributes))
        if how is not None and plan.how != how:
            return []
        made = outputs or [Value(placement) for placement in plan.outputs]
        self.calls.append(Call(plan, list(inputs), made, like and like.site))  # type: ignore[arg-type]
        return made

    def _plan(self, spec: KernelSpec, types: Sequence[Any], attributes: dict[str, Any]) -> Plan:
        """Return the plan of a call. The layers of a model have equal calls, and share plans."""
        try:
            key: object = (spec, freeze(types), *freeze_attributes(attributes))
        except TypeError:  # an attribute is not hashable
            key = object()
        if key not in self._plans:
            self._plans[key], _ = self._engine.explain(spec, self._device, types, attributes)
        return self._plans[key]

    def _computed(
        self, spec: KernelSpec, constant: Constant, attributes: dict[str, Any]
    ) -> Constant:
        """Return what a call makes of a constant."""
        device, types = constant.placement.device, [constant.placement.type]
        plan, _ = self._engine.explain(spec, device, types, attributes)
        (result,) = plan.execute([Tensor._of(constant.buffer, constant.placement)])
        return Constant(result._buffer, result._placement)
