"""The kernels of ``remote``: those that the server's backend has, each as a message."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tensorplug.plugin import KernelRefusedError, KernelSpec, KernelTable, specs
from tensorplug_remote.backend import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug_remote.backend import RemoteBackend


def table_for(backend: RemoteBackend) -> KernelTable:
    """Return a kernel for each one of the server that this version knows."""
    kernels = KernelTable()
    for spec in specs:
        if spec.name in backend.kernels:
            kernels.prepare(spec, dtypes=backend.kernels[spec.name])(_preparing(spec))
    return kernels


def _preparing(spec: KernelSpec) -> Callable[..., Any]:
    def prepare(
        *types: Any, backend: RemoteBackend, attributes: Mapping[str, Any], out: Any
    ) -> Call:
        outs = out if spec.multiple_outputs else (out,)
        # The kernels are registered for all servers when the first one is opened.
        if spec.dtype_of(types, outs) not in backend.kernels.get(spec.name, ()):
            raise KernelRefusedError(f"the server at {backend.connection.address} has none")
        return Call(backend, spec, types, attributes, outs)

    parameter = inspect.Parameter
    inputs = [parameter(name, parameter.POSITIONAL_OR_KEYWORD) for name in spec.input_names]
    asked = [parameter(name, parameter.KEYWORD_ONLY) for name in ("backend", "attributes", "out")]
    prepare.__signature__ = inspect.Signature([*inputs, *asked])  # type: ignore[attr-defined]  # what the table reads
    return prepare
