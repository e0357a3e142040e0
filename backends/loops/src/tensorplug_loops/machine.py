"""The description of a device, from which schedules are chosen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """What a schedule needs to know of a device, and of a dialect.

    ``vector_bytes``: of a vector register, 0 if the dialect has no lanes, or the compiler makes
    vectors of work-items. ``masked``: whether vectors are read and written in part at no cost;
    otherwise the last vector of a row overlaps the one before. ``tile_bytes``: of a vector, if the
    dialect has lanes in tiles of products only, which load, store, add and multiply whole vectors.
    ``tile_rows``: of a tile, at most; 0 if it is to fill the registers. ``cache_bytes``: of a
    core's memory in which to keep what is read again. ``lanes``: of a vector, at most.
    ``segment``: how many elements along an axis a work-item takes, if it takes several.
    ``registers``: the number of vector registers. ``cores``: how many work-groups run at the same
    time. ``group_size``: work-items of a work-group, at most, 1 if there are none.
    ``team``: of them, those that reduce a row which is not very long; 0 if as many as may. Few
    suit a processor that acts as a GPU: a work-item at a barrier costs as much as some elements.
    ``exchange``: how many neighbours, a work-group in which no one waits, read one another's
    variables (``broadcast``); 0 if they cannot, or reading shared memory costs as little.
    ``shared_bytes``: of memory that they share. ``neighbours``: whether work-items that are
    neighbours should read neighbouring elements, as on GPUs; otherwise each takes a run of them.
    ``wide``: whether sums of float32 are taken in float64, or in float32 with their errors.
    ``narrow``: names of the narrow floats that the dialect converts; of others it has the bits.
    ``functions``: names of the elementary functions that the dialect computes accurately; others
    are taken apart. ``atomics``: names of the dtypes that can be combined with memory atomically.
    ``long``: whether it computes with integers of 64 bits; otherwise they are indices, of 32.
    ``strip``: how many neighbouring elements a work-item reads or writes at once, from multiples
    of it, where ``neighbours`` is set; memory is as long as whole strips. 1 if that saves nothing.
    ``steps``: of a work-item's loops, after which the device ends them; 0 if it does not.
    """

    vector_bytes: int = 0
    masked: bool = False
    tile_bytes: int = 0
    tile_rows: int = 0
    cache_bytes: int = 1 << 19
    lanes: int = 64
    segment: int = 1 << 14
    registers: int = 16
    cores: int = 1
    group_size: int = 1
    team: int = 0
    exchange: int = 0
    shared_bytes: int = 0
    neighbours: bool = False
    wide: bool = True
    narrow: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    atomics: frozenset[str] = frozenset()
    long: bool = True
    strip: int = 1
    steps: int = 0
