"""An engine opened on the backend under test, and the calls a case makes on it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.dispatch.context import Context, use_context
from tensorplug.plugin import TensorplugError, dispatch, dispatch_multiple
from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance.case import flat, mapped
from tensorplug_conformance.comparing.compare import same_bits
from tensorplug_conformance.primitives import PRIMITIVES
from tensorplug_conformance.variants.layouts import laid_out, overlapping, packed, view

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import How
    from tensorplug.plugin import KernelEntry, KernelSpec, Tensor
    from tensorplug_conformance.case import Array, Case, Layout, Operand, Sharing


class UnfaithfulLayoutError(Exception):
    """An input lost its values on the way to the device, or when it became non-contiguous."""


def engine_factory(name: str | None) -> Callable[[], Engine]:
    """Return what builds engines: for the installed plugins, or ``"module:function"``."""
    if name is None:
        return build_engine
    module, _, function = name.partition(":")
    factory: Callable[[], Engine] = getattr(import_module(module), function)
    return factory


class Session:
    """One engine on one device.

    Args:
        factory: builds the engine.
        backend: name of the backend under test.
        primitives_only: all kernels but the primitives are removed, so that the rest of the
            catalogue runs by decomposition.
        falls_back: calls for which the backend has neither a kernel nor a decomposition run on
            another one; else they raise.

    """

    def __init__(
        self,
        factory: Callable[[], Engine],
        backend: str,
        *,
        primitives_only: bool = False,
        falls_back: bool = False,
    ) -> None:
        self.engine = factory()
        self.falls_back = falls_back
        self.engine.fallback = "allow" if falls_back else "error"
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
            tensor = laid_out(array, layout)
        self._check(tensor, array, f"{layout} input")
        return tensor

    def operands(self, case: Case) -> list[Any]:
        """Return the inputs of a case on the device, laid out as it says."""
        upload = partial(self.upload, layout=case.layout)
        return [mapped(upload, operand) for operand in case.inputs]

    def sharing(self, arrays: Sequence[Array], buffers: Sharing, layout: Layout) -> list[Tensor]:
        """Return arrays as tensors of one buffer: one for all equal, views of it, or overlapping.

        Raises:
            UnfaithfulLayoutError: a tensor does not read back as its array.

        """
        with self.entered():
            if buffers == "overlapping":
                tensors = overlapping(arrays)
            else:
                keys = [(array.shape, array.tobytes()) for array in arrays]
                ones = {
                    key: laid_out(array, layout) for key, array in zip(keys, arrays, strict=True)
                }
                tensors = [
                    ones[key] if buffers == "one tensor" else view(ones[key]) for key in keys
                ]
        for array, tensor in zip(arrays, tensors, strict=True):
            self._check(tensor, array, f"{buffers} input")
        return tensors

    def packed(self, operands: Sequence[Operand]) -> list[Any]:
        """Return operands with all arrays of the first one's dtype in one buffer.

        Raises:
            UnfaithfulLayoutError: a tensor does not read back as its array.

        """
        arrays = [array for array in flat(operands) if array.size]
        together = [array for array in arrays if array.dtype == arrays[0].dtype]
        with self.entered():
            parts = iter(packed(together))

        def placed(array: Array) -> Tensor:
            if not any(array is one for one in together):
                return self.upload(array)
            tensor = next(parts)
            self._check(tensor, array, "input in one buffer with others")
            return tensor

        return [mapped(placed, operand) for operand in operands]

    def _check(self, tensor: Tensor, array: Array, what: str) -> None:
        if not same_bits(self.read(tensor), np.asarray(array)):
            raise UnfaithfulLayoutError(f"the {what} of {tensor.type} does not read back")

    def call(
        self, spec: KernelSpec, operands: Sequence[Any], attributes: Mapping[str, Any]
    ) -> list[Tensor]:
        """Run the kernel the way an op does; return its outputs."""
        with self.entered():
            if spec.multiple_outputs:
                return dispatch_multiple(spec, *operands, **attributes)
            return [dispatch(spec, *operands, **attributes)]

    def attempt(
        self, spec: KernelSpec, operands: Sequence[Any], attributes: Mapping[str, Any]
    ) -> tuple[list[Tensor], list[Array]] | None:
        """Return a call's outputs and what they hold; None if it raises an error of tensorplug.

        A device that computes later raises when a result is read, or when it is synchronized.
        """
        try:
            outputs = self.call(spec, operands, attributes)
            return outputs, [self.read(tensor) for tensor in outputs]
        except TensorplugError:
            self.settle()
            return None

    def settle(self) -> None:
        """Wait for the device after a call that may be wrong: its errors have been told, or count
        for nothing.
        """
        with suppress(TensorplugError):
            self.device.backend.synchronize()

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
