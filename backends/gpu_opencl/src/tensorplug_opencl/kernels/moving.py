"""Preparing strided copies, for every family that moves elements without computing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug import shapes
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import ctypes, templates

if TYPE_CHECKING:
    from tensorplug.dtypes import DType
    from tensorplug.shapes import Shape
    from tensorplug_opencl.layouts import Strides
    from tensorplug_opencl.runtime import Launch, Runtime

__all__ = ["is_dense", "mover"]


def is_dense(shape: Shape, strides: Strides) -> bool:
    """Return whether ``strides`` walk ``shape`` one element after the other."""
    own, wanted = layouts.collapse(shape, [strides, layouts.row_major(shape)]).strides
    return own == wanted


def mover(
    runtime: Runtime, dtype: DType, shape: Shape, source: Strides, target: Strides, reach: int
) -> Launch:
    """Return the copy of ``shape`` (not empty) from strides ``source`` to strides ``target``.

    ``reach``: the number of elements in the larger of the two arrays.
    """
    layout = layouts.collapse(shape, [source, target])
    count = shapes.size(shape)
    index = layouts.index_dtype(count, reach)
    text = templates.move(ctypes.moved(dtype), layout.rank, index)
    constants: list[Any] = [index.type(count)]
    struct = layouts.packed([layout], index)
    if struct is not None:
        constants.append(struct)
    return runtime.launch(text, 2, constants, count)
