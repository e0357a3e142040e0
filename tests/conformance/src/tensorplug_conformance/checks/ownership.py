"""Level 1: whose memory it is. Copies are copies at every size, and views are named as such."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.plugin import specs
from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError
from tensorplug_conformance.comparing.compare import same_bits
from tensorplug_conformance.trying.leftovers import ALLOCATED, process_figures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.dispatch.device import Device
    from tensorplug.plugin import KernelSpec, Tensor
    from tensorplug_conformance.case import Array
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


# Rows and columns of float32: from 64 bytes to 64 MiB, at page boundaries and beside them.
_SIDES: Final = (
    *((4, 4), (31, 33), (75, 77)),
    *((128, 128), (512, 512), (513, 1025), (2048, 2049)),
)
_SHAPES: Final = (*_SIDES, (4096, 4096))
_PLAIN: Final = 1 << 22  # elements; larger arrays come in fewer forms
_PAGE: Final = 1 << 12  # bytes
_NEW: Final = -1.0
_VIEWS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("IDENTITY", {}),
    ("RESHAPE", {"shape": (-1,)}),
    ("TRANSPOSE", {"perm": (1, 0)}),
    ("SLICE", {"begin": (1, 2), "size": (100, 200)}),
    ("STRIDED_SLICE", {"begin": (0, 0), "end": (256, 256), "strides": (2, 3)}),
    ("REVERSE", {"dims": (0,)}),
    ("BROADCAST_TO", {"shape": (2, 256, 256)}),
    ("EXPAND_DIMS", {"dim": 0}),
)
_SIDE: Final = 256
_READS: Final = 600  # more than staging buffers take turns
_READ: Final = 1 << 15  # bytes of an array that is read so often
_ASKED: Final = 30  # times, the allocation of each buffer
_MOST_OF: Final = 0.5  # of a result's bytes
_SLACK: Final = 1 << 16  # bytes that an allocation may have beside twice its elements


def _placed(shape: tuple[int, int], offset: int) -> Array:
    """Return numbers so many bytes after the beginning of a page."""
    size = 4 * shape[0] * shape[1]
    memory = np.empty(size + 2 * _PAGE, np.uint8)
    begin = -memory.ctypes.data % _PAGE + offset
    array = memory[begin : begin + size].view(np.float32).reshape(shape)
    array[...] = np.arange(array.size, dtype=np.float32).reshape(shape)
    return array


def _forms(shape: tuple[int, int]) -> Iterator[tuple[str, Array, Array]]:
    """Yield arrays as a caller may hold them: a name, the array, and what writes to its memory."""
    for name, offset in (("at a page", 0), ("after a cache line", 64), ("off any boundary", 4)):
        array = _placed(shape, offset)
        yield name, array, array
        if array.size > _PLAIN:
            return
    array = _placed(shape, 0)
    frozen = array.view()
    frozen.flags.writeable = False
    yield "read-only", frozen, array
    array = _placed(shape[::-1], 0)
    yield "columns first", array.T, array


_Door = tuple[str, "Callable[[Array], Tensor]"]


_DOORS: Final[tuple[_Door, ...]] = (
    ("tp.asarray", tp.asarray),
    ("tp.asarray(copy=True)", lambda array: tp.asarray(array, copy=True)),
    ("tp.from_dlpack(copy=True)", lambda array: tp.from_dlpack(array, copy=True)),
)


def _keeps_nothing(shape: tuple[int, int], _target: Target, opened: Callable[[], Session]) -> None:
    """What the caller writes to an array later does not reach the device, whatever the door."""
    session = opened()
    backend = session.device.backend
    for name, array, writes in _forms(shape):
        meant = array.copy()
        buffer = backend.from_host(array)
        with session.entered():
            tensors = [
                (door, enter(array))
                for door, enter in _DOORS
                if not (door.startswith("tp.from_dlpack") and name == "read-only")
            ]
        writes[...] = _NEW
        items = [("from_host", backend.to_host(buffer))]
        items += [(door, backend.to_host(tensor._buffer)) for door, tensor in tensors]
        for door, now in items:
            if not same_bits(np.asarray(now), meant):
                raise CheckFailedError(
                    f"{door}: a write to the caller's array of {meant.nbytes} bytes ({name}) "
                    "reached the device"
                )


def _gives_copies(shape: tuple[int, int], _target: Target, opened: Callable[[], Session]) -> None:
    """What was read stays as it was when its buffer is gone; writing to it changes no tensor."""
    session = opened()
    backend = session.device.backend
    meant = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    buffer = backend.from_host(meant)
    read = backend.to_host(buffer)
    del buffer
    others = [backend.from_host(np.full(shape, _NEW, np.float32)) for _ in range(3)]
    if not same_bits(np.asarray(read), meant):
        raise CheckFailedError(
            f"an array of {meant.nbytes} bytes that was read changed when its buffer was gone and "
            "others were made"
        )
    del others, read
    if meant.nbytes <= _READ:
        reads = [backend.to_host(backend.from_host(np.full_like(meant, i))) for i in range(_READS)]
        for i, read in enumerate(reads):
            if not (np.asarray(read) == i).all():
                raise CheckFailedError(
                    f"an array of {meant.nbytes} bytes that was read changed when "
                    f"{_READS - 1 - i} others had been read"
                )
        del read, reads
    with session.entered():
        tensor = tp.asarray(meant)
        for how in (np.asarray, np.array, lambda x: x.numpy()):
            array = how(tensor)
            if array.flags.writeable:
                array[...] = _NEW
            if not same_bits(np.asarray(backend.to_host(tensor._buffer)), meant):
                raise CheckFailedError(
                    f"a write to an array of {meant.nbytes} bytes that was read from a tensor "
                    "changed the tensor"
                )


def _names_views(_target: Target, opened: Callable[[], Session]) -> None:
    """Results are named as their input's allocation if they share its memory, else otherwise."""
    session = opened()
    device = session.device
    base = session.upload(np.arange(_SIDE * _SIDE, dtype=np.float32).reshape(_SIDE, _SIDE))
    name, size = device.backend.allocation(base._buffer)
    measured = 0
    for kernel, attributes in _VIEWS:
        (view,) = session.call(getattr(specs, kernel), [base], attributes)
        shares = _shares(device, session, base, kernel, attributes)
        other, bytes_ = device.backend.allocation(view._buffer)
        if shares is None:
            continue
        measured += 1
        if shares and (other != name or bytes_ != size):
            raise CheckFailedError(
                f"the result of {kernel} shares the memory of its input, but allocation() gives "
                f"{(other, bytes_)!r} for it, and {(name, size)!r} for the input"
            )
        if not shares and other == name:
            raise CheckFailedError(
                f"the result of {kernel} has memory of its own, but allocation() gives it the "
                "name of its input's"
            )
    if not measured:
        raise NotMeasuredError(
            "the backend neither shares its memory with the host nor counts its buffers, and "
            "takes no memory from malloc: nothing shows which buffers share memory"
        )


