"""The leak check: an observer that counts a device's buffers around each kernel call.

A kernel's results are new buffers, or lie in its inputs' memory. Whatever else it allocates it
must have given up when it returns, and what it found it must leave: a buffer more is a leak, a
buffer fewer was freed although somebody counts on it.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tensorplug.dispatch.locks import Lock
from tensorplug.engine import notices
from tensorplug.errors import LeakError, UncheckedWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.plans import Plan

__all__ = ["LeakCheck"]

_alone: Final = Lock()


class LeakCheck:
    """Raises ``LeakError`` after a native kernel call that leaks or frees too much.

    It needs a backend that can count (``backend.CountsBuffers``); of one that cannot it says so
    with an ``UncheckedWarning``, once. Decompositions and fallbacks are checked kernel by
    kernel. A call that raises is not checked: its traceback still holds what it made. Memory
    that a kernel keeps from call to call belongs into its preparation, which is not counted.

    A kernel that frees an input and leaks as much in the same call comes out even. So the inputs
    are looked at as well, and show what the backend can tell of a buffer: that its memory is
    gone, or is smaller than it was.

    While a call is counted, the garbage collector is off and other checked calls wait, so that
    what other kernels make and what garbage gives up are not mixed into it. What is no kernel
    call cannot be made to wait: if another thread uploads, copies or drops tensors of the same
    backend at that moment, these look like the kernel's. Check with one thread at work.
    """

    def __init__(self) -> None:
        self._unchecked: set[str] = set()
        self._counting: dict[int, Device] = {}  # by identity

    def around(
        self, plan: Plan, inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Run, and compare how many buffers there are with what the outputs explain.

        Raises:
            LeakError: naming kernel, owner, device and number of buffers.
            KernelOutputError: the kernel returned something else than its spec infers.

        """
        if plan.how != "native":
            return run()
        backend = plan.device.capabilities.counts_buffers
        if backend is None:
            self._say_unchecked(plan.device)
            return run()
        with _alone, _no_collection():
            self._counting[id(plan.device)] = plan.device
            given = _Given(backend, plan, inputs)
            before = backend.live_buffers()
            outputs = run()
            grown = backend.live_buffers() - before
        plan.verify(outputs)  # what is no buffer cannot be looked at
        given.look_again()
        leaked = grown + given.freed - given.new(outputs)
        if leaked or given.harmed:
            raise LeakError(_message(plan, leaked, given.harmed))
        return outputs

    def finish(self) -> None:
        """Stop counting, which may cost time; the next checked call starts it again.

        Another check that is at work goes on, but no longer knows of what was made before.
        """
        with _alone:
            while self._counting:
                _, device = self._counting.popitem()
                backend = device.capabilities.counts_buffers
                if not device.closed and backend is not None:
                    backend.stop_counting()

    def uploaded(self, tensor: Tensor) -> None:
        """Let it pass: an upload is no kernel's."""

    def _say_unchecked(self, device: Device) -> None:
        if device.name not in self._unchecked:
            self._unchecked.add(device.name)
            notices.warn(
                f"backend {device.name!r} does not count its buffers "
                "(tensorplug.plugin.CountsBuffers), so its kernels are not checked for leaks",
                UncheckedWarning,
            )


class _Given:
    """The counted memory under a call's inputs, held so that nobody else frees it meanwhile."""

    def __init__(self, backend: Any, plan: Plan, inputs: Sequence[Any]) -> None:
        self._backend = backend
        self._memory: dict[Hashable, tuple[str, Any, int]] = {}  # input, buffer, bytes
        self.harmed: list[str] = []  # inputs whose memory is not what it was
        self.freed = 0  # of these, how many are not counted any more
        for name, given in zip(plan.spec.input_names, inputs, strict=True):
            for tensor in given if isinstance(given, list) else [given]:
                if tensor is not None and self._backend.counts(tensor._buffer):
                    key, size = self._backend.allocation(tensor._buffer)
                    self._memory.setdefault(key, (name, tensor._buffer, size))

    def look_again(self) -> None:
        """Find the inputs whose memory the kernel gave up or made smaller."""
        for key, (name, buffer, size) in list(self._memory.items()):
            gone = not self._backend.counts(buffer)
            if gone or self._backend.allocation(buffer) != (key, size):
                self.harmed.append(name)
                self.freed += gone
                del self._memory[key]  # its name may be another's by now

    def new(self, outputs: Sequence[Tensor]) -> int:
        """Return how many pieces of memory lie under ``outputs`` and under no input."""
        counted = (output._buffer for output in outputs if self._backend.counts(output._buffer))
        return len({self._backend.allocation(item)[0] for item in counted} - self._memory.keys())


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector from freeing buffers inside; only one at a time enters."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _message(plan: Plan, leaked: int, harmed: Sequence[str]) -> str:
    faults = []
    if harmed:
        names = ", ".join(repr(fromkey) for fromkey in dict.fromkeys(harmed))
        faults.append(
            f"took memory from its input {names}: inputs belong to their tensors, so leave them"
        )
    if leaked > 0:
        faults.append(
            f"leaked {_buffers(leaked)}, neither returned nor freed: give temporaries up before "
            "returning, and make what is kept from call to call in the kernel's preparation"
        )
    if leaked < 0:
        faults.append(
            f"freed {_buffers(-leaked)} not its own to free, or returned as many that were there "
            "before and are no input's: leave what the call did not make, and return new buffers"
        )
    return (
        f"kernel {plan.describe()} of {plan.owner} on backend {plan.device.name!r} "
        f"{'; it '.join(faults)}"
    )


def _buffers(number: int) -> str:
    return "1 buffer" if number == 1 else f"{number} buffers"
