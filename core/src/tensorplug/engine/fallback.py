"""Fallback: running a call on the host or on another backend if the device cannot run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tensorplug.dispatch.commitment import release
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.engine.operands import transfer, upload
from tensorplug.errors import FallbackWarning
from tensorplug.system import notices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.handlers import Handlers
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.registry import Registry
    from tensorplug.engine.settings import Fallback


class Resolver(Protocol):
    """The members of an engine that resolving a plan uses."""

    fallback: Fallback
    handlers: Handlers
    registry: Registry

    def run(
        self,
        context: Context,
        spec: KernelSpec,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Any:
        """Run one kernel."""

    def fallback_devices(self, home: Device) -> Iterator[Device]:
        """Yield devices of other backends, open ones first; open the others."""


def on_host(
    device: Device, function: Callable[..., Any], extras: Mapping[str, Any], *, multiple: bool
) -> Callable[..., Any]:
    """Return the call of a plan that runs ``function`` on copies of tensors in host memory.

    It copies the results to ``device``, or to the device that holds tensors of their dtype.
    """

    def call(*tensors: Any) -> Tensor | list[Tensor]:
        arrays = [_read(tensor) for tensor in tensors]
        with np.errstate(all="ignore"):  # NaN and infinity are valid results, as on any device
            result = function(*arrays, **extras)
        if multiple:
            return [upload(np.asarray(output), device) for output in _check_list(result)]
        return upload(np.asarray(result), device)

    return call


def _check_list(result: Any) -> Sequence[Any]:
    if not isinstance(result, list | tuple):
        raise TypeError(f"a function on the host returned {type(result).__name__}, not a list")
    return result


def _read(operand: Any) -> Any:
    """Return an input in host memory: an array, a list of arrays, or None."""
    if operand is None:
        return None
    if isinstance(operand, list):
        return [_read(tensor) for tensor in operand]
    return operand._placement.device.read(operand._buffer, operand.type)


def on_backend(
    engine: Resolver, spec: KernelSpec, attributes: Mapping[str, Any], home: Device, device: Device
) -> Callable[..., Any]:
    """Return the call of a plan of ``home`` that runs the kernel of another backend."""

    def call(*tensors: Any) -> Any:
        counts = home.counters.fallbacks
        # Once per kernel: a training loop would repeat it in every step.
        if engine.fallback == "warn" and spec.name not in counts:
            notices.warn(
                f"kernel {spec.name!r} runs on backend {device.name!r}, because backend "
                f"{home.name!r} has neither a kernel for it nor those of its decomposition "
                "(TENSORPLUG_FALLBACK=error forbids, =allow silences this)",
                FallbackWarning,
            )
        counts[spec.name] = counts.get(spec.name, 0) + 1
        # The tape records one call of the kernel at home, where autocast has chosen its dtype.
        context = current_context().replace(device=device, recording=None, autocast=None)
        with use_context(context):
            inputs = [release(tensor) for tensor in tensors]  # committed ones would stay at home
            result = engine.run(context, spec, inputs, attributes)
        if isinstance(result, list):
            return [transfer(tensor, home) for tensor in result]
        return transfer(result, home)

    return call
