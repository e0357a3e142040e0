"""The interpreter of ``vmap``: logical tensors are one example, physical ones have all of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.owner import SPEC
from tensorplug.contract.rule_entries import BatchingEntry
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.context import current_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.interpreters import Interpreter
from tensorplug.engine.logical_devices import Carried
from tensorplug.engine.plan_calls import kernel_runner, run_call
from tensorplug.engine.registry import Owned
from tensorplug.errors import ArgumentError, KernelOutputError, ShapeError
from tensorplug.mapping.derived import (
    as_it_is,
    elementwise,
    folded,
    in_front,
    leading,
    shifted_axes,
)
from tensorplug.ops import creation
from tensorplug.ops.indexing.slicing import unstack
from tensorplug.ops.joining import stack
from tensorplug.ops.movement import broadcast_to

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.device import Device, Placement
    from tensorplug.engine.plans import Plan
    from tensorplug.engine.registry import State


_DECLINED: Final = NotImplemented
ONCE_PER_EXAMPLE: Final = "once per example"


class Batched(Carried):
    """The buffer of one example: ``tensor`` has the axis of the examples in front."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor, call: object) -> None:
        self.tensor: Tensor = tensor
        self.call = call

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The one tensor."""
        return (self.tensor,)


class Examples(Interpreter):
    """Runs each call on all examples at once, ``size`` of them."""

    name = "vmap"

    def __init__(self, real: Device, size: int) -> None:
        super().__init__(real)
        self.size = size

    # Tensors ------------------------------------------------------------------------------

    def lower(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the tensors with the axis of the examples in front; constants are broadcast."""
        return [
            tensor._buffer.tensor
            if self.holds(tensor)
            else broadcast_to(tensor, (self.size, *tensor.shape))
            for tensor in tensors
        ]

    def lift(
        self, physical: Sequence[Tensor], types: Sequence[TensorType], call: object
    ) -> list[Tensor]:
        """Return one example of each tensor, of ``types``."""
        return [
            self.logical(Batched(tensor, call), type_)
            for tensor, type_ in zip(physical, types, strict=True)
        ]

    def type_of(self, buffer: Any) -> TensorType:
        """Return the type of one example."""
        tensor: Tensor = buffer.tensor
        return TensorType(tensor.dtype, tensor.shape[1:])

    def data(self, buffer: Any) -> np.ndarray[Any, Any]:
        """Raise: there is no one value to read."""
        self.context_outside(buffer.call)  # which says whether the tensor has escaped
        raise ArgumentError(
            f"{self.name}: the function reads the data of a tensor ({self.type_of(buffer)}) that "
            "differs from example to example: numbers, conditions and shapes must not depend on "
            "it. Use where(...), or return the tensor and read it outside"
        )

    def describe(self, tensor: Tensor) -> str:
        """Return the type and the number of examples."""
        return f"<Tensor {tensor.type} of each of {self.size} examples in {self.name}>"

    def draw(self, generator: Any, type_: TensorType) -> Tensor:
        """Return another new key for each example."""
        from tensorplug.ops.random.random import split  # not needed to import tensorplug

        keys = split(super().draw(generator, type_), self.size)
        return self.logical(Batched(keys, current_context().call), type_)

    # Calls --------------------------------------------------------------------------------

    def interpret(self, plan: Plan, inputs: Sequence[Any]) -> list[Tensor]:
        """Run a call on all examples: by its rule, its decomposition, or one by one."""
        if not plan.static_shapes:
            raise ShapeError(
                f"{self.name}: the output shape of {plan.describe()} depends on the data, so it "
                "may differ from example to example; call it outside"
            )
        batched = [self._is_batched(operand) for operand in inputs]
        physical = [self._physical(operand) for operand in inputs]
        rule = self._find_rule(plan, batched)
        outputs = None if rule is None else rule(physical)
        if outputs is None:
            expanded = self.expand(plan, inputs)
            if expanded is not None:
                return expanded
            outputs = self._one_by_one(plan, physical, batched)
        if not plan.published:
            self._check(plan, outputs)
        call = self.call_of(inputs)
        return [
            Tensor._of(Batched(output, call), placement)
            for output, placement in zip(outputs, plan.outputs, strict=True)
        ]

    def on_buffers(self, plan: Plan, constants: Sequence[Placement | None]) -> Callable[..., Any]:
        """Return a function that does the same, from buffers to buffers."""
        batched = [placement is None for placement in constants]
        run, rule = self._find_runner(plan, batched), self._find_rule(plan, batched)

        def on_one(call: object, x: Batched) -> Batched:
            if x.call is not call:
                raise self.escaped()
            assert run is not None
            return Batched(run(x.tensor), call)

        def on_all(call: object, *buffers: Any) -> Any:
            physical = []
            for buffer, constant in zip(buffers, constants, strict=True):
                if constant is not None:
                    physical.append(Tensor._of(buffer, constant))
                elif buffer.call is call:
                    physical.append(buffer.tensor)
                else:
                    raise self.escaped()
            if run is not None:
                return Batched(run(*physical), call)
            outputs = None if rule is None else rule(physical)
            if outputs is None:
                logical = self.interpret(plan, self.operands(plan, buffers, constants))
                results = [output._buffer for output in logical]
            else:
                results = [Batched(output, call) for output in outputs]
            return results if plan.spec.multiple_outputs else results[0]

        return on_one if run is not None and batched == [True] else on_all

    def _is_batched(self, operand: Any) -> Any:
        if isinstance(operand, list):
            return [tensor._placement.device is self.device for tensor in operand]
        return operand is not None and operand._placement.device is self.device

    def _physical(self, operand: Any) -> Any:
        if isinstance(operand, list):
            return [self._physical(tensor) for tensor in operand]
        if operand is None or operand._placement.device is not self.device:
            return operand
        return operand._buffer.tensor

    def _find_runner(self, plan: Plan, batched: Sequence[bool]) -> Callable[..., Any] | None:
        """Return a function that runs the kernel on the physical inputs as they are.

        None: the inputs must be changed first, or the kernel has multiple outputs.
        """
        entry = _entry(plan)
        if plan.spec.multiple_outputs:
            return None
        if entry is not None and entry.kind == "leading" and all(batched):
            return kernel_runner(plan, **shifted_axes(plan, entry.names))
        direct = entry is not None and entry.kind == "elementwise"
        return kernel_runner(plan) if direct and as_it_is(plan, batched) else None

    def _find_rule(
        self, plan: Plan, batched: Sequence[Any]
    ) -> Callable[[list[Any]], list[Tensor] | None] | None:
        """Return the batching rule of a call as a function of its physical inputs.

        The function returns the physical outputs, or None if the rule declines the call. None
        instead of a function: the kernel has no rule.
        """
        entry, size = _entry(plan), self.size
        if entry is None:
            return None
        kind, names = entry.kind, entry.names
        if kind == "elementwise":
            return lambda inputs: elementwise(plan, inputs, batched, size)
        if kind == "leading":
            return lambda inputs: leading(plan, inputs, batched, size, names)
        if kind == "folded":
            return lambda inputs: folded(plan, inputs, batched, size, names)
        return self._prepare_rule(entry, plan, batched)

    def _prepare_rule(
        self, entry: BatchingEntry, plan: Plan, batched: Sequence[Any]
    ) -> Callable[[list[Any]], list[Tensor] | None]:
        """Return a rule that already has every argument except the inputs."""
        lists = [at for at, flags in enumerate(batched) if isinstance(flags, list) and any(flags)]
        names = plan.spec.input_names
        types = tuple(placement.type for placement in plan.outputs)
        available = {
            **plan.attributes,
            "attributes": plan.attributes,
            "batched": frozenset(
                [names[at] for at, flags in enumerate(batched) if flags is True or at in lists]
            ),
            "size": self.size,
            "out": types if plan.spec.multiple_outputs else types[0],
        }
        assert entry.rule is not None
        rule = partial(entry.rule, **{name: available[name] for name in entry.asks})

        def call(inputs: list[Any]) -> list[Tensor] | None:
            arguments = list(inputs)
            for at in lists:
                pairs = zip(inputs[at], batched[at], strict=True)
                arguments[at] = [in_front(x, flag, self.size) for x, flag in pairs]
            result = rule(*arguments)
            if result is _DECLINED:
                return None
            return list(result) if plan.spec.multiple_outputs else [result]

        return call

    def _one_by_one(self, plan: Plan, inputs: list[Any], batched: list[Any]) -> list[Tensor]:
        """Run the kernel once per example."""
        types = [output.type for output in plan.outputs]
        if self.size == 0:
            return [creation.zeros((0, *type_.shape), dtype=type_.dtype) for type_ in types]

        def examples(x: Any, flag: Any) -> Sequence[Any]:
            if isinstance(x, list):
                columns = [examples(*pair) for pair in zip(x, flag, strict=True)]
                return [list(row) for row in zip(*columns, strict=True)]
            return unstack(x) if flag else [x] * self.size

        columns = [examples(*pair) for pair in zip(inputs, batched, strict=True)]
        rows = [run_call(plan, row) for row in zip(*columns, strict=True)]
        return [stack(column) for column in zip(*rows, strict=True)]

    def _check(self, plan: Plan, outputs: list[Tensor]) -> None:
        """Check what a rule returned.

        Raises:
            KernelOutputError: these are not all examples of the outputs.

        """
        types = [output.type for output in plan.outputs]
        if len(outputs) != len(types):
            raise KernelOutputError(
                f"the batching rule of {plan.describe()} returned {len(outputs)} outputs instead "
                f"of {len(types)}"
            )
        for output, type_, label in zip(outputs, types, plan.output_labels(), strict=True):
            shape = (self.size, *type_.shape)
            if output.__class__ is not Tensor:
                described: object = type(output).__name__
            elif output.shape != shape or output.dtype is not type_.dtype:
                described = output.type
            else:
                continue
            raise KernelOutputError(
                f"the batching rule of {plan.describe()} returned {described} for {label} of "
                f"{self.size} examples, but it must be {TensorType(type_.dtype, shape)}"
            )


