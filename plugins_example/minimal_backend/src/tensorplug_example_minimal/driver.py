"""REPLACE: the vendor's library. This one pretends: memory behind handles, and a stream.

A device knows bytes, not tensors, and runs launches later: when someone waits, or when the stream
is full. So a program that fails is known then, and so are those that needed its results.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from functools import partial
from typing import Any, Final

import numpy as np

Operand = tuple[int, Any, tuple[int, ...]]  # the handle of what a program reads, dtype and sizes
DEPTH: Final = 16  # commands that may wait


class Fault(Exception):
    """A program failed; its arguments are the class of its error, and a text."""


class Device:
    """One of them, opened. Any thread may call it."""

    def __init__(self) -> None:
        self._memory: dict[int, Any] = {}  # bytes, or why a program wrote none
        self._handles = itertools.count(1)
        self._stream: deque[partial[Any]] = deque()
        self._running = threading.Lock()
        self._untold: Any = None

    def allocate(self, size: int) -> int:
        """Return a handle of memory with any contents, or raise ``MemoryError``."""
        if len(self._stream) >= DEPTH:
            self._run()
        handle = next(self._handles)
        self._memory[handle] = np.empty(size, np.uint8)
        return handle

    def free(self, handle: int) -> None:
        """Take memory back behind all launches so far; wait for nothing, as finalizers must."""
        self._stream.append(partial(self._memory.pop, handle, None))

    def write(self, handle: int, data: bytes) -> None:
        """Copy from the host, into memory that no launch has named."""
        self._memory[handle][:] = np.frombuffer(data, np.uint8)

    def read(self, operand: Operand) -> Any:
        """Wait; copy to the host, or raise the error of the program that should have written."""
        self._run()
        return self._view(operand).copy()

    def launch(
        self, program: Any, inputs: list[Any], outputs: list[Operand], **sizes: Any
    ) -> None:
        """Queue ``program(*inputs, out=outputs, **sizes)``, on views; one output is no list."""
        self._stream.append(partial(self._execute, program, inputs, outputs, sizes))

    def synchronize(self) -> None:
        """Wait until the stream is empty; raise the first error since the last time."""
        self._run()
        failure, self._untold = self._untold, None
        if failure:
            raise Fault(*failure)

    def used(self) -> int:
        """Return how many bytes are allocated."""
        return sum(getattr(memory, "size", 0) for memory in list(self._memory.values()))

    def _view(self, operand: Any) -> Any:
        if isinstance(operand, list):
            return [self._view(each) for each in operand]
        handle, dtype, shape = operand
        if isinstance(self._memory[handle], tuple):
            raise Fault(*self._memory[handle])
        return self._memory[handle].view(dtype).reshape(shape)

    def _execute(self, program: Any, inputs: Any, outputs: Any, sizes: Any) -> None:
        try:
            views, out = self._view(inputs), self._view(outputs)
            program(*views, out=out if len(out) > 1 else out[0], **sizes)
        except Fault as fault:  # of a program whose result it needs
            self._memory.update((handle, fault.args) for handle, *_ in outputs)
        except Exception as error:  # whoever waits gets it; its traceback would keep buffers alive
            failure = type(error), str(error)
            self._untold = self._untold or failure
            self._memory.update((handle, failure) for handle, *_ in outputs)

    def _run(self) -> None:
        with self._running, np.errstate(all="ignore"):  # 1/0 is infinite, as on other devices
            while self._stream:
                self._stream[0]()  # and stays there until it is done: Ctrl-C loses none
                self._stream.popleft()
