"""An engine opened on the backend under test, and the calls a case makes on it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.dispatch.context import Context, use_context
from tensorplug.plugin import as_tensor, dispatch, dispatch_multiple, specs
from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance.compare import same_bits
from tensorplug_conformance.primitives import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import How
    from tensorplug.plugin import KernelEntry, KernelSpec, Tensor
    from tensorplug_conformance.case import Array, Case, Layout, Operand

__all__ = ["Session", "UnfaithfulLayoutError", "engine_factory"]


class UnfaithfulLayoutError(Exception):
    """An input lost its values on the way to the device, or when it became non-contiguous."""


def engine_factory(name: str | None) -> Callable[[], Engine]:
    """Return what builds engines: for the installed plugins, or ``"module:function"``."""
    if name is None:
        return build_engine
    module, _, function = name.partition(":")
    found: Callable[[], Engine] = getattr(import_module(module), function)
    return found


class Session:
    """One engine on one device. Calls fall back to no other backend.

    Args:
        factory: builds the engine.
        backend: name of the backend under test.
        primitives_only: all kernels but the primitives are removed, so that the rest of the
            catalogue runs by decomposition.

    """

    def __init__(
        self, factory: Callable[[], Engine], backend: str, *, primitives_only: bool = False
    ) -> None:
        self.engine = factory()
        self.engine.fallback = "error"
        self.device: Device = self.engine.open(backend)
        if primitives_only:
            for name, owner in list(self.engine.registry.state.kernels):
                if owner == self.device.backend_name and name not in PRIMITIVES:
                    self.engine.registry.remove_kernel(name, owner)

    @property
    def context(self) -> Context:
        """The context in which everything here runs."""
        return Context(self.engine, self.device)

    def entered(self) -> use_context:
        """Return the context in which ops run on this session's device."""
        return use_context(self.context)

    def registration(self, name: str) -> KernelEntry | None:
        """Return how the backend registers a kernel; None if it does not."""
        owned = self.engine.registry.state.kernel(name, self.device.backend_name)
        return None if owned is None else owned.entry

    def upload(self, array: Array, layout: Layout = "dense") -> Tensor:
        """Return ``array`` as a tensor, laid out as asked.

        Raises:
            UnfaithfulLayoutError: the tensor does not read back as ``array``.

        """
        with self.entered():
            tensor = self._laid_out(array, layout)
        back = self.read(tensor)
        if not same_bits(back, np.asarray(array)):
            raise UnfaithfulLayoutError(f"a {layout} input of {tensor.type} does not read back")
        return tensor

    def _laid_out(self, array: Array, layout: Layout) -> Tensor:
        if layout == "transposed" and array.ndim > 1:
            turned = as_tensor(np.array(array.T, order="C"))
            return dispatch(specs.TRANSPOSE, turned)
        if layout == "stepped" and array.size and array.ndim:
            return _stepped(array)
        if layout != "dense" and array.ndim:
            padded = np.zeros([n + 3 for n in array.shape], dtype=array.dtype)
            padded[tuple(slice(1, n + 1) for n in array.shape)] = array
            around = as_tensor(padded)
            begin = (1,) * array.ndim
            return dispatch(specs.SLICE, around, begin=begin, size=array.shape)
        return as_tensor(np.array(array, order="C"))

    def operands(self, case: Case) -> list[Any]:
        """Return the inputs of a case on the device, laid out as it says."""
        return [self._operand(operand, case.layout) for operand in case.inputs]

    def _operand(self, operand: Operand, layout: Layout) -> Any:
        if operand is None:
            return None
        if isinstance(operand, list):
            return [self.upload(array, layout) for array in operand]
        return self.upload(operand, layout)

    def call(
        self, spec: KernelSpec, operands: Sequence[Any], attributes: Mapping[str, Any]
    ) -> list[Tensor]:
        """Run the kernel the way an op does; return its outputs."""
        with self.entered():
            if spec.multiple_outputs:
                return dispatch_multiple(spec, *operands, **attributes)
            return [dispatch(spec, *operands, **attributes)]

    def how(self, spec: KernelSpec, case: Case) -> tuple[How, str]:
        """Return how the call of a case runs, and why it does not run natively."""
        plan, steps = self.engine.explain(spec, self.device, case.types, case.attributes)
        reasons = "; ".join(f"{what}: {outcome}" for what, outcome in steps)
        return plan.how, reasons

    def read(self, tensor: Tensor) -> Array:
        """Return a copy of the tensor's elements."""
        return np.array(
            self.device.backend.to_host(tensor._buffer), copy=True
        )  # what the backend itself gives

    def close(self) -> None:
        """Close the device."""
        self.engine.devices.close(self.device.name)


def _stepped(array: Array) -> Tensor:
    """Return every other element of a larger tensor, backwards along each axis."""
    larger = np.zeros([2 * n + 1 for n in array.shape], dtype=array.dtype)
    last = tuple(2 * n - 1 for n in array.shape)
    larger[tuple(slice(at, None, -2) for at in last)] = array
    rank = array.ndim
    around = as_tensor(larger)
    return dispatch(specs.STRIDED_SLICE, around, begin=last, end=(0,) * rank, strides=(-2,) * rank)
