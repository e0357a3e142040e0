"""Running kernels by name, changing what is registered, and asking what would run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.owner import PROGRAM
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.contract.tables import decomposition_entry, gradient_entry, kernel_entry
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import current_context
from tensorplug.engine.current import in_use
from tensorplug.engine.registry import Handle
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.tables import OnDevice
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.introspection.explanation import Explanation

__all__ = [
    "copy_registered_kernels",
    "explain",
    "kernels_for",
    "register_decomposition",
    "register_gradient",
    "register_kernel",
    "run_kernel",
    "unregister_gradient",
    "unregister_kernel",
]


def run_kernel(
    spec: KernelSpec | str,
    inputs: Mapping[str, Any] | Sequence[Any],
    attributes: Mapping[str, Any] | None = None,
) -> Tensor | list[Tensor]:
    """Run a kernel by spec or name on the active backend.

    Args:
        spec: such as ``"SquaredDifference"``.
        inputs: by name (a list for a variadic input, absent optional ones left out), or all of
            them in order.
        attributes: by name; absent ones take their defaults.

    Returns:
        A tensor, or a list of tensors if the spec has several outputs.

    Raises:
        ArgumentError, ShapeError, DTypeError: the call does not fit the spec.
        KernelNotFoundError: the active backend has no way to run it.

    """
    engine = in_use()
    found = engine.registry.spec(spec)
    if isinstance(inputs, Mapping):
        unknown = [name for name in inputs if name not in found.input_names]
        if unknown:
            raise ArgumentError(
                f"{found.name} has no input {unknown[0]!r}; its inputs: "
                f"{', '.join(found.input_names) or 'none'}"
            )
        ordered = [inputs.get(name) for name in found.input_names]
    else:
        ordered = _in_order(inputs, found)
    given = _attributes(attributes, found)
    result: Tensor | list[Tensor] = engine.run(current_context(), found, ordered, given)
    return result


def _in_order(inputs: object, spec: KernelSpec) -> list[Any]:
    """Return inputs given in order; a tensor alone would be taken apart into its rows."""
    if not isinstance(inputs, list | tuple):
        raise ArgumentError(
            f"{spec.name}: inputs must be a mapping by name, or a list in the order "
            f"({', '.join(spec.input_names)}), got {type(inputs).__name__}"
        )
    return list(inputs)


def _attributes(given: Mapping[str, Any] | None, spec: KernelSpec) -> Mapping[str, Any]:
    if given is None or isinstance(given, Mapping):
        return given or {}
    raise ArgumentError(
        f"{spec.name}: attributes must be a mapping by name, got {type(given).__name__}"
    )


def register_kernel(
    spec: KernelSpec | str,
    backend: str,
    function: Callable[..., Any],
    *,
    prepares: bool = False,
    dtypes: Iterable[DType] | None = None,
    override: bool = False,
    setup: OnDevice | None = None,
    teardown: OnDevice | None = None,
) -> Handle:
    """Register a kernel for a backend in the running program.

    Args:
        spec: a spec of your own, or the name of a known one.
        backend: its name, loaded or not.
        function: of buffers, as ``KernelTable.register`` describes; with ``prepares`` of types,
            as ``KernelTable.prepare`` does.
        prepares: see ``function``.
        dtypes: those for which the kernel is native; all by default.
        override: replace a kernel that is registered already.
        setup: called with the Backend once for each device: at once on those that are open,
            else when one is opened.
        teardown: called with the Backend once when the kernel is removed or the device closed.

    Returns:
        A handle whose ``remove()`` undoes it, uncovering what it replaced; also a context
        manager.

    Raises:
        RegistrationError: the function does not fit the spec, or a kernel is there already.
        ArgumentError: ``backend`` is no name of a backend, or the spec is not known.

    """
    engine = in_use()
    found = engine.registry.spec(spec)
    _check_backend_name(backend, f"kernel {found.name!r}")
    entry = kernel_entry(
        found, function, prepares=prepares, dtypes=dtypes, setup=setup, teardown=teardown
    )
    return engine.registry.add(PROGRAM, kernels=[(backend, entry)], override=override)


def copy_registered_kernels(source: str, target: str, *, override: bool = False) -> Handle:
    """Register all kernels in force for one backend for another, which has the same buffers.

    Their set-up and tear-down functions go with them. Returns and raises as
    ``register_kernel``; all kernels are copied, or none.
    """
    for name in (source, target):
        _check_backend_name(name, "copy_registered_kernels")
    engine = in_use()
    if not any(device.backend_name == source for device in engine.devices.listed()):
        engine.devices.open(source)  # its kernels are known from then on
    state = engine.registry.state
    owned = [state.kernel(kernel, owner) for kernel, owner in state.kernels if owner == source]
    copies = [(target, replace(item.entry)) for item in owned if item is not None]
    return engine.registry.add(PROGRAM, kernels=copies, override=override)


def _check_backend_name(name: object, role: str) -> None:
    if not isinstance(name, str) or ":" in name:
        raise ArgumentError(
            f"{role}: kernels are registered for a backend and serve all its devices; give its "
            f"name, such as 'cpu', not {name!r}"
        )


def register_gradient(
    spec: KernelSpec | str,
    wrt: str,
    rule: Callable[..., Any] | None,
    *,
    override: bool = False,
) -> Handle:
    """Register the gradient rule of a kernel for one input; None states that none exists.

    The rule is as ``GradientTable.wrt`` describes. Returns and raises as ``register_kernel``.
    """
    engine = in_use()
    entry = gradient_entry(engine.registry.spec(spec), wrt, rule)
    return engine.registry.add(PROGRAM, gradients=[entry], override=override)


def register_decomposition(
    spec: KernelSpec | str,
    function: Callable[..., Any],
    *,
    on_host: bool = False,
    override: bool = False,
) -> Handle:
    """Register a kernel written with other ops, as ``DecompositionTable.of`` describes.

    ``on_host``: ``function`` works on NumPy arrays instead (``DecompositionTable.on_host``).
    """
    engine = in_use()
    entry = decomposition_entry(engine.registry.spec(spec), function, on_host=on_host)
    return engine.registry.add(PROGRAM, decompositions=[entry], override=override)


def unregister_kernel(spec: KernelSpec | str, backend: str) -> None:
    """Remove the kernel in force for a backend, whoever registered it.

    Raises:
        RegistrationError: when there is none.

    """
    engine = in_use()
    engine.registry.remove_kernel(engine.registry.spec(spec).name, backend)


def unregister_gradient(spec: KernelSpec | str, wrt: str | None = None) -> None:
    """Remove the gradient rule in force for one input, or for all of them.

    Raises:
        RegistrationError: when there is none.

    """
    engine = in_use()
    engine.registry.remove_gradient(engine.registry.spec(spec).name, wrt)


def kernels_for(backend: str) -> list[str]:
    """Return the names of the kernels registered for a backend, sorted; opens it if need be."""
    engine = in_use()
    name = engine.devices.open(backend).backend_name
    return sorted(kernel for kernel, owner in engine.registry.state.kernels if owner == name)


def explain(
    spec: KernelSpec | str,
    inputs: Sequence[Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
    *,
    backend: str | None = None,
    dtype: Any = None,
) -> Explanation:
    """Say how a kernel would run: native, decomposed, by fallback, or why not.

    Args:
        spec: a spec or a name.
        inputs: tensors or tensor types, in order. Without them the answer is general: what is
            registered, not what this or that call would do.
        attributes: by name, of the call.
        backend: the active one by default.
        dtype: restricts a general answer.

    No kernel is run. A decomposition is called with tensors that hold no data, so that the calls
    it makes are explained in turn (``inner``), and what is missing there is found.
    ``str()`` of the result is for reading.
    """
    from tensorplug.introspection.explanation import Explanation  # rarely needed

    engine = in_use()
    found = engine.registry.spec(spec)
    device = engine.devices.open(backend) if backend else engine.devices.of(current_context())
    if inputs is None:
        wanted = None if dtype is None else dt.of(dtype, "explain")
        return Explanation.in_general(engine, found, device, wanted)
    lists = [item.variadic for item in found.declared]
    types = [
        [_type(one) for one in item]
        if at < len(lists) and lists[at] and isinstance(item, list | tuple)
        else _type(item)
        for at, item in enumerate(_in_order(inputs, found))
    ]
    return Explanation.of(engine, found, device, types, _attributes(attributes, found))


def _type(given: Any) -> Any:
    if given is None or isinstance(given, TensorType):
        return given
    return as_tensor(given, what="explain: an input").type
