"""How many neighbours exchange the values of their variables: the size of subgroups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import wgpu

if TYPE_CHECKING:
    from collections.abc import Sequence

FEATURE: Final = "subgroup"
_MEMBERS: Final = 64
_TEXT: Final = f"""@group(0) @binding(0) var<storage, read_write> y: array<vec2<u32>>;
@compute @workgroup_size({_MEMBERS})
fn run(@builtin(local_invocation_index) member: u32, @builtin(subgroup_size) size: u32,
    @builtin(subgroup_invocation_id) own: u32) {{
  y[member] = vec2<u32>(size, own);
}}
"""


def measure(device: Any) -> int:
    """Return the size of subgroups of neighbouring work-items; 0 if there are no such ones.

    An adapter tells only in which range it lies. For a processor that acts as a GPU it is the
    length of its vectors, and the same for all shaders; GPUs may choose it anew for each.
    """
    module = device.create_shader_module(code=_TEXT)
    pipeline = device.create_compute_pipeline(
        layout="auto", compute={"module": module, "entry_point": "run"}
    )
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    buffer = device.create_buffer(size=8 * _MEMBERS, usage=usage)
    entry = {"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}}
    bound = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=[entry])
    encoder = device.create_command_encoder()
    recorded = encoder.begin_compute_pass()
    recorded.set_pipeline(pipeline)
    recorded.set_bind_group(0, bound)
    recorded.dispatch_workgroups(1)
    recorded.end()
    device.queue.submit([encoder.finish()])
    pairs = np.frombuffer(device.queue.read_buffer(buffer), np.uint32).reshape(_MEMBERS, 2)
    return size_of(pairs.tolist())


def size_of(pairs: Sequence[Sequence[int]]) -> int:
    """Return the size of subgroups, of the size that each work-item has, and its number there."""
    size = pairs[0][0]
    are_neighbours = [[size, at % size] for at in range(len(pairs))] == list(map(list, pairs))
    return size if size > 1 and are_neighbours else 0
