"""Running kernels by name, and explaining how kernels and functions would run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import current_context
from tensorplug.engine.current import current_engine
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.introspection.explanation import Explanation
    from tensorplug.typing import DTypeLike

__all__ = ["explain", "run_kernel"]


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