def _shares(
    device: Device, session: Session, base: Tensor, kernel: str, attributes: dict[str, Any]
) -> bool | None:
    """Return whether a kernel's result shares its input's memory; None if nothing shows it."""
    spec = getattr(specs, kernel)
    sharing, counter = device.capabilities.shares_memory, device.capabilities.counts_buffers
    if sharing is not None:
        (view,) = session.call(spec, [base], attributes)
        mine, other = (sharing.share_to_host(one._buffer) for one in (base, view))
        return np.shares_memory(mine, other)
    if counter is None:
        return _shares_by_malloc(session, base, spec, attributes)
    try:
        counter.live_buffers()
        held = session.upload(np.zeros((_SIDE, _SIDE), np.float32))
        session.device.backend.synchronize()  # it may be freeing what was released before
        before = counter.live_buffers()
        (view,) = session.call(spec, [held], attributes)
        session.device.backend.synchronize()
        grown = counter.live_buffers() - before
        del view
    finally:
        counter.stop_counting()
    return grown == 0


def _shares_by_malloc(
    session: Session, base: Tensor, spec: KernelSpec, attributes: dict[str, Any]
) -> bool | None:
    """Return what malloc's figures show, if results come from it; None if they do not."""
    allocated = process_figures().get(ALLOCATED)
    if allocated is None:
        return None

    def grown(
        called: KernelSpec, inputs: list[Tensor], asked: dict[str, Any]
    ) -> tuple[float, float]:
        """Return how many results the memory grew by: at the call, and when it was finished."""
        session.device.backend.synchronize()  # it may be freeing what was released before
        before = allocated()
        (result,) = session.call(called, inputs, asked)
        at_once = allocated() - before
        session.device.backend.synchronize()  # a device that computes later takes it later
        return at_once / (4 * result.size), (allocated() - before) / (4 * result.size)

    grown(spec, [base], attributes)  # plans are made
    grown(specs.ADD, [base, base], {})
    if min(grown(specs.ADD, [base, base], {})) < _MOST_OF:
        return None  # it computes elsewhere or later: what shares memory is not settled yet
    return grown(spec, [base], attributes)[1] < _MOST_OF


def _names_apart(_target: Target, opened: Callable[[], Session]) -> None:
    """Buffers of transfers and kernels have names of their own, and sizes of about their bytes."""
    session = opened()
    backend = session.device.backend
    held = []
    for side in (2, 7, 64, 300, 900):
        x = session.upload(np.full((side, side), 1.5, np.float32))
        held += [x, *session.call(specs.ADD, [x, x], {}), *session.call(specs.SUM, [x], {})]
        held += session.call(specs.CONCAT, [[x, x]], {"axis": 0})
    names: dict[Any, int] = {}
    for at, tensor in enumerate(held):
        name, size = backend.allocation(tensor._buffer)
        least = 4 * tensor.size
        if names.setdefault(name, at) != at:
            raise CheckFailedError(
                "allocation() gives one name to two separate buffers, of "
                f"{held[names[name]].type} and {tensor.type}"
            )
        if not least <= size <= 2 * least + _SLACK:
            raise CheckFailedError(f"allocation() says {size} bytes for {tensor.type}")
    sizes = [backend.allocation(tensor._buffer)[1] for tensor in held]
    for _ in range(_ASKED):  # and the same answers later
        for at, tensor in enumerate(held):
            name, size = backend.allocation(tensor._buffer)
            if names.get(name) != at:
                raise CheckFailedError("allocation() gives two names to one buffer")
            if size != sizes[at]:
                raise CheckFailedError(
                    f"allocation() says {size} bytes for {tensor.type}, {sizes[at]} at first"
                )


def _named(shape: tuple[int, int]) -> str:
    size = 4 * shape[0] * shape[1]
    return f"{size} bytes" if size < 1 << 13 else f"{size >> 10} KiB"


CHECKS: Final = (
    *(Check(1, f"writes stay outside: {_named(s)}", partial(_keeps_nothing, s)) for s in _SHAPES),
    *(
        Check(1, f"what is read is a copy: {_named(s)}", partial(_gives_copies, s))
        for s in _SHAPES
    ),
    Check(1, "views named as their base", _names_views),
    Check(1, "allocations named apart", _names_apart),
)
