"""Forward mode: running a function on dual tensors, pairs of a primal and its tangent.

A dual tensor has no tangent (None) where it does not depend on the arguments; that costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tensorplug.autodiff.grad import vjp
from tensorplug.autodiff.pushforward import Pushforward, has_tangent
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.commitment import follow
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.interpreters import Interpreter
from tensorplug.engine.logical_devices import Carried
from tensorplug.engine.plan_calls import kernel_runner, run_call
from tensorplug.errors import GradientNotFoundError
from tensorplug.ops import creation

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Self

    import numpy as np

    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Device, Placement
    from tensorplug.engine.plans import Plan


KEPT = 1024
"""Derivatives of plans that an interpreter keeps."""


class Dual(Carried):
    """The buffer of a dual tensor: its primal, and its tangent, None for zero."""

    __slots__ = ("primal", "tangent")

    def __init__(self, primal: Tensor, tangent: Tensor | None, call: object) -> None:
        self.primal: Tensor = primal
        self.tangent: Tensor | None = tangent
        self.call = call

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        """The physical tensors."""
        return self.primal, self.tangent


class ForwardMode(Interpreter):
    """Runs kernels on primals, and their derivatives on tangents."""

    name: ClassVar[str] = "jvp"

    def __init__(self, real: Device) -> None:
        super().__init__(real)
        self._known: dict[Hashable, Pushforward] = {}

    def interpret(self, plan: Plan, inputs: Sequence[Any]) -> list[Tensor]:
        """Run a call on the primals, and its derivative on the tangents."""
        device, primals, tangents = self.device, [], []
        for operand in inputs:
            if operand.__class__ is Tensor and operand._placement.device is device:
                primals.append(operand._buffer.primal)
                tangents.append(operand._buffer.tangent)
            else:
                primals.append(self._primal(operand))
                tangents.append(self._tangent(operand))
        call = self.call_of(inputs)
        present = tuple([has_tangent(tangent) for tangent in tangents])
        push = None
        if True in present:
            push = self._known.get((plan, present))
            if push is None:
                try:
                    push = Pushforward(plan, present)
                except GradientNotFoundError:
                    expanded = self.expand(plan, inputs)
                    if expanded is None:
                        raise
                    return expanded
                self.device.remember(self._known, (plan, present), push, KEPT)
        outputs = run_call(plan, primals)
        dots: Sequence[Tensor | None] = [None] * len(outputs)
        if push is not None and not push.is_zero:
            dots = push(primals, outputs, tangents)
        if plan.static_shapes:  # the usual case: the plan has the placements
            return [
                Tensor._of(Dual(output, dot, call), placement)
                for output, dot, placement in zip(outputs, dots, plan.outputs, strict=True)
            ]
        return [
            self.logical(Dual(output, dot, call), output.type)
            for output, dot in zip(outputs, dots, strict=True)
        ]

    def on_buffers(
        self, plan: Plan, constants: Sequence[Placement | None]
    ) -> Callable[..., Any] | None:
        """Return a function that does the same, from buffers to buffers."""
        if plan.spec.multiple_outputs:
            return None
        run = kernel_runner(plan)
        known: dict[tuple[bool, ...], Pushforward] = {}  # by which inputs have tangents

        def on_pairs(call: object, *buffers: Any) -> Dual:
            primals: list[Tensor] = []
            tangents: list[Tensor | None] = []
            for buffer, constant in zip(buffers, constants, strict=True):
                if constant is not None:
                    primals.append(Tensor._of(buffer, constant))
                    tangents.append(None)
                elif buffer.call is call:
                    primals.append(buffer.primal)
                    tangents.append(buffer.tangent)
                else:
                    raise self.escaped()
            present = tuple([tangent is not None for tangent in tangents])
            push = known.get(present)
            if push is None:
                inputs = self.operands(plan, buffers, constants)
                dual: Dual = self.interpret(plan, inputs)[0]._buffer
                push = self._known.get((plan, present))
                if push is not None:
                    known[present] = push
                return dual
            primal = run(*primals)
            return Dual(primal, push.of_one(primals, primal, tangents), call)

        return on_pairs

    def _primal(self, operand: Any) -> Any:
        if isinstance(operand, list):
            return [self._primal(tensor) for tensor in operand]
        buffer = None if operand is None else operand._buffer
        return buffer.primal if buffer.__class__ is Dual and self.holds(operand) else operand

    def _tangent(self, operand: Any) -> Any:
        if isinstance(operand, list):
            return [self._tangent(tensor) for tensor in operand]
        buffer = None if operand is None else operand._buffer
        return buffer.tangent if buffer.__class__ is Dual and self.holds(operand) else None

    def lower(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the primals, then the tangents of those that are floating or complex."""
        primals = [self._primal(tensor) for tensor in tensors]
        return primals + [
            self.tangent_of(tensor) for tensor in tensors if tensor.dtype in dt.INEXACT
        ]

    def lift(
        self, physical: Sequence[Tensor], types: Sequence[TensorType], call: object
    ) -> list[Tensor]:
        """Return the dual tensors of primals and tangents in the order of ``lower``."""
        tangents = iter(physical[len(types) :])
        return [
            self.logical(
                Dual(primal, next(tangents) if type_.dtype in dt.INEXACT else None, call), type_
            )
            for primal, type_ in zip(physical, types, strict=False)
        ]

    def tangent_of(self, tensor: Tensor) -> Tensor:
        """Return the tangent of a tensor, of a constant zeros."""
        tangent: Tensor | None = self._tangent(tensor)
        return creation.zeros_like(self._primal(tensor)) if tangent is None else tangent

    def stopped(self, tensor: Tensor, stop: Callable[[Tensor], Tensor]) -> Tensor:
        """Return a tensor without its tangent."""
        primal = stop(self._primal(tensor))
        return self.logical(Dual(primal, None, tensor._buffer.call), tensor.type)

    def type_of(self, buffer: Any) -> TensorType:
        """Return the type of the primal."""
        type_: TensorType = buffer.primal.type
        return type_

    def data(self, buffer: Any) -> np.ndarray[Any, Any]:
        """Return the data of the primal, which conditions of the function may read.

        Raises:
            ArgumentError: the call of the function has ended.

        """
        with use_context(self.context_outside(buffer.call)):
            numbers: np.ndarray[Any, Any] = buffer.primal.numpy()
        return numbers

    def describe(self, tensor: Tensor) -> str | None:
        """Return a description of a primal without data; None if it has some."""
        shown: str | None = self.real.interpreter.describe(tensor._buffer.primal)
        return shown


