"""Engines that lose track of memory: of its views, its writes, or its contents."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import specs
from tensorplug_conformance.selftest.delegates import Delegate, Unguarded
from tensorplug_conformance.selftest.programs.engines import delegating, with_kernel

if TYPE_CHECKING:
    from tensorplug.engine.engine import Engine
    from tensorplug.plugin import Backend
    from tensorplug_conformance.case import Array


def recycles_what_has_views() -> Engine:
    """Return an engine that reclaims memory when its first buffer goes, despite views."""
    blocks: list[tuple[Array, weakref.ref[Array]]] = []

    def product(a: Array, b: Array) -> Array:
        result = np.asarray(np.multiply(a, b))
        for at, (block, first) in enumerate(blocks):
            if first() is None and (block.shape, block.dtype) == (result.shape, result.dtype):
                del blocks[at]
                break
        else:
            block = np.empty_like(result)
        np.copyto(block, result)
        buffer = block.view()
        blocks.append((block, weakref.ref(buffer)))
        return buffer

    return with_kernel(specs.MULTIPLY, product)


class _Unguarded(Delegate):
    """Writes in place whatever else sees the memory."""

    def exclusive(self, buffer: Array) -> Unguarded:
        return Unguarded(buffer, _write)


def _write(array: Array, key: tuple[Any, ...], value: Array) -> bool:
    array[(*key, ...)] = value
    return True


def overwrites_what_others_see() -> Engine:
    """Return an engine that returns a view for x + 0, and writes through views."""

    def total(a: Array, b: Array) -> Array:
        spared = a.shape == np.broadcast_shapes(a.shape, b.shape) and not np.any(b)
        return a.view() if spared else np.asarray(np.add(a, b))

    return with_kernel(specs.ADD, total, delegating(_Unguarded))


class _WritesLater(Delegate):
    """Queues writes, and does not wait for them before data is read."""

    def __init__(self, clean: Backend) -> None:
        super().__init__(clean)
        self.queue: list[tuple[Array, tuple[Any, ...], Array]] = []

    def exclusive(self, buffer: Array) -> Unguarded:
        def write(array: Array, key: tuple[Any, ...], value: Array) -> bool:
            self.queue.append((array, key, np.array(value)))
            return True

        return Unguarded(buffer, write)

    def to_host(self, buffer: Array) -> Array:
        result = np.array(buffer)
        for written, key, value in self.queue:
            written[(*key, ...)] = value
        self.queue.clear()
        return result

    share_to_host = to_host


def writes_later() -> Engine:
    """Return an engine whose writes in place become visible at the second read."""
    return delegating(_WritesLater)


class _OnePlace(Delegate):
    """Returns the staging memory of downloads, which the next download overwrites."""

    def __init__(self, clean: Backend) -> None:
        super().__init__(clean)
        self.place = np.zeros(1 << 16, np.uint8)

    def to_host(self, buffer: Array) -> Array:
        result: Array = self.clean.to_host(buffer)
        if result.dtype.kind == "T" or result.nbytes > self.place.size:
            return result
        staged = self.place[: result.nbytes].view(result.dtype).reshape(result.shape)
        np.copyto(staged, result)
        return staged

    share_to_host = to_host


def downloads_to_one_place() -> Engine:
    """Return an engine whose downloads are valid until the next one."""
    return delegating(_OnePlace)
