"""The protocols of backends that say how their devices fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from tensorplug.errors import DeviceError


@runtime_checkable
class ReportsLoss(Protocol):
    """A backend that knows when its device is lost.

    ``set_backend`` and ``use_backend`` then open another in its place. Without this, users call
    ``remove_backend`` first.
    """

    def explain_loss(self) -> str:
        """Return why the device is lost for good; "" while it is not. The device is not asked."""


@runtime_checkable
class InjectsFaults(Protocol):
    """A backend whose device can be made to fail, as the conformance suite does.

    Without this, nobody sees the errors of its queue before they happen.
    """

    def inject_fault(self, kind: type[DeviceError]) -> str:
        """Make the next kernel call fail, in the queue if there is one.

        Return "", or why the device cannot be made to fail so.

        Args:
            kind: the class of the error: ``DeviceFaultError``, ``BackendMemoryError``,
                ``DeviceLostError``; or ``DeviceTimeoutError``: the call never ends, until the
                backend is closed or the process ends, and it is the core that raises this error.

        """
