"""Tables in which a kernel that its decomposition could replace says why it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tensorplug.plugin import KernelTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import KernelSpec

    F = TypeVar("F", bound=Callable[..., Any])
    Reason = Literal["faster", "more accurate"]


class Kernels(KernelTable):
    """Kernels, and what they are better at than the group of their decomposition.

    ``because``: "faster" by more than 10 %, with LLVM or without it, for few elements or for many
    (``python tests/benchmarks --decompositions``), or "more accurate"; a primitive has no reason.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reasons: dict[str, Reason] = {}

    def register(
        self, spec: KernelSpec, *, because: Reason | None = None, **options: Any
    ) -> Callable[[F], F]:
        """Decorate as ``KernelTable.register`` does."""
        if because:
            self.reasons[spec.name] = because
        return super().register(spec, **options)

    def prepare(
        self, spec: KernelSpec, *, because: Reason | None = None, **options: Any
    ) -> Callable[[F], F]:
        """Decorate as ``KernelTable.prepare`` does."""
        if because:
            self.reasons[spec.name] = because
        return super().prepare(spec, **options)
