"""The description of a device, from which schedules are chosen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """What a schedule needs to know of a device.

    ``vector_bytes``: of a vector register, 0 if the compiler makes vectors of work-items itself.
    ``registers``: the number of vector registers. ``cores``: how many work-items, or work-groups,
    run at the same time. ``group_size``: work-items of a work-group that share memory, 1 if
    there are none. ``shared_bytes``: of that memory. ``neighbours``: whether work-items that are
    neighbours should read neighbouring elements, as on GPUs; otherwise each takes a run of them.
    ``fma``: whether a product and a sum are one instruction. ``atomics``: names of the dtypes that
    can be added to memory atomically.
    """

    vector_bytes: int = 0
    registers: int = 16
    cores: int = 1
    group_size: int = 1
    shared_bytes: int = 0
    neighbours: bool = False
    fma: bool = False
    atomics: frozenset[str] = frozenset()
