"""Choosing where kernels run, and changing what is registered, for the engine in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from tensorplug import dispatch as seam
from tensorplug import dtypes as dt
from tensorplug.errors import ArgumentError
from tensorplug.explanation import Explanation
from tensorplug.registry import PROGRAM, Handle
from tensorplug.spec import KernelSpec, TensorType
from tensorplug.tables import decomposition_entry, gradient_entry, kernel_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug.dtypes import DType
    from tensorplug.engine import Engine
    from tensorplug.tensor import Tensor

__all__ = [
    "describe_device",
    "explain",
    "get_backend",
    "kernels_for",
    "register_decomposition",
    "register_gradient",
    "register_kernel",
    "run_kernel",
    "set_backend",
    "synchronize",
    "unregister_gradient",
    "unregister_kernel",
    "use_backend",
]


def _engine() -> Engine:
    return cast("Engine", seam.runner(seam.current()))


# Backends -------------------------------------------------------------------------------


def set_backend(name: str) -> None:
    """Make a backend the active one for the whole process.

    ``name``: ``"opencl"``, or ``"opencl:1"`` for one of its devices. Threads and tasks inside a
    ``use_backend`` keep theirs. Tensors of other backends stay where they are and are copied
    when a kernel needs them.

    Raises:
        BackendNotInstalledError, BackendUnavailableError, PluginLoadError,
        PluginVersionError, PluginCollisionError: the active backend stays as it was.

    """
    engine = _engine()
    engine.set_device(engine.open(name))


class use_backend:  # noqa: N801  # a context manager, called like a function
    """Make a backend the active one inside a ``with`` block, in this thread or task only.

    Raises, when entered:
        RuntimeError: this object is entered already, here or in another thread.
        BackendNotInstalledError, BackendUnavailableError, PluginLoadError,
        PluginVersionError, PluginCollisionError: as ``set_backend``.

    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._entered = seam.Entrance("use_backend")

    def __enter__(self) -> str:
        engine = _engine()
        device = engine.open(self._name)
        self._entered.enter(seam.current().replace(device=device))
        return device.name

    def __exit__(self, *error: object) -> None:
        self._entered.leave()


def get_backend() -> str:
    """Return the name of the active backend; opens one if none was used yet."""
    return _engine().device_of(seam.current()).name


def describe_device() -> str:
    """Return what hardware the active backend runs on, in its own words."""
    return _engine().device_of(seam.current()).backend.device


def synchronize() -> None:
    """Wait until the active backend has finished everything submitted to it."""
    _engine().device_of(seam.current()).backend.synchronize()


# Kernels and gradients ------------------------------------------------------------------


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
    engine = _engine()
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
    result: Tensor | list[Tensor] = engine.run(seam.current(), found, ordered, given)
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

    Returns:
        A handle whose ``remove()`` undoes it, uncovering what it replaced; also a context
        manager.

    Raises:
        RegistrationError: the function does not fit the spec, or a kernel is there already.
        ArgumentError: ``backend`` is no name of a backend, or the spec is not known.

    """
    engine = _engine()
    found = engine.registry.spec(spec)
    _check_backend_name(backend, f"kernel {found.name!r}")
    entry = kernel_entry(found, function, prepares=prepares, dtypes=dtypes)
    return engine.registry.add(PROGRAM, kernels=[(backend, entry)], override=override)


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
    engine = _engine()
    entry = gradient_entry(engine.registry.spec(spec), wrt, rule)
    return engine.registry.add(PROGRAM, gradients=[entry], override=override)


def register_decomposition(
    spec: KernelSpec | str, function: Callable[..., Any], *, override: bool = False
) -> Handle:
    """Register a kernel written with other ops, as ``DecompositionTable.of`` describes."""
    engine = _engine()
    entry = decomposition_entry(engine.registry.spec(spec), function)
    return engine.registry.add(PROGRAM, decompositions=[entry], override=override)


def unregister_kernel(spec: KernelSpec | str, backend: str) -> None:
    """Remove the kernel in force for a backend, whoever registered it.

    Raises:
        RegistrationError: when there is none.

    """
    engine = _engine()
    engine.registry.remove_kernel(engine.registry.spec(spec).name, backend)


def unregister_gradient(spec: KernelSpec | str, wrt: str | None = None) -> None:
    """Remove the gradient rule in force for one input, or for all of them.

    Raises:
        RegistrationError: when there is none.

    """
    engine = _engine()
    engine.registry.remove_gradient(engine.registry.spec(spec).name, wrt)


def kernels_for(backend: str) -> list[str]:
    """Return the names of the kernels registered for a backend, sorted; opens it if need be."""
    engine = _engine()
    name = engine.open(backend).backend_name
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

    Nothing is run. ``str()`` of the result is for reading.
    """
    engine = _engine()
    found = engine.registry.spec(spec)
    device = engine.open(backend) if backend else engine.device_of(seam.current())
    if inputs is None:
        wanted = None if dtype is None else dt.of(dtype, "explain")
        return Explanation.in_general(engine, found, device, wanted)
    lists = [each.variadic for each in found.declared]
    types = [
        [_type(one) for one in each]
        if at < len(lists) and lists[at] and isinstance(each, list | tuple)
        else _type(each)
        for at, each in enumerate(_in_order(inputs, found))
    ]
    return Explanation.of(engine, found, device, types, _attributes(attributes, found))


def _type(given: Any) -> Any:
    if given is None or isinstance(given, TensorType):
        return given
    return seam.as_tensor(given, what="explain: an input").type
