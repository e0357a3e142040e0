"""The inputs of a call: by name, as values, and compared with what the model says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import InputError
from tensorplug_onnx.graph import ValueInfo
from tensorplug_onnx.values import as_tensor, described, dtype_of, to_numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tensorplug_onnx.graph import Graph
    from tensorplug_onnx.values import Value


# Numbers of Python become a dtype of their kind, or of a later one.
_KINDS: Final = ("bool", "int", "float", "complex")


def bound(
    graph: Graph,
    parameters: Mapping[str, Any] | None,
    args: Sequence[Any],
    named: Mapping[str, Any],
) -> dict[str, Value]:
    """Return the inputs of a call by name: tensors, and host arrays of dtypes without tensors.

    Args:
        graph: of the model.
        parameters: what may be given besides the inputs, each of the same dtype and shape; None
            if it is part of a program, and so are the defaults of inputs.
        args: the inputs in their order, or one mapping.
        named: inputs by name.

    Raises:
        InputError: one is missing, unknown, given twice, or of another kind, dtype or shape.

    """
    infos = graph.inputs
    given: Mapping[str, Any] = named
    if args:
        given = _named(infos, args)
        if named:
            twice = given.keys() & named.keys()
            if twice:
                raise InputError(f"input {min(twice)!r} is given twice")
            given = {**given, **named}
    values: dict[str, Value] = {}
    absent = 0
    for info in infos:
        value = given.get(info.name)
        if value is not None:
            values[info.name] = _received(info, value)
        elif info.kind == "optional":
            values[info.name] = None
            absent += info.name not in given
        else:
            _replacing(graph, parameters, given, [one.name for one in infos])  # a wrong name?
            what = "is None" if info.name in given else "is missing"
            raise InputError(f"input {info.name!r} {what}; the model has {_listed(infos)}")
    if len(given) + absent > len(infos):
        values |= _replacing(graph, parameters, given, values)
    return values


def _named(infos: Sequence[ValueInfo], args: Sequence[Any]) -> Mapping[str, Any]:
    if len(args) == 1 and isinstance(args[0], Mapping) and not (infos and infos[0].kind == "map"):
        return args[0]
    if len(args) > len(infos):
        raise InputError(f"{len(args)} inputs are given, the model has {_listed(infos)}")
    return {info.name: value for info, value in zip(infos, args, strict=False)}


def check_names(graph: Graph, given: Collection[str]) -> None:
    """Raise an error if an input of a graph is missing.

    Raises:
        InputError: one is.

    """
    for info in graph.inputs:
        if info.name not in given and info.kind != "optional":
            raise InputError(
                f"input {info.name!r} is missing; the model has {_listed(graph.inputs)}"
            )


def _replacing(
    graph: Graph,
    parameters: Mapping[str, Any] | None,
    given: Mapping[str, Any],
    inputs: Collection[str],
) -> dict[str, Value]:
    """Return values that are given for parameters, and for inputs with a default."""
    defaults = {info.name: info for info in graph.defaults}
    found: dict[str, Value] = {}
    for name in sorted(given.keys() - inputs):
        if parameters is None and (name in defaults or name in graph.initializers):
            raise InputError(
                f"{name!r} is a constant of the compiled model: give it to the model without "
                "compile(), or compile a function with Model.apply in it"
            )
        if name in defaults:
            found[name] = _received(defaults[name], given[name])
        elif parameters and name in parameters:
            own = parameters[name]
            found[name] = _received(ValueInfo(name, dtype_of(own), tuple(own.shape)), given[name])
        else:
            raise InputError(f"there is no input {name!r}; the model has {_listed(graph.inputs)}")
    return found


def _listed(infos: Sequence[ValueInfo]) -> str:
    return ", ".join(f"{info.name!r} ({info.type})" for info in infos) or "none"


def _received(info: ValueInfo, value: Any) -> Value:
    """Return an input as a value of its kind."""
    if info.kind != "tensor":
        return _converted(info, value)
    found = value if type(value) is tp.Tensor else _converted(info, value)
    if not isinstance(found, np.ndarray | tp.Tensor):
        raise InputError(f"input {info.name!r} is {_type_of(found)}, must be {info.type}")
    dtype = found.dtype.name if type(found) is tp.Tensor else dtype_of(found)
    if dtype != info.dtype and info.dtype:
        raise InputError(f"input {info.name!r} is {dtype}, must be {info.dtype}")
    shape = tuple(found.shape)
    if shape != info.shape and info.shape is not None and not _fits(shape, info.shape):
        wanted = ", ".join("?" if size is None else str(size) for size in info.shape)
        raise InputError(f"input {info.name!r} has shape {list(shape)}, must be [{wanted}]")
    return found


def _fits(shape: tuple[int, ...], wanted: tuple[int | str | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        not isinstance(one, int) or size == one for size, one in zip(shape, wanted, strict=True)
    )


def _converted(info: ValueInfo, value: Any) -> Value:
    """Return what is given as tensors and host arrays, lists of them, or a map."""
    if isinstance(value, Mapping):
        return dict(value)
    if value is None or isinstance(value, tp.Tensor):
        return value
    if isinstance(value, list | tuple):
        if any(isinstance(one, Mapping) or _is_array(one) for one in value):
            return [_converted(info, one) for one in value]
        if info.kind == "sequence" and not value:
            return []
    try:
        if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__"):
            return tp.from_dlpack(value)
        found: Value = as_tensor(_array(info, value))
    except (TypeError, ValueError, OverflowError, BufferError, tp.errors.TensorplugError) as error:
        raise InputError(
            f"input {info.name!r} is {_type_of(value)}, must be {info.type}: {error}"
        ) from error
    return found


def _array(info: ValueInfo, value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype.kind in "OSUT":
        if any(not isinstance(one, str | bytes) for one in array.astype(object).flat):
            raise TypeError("not all of its elements are numbers or texts of one kind")
        return array.astype(np.dtypes.StringDType())
    if _is_python(value) and info.dtype not in ("", "string"):
        wanted = to_numpy_dtype(info.dtype)
        if _kind(dtype_of(array)) <= _kind(info.dtype):
            return np.asarray(value, wanted)
    return array


def _is_python(value: Any) -> bool:
    """Return whether a number, or lists of numbers, have no dtype of their own."""
    return isinstance(value, bool | int | float | complex | list | tuple)


def _kind(dtype: str) -> int:
    return next((at for at, kind in enumerate(_KINDS) if kind in dtype), len(_KINDS))


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | tp.Tensor) or hasattr(value, "__dlpack__")


def _type_of(value: Any) -> str:
    if isinstance(value, np.ndarray | tp.Tensor):
        return described(value)
    kind = type(value)
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"
