"""What ops and tensors ask of the engine, which is in a layer above them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.observer import Observer
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["EngineProtocol"]


class EngineProtocol(Protocol):
    """The methods of an engine that ops and tensors use."""

    observers: tuple[Observer, ...]
    run_backward: Callable[..., Any] | None
    """Runs a backward pass as a program if it can (``compile.backward``)."""
    run_steps: Callable[..., list[Tensor]] | None
    """Runs a loop of ops (``ops.stepping``)."""

    def run(
        self,
        context: Context,
        spec: KernelSpec,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Any:
        """Run one kernel on the slow path; return a tensor or a list of them."""

    def convert(
        self,
        context: Context,
        value: Any,
        dtype: DType | None,
        what: str,
        *,
        device: str | None = None,
        copy: bool | None = True,
    ) -> Tensor:
        """Return ``value`` as a tensor on ``device`` (None: the context's).

        Return a tensor on that device unchanged. Copy an array; with ``copy`` None share its
        memory if the device can, with False always. ``what`` names the value in messages.
        """

    def constant(
        self, context: Context, spec: KernelSpec, position: int, value: Any, peer: Tensor
    ) -> Tensor:
        """Return numbers, input ``position`` of a call, as a cached tensor.

        ``value`` is a Python number, whose dtype follows that of ``peer``, or a tuple of integers.
        """

    def open(self, name: str | None) -> Device:
        """Return the device called ``name``, opening it if necessary; None: the active one."""

    def follow(self, context: Context) -> None:
        """Set ``context.plans`` to those of the active device, now and when it changes."""
