"""The array API standard's namespace info: devices, dtypes, capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.array_api.dtype_queries import isdtype
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.context import current_context
from tensorplug.engine.current import current_engine
from tensorplug.plugins.backends import devices

if TYPE_CHECKING:
    from tensorplug.array_api.dtype_queries import KindName
    from tensorplug.contract.dtypes import DType


class NamespaceInfo:
    """The result of ``__array_namespace_info__()``."""

    def capabilities(self) -> dict[str, Any]:
        """Return the optional capabilities, and the maximum rank.

        All data pass through NumPy arrays, so NumPy's maximum applies to every device.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the name of the active device."""
        return current_engine().devices.of(current_context()).name

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:  # noqa: ARG002  # the same on all
        """Return the default dtypes."""
        return {
            "real floating": dt.default_float,
            "complex floating": dt.default_complex,
            "integral": dt.default_int,
            "indexing": dt.default_int,
        }

    def devices(self) -> tuple[str, ...]:
        """Return the names of all devices, of all installed backends."""
        names = devices()
        active = self.default_device()
        return (*names,) if active in names else (active, *names)

    def dtypes(
        self, *, device: str | None = None, kind: KindName | tuple[KindName, ...] | None = None
    ) -> dict[str, DType]:
        """Return the dtypes of a device by name: all, or those of one or several kinds.

        They do not include narrow floats and strings, which the standard does not define.
        """
        engine = current_engine()
        opened = engine.devices.of(current_context()) if device is None else engine.open(device)
        return {
            dtype.name: dtype
            for dtype in sorted(opened.backend.dtypes, key=lambda dtype: dtype.name)
            if dtype.compute is dtype
            and dtype not in (dt.string, *dt.STORAGE)
            and (kind is None or isdtype(dtype, kind))
        }


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  # the array API standard's name
    """Return the namespace info of the array API standard."""
    return NamespaceInfo()
