"""The backend object: copies to and from the device, what a buffer is, and compiled groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import KernelRefusedError, TensorType, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug_loops import held
from tensorplug_loops.schedule import plan
from tensorplug_webgpu.memory import Box

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from tensorplug.plugin import Group
    from tensorplug_webgpu.runtime import Array, Runtime

LEAST_GROUP: Final = 1 << 12  # elements from which one kernel for several calls saves time


class WebGPUBackend:
    """The members of ``tensorplug.plugin.Backend``, and those of its capabilities."""

    name = "webgpu"
    least_group = LEAST_GROUP
    functions = frozenset(expressions.FUNCTIONS)  # the library spells out what WGSL lacks
    flushes_subnormals = frozenset({dt.float32, dt.float16})

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.device = runtime.name
        self.dtypes = runtime.dtypes
        self.largest_buffer = runtime.pool.most

    def from_host(self, array: Array) -> Box:
        """Return a copy of an array in a box."""
        box = self.runtime.empty(TensorType(dt.of(array.dtype), array.shape))
        self.runtime.write(array, box)
        return box

    def to_host(self, buffer: Box) -> Array:
        """Return a copy, once what was asked before is done."""
        return self.runtime.read(buffer)

    def describe(self, buffer: object) -> TensorType:
        """Return dtype and shape; raise ``TypeError`` unless the buffer is a box."""
        if not isinstance(buffer, Box):
            raise TypeError(f"{type(buffer).__name__} is not a Box")
        return buffer.type

    def allocation(self, buffer: Box) -> tuple[Hashable, int]:
        """Return the identity and size of the memory, which boxes share."""
        memory = buffer.memory
        return (id(memory), memory.nbytes) if memory is not None else (id(buffer), 0)

    def explain_loss(self) -> str:
        """Return why the device is lost; "" while it is not."""
        return self.runtime.guard.lost

    def synchronize(self) -> None:
        """Wait for the device."""
        self.runtime.synchronize()

    def memory(self) -> Mapping[str, int]:
        """Return the pool's figures."""
        return {"used_bytes": self.runtime.pool.used, "kept_bytes": self.runtime.pool.kept}

    def trim(self) -> int:
        """Give back memory that no buffer uses; return how many bytes."""
        return self.runtime.make_room()

    def close(self) -> None:
        """Give the device back."""
        self.runtime.close()

    def compile_group(self, group: Group) -> Callable[..., list[Box]] | None:
        """Return a function of boxes that runs the kernels of a group; None to decline it.

        Raises:
            KernelRefusedError: the adapter cannot run it, and why: too many arrays, say.

        """
        lacking = held.dtypes_of(group) - self.dtypes - {dt.int64, dt.uint8}
        if lacking:
            raise KernelRefusedError(f"no {', '.join(sorted(dtype.name for dtype in lacking))}")
        program = plan(group, self.runtime.machine)
        if program is None:
            return None
        runs = [(self.runtime.prepare(each), each.arrays) for each in program.launches]
        between = [TensorType(dtype, (size,)) for dtype, size in program.temporaries]
        empty = self.runtime.empty

        def run(*inputs: Box) -> list[Box]:
            outputs = [empty(type_) for type_ in program.outputs]
            boxes = [*inputs, *outputs, *map(empty, between)]
            for launch, arrays in runs:
                launch(*[boxes[number] for number in arrays])
            return outputs

        return run
