"""Registering, listing and removing kernels, gradient rules and decompositions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from tensorplug.contract.arguments import quoted
from tensorplug.contract.entries import decomposition_entry, kernel_entry
from tensorplug.contract.owner import PROGRAM
from tensorplug.contract.rule_entries import gradient_entry, joint_entries
from tensorplug.engine.current import current_engine
from tensorplug.engine.registry import Handle
from tensorplug.errors import ArgumentError
from tensorplug.plugins import provisional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.entries import OnDevice
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.engine.engine import Engine


F = TypeVar("F", bound="Callable[..., Any]")
_ABSENT: Final[Any] = object()


class Decorator(Handle):
    """Registers the functions that it decorates; ``remove()`` undoes that, as does ``with``."""

    def __init__(self, register: Callable[[Any], Handle]) -> None:
        super().__init__(current_engine().registry, [])
        self._register = register

    def __call__(self, function: F) -> F:
        """Register ``function``, and return it."""
        self._additions += self._register(function)._additions
        return function


@overload
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
) -> Handle: ...
@overload
def register_kernel(
    spec: KernelSpec | str,
    backend: str,
    *,
    prepares: bool = False,
    dtypes: Iterable[DType] | None = None,
    override: bool = False,
    setup: OnDevice | None = None,
    teardown: OnDevice | None = None,
) -> Decorator: ...
def register_kernel(
    spec: KernelSpec | str,
    backend: str,
    function: Any = _ABSENT,
    *,
    prepares: bool = False,
    dtypes: Iterable[DType] | None = None,
    override: bool = False,
    setup: OnDevice | None = None,
    teardown: OnDevice | None = None,
) -> Any:
    """Register a kernel for a backend in the running program.

    Args:
        spec: a spec of your own, or the name of a known one.
        backend: the name of a backend, loaded or not.
        function: of buffers, as ``KernelTable.register`` describes; with ``prepares`` of types,
            as ``KernelTable.prepare`` does. Without it, ``register_kernel`` returns a decorator,
            which returns the function as it is.
        prepares: see ``function``.
        dtypes: the dtypes that the kernel supports; all by default.
        override: replace a registered kernel.
        setup: called with the Backend once for each device: at once for open devices, for
            others when they open.
        teardown: called with the Backend once, when the kernel is removed or the device closed.

    Returns:
        A handle whose ``remove()`` undoes the registration and restores what it replaced; also
        a context manager. The decorator is such a handle itself: keep it if you will need
        ``remove()``, or call ``unregister_kernel``.

    Raises:
        RegistrationError: the function does not fit the spec, or a kernel is registered already.
        ArgumentError: ``backend`` is not the name of a backend, or the spec is unknown.

    Examples:
        >>> spec = tp.KernelSpec("Halve", ("x",), lambda x: x)
        >>> with tp.register_kernel(spec, "cpu", lambda x: x / 2):
        ...     tp.run_kernel(spec, [[1.0, 3.0]])
        Tensor([0.5, 1.5], dtype=float32, device='cpu')
        >>> kernel = tp.register_kernel(spec, "cpu")
        >>> @kernel
        ... def halve(x):
        ...     return x / 2
        >>> tp.run_kernel(spec, [[1.0, 3.0]]).tolist(), halve(3.0)
        ([0.5, 1.5], 1.5)
        >>> kernel.remove()

    """
    if function is _ABSENT:
        return Decorator(
            partial(
                register_kernel,
                spec,
                backend,
                prepares=prepares,
                dtypes=None if dtypes is None else frozenset(dtypes),
                override=override,
                setup=setup,
                teardown=teardown,
            )
        )
    engine = current_engine()
    known_spec = engine.registry.spec(spec)
    _check_backend_name(backend, f"kernel {known_spec.name!r}")
    entry = kernel_entry(
        known_spec, function, prepares=prepares, dtypes=dtypes, setup=setup, teardown=teardown
    )
    return _add(engine, kernels=[(backend, entry)], override=override)


def copy_registered_kernels(source: str, target: str, *, override: bool = False) -> Handle:
    """Register all kernels of one backend for another, which must have the same buffers.

    This includes their set-up and tear-down functions. Returns and raises as
    ``register_kernel``; all kernels are copied, or none.

    ``source``: the backend whose kernels are copied; ``target``: the one that gets them;
    ``override``: replace kernels that ``target`` has.

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


