"""What an array API consumer may ask of the namespace: devices, dtypes, capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.array_api.dtype_queries import isdtype
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.context import current_context
from tensorplug.engine.current import current_engine
from tensorplug.plugins.backends import devices

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType

__all__ = ["NamespaceInfo"]


class NamespaceInfo:
    """Answers of ``__array_namespace_info__()``, in the standard's words."""

    def capabilities(self) -> dict[str, Any]:
        """Return what a namespace may lack, and the largest rank.

        All data pass through NumPy's arrays on the host, so its limit holds on every device.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the name of the active device."""
        return current_engine().devices.of(current_context()).name

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:  # noqa: ARG002  # the same on all
        """Return the dtypes that results have where nothing else decides."""
        return {
            "real floating": dt.default_float,
            "complex floating": dt.default_complex,
            "integral": dt.default_int,
            "indexing": dt.default_int,
        }

    def devices(self) -> list[str]:
        """Return the names of all devices, of all installed backends."""
        names = list(devices())
        here = self.default_device()
        return names if here in names else [here, *names]

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """Return the dtypes of a device by name: all, or those of one kind or several.

        The standard knows neither float16 nor strings, so they are not among them.
        """
        engine = current_engine()
        place = engine.devices.of(current_context()) if device is None else engine.open(device)
        return {
            dtype.name: dtype
            for dtype in sorted(place.backend.dtypes, key=lambda one: one.name)
            if dtype not in (dt.float16, dt.string) and (kind is None or isdtype(dtype, kind))
        }


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  # the array API standard's name
    """Return what answers an array API consumer's questions about devices and dtypes."""
    return NamespaceInfo()
