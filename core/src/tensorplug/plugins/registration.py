"""Running kernels by name, registering and removing kernels and rules, explaining calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.entries import (
    decomposition_entry,
    gradient_entry,
    joint_entries,
    kernel_entry,
)
from tensorplug.contract.owner import PROGRAM
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import current_context
from tensorplug.engine.current import current_engine
from tensorplug.errors import ArgumentError
from tensorplug.plugins import provisional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.entries import OnDevice
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.registry import Handle
    from tensorplug.introspection.explanation import Explanation
    from tensorplug.typing import DTypeLike

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
        A tensor, or a list of tensors if the spec has multiple outputs.

    Raises:
        ArgumentError, ShapeError, DTypeError: the call does not fit the spec.
        KernelNotFoundError: the active backend cannot run it.

    Examples:
        >>> tp.run_kernel("SquaredDifference", {"a": [1.0, 2.0], "b": 4.0})
        Tensor([9., 4.], dtype=float32, device='cpu')
        >>> tp.run_kernel("Concat", {"xs": [[1, 2], [3]]}, {"axis": 0})
        Tensor([1, 2, 3], dtype=int32, device='cpu')

    """
    engine = current_engine()
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
    checked = _attributes(attributes, found)
    result: Tensor | list[Tensor] = engine.run(current_context(), found, ordered, checked)
    return result


def _in_order(inputs: object, spec: KernelSpec) -> list[Any]:
    """Return inputs in order; refuse a single tensor, which would be split into its rows."""
    if not isinstance(inputs, list | tuple):
        raise ArgumentError(
            f"{spec.name}: inputs must be a mapping by name, or a list in the order "
            f"({', '.join(spec.input_names)}), got {type(inputs).__name__}"
        )
    return list(inputs)


