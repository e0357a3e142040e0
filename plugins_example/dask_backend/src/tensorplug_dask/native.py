"""Kernels made of a function of NumPy arrays and an expression of Dask arrays.

The function computes the whole result from whole inputs. It runs as one task if every input is
one block and the result fits into one. Otherwise the expression assembles the result from blocks.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_dask.blocks import concrete, elementwise, one_block
from tensorplug_dask.lazy import Lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import dask.array as da

    from tensorplug.plugin import KernelSpec, KernelTable, TensorType
    from tensorplug_dask.backend import DaskBackend

    Function = Callable[..., Any]


_ALWAYS = ("backend", "out")


def native(
    kernels: KernelTable, spec: KernelSpec, *, chunked: Function
) -> Callable[[Function], Function]:
    """Register a function of whole arrays and ``chunked``, a function of Dask arrays, as a kernel.

    Either asks by naming: for inputs, then keyword-only for attributes and ``out``; ``chunked``
    also for ``limit``, the largest size of a block in bytes.
    """

    def decorate(whole: Function) -> Function:
        for_whole, for_chunked = _asks(whole), _asks(chunked)

        def kernel(*buffers: Any, backend: DaskBackend, out: TensorType, **asked: Any) -> Any:
            values = {**asked, "out": out, "limit": backend.chunk_bytes}
            if not out.size:
                return Lazy(concrete(np.empty(out.shape, out.dtype.numpy)))
            boxes = _flat(buffers)
            backend.pending.ready(boxes)
            inputs = [_arrays(buffer) for buffer in buffers]
            if out.nbytes <= backend.chunk_bytes and all(
                item.npartitions == 1 for item in _flat(inputs)
            ):
                function = partial(whole, **{name: values[name] for name in for_whole})
                array = one_block(function, inputs, out)
            else:
                array = chunked(*inputs, **{name: values[name] for name in for_chunked})
            return backend.pending.result(array, boxes)

        names = {*for_whole, *for_chunked, *_ALWAYS} - {"limit"}
        kernel.__signature__ = _signature(spec, names)  # type: ignore[attr-defined]  # what the table reads
        kernels.register(spec)(kernel)
        return whole

    return decorate


def native_elementwise(kernels: KernelTable, spec: KernelSpec, function: Function) -> None:
    """Register a function of blocks that broadcast, which Dask's ``blockwise`` gives it."""
    asks = _asks(function)

    def chunked(*inputs: da.Array, out: TensorType, limit: int, **asked: Any) -> da.Array:
        values = {**asked, "out": out} if "out" in asks else asked
        return elementwise(partial(function, **values), inputs, out, limit)

    chunked.__signature__ = _signature(spec, {*asks, "out", "limit"})  # type: ignore[attr-defined]  # as above
    native(kernels, spec, chunked=chunked)(function)


def _asks(function: Function) -> tuple[str, ...]:
    if isinstance(function, np.ufunc):  # its keywords are not attributes
        return ()
    parameters = inspect.signature(function).parameters.values()
    return tuple(
        parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY
    )


def _signature(spec: KernelSpec, asked: set[str]) -> inspect.Signature:
    parameter = inspect.Parameter
    inputs = [parameter(name, parameter.POSITIONAL_OR_KEYWORD) for name in spec.input_names]
    options = [parameter(name, parameter.KEYWORD_ONLY) for name in sorted(asked)]
    return inspect.Signature([*inputs, *options])


def _flat(operands: Sequence[Any]) -> list[Any]:
    return [one for item in operands for one in (item if isinstance(item, list) else [item])]


def _arrays(buffer: Lazy | list[Lazy]) -> Any:
    """Return the arrays; one without elements is as well one block."""
    if isinstance(buffer, list):
        return [_arrays(item) for item in buffer]
    array = buffer.array
    if array.size or array.npartitions == 1:
        return array
    return concrete(np.empty(array.shape, array.dtype))
