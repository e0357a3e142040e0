"""Plans: how a call with certain input types and attributes runs on one device.

A plan is resolved once (``engine.resolution``) and cached.
"""

from __future__ import annotations

import copy
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tensorplug.dispatch.calls import buffers_of
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.operands import flatten
from tensorplug.engine.widening import is_asked, unsupported_dtype
from tensorplug.errors import (
    BackendMemoryError,
    KernelOutputError,
    KernelRefusedError,
    RegistrationError,
    TensorplugError,
)
from tensorplug.system.foreign_text import message_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.contract.entries import KernelEntry
    from tensorplug.contract.owner import Owner
    from tensorplug.contract.spec import InputType, KernelSpec, TensorType
    from tensorplug.dispatch.device import Device, Placement, Usage
    from tensorplug.engine.registry import Owned, State


How = Literal["native", "widened", "decomposed", "host", "fallback", "traced", "programs"]
BY_OPS: Final = frozenset({"widened", "decomposed"})  # of plans that run other kernels
Step = tuple[str, str]  # (step, outcome)


class Plan:
    """One resolved call.

    ``call`` takes buffers if ``takes_buffers``, as for native kernels, else tensors. ``owner`` is
    the distribution whose kernel or decomposition runs. ``static_shapes``: all output shapes are
    known before it runs. ``source``: of the plan of a program, the plan whose decomposition the
    program runs. ``usage``: of the program or group that runs, if there is one; else None.
    ``traceable``: whether the decomposition may still become a program. ``committed``: whether
    an input is, and so all outputs. ``recipes`` belongs to the tape. ``interned``: whether the
    input types are those of tensors, and so of placements. ``extents``: what attributes are that
    follow from sizes, in a program that may be used at other ones.
    """

    __slots__ = (
        "attributes",
        "call",
        "committed",
        "device",
        "extents",
        "how",
        "inputs",
        "output",
        "outputs",
        "owner",
        "published",
        "recipes",
        "source",
        "spec",
        "state",
        "static_shapes",
        "takes_buffers",
        "taped",
        "tensor",
        "traceable",
        "usage",
        "variant",
        "varied",
    )

    def __init__(
        self,
        spec: KernelSpec,
        attributes: dict[str, Any],
        device: Device,
        inputs: Sequence[InputType],
        outputs: Sequence[TensorType],
        state: State,
        *,
        committed: bool = False,
        interned: bool = False,
    ) -> None:
        self.spec: KernelSpec = spec
        self.attributes: dict[str, Any] = attributes
        self.device: Device = device
        self.inputs: list[InputType] = list(inputs) if interned else _intern(device, inputs)
        self.committed: bool = committed
        self.outputs: tuple[Placement, ...] = tuple(
            [_place(device, output, committed=committed) for output in outputs]
        )
        self.static_shapes: bool = False not in [output.known for output in outputs]
        self.output: Placement = self.outputs[0] if self.outputs else None  # type: ignore[assignment]  # a call may have no outputs
        self.state: State = state
        self.tensor: type[Tensor] = Tensor
        self.recipes: dict[tuple[bool, ...], Any] = {}
        self.published: bool = False  # True after the first run, which verifies and caches it
        self.varied: int = 0  # how often ``vary`` was called
        self.variant: bool = False  # whether ``vary`` made it, for one call
        self.taped: bool = True  # whether the tape records one node for the whole call
        self.takes_buffers: bool = False
        self.source: Plan | None = None
        self.usage: Usage | None = None
        self.extents: dict[str, Any] | None = None
        self.traceable: bool = False
        self.how: How = "native"
        self.owner: Owner | None = None
        self.call: Callable[..., Any] = unresolved

    def describe(self) -> str:
        """Return the call as text: ``Add(a=float32[3], b=float32[3])``."""
        return self.spec.describe(self.inputs)

    def annotate(self, error: BaseException) -> None:
        """Add a note to ``error`` that names the kernel and its owner.

        Raises:
            BackendMemoryError: ``error`` is that of a library that found no room.
            RegistrationError: the kernel takes the buffers of the backend for NumPy arrays.

        """
        note = f"in kernel {self.describe()} of {self.owner} on backend {self.device.name!r}"
        note += self.device.blame(error, self.spec.name)
        if isinstance(error, MemoryError) and not isinstance(error, TensorplugError):
            made = sum(output.type.nbytes for output in self.outputs if output.type.known)
            named = BackendMemoryError(
                f"{self.describe()}: backend {self.device.name!r} has no room for its outputs of "
                f"{made} bytes, or for what the kernel needs beside them: {message_of(error)}"
            )
            named.add_note(note)
            raise named from error
        mistaken = self._mistaken_buffer(error)
        if mistaken is not None:
            raise RegistrationError(
                f"{self.describe()}: the kernel of {self.owner} must compute with buffers of "
                f"backend {self.device.name!r}, but it uses a "
                f"{mistaken.__module__}.{mistaken.__qualname__} as if it were a NumPy "
                f"array ({type(error).__name__}: {error}). {self._guide()}"
            ) from error
        if self.source is None:  # else the program has named the kernel that failed
            error.add_note(note)

    def _mistaken_buffer(self, error: BaseException) -> type | None:
        """Return the class of the buffers if a kernel by somebody else took them for arrays.

        Python's and NumPy's errors then name this class.
        """
        if not isinstance(error, TypeError | AttributeError) or isinstance(error, TensorplugError):
            return None
        dtypes = [type_.dtype for type_ in flatten(self.inputs) if type_ is not None]
        if self.owner == self.device.owner or not dtypes:
            return None
        kind = type(self.device.backend.from_host(np.zeros((), dtypes[0].numpy)))
        return None if issubclass(kind, np.ndarray) or kind.__name__ not in str(error) else kind

    def _guide(self) -> str:
        """Return where to read how kernels of this backend are written."""
        guide = self.device.capabilities.kernel_guide
        return f"For kernels of this backend, see {guide or 'its documentation'}"

    def execute(self, tensors: Sequence[Any]) -> list[Tensor]:
        """Run on live tensors of this plan's types and device; return the outputs."""
        try:
            result = self.call(*(buffers_of(tensors) if self.takes_buffers else tensors))
        except BaseException as error:
            if self.takes_buffers:
                self.annotate(error)
            raise
        if not self.spec.multiple_outputs:
            return [self._adopt(result, self.output)]
        return list(map(self._adopt, self._listed(result), self.outputs))

    def execute_verified(self, tensors: Sequence[Any]) -> list[Tensor]:
        """Do the same; in the first run, check the outputs before observers see them."""
        outputs = self.execute(tensors)
        if not self.published:
            self.verify(outputs)
        return outputs

    def with_outputs(self, outputs: Sequence[Tensor]) -> Plan:
        """Return this plan with the actual types of ``outputs``, for the tape."""
        other = copy.copy(self)
        other.outputs = tuple([output._placement for output in outputs])
        return other

    def yields(self) -> bool:
        """Return whether a group may compute what the native kernel does.

        Not if that replaces the backend's: somebody wants it to run.
        """
        owned = self.state.kernel(self.spec.name, self.device.backend_name)
        return self.owner == self.device.owner or (owned is not None and owned.entry.fuses)

    def may_fuse(self) -> bool:
        """Return whether the call is large enough for the backend to compile its kernels."""
        least = self.device.least_group()
        if least is None:
            return False
        return True in [prod(type_.shape) >= least for type_ in self.operand_types()]

    def operand_types(self) -> list[TensorType]:
        """Return the types of the inputs and outputs, without absent ones."""
        types: list[TensorType] = flatten(self.inputs)
        return types + [placement.type for placement in self.outputs]

    def with_program(self, run: Callable[..., Any], usage: Usage) -> Plan:
        """Return the plan of the same call that runs a program of the decomposition's calls.

        ``run`` takes and returns buffers, and notes its ``usage``. This plan remains for calls
        whose kernels an observer or a tape must see.
        """
        other = copy.copy(self)
        other.call, other.source, other.takes_buffers, other.usage = run, self, True, usage
        # Of its own: a tape saves what the rules of this form need, and its first result is
        # checked like that of any plan.
        other.recipes, other.published = {}, False
        return other

    def vary(self, attributes: Mapping[str, Any]) -> Plan | None:
        """Return the native plan of the same call with other attributes, which is not cached.

        The attributes must be canonical and must not change the output types. Return None if the
        kernel declines, or if there is none.
        """
        self.varied += 1
        if not self.device.is_real:  # an interpreter's, which runs no kernel itself
            return None
        other: Plan = object.__new__(Plan)
        for name in _KEPT:
            setattr(other, name, getattr(self, name))
        other.attributes = {**self.attributes, **attributes}
        # Published: its outputs have the types that were verified for this plan.
        other.recipes, other.published, other.varied = {}, True, 0
        other.source = other.usage = None
        other.variant = True
        return other if resolve_native(other, []) else None

    def _adopt(self, result: Any, placement: Placement) -> Tensor:
        if self.takes_buffers:
            if not self.static_shapes and not placement.type.known:
                type_ = self._check_output(result, placement, self.outputs.index(placement))
                placement = self.device.placement(type_, committed=self.committed)
            return Tensor._of(result, placement)
        if not isinstance(result, Tensor):
            raise KernelOutputError(
                f"{self.describe()}: the {self.how} form of {self.owner} returned "
                f"{type(result).__name__} instead of a tensor"
            )
        placement = result._placement
        if self.committed and not placement.committed:  # computed without the committed inputs
            placement = placement.as_committed(True)  # noqa: FBT003  # the one argument
        return Tensor._of(result._buffer, placement, result._node)

    def verify(self, outputs: Sequence[Tensor]) -> None:
        """Check the outputs of a plan's first run against the types that the spec infers.

        Raises:
            KernelOutputError: an output has another type.

        """
        self._check_outputs([output._buffer for output in outputs])

    def check(self, result: Any) -> None:
        """Do the same for what a kernel has returned: a buffer, or several in a list."""
        self._check_outputs(self._listed(result) if self.spec.multiple_outputs else [result])
        self.published = True

    def _check_outputs(self, buffers: Sequence[Any]) -> None:
        for at, buffer in enumerate(buffers):
            self._check_output(buffer, self.outputs[at], at)

    def _listed(self, result: Any) -> Sequence[Any]:
        """Return the results of a kernel with multiple outputs, which must be as many."""
        if not isinstance(result, list | tuple) or len(result) != len(self.outputs):
            got = f"{len(result)} outputs" if isinstance(result, list | tuple) else type(result)
            raise KernelOutputError(
                f"{self.describe()} of {self.owner} on backend {self.device.name!r} returned "
                f"{got} instead of a list of {len(self.outputs)} outputs"
            )
        return result

    def _check_output(self, buffer: Any, placement: Placement, at: int) -> TensorType:
        """Return the type of output ``at``, which must match the inferred one."""
        try:
            real = placement.device.backend.describe(buffer)
        except TypeError as error:
            hint = f". {self._guide()}" if self.owner != self.device.owner else ""
            raise KernelOutputError(
                f"{self.describe()} of {self.owner}: {self.output_labels()[at]} is not a buffer "
                f"of backend {placement.device.name!r}: {error}{hint}"
            ) from None
        if not placement.type.admits(real):
            raise KernelOutputError(
                f"{self.describe()} of {self.owner} on backend {self.device.name!r}: "
                f"{self.output_labels()[at]} is {real}, but must be {placement.type}"
            )
        return real

    def output_labels(self) -> list[str]:
        """Return the names of the outputs in messages: ``out``, or ``outs[0]`` in a list."""
        names = self.spec.output_names
        if len(names) == len(self.outputs):
            return list(names)
        return [f"{names[0]}[{index}]" for index in range(len(self.outputs))]


