"""The hooks through which tensorplug finds the backend, its devices and its kernels."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import jax
import jaxlib

from tensorplug.plugin import (
    Backend,
    BackendUnavailableError,
    DeviceInfo,
    KernelTable,
    hookimpl,
)
from tensorplug_xla.backend import DTYPES, XLABackend, kernel
from tensorplug_xla.formulas import FORMULAS
from tensorplug_xla.lowering import applied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tensorplug_xla.formulas import Formula

kernels = KernelTable()


def _preparing(formula: Formula) -> Callable[..., Any]:
    """Return what makes kernels of a formula, with the parameters that a table asks for."""

    def prepare(*types: Any, attributes: Mapping[str, Any], out: Any, backend: XLABackend) -> Any:
        return kernel(applied(formula, attributes, out), types, backend.place)

    named = [
        *(
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            for name in formula.inputs
        ),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
            for name in ("attributes", "out", "backend")
        ),
    ]
    prepare.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return prepare


for _formula in FORMULAS.values():
    kernels.prepare(_formula.spec)(_preparing(_formula))


def _places() -> Sequence[jax.Device]:
    try:
        places: Sequence[jax.Device] = jax.local_devices()
    except RuntimeError as error:
        raise BackendUnavailableError(f"JAX finds no device: {error}") from error
    return places


@hookimpl
def tensorplug_create_backend(device: str | None) -> Backend:
    """Open a device of JAX by its number; the first if None.

    Raises:
        BackendUnavailableError: there is no such device.

    """
    places = _places()
    numbers = [str(number) for number in range(len(places))]
    if (device or "0") not in numbers:
        raise BackendUnavailableError(
            f"there is no device {device!r}; JAX's devices are {', '.join(numbers)}"
        )
    return XLABackend(places[int(device or "0")])


@hookimpl
def tensorplug_devices() -> Sequence[DeviceInfo]:
    """Return the devices that JAX finds."""
    driver = f"jaxlib {jaxlib.__version__}"
    return [DeviceInfo(place.device_kind, driver, None, DTYPES) for place in _places()]


@hookimpl
def tensorplug_kernels() -> Iterable[KernelTable]:
    """Return the kernels. The core asks a backend plugin for its own backend only."""
    return (kernels,)


@hookimpl
def tensorplug_diagnostics() -> Mapping[str, str]:
    """Return the versions of JAX."""
    return {"jax": jax.__version__, "jaxlib": jaxlib.__version__}
