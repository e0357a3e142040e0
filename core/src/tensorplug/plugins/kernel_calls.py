"""Running kernels by name, and explaining how kernels and functions would run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.engine.current import current_engine
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.introspection.explanation import Explanation
    from tensorplug.typing import DTypeLike


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
    known_spec = engine.registry.spec(spec)
    if isinstance(inputs, Mapping):
        unknown = [name for name in inputs if name not in known_spec.input_names]
        if unknown:
            raise ArgumentError(
                f"{known_spec.name} has no input {unknown[0]!r}; its inputs: "
                f"{', '.join(known_spec.input_names) or 'none'}"
            )
        ordered = [inputs.get(name) for name in known_spec.input_names]
    else:
        ordered = _in_order(inputs, known_spec)
    checked = _attributes(attributes, known_spec)
    result: Tensor | list[Tensor] = engine.run(current_context(), known_spec, ordered, checked)
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


def explain(
    spec: KernelSpec | str | Callable[..., Any],
    inputs: Sequence[Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
    *,
    backend: str | None = None,
    dtype: DTypeLike | None = None,
    source: bool = False,
) -> Explanation:
    """Say how a kernel would run: native, decomposed, by fallback, or why not.

    Args:
        spec: a kernel's spec or its name; or a function of tensors (``tp.matmul``), or the name
            of a public one (``"nn.conv2d"``), whose kernels are explained.
        inputs: tensors or tensor types, in order; a function's other arguments as they are.
            Without them the answer for a kernel is general: it says what is registered, not what
            a particular call would do. For a public function, they are those of the call in its
            documentation.
        attributes: the attributes of the call, or a function's arguments, by name.
        backend: the active one by default.
        dtype: restricts a general answer; for a function's documented call, the dtype of floats.
        source: show the programs that the backend compiles for the calls as well: in OpenCL C,
            LLVM's intermediate representation, C, ...

    No kernel is run for the explained call. A decomposition or a function is called with tensors
    without data, so that its calls are explained too (``inner``), and missing kernels are found.
    Of a large call, the backend is asked for its groups. ``str()`` formats the result.

    Raises:
        ArgumentError: there is no such kernel or function, or the arguments are not its own.

    Examples:
        >>> explanation = tp.explain("Multiply", backend="cpu")
        >>> explanation.how
        'native'
        >>> print(explanation)
        Multiply(a, b) on backend 'cpu': native
          native: kernel of tensorplug-cpu ...
        >>> row = tp.TensorType(tp.float32, (2,))
        >>> print(tp.explain(tp.nn.softmax, [row], backend="cpu"))
        softmax(float32[2]) on backend 'cpu': calls
            Softmax(logits=float32[2]): native

    """
    from tensorplug.introspection.explanation import Explanation  # loaded at first use

    engine = current_engine()
    function = _find_function(spec, engine.registry.state.specs)
    if function is not None:
        return _explain_function(function, inputs, attributes, backend, dtype, source=source)
    known_spec = engine.registry.spec(spec)  # type: ignore[arg-type]  # no function
    device = engine.devices.open(backend) if backend else engine.devices.of(current_context())
    if inputs is None:
        target = None if dtype is None else dt.of(dtype, "explain")
        return Explanation.in_general(engine, known_spec, device, target)
    variadic = [declared.variadic for declared in known_spec.declared]
    types = [
        [_type(tensor) for tensor in value]
        if at < len(variadic) and variadic[at] and isinstance(value, list | tuple)
        else _type(value)
        for at, value in enumerate(_in_order(inputs, known_spec))
    ]
    checked = _attributes(attributes, known_spec)
    return Explanation.of(engine, known_spec, device, types, checked, source=source)


def _find_function(named: Any, specs: Mapping[str, KernelSpec]) -> Callable[..., Any] | None:
    """Return the function to explain; None if ``named`` is a kernel, or nothing.

    Raises:
        ArgumentError: no kernel and no function has that name, but some have similar ones.

    """
    if not isinstance(named, str):
        is_function = callable(named) and not isinstance(named, type | KernelSpec)
        return named if is_function else None
    if named in specs:
        return None
    from tensorplug.introspection import public_functions  # loaded at first use

    function = public_functions.find(named)
    if function is None:
        from difflib import get_close_matches  # imported only for errors

        near = get_close_matches(named, [*specs, *public_functions.names()], n=2, cutoff=0.75)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ArgumentError(f"no kernel and no function of tensors is called {named!r}{hint}")
    return function


def _explain_function(
    function: Callable[..., Any],
    inputs: Sequence[Any] | None,
    attributes: Mapping[str, Any] | None,
    backend: str | None,
    dtype: DTypeLike | None,
    *,
    source: bool,
) -> Explanation:
    from tensorplug.introspection import public_functions  # loaded at first use
    from tensorplug.introspection.explanation import Explanation

    public_functions.refuse_others(function)
    name = public_functions.name_of(function)
    if attributes is not None and not isinstance(attributes, Mapping):
        raise ArgumentError(
            f"{name}: attributes must be a mapping by name, got {type(attributes).__name__}"
        )
    if inputs is not None and not isinstance(inputs, list | tuple):
        raise ArgumentError(f"{name}: inputs must be a list, got {type(inputs).__name__}")
    target = None if dtype is None else dt.of(dtype, "explain")
    engine = current_engine()
    device = engine.devices.open(backend) if backend else engine.devices.of(current_context())
    arguments, options = list(inputs or ()), dict(attributes or {})
    if inputs is None:
        with use_context(current_context().replace(device=device)):
            example = public_functions.example_call(function)
        if example is None:
            raise ArgumentError(f"{name}: its documentation has no call; pass the inputs of one")
        arguments, options = example[0], {**example[1], **options}
    public_functions.check_arguments(function, arguments, options)
    values, by_name = public_functions.of_types((arguments, options), target)
    return Explanation.of_function(engine, device, function, values, by_name, source=source)


def _type(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, TensorType):
        return TensorType(dt.of(value.dtype, "explain"), value.shape)
    return as_tensor(value, what="explain: an input").type
