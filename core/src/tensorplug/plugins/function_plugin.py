"""A plugin made of functions that the running program registers, without a distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import signatures
from tensorplug.contract.arguments import quoted
from tensorplug.contract.hooks import hookimpl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug.contract.backend import Backend
    from tensorplug.contract.tables import KernelTable


class FunctionPlugin:
    """The plugin of a backend that ``create(device)``, or ``create()``, opens.

    Raises:
        RegistrationError: ``create`` has a parameter other than ``device``.

    """

    def __init__(
        self, name: str, create: Callable[..., Any], kernels: Iterable[KernelTable]
    ) -> None:
        self._name = name
        self._asks = signatures.check_names(create, f"backend {quoted(name)}", ("device",))
        self._create = create
        self._kernels = tuple(kernels)
        self.__qualname__ = signatures.location(create)

    @hookimpl
    def tensorplug_create_backend(self, device: str | None) -> Any:
        """Call the function."""
        return self._create(*([device] if self._asks else []))

    @hookimpl
    def tensorplug_kernels(self, backend: Backend) -> Iterable[KernelTable]:
        """Return the tables."""
        return self._kernels if backend.name == self._name else ()
