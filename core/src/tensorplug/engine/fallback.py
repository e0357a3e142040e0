"""Fallback: a call whose device cannot run it runs on the host, or on another backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tensorplug.dispatch.context import current_context, use_context
from tensorplug.engine import notices
from tensorplug.engine.operands import transfer, upload
from tensorplug.errors import FallbackWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.registry import Registry
    from tensorplug.engine.settings import Fallback

__all__ = ["Resolver", "on_backend", "on_host"]


class Resolver(Protocol):
    """What resolving a plan takes from an engine."""

    fallback: Fallback
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
        """Yield devices of other backends, open ones first, then those that open now."""


def on_host(
    device: Device, function: Callable[..., Any], extras: Mapping[str, Any], *, multiple: bool
) -> Callable[..., Any]:
    """Return what a plan calls with tensors: ``function`` on copies of them in host memory.

    Its results go to ``device``, or to where that keeps tensors of their dtype.
    """

    def call(*tensors: Any) -> Tensor | list[Tensor]:
        arrays = [_read(tensor) for tensor in tensors]
        with np.errstate(all="ignore"):  # NaN and infinity are values here as on any device
            result = function(*arrays, **extras)
        if multiple:
            return [upload(np.asarray(item), device) for item in _sequence(result)]
        return upload(np.asarray(result), device)

    return call


def _sequence(result: Any) -> Sequence[Any]:
    if not isinstance(result, list | tuple):
        raise TypeError(f"a function on the host returned {type(result).__name__}, not a list")
    return result


def _read(given: Any) -> Any:
    """Return what the host sees of an input: one, a list of them, or none."""
    if given is None:
        return None
    if isinstance(given, list):
        return [_read(item) for item in given]
    return given._placement.device.backend.to_host(given._buffer)


def on_backend(
    engine: Resolver, spec: KernelSpec, attributes: Mapping[str, Any], home: Device, device: Device
) -> Callable[..., Any]:
    """Return what a plan of ``home`` calls with tensors: the kernel of another backend."""

    def call(*tensors: Any) -> Any:
        counts = home.counters.fallbacks
        if engine.fallback == "warn" and spec.name not in counts:
            notices.warn(
                f"kernel {spec.name!r} runs on backend {device.name!r}, because backend "
                f"{home.name!r} has neither a kernel nor a decomposition for it "
                "(TENSORPLUG_FALLBACK=error forbids, =allow silences this)",
                FallbackWarning,
            )
        counts[spec.name] = counts.get(spec.name, 0) + 1
        context = current_context().replace(device=device, recording=None)
        with use_context(context):
            result = engine.run(context, spec, tensors, attributes)
        if isinstance(result, list):
            return [transfer(item, home) for item in result]
        return transfer(result, home)

    return call