_VARIED: Final = {
    *("attributes", "call", "owner", "published", "recipes", "source", "usage", "varied"),
    "variant",
}
_KEPT: Final = [name for name in Plan.__slots__ if name not in _VARIED]  # by ``vary``


def _place(device: Device, type_: TensorType, *, committed: bool = False) -> Placement:
    """Return the placement of ``type_`` on ``device``, or on the host that holds its strings."""
    home = device if type_.dtype in device.dtypes else device.home(type_.dtype) or device
    return home.placement(type_, committed=committed)


def _intern(device: Device, types: Sequence[InputType]) -> list[InputType]:
    """Return the interned types of inputs, which backpropagation compares by identity."""
    interned: list[InputType] = []
    for type_ in types:
        if isinstance(type_, list):
            interned.append([_place(device, member).type for member in type_])
        else:
            interned.append(None if type_ is None else _place(device, type_).type)
    return interned


def unresolved(*_inputs: Any) -> Any:
    """Stand for what a plan calls until that is decided."""
    raise AssertionError("a plan ran before it was resolved")


def resolve_native(plan: Plan, steps: list[Step], *, late: bool = False) -> bool:
    """Return whether the backend's kernel serves ``plan``; ``late``: ``complete`` prepares it."""
    spec, device = plan.spec, plan.device
    owned = plan.state.kernel(spec.name, device.backend_name)
    if owned is None:
        steps.append(("native", "not registered"))
        return False
    entry = owned.entry
    types = plan.operand_types()
    lacking = {type_.dtype.name for type_ in types if type_.dtype not in device.dtypes}
    missing = unsupported_dtype(plan, entry.dtypes) or ", ".join(sorted(lacking))
    if missing:
        steps.append(("native", f"the kernel of {owned.owner} does not take {missing}"))
        return False
    if not is_asked(entry, plan, types):
        steps.append(("native", f"the kernel of {owned.owner} names no dtypes"))
        return False
    return prepare(plan, owned, steps, late=late and owned.owner == device.owner)