class Pushed:
    """A call of a function with a gradient of its own, in forward mode.

    The derivative of its value is the transpose of its backward function, not that of its body.
    """

    def __init__(self, interpreter: ForwardMode, tensors: Sequence[Tensor]) -> None:
        self._interpreter = interpreter
        self._call = current_context().call
        interpreter.check_call(tensors, self._call)
        self._tangents = [interpreter._tangent(tensor) for tensor in tensors]
        self.constants: list[Tensor] = [
            interpreter.logical(Dual(interpreter._primal(tensor), None, self._call), tensor.type)
            for tensor in tensors
        ]

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> Self | None:
        """Return the call with these arguments; None if none of them has a tangent."""
        interpreter = current_context().interpreter
        if not isinstance(interpreter, ForwardMode):
            return None
        call = cls(interpreter, tensors)
        return call if has_tangent(call._tangents) else None

    def depends(self, value: Tensor) -> bool:
        """Return whether ``value`` has a tangent."""
        return self._interpreter._tangent(value) is not None

    def along(
        self, value: Tensor, pull_back: Callable[[Tensor, list[bool]], list[Tensor]]
    ) -> Tensor:
        """Return the value with the tangent that ``pull_back`` gives.

        ``pull_back`` takes a cotangent, and returns those of the arguments that are wanted.
        """
        interpreter = self._interpreter
        present = [tangent is not None for tangent in self._tangents]

        def pull(dy: Tensor) -> list[Tensor]:
            with use_context(interpreter.context(current_context(), self._call)):
                return [interpreter._primal(one) for one in pull_back(dy, present)]

        primal = interpreter._primal(value)
        with use_context(interpreter.context_outside()):
            _, push_forward = vjp(pull, creation.zeros_like(primal), unconnected="zeros")
            (tangent,) = push_forward([one for one in self._tangents if one is not None])
        return interpreter.logical(Dual(primal, tangent, self._call), value.type)


def push(
    f: Callable[[list[Tensor]], Sequence[Tensor]],
    primals: Sequence[Tensor],
    tangents: Sequence[Tensor | None],
) -> tuple[list[Tensor], list[Tensor | None]]:
    """Call ``f`` with dual tensors; return primals and tangents of its results.

    The tangent of a result is None if it does not depend on the primals.
    """
    tensors = [*primals, *(tangent for tangent in tangents if tangent is not None)]
    outside = follow(current_context(), tensors, "jvp")
    interpreter, call = ForwardMode.of(outside), object()
    duals = [
        interpreter.logical(Dual(primal, tangent, call), primal.type)
        for primal, tangent in zip(primals, tangents, strict=True)
    ]
    with use_context(interpreter.context(outside, call)):
        results = f(duals)
    interpreter.check_call(results, call)
    return (
        [interpreter._primal(result) for result in results],
        [interpreter._tangent(result) for result in results],
    )
