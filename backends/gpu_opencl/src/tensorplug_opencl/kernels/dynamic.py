"""Updates of windows whose place is data: what is not in the window is copied as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import InPlace, KernelRefusedError, KernelTable, TensorType, specs
from tensorplug_loops.forms.indexing.dynamic import insertion
from tensorplug_loops.templates import fixed
from tensorplug_opencl.codegen import calls
from tensorplug_opencl.groups import loops
from tensorplug_opencl.movement import moving

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()


@kernels.prepare(specs.DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(
    x: TensorType,
    update: TensorType,
    starts: TensorType,
    *,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Write into the window, of a copy if something else needs x."""
    if not update.size:
        return lambda x, _update, _starts: x
    runtime = backend.runtime
    group, sources = insertion(update, starts, out)
    insert = loops.compile_writer(fixed(group), runtime)
    if insert is None:
        raise KernelRefusedError(f"windows of {x} are declined")
    copy = moving.make_mover(runtime, x.dtype, (x.size,), (1,), (1,), x.size)

    def write(x: DeviceBuffer, *others: DeviceBuffer) -> DeviceBuffer:
        insert(*[others[at] for at in sources], x)
        return x

    def write_copy(x: DeviceBuffer, *others: DeviceBuffer) -> None:
        copy(x, others[-1])
        write(others[-1], *others)

    return InPlace(calls.make_producer(runtime, out, write_copy), write)