def prepare(plan: Plan, owned: Owned[KernelEntry], steps: list[Step], *, late: bool) -> bool:
    """Resolve ``plan`` to a kernel that takes its dtypes; return whether it takes the sizes."""
    entry = owned.entry
    extras = extra_arguments(plan, entry.asks)
    if entry.prepares and not late:
        try:
            plan.call = entry.function(*plan.inputs, **extras)
        except KernelRefusedError as error:
            steps.append(("native", f"the kernel of {owned.owner} declined: {message_of(error)}"))
            return False
        except Exception as error:
            error.add_note(f"while {owned.owner} prepared {plan.describe()}")
            raise
    elif not entry.prepares:
        # Without extras, warm calls reach the kernel itself.
        plan.call = partial(entry.function, **extras) if extras else entry.function
    plan.owner = owned.owner
    plan.how = "native"
    plan.takes_buffers = True
    steps.append(("native", f"kernel of {owned.owner}"))
    return True


def extra_arguments(plan: Plan, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments that a kernel or a decomposition requests by name."""
    extras: dict[str, Any] = {}
    for name in names:
        if name == "out":
            types = [placement.type for placement in plan.outputs]
            extras[name] = tuple(types) if plan.spec.multiple_outputs else types[0]
        elif name == "backend":
            extras[name] = plan.device.backend
        else:
            extras[name] = plan.attributes if name == "attributes" else plan.attributes[name]
    return extras
