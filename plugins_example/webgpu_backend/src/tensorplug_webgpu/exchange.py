"""How many neighbours exchange the values of their variables: the size of subgroups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_webgpu import single

if TYPE_CHECKING:
    from collections.abc import Sequence

FEATURE: Final = "subgroup"
_TEXT: Final = f"""@group(0) @binding(0) var<storage, read_write> y: array<vec2<u32>>;
@compute @workgroup_size({single.MEMBERS})
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
    return size_of(single.run(device, _TEXT, np.zeros((single.MEMBERS, 2), np.uint32)).tolist())


def size_of(pairs: Sequence[Sequence[int]]) -> int:
    """Return the size of subgroups, of the size that each work-item has, and its number there."""
    size = pairs[0][0]
    are_neighbours = [[size, at % size] for at in range(len(pairs))] == list(map(list, pairs))
    return size if size > 1 and are_neighbours else 0
