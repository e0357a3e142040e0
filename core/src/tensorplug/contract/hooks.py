"""The hooks that a plugin may implement.

A hook function may have any of the parameters shown, in any order, without defaults. Hooks are
called when a plugin is loaded or a device is opened, never per kernel.
"""

# mypy: disable-error-code="empty-body"
# A hook specification has no body: pluggy reads its name and its parameters.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pluggy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tensorplug.contract.backend import Backend, DeviceInfo
    from tensorplug.contract.rules import BatchingTable, GradientTable, RuleTable, TangentTable
    from tensorplug.contract.tables import DecompositionTable, KernelTable


PROJECT: Final = "tensorplug"

hookspec: Final = pluggy.HookspecMarker(PROJECT)
hookimpl: Final = pluggy.HookimplMarker(PROJECT)


@hookspec(firstresult=True)
def tensorplug_create_backend(device: str | None) -> Backend | None:
    """Open a device and return the backend object for it. Backend plugins must have this.

    ``device`` is the number after the colon in ``set_backend("acme:1")``, as text, or None for
    number 0, the default device. (Without ``tensorplug_devices`` it may be any text.) The returned
    object has every member of ``tensorplug.plugin.Backend``, and its ``name`` is the entry
    point's name.

    Return None if there is no such hardware, or better, raise ``BackendUnavailableError`` with
    the reason: which driver or device is missing.
    """


@hookspec(firstresult=True)
def tensorplug_devices() -> Sequence[DeviceInfo]:
    """Return the available devices, number 0 first, without opening any.

    With this, users may also choose by a part of the description: ``"acme:radeon"``. Return
    ``[]`` if there are none. A plugin with one device does not need it.
    """


@hookspec
def tensorplug_kernels(backend: Backend) -> Iterable[KernelTable]:
    """Return tables of kernels for the hardware of ``backend``.

    It is called for the plugin's own backend, or, in an extension, for every backend that is
    opened; an extension checks ``backend.name`` and returns ``()`` for backends without kernels.
    """


@hookspec
def tensorplug_rules() -> Iterable[RuleTable]:
    """Return tables of rules: gradients, and where derived ones are slow, tangents and batching.

    They use ops, and so work on every backend.
    """


@hookspec
def tensorplug_gradients() -> Iterable[GradientTable]:
    """Return tables of gradient rules (the older hook for a part of ``tensorplug_rules``)."""


@hookspec
def tensorplug_tangents() -> Iterable[TangentTable]:
    """Return tables of tangent rules (the older hook for a part of ``tensorplug_rules``)."""


@hookspec
def tensorplug_batching() -> Iterable[BatchingTable]:
    """Return tables of batching rules (the older hook for a part of ``tensorplug_rules``)."""


@hookspec
def tensorplug_decompositions() -> Iterable[DecompositionTable]:
    """Return tables of decompositions into other ops, for backends without the kernels."""


@hookspec
def tensorplug_chained_ops() -> Iterable[Callable[..., Any]]:
    """Return ops marked ``@chained``, which become methods of ``Tensor`` under their names."""


@hookspec
def tensorplug_conformance_cases() -> Iterable[Any]:
    """Return tables of conformance cases (of ``tensorplug_conformance``), to certify own ops.

    Only the conformance suite calls this, so a plugin may import the suite inside it.
    """


@hookspec
def tensorplug_diagnostics() -> Mapping[str, str]:
    """Return versions of drivers and runtimes by name, for ``doctor`` and for reports.

    It is called even if no device opens, and must then return what it can.
    """