def _attributes(attributes: Mapping[str, Any] | None, spec: KernelSpec) -> Mapping[str, Any]:
    if attributes is None or isinstance(attributes, Mapping):
        return attributes or {}
    raise ArgumentError(
        f"{spec.name}: attributes must be a mapping by name, got {type(attributes).__name__}"
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
        backend: the name of a backend, loaded or not.
        function: of buffers, as ``KernelTable.register`` describes; with ``prepares`` of types,
            as ``KernelTable.prepare`` does.
        prepares: see ``function``.
        dtypes: the dtypes that the kernel supports; all by default.
        override: replace a registered kernel.
        setup: called with the Backend once for each device: at once for open devices, for
            others when they open.
        teardown: called with the Backend once, when the kernel is removed or the device closed.

    Returns:
        A handle whose ``remove()`` undoes the registration and restores what it replaced; also
        a context manager.

    Raises:
        RegistrationError: the function does not fit the spec, or a kernel is registered already.
        ArgumentError: ``backend`` is not the name of a backend, or the spec is unknown.

    Examples:
        >>> spec = tp.KernelSpec("Halve", ("x",), lambda x: x)
        >>> with tp.register_kernel(spec, "cpu", lambda x: x / 2):
        ...     tp.run_kernel(spec, [[1.0, 3.0]])
        Tensor([0.5, 1.5], dtype=float32, device='cpu')

    """
    engine = current_engine()
    found = engine.registry.spec(spec)
    _check_backend_name(backend, f"kernel {found.name!r}")
    entry = kernel_entry(
        found, function, prepares=prepares, dtypes=dtypes, setup=setup, teardown=teardown
    )
    return _add(engine, kernels=[(backend, entry)], override=override)


def copy_registered_kernels(source: str, target: str, *, override: bool = False) -> Handle:
    """Register all kernels of one backend for another, which must have the same buffers.

    This includes their set-up and tear-down functions. Returns and raises as
    ``register_kernel``; all kernels are copied, or none.

    Examples:
        >>> class Twin(type(tp.find_backend("cpu"))):
        ...     name = "twin"
        >>> tp.register_backend("twin", Twin)
        >>> with tp.copy_registered_kernels("cpu", "twin"):
        ...     tp.kernels_for("twin") == tp.kernels_for("cpu")
        True
        >>> tp.remove_backend("twin")

    """
    for name in (source, target):
        _check_backend_name(name, "copy_registered_kernels")
    engine = current_engine()
    if not any(device.backend_name == source for device in engine.devices.listed()):
        engine.devices.open(source)  # this registers its kernels
    state = engine.registry.state
    owned = [state.kernel(kernel, owner) for kernel, owner in state.kernels if owner == source]
    copies = [(target, replace(kernel.entry)) for kernel in owned if kernel is not None]
    return _add(engine, kernels=copies, override=override)


def _check_backend_name(name: object, role: str) -> None:
    if not isinstance(name, str) or ":" in name:
        raise ArgumentError(
            f"{role}: kernels are registered for all devices of a backend; pass its name, such as "
            f"'cpu', not {quoted(name)}"
        )


def register_gradient(
    spec: KernelSpec | str,
    wrt: str | Sequence[str],
    rule: Callable[..., Any] | None,
    *,
    override: bool = False,
) -> Handle:
    """Register the gradient rule of a kernel for one input; None if there is no gradient.

    The rule is as ``GradientTable.wrt`` describes; for a list of inputs, which share work, as
    ``GradientTable.of`` does. Returns and raises as ``register_kernel``.

    Examples:
        >>> spec = tp.KernelSpec("Halve", ("x",), lambda x: x)
        >>> gradient = tp.grad(lambda x: tp.sum(tp.run_kernel(spec, [x])))
        >>> with (
        ...     tp.register_kernel(spec, "cpu", lambda x: x / 2),
        ...     tp.register_gradient(spec, "x", lambda dy: dy / 2),
        ... ):
        ...     gradient(tp.asarray([1.0, 3.0]))
        Tensor([0.5, 0.5], dtype=float32, device='cpu')

    """
    engine = current_engine()
    found = engine.registry.spec(spec)
    if isinstance(wrt, str):
        entries = [gradient_entry(found, wrt, rule)]
    elif not isinstance(wrt, list | tuple) or rule is None:
        raise ArgumentError(
            f"register_gradient: wrt must be the name of an input of {found.name}, or a list of "
            f"names with a joint rule, got {quoted(wrt)}"
        )
    else:
        entries = joint_entries(found, wrt, rule)
    return _add(engine, gradients=entries, override=override)


def register_decomposition(
    spec: KernelSpec | str,
    function: Callable[..., Any],
    *,
    on_host: bool = False,
    override: bool = False,
) -> Handle:
    """Register a kernel written with other ops, as ``DecompositionTable.of`` describes.

    ``on_host``: ``function`` works on NumPy arrays instead (``DecompositionTable.on_host``).

    Examples:
        >>> spec = tp.KernelSpec("Halve", ("x",), lambda x: x)
        >>> with tp.register_decomposition(spec, lambda x: x * 0.5):
        ...     print(tp.run_kernel(spec, [[1.0, 3.0]]), tp.explain(spec).how)
        Tensor([0.5, 1.5], dtype=float32, device='cpu') decomposed

    """
    engine = current_engine()
    entry = decomposition_entry(engine.registry.spec(spec), function, on_host=on_host)
    return _add(engine, decompositions=[entry], override=override)


def _add(engine: Engine, **entries: Any) -> Handle:
    """Register entries of the running program; undo it if it is a plugin that fails to load."""
    return engine.registry.add(PROGRAM, **entries, into=provisional.handles())


def unregister_kernel(spec: KernelSpec | str, backend: str) -> None:
    """Remove the current kernel of a backend, of any owner.

    Raises:
        RegistrationError: there is none.

    Examples:
        >>> spec = tp.KernelSpec("Halve", ("x",), lambda x: x)
        >>> handle = tp.register_kernel(spec, "cpu", lambda x: x / 2)
        >>> tp.unregister_kernel(spec, "cpu")
        >>> "Halve" in tp.kernels_for("cpu")
        False

    """
    engine = current_engine()
    engine.registry.remove_kernel(engine.registry.spec(spec).name, backend)


def unregister_gradient(spec: KernelSpec | str, wrt: str | None = None) -> None:
    """Remove the current gradient rule for one input, or for all inputs.

    Raises:
        RegistrationError: there is none.

    Examples:
        >>> spec = tp.KernelSpec("Halve", ("x",), lambda x: x)
        >>> handle = tp.register_gradient(spec, "x", lambda dy: dy / 2)
        >>> tp.unregister_gradient(spec, "x")
        >>> tp.unregister_gradient(spec, "x")
        Traceback (most recent call last):
            ...
        tensorplug.errors.RegistrationError: no gradient of 'Halve' with respect to 'x' ...

    """
    engine = current_engine()
    engine.registry.remove_gradient(engine.registry.spec(spec).name, wrt)


def kernels_for(backend: str) -> list[str]:
    """Return the sorted names of the kernels of a backend, which is opened if necessary.

    Examples:
        >>> {"Add", "Conv2D"} <= set(tp.kernels_for("cpu"))
        True

    """
    engine = current_engine()
    name = engine.devices.open(backend).backend_name
    return sorted(kernel for kernel, owner in engine.registry.state.kernels if owner == name)


def explain(
    spec: KernelSpec | str,
    inputs: Sequence[Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
    *,
    backend: str | None = None,
    dtype: DTypeLike | None = None,
) -> Explanation:
    """Say how a kernel would run: native, decomposed, by fallback, or why not.

    Args:
        spec: a spec or a name.
        inputs: tensors or tensor types, in order. Without them the answer is general: it says
            what is registered, not what a particular call would do.
        attributes: the attributes of the call, by name.
        backend: the active one by default.
        dtype: restricts a general answer.

    No kernel runs. A decomposition is called with tensors without data, so that its calls are
    explained too (``inner``), and missing kernels are found. Of a large call, the backend is asked
    for its groups. ``str()`` formats the result.

    Examples:
        >>> explanation = tp.explain("SquaredDifference", backend="cpu")
        >>> explanation.how
        'native'
        >>> print(explanation)
        SquaredDifference(a, b) on backend 'cpu': native
          native: kernel of tensorplug-cpu ...

    """
    from tensorplug.introspection.explanation import Explanation  # loaded at first use

    engine = current_engine()
    found = engine.registry.spec(spec)
    device = engine.devices.open(backend) if backend else engine.devices.of(current_context())
    if inputs is None:
        wanted = None if dtype is None else dt.of(dtype, "explain")
        return Explanation.in_general(engine, found, device, wanted)
    variadic = [declared.variadic for declared in found.declared]
    types = [
        [_type(tensor) for tensor in value]
        if at < len(variadic) and variadic[at] and isinstance(value, list | tuple)
        else _type(value)
        for at, value in enumerate(_in_order(inputs, found))
    ]
    return Explanation.of(engine, found, device, types, _attributes(attributes, found))


def _type(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, TensorType):
        return TensorType(dt.of(value.dtype, "explain"), value.shape)
    return as_tensor(value, what="explain: an input").type
