"""The backend object: copies to and from the device, what a buffer is, and compiled groups."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final

import numpy as np
from tensorplug.plugin import BackendMemoryError, Group, TensorType, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.schedule import plan

from tensorplug_acme import device, dialect
from tensorplug_acme.device import Array, Box

LEAST_GROUP: Final = 1 << 12  # elements from which one kernel for several calls saves time


class AcmeBackend:
    """The members of ``tensorplug.plugin.Backend``, and those of ``CompilesGroups``."""

    # REPLACE: the device's name, and the dtypes of its tensors: at least bool, int32 and float32.
    name, device = "acme", "the processor, by its C compiler"
    dtypes = dt.BOOL | dt.INTEGER | {dt.float32, dt.float64}
    survives_fork = True  # memory of the host is valid in a child process; few devices are
    least_group = LEAST_GROUP
    functions = frozenset(expressions.FUNCTIONS)  # the library spells out what the dialect lacks

    def from_host(self, array: Array) -> Box:  # REPLACE: copy to the device
        """Return a copy of ``array`` in a box, or raise ``BackendMemoryError``."""
        try:
            return Box(np.array(array, order="C"))
        except MemoryError as error:
            raise BackendMemoryError(f"acme: {error}") from error

    def to_host(self, buffer: Box) -> Array:  # REPLACE: copy from the device
        """Return the array itself: the core never writes into it."""
        return buffer.array

    def describe(self, buffer: object) -> TensorType:
        """Return dtype and shape; raise ``TypeError`` unless the buffer is a box of an array."""
        if not isinstance(buffer, Box) or not isinstance(buffer.array, np.ndarray):
            raise TypeError(f"{type(buffer).__name__} is not a Box of an array")
        return TensorType(dt.of(buffer.array.dtype), buffer.array.shape)

    def allocation(self, buffer: Box) -> tuple[Hashable, int]:  # REPLACE: address, bytes
        """Return the identity and size of the array that owns the memory, which views share."""
        owner = buffer.array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return id(owner), owner.nbytes

    def synchronize(self) -> None:  # REPLACE: wait for the device
        """Do nothing: kernels have run when they return."""

    def memory(self) -> Mapping[str, int]:
        """Return no figures: there is no memory pool."""
        return {}

    def close(self) -> None:  # REPLACE: release the device
        """Do nothing: each box is freed with its tensor."""

    def compile_group(self, group: Group) -> Callable[..., list[Box]] | None:
        """Return a function of boxes that runs the kernels of a group; None to decline it."""
        program = plan(group, dialect.machine())
        if program is None:  # such as for complex numbers
            return None
        functions = [device.build(dialect.write(launch.kernel)) for launch in program.launches]

        def run(*inputs: Box) -> list[Box]:
            outputs = [device.allocate(type_.dtype, type_.shape) for type_ in program.outputs]
            between = [device.allocate(dtype, (size,)) for dtype, size in program.temporaries]
            boxes = [*inputs, *outputs, *between]
            for launch, function in zip(program.launches, functions, strict=True):
                device.run(launch, function, [boxes[number] for number in launch.arrays])
            return outputs

        return run