def _entry(plan: Plan) -> BatchingEntry | None:
    owned = _find(plan.spec, plan.state)
    return None if owned is None else owned.entry


def _find(spec: KernelSpec, state: State) -> Owned[BatchingEntry] | None:
    """Return the batching rule in force; a kernel with diagonal Jacobians alone is elementwise."""
    owned = state.batching(spec.name)
    if owned is not None or not spec.input_names:
        return owned
    tangents = [state.tangent(spec.name, name) for name in spec.input_names]
    if not all(one is not None and one.entry.kind == "elementwise" for one in tangents):
        return None
    return Owned(BatchingEntry(spec, "elementwise"), SPEC)


def explain(spec: KernelSpec, state: State) -> str:
    """Return how ``vmap`` runs a kernel on all examples."""
    owned = _find(spec, state)
    if owned is not None:
        kind = owned.entry.kind
        return kind if owned.owner is SPEC else f"by a rule of {owned.owner}"
    decomposition = state.decomposition(spec.name)
    if decomposition is None or decomposition.entry.on_host:
        return ONCE_PER_EXAMPLE
    return "by its decomposition"


def runs_at_once(spec: KernelSpec, state: State) -> bool:
    """Return whether ``vmap`` has a rule by which a kernel runs in a few calls on all examples."""
    return _find(spec, state) is not None
