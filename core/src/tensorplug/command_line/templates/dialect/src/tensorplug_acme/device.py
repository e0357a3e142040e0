"""Memory of the device, its compiler, and how it runs a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tensorplug.plugin import DType, Shape
from tensorplug_loops import native
from tensorplug_loops.schedule import Launch

Array = np.ndarray[Any, Any]
Function = Callable[..., None]


class Box:  # REPLACE: hold a piece of the device's memory, and free it with the box
    """The data of a tensor: dense, in row-major order."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


def allocate(dtype: DType, shape: Shape) -> Box:  # REPLACE: memory of the device
    """Return memory with any contents."""
    return Box(np.empty(shape, dtype.numpy))


def build(text: str) -> Function:  # REPLACE: the device's compiler
    """Compile the text of a kernel; what was built once is kept on disk."""
    return native.compile_text(text)


def run(launch: Launch, function: Function, boxes: Sequence[Box]) -> None:  # REPLACE: start it
    """Run a kernel: ``launch.items`` items, which may run side by side."""
    native.run_items(launch, function, [box.array for box in boxes])