@overload
def register_gradient(
    spec: KernelSpec | str,
    wrt: str | Sequence[str],
    rule: Callable[..., Any] | None,
    *,
    override: bool = False,
) -> Handle: ...
@overload
def register_gradient(
    spec: KernelSpec | str, wrt: str | Sequence[str], *, override: bool = False
) -> Decorator: ...
def register_gradient(
    spec: KernelSpec | str,
    wrt: str | Sequence[str],
    rule: Any = _ABSENT,
    *,
    override: bool = False,
) -> Any:
    """Register the gradient rule of a kernel.

    Args:
        spec: a spec, or the name of one.
        wrt: the name of the input, or a list of names with a joint rule.
        rule: as ``RuleTable.vjp`` describes; None if there is no gradient. For a list of
            inputs, which share work, as described there too. Without it,
            ``register_gradient`` returns a decorator, as ``register_kernel`` does.
        override: replace a registered rule.

    Returns and raises as ``register_kernel``.

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
    if rule is _ABSENT:
        return Decorator(partial(register_gradient, spec, wrt, override=override))
    engine = current_engine()
    known_spec = engine.registry.spec(spec)
    if isinstance(wrt, str):
        entries = [gradient_entry(known_spec, wrt, rule)]
    elif not isinstance(wrt, list | tuple) or rule is None:
        raise ArgumentError(
            f"register_gradient: wrt must be the name of an input of {known_spec.name}, or a list "
            f"of names with a joint rule, got {quoted(wrt)}"
        )
    else:
        entries = joint_entries(known_spec, wrt, rule)
    return _add(engine, rules=entries, override=override)


@overload
def register_decomposition(
    spec: KernelSpec | str,
    function: Callable[..., Any],
    *,
    on_host: bool = False,
    override: bool = False,
) -> Handle: ...
@overload
def register_decomposition(
    spec: KernelSpec | str, *, on_host: bool = False, override: bool = False
) -> Decorator: ...
def register_decomposition(
    spec: KernelSpec | str,
    function: Any = _ABSENT,
    *,
    on_host: bool = False,
    override: bool = False,
) -> Any:
    """Register a kernel written with other ops, for backends without a native one.

    Args:
        spec: a spec, or the name of one.
        function: of tensors, as ``DecompositionTable.of`` describes. Without it,
            ``register_decomposition`` returns a decorator, as ``register_kernel`` does.
        on_host: ``function`` works on NumPy arrays instead (``DecompositionTable.on_host``).
        override: replace a registered decomposition.

    Returns and raises as ``register_kernel``.

    Examples:
        >>> spec = tp.KernelSpec("Halve", ("x",), lambda x: x)
        >>> with tp.register_decomposition(spec, lambda x: x * 0.5):
        ...     print(tp.run_kernel(spec, [[1.0, 3.0]]), tp.explain(spec).how)
        Tensor([0.5, 1.5], dtype=float32, device='cpu') decomposed

    """
    if function is _ABSENT:
        return Decorator(partial(register_decomposition, spec, on_host=on_host, override=override))
    engine = current_engine()
    entry = decomposition_entry(engine.registry.spec(spec), function, on_host=on_host)
    return _add(engine, decompositions=[entry], override=override)


def _add(engine: Engine, **entries: Any) -> Handle:
    """Register entries of the running program; undo it if it is a plugin that fails to load."""
    return engine.registry.add(PROGRAM, **entries, into=provisional.handles())


def unregister_kernel(spec: KernelSpec | str, backend: str) -> None:
    """Remove the current kernel of a backend, of any owner.

    ``spec``: a spec, or the name of one.

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

    ``spec``: a spec, or the name of one; ``wrt``: the name of the input; None for all.

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
