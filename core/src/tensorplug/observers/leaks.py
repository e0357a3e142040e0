"""The leak check: an observer that counts a device's buffers around each kernel call.

A kernel's results are new buffers, or share its inputs' memory. It must free all other memory
that it allocates, and must not free memory of others: one buffer too many is a leak, one too few
was freed wrongly.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, Final

from tensorplug.dispatch.locks import Lock
from tensorplug.errors import LeakError, UncheckedWarning
from tensorplug.system import notices

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.plans import Plan


_alone: Final = Lock()


class LeakCheck:
    """Raises ``LeakError`` after a native kernel call that leaks or frees too much.

    It needs a backend that can count (``backend.CountsBuffers``), and gives an
    ``UncheckedWarning`` once for one that cannot. Decompositions and fallbacks are checked kernel
    by kernel. A call that raises is not checked: its traceback still holds its buffers. A kernel
    must allocate memory that it keeps between calls in its preparation, which is not counted.

    A kernel might free an input and leak another buffer in the same call. So the inputs are
    checked as well: whether their memory is gone, or is smaller than before.

    While a call is counted, the garbage collector is off and other checked calls wait, so that
    they do not change the count. Uploads, copies and disposals do not wait: if another thread does
    these on the same backend, they look like the kernel's. Check with only one active thread.
    """

    def __init__(self) -> None:
        self._unchecked: set[str] = set()
        self._counting: dict[int, Device] = {}  # by identity

    def around(
        self, plan: Plan, inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Run, and compare the number of buffers before and after, without the outputs.

        Raises:
            LeakError: the kernel leaked or freed buffers.
            KernelOutputError: an output does not have the type that the spec infers.

        """
        if plan.how != "native":
            return run()
        backend = plan.device.capabilities.counts_buffers
        if backend is None:
            self._warn_unchecked(plan.device)
            return run()
        with _alone:
            collecting = gc.isenabled()
            try:
                gc.disable()
                self._counting[id(plan.device)] = plan.device
                memory = _InputMemory(backend, plan, inputs)
                before = backend.live_buffers()
                outputs = run()
                grown = backend.live_buffers() - before
            finally:
                if collecting:
                    gc.enable()
        plan.verify(outputs)  # the next lines need valid buffers
        memory.check()
        leaked = grown + memory.freed - memory.count_new(outputs)
        if leaked or memory.harmed:
            raise LeakError(_message(plan, leaked, memory.harmed))
        return outputs

    def finish(self) -> None:
        """Stop counting, which may cost time; the next checked call starts it again.

        Other active checks continue, but do not know of earlier buffers any more.
        """
        with _alone:
            while self._counting:
                _, device = self._counting.popitem()
                backend = device.capabilities.counts_buffers
                if not device.closed and backend is not None:
                    backend.stop_counting()

    def uploaded(self, tensor: Tensor) -> None:
        """Do nothing: an upload is not a kernel call."""

    def _warn_unchecked(self, device: Device) -> None:
        if device.name not in self._unchecked:
            self._unchecked.add(device.name)
            notices.warn(
                f"backend {device.name!r} does not count its buffers "
                "(tensorplug.plugin.CountsBuffers), so its kernels are not checked for leaks",
                UncheckedWarning,
            )


class _InputMemory:
    """The counted memory of a call's inputs, which this object keeps alive."""

    def __init__(self, backend: Any, plan: Plan, inputs: Sequence[Any]) -> None:
        self._backend = backend
        self._memory: dict[Hashable, tuple[str, Any, int]] = {}  # input, buffer, bytes
        self.harmed: list[str] = []  # inputs whose memory was freed or changed
        self.freed = 0  # the number of freed ones
        for name, operand in zip(plan.spec.input_names, inputs, strict=True):
            for tensor in operand if isinstance(operand, list) else [operand]:
                if tensor is not None and self._backend.counts(tensor._buffer):
                    key, size = self._backend.allocation(tensor._buffer)
                    self._memory.setdefault(key, (name, tensor._buffer, size))

    def check(self) -> None:
        """Find the inputs whose memory the kernel freed or made smaller."""
        for key, (name, buffer, size) in list(self._memory.items()):
            freed = not self._backend.counts(buffer)
            if freed or self._backend.allocation(buffer) != (key, size):
                self.harmed.append(name)
                self.freed += freed
                del self._memory[key]  # the key may belong to other memory now

    def count_new(self, outputs: Sequence[Tensor]) -> int:
        """Return the number of allocations of ``outputs`` that no input shares."""
        buffers = (output._buffer for output in outputs if self._backend.counts(output._buffer))
        keys = {self._backend.allocation(buffer)[0] for buffer in buffers}
        return len(keys - self._memory.keys())


def _message(plan: Plan, leaked: int, harmed: Sequence[str]) -> str:
    faults = []
    if harmed:
        names = ", ".join(repr(name) for name in dict.fromkeys(harmed))
        faults.append(f"freed memory of its input {names}, which belongs to the caller's tensors")
    if leaked > 0:
        faults.append(
            f"leaked {_buffers(leaked)}, neither returned nor freed: free temporaries before "
            "returning, and allocate memory that is kept between calls in the kernel's preparation"
        )
    if leaked < 0:
        faults.append(
            f"freed {_buffers(-leaked)} that it did not allocate, or returned as many old ones "
            "that are not inputs: free only memory of the call, and return new buffers"
        )
    return (
        f"kernel {plan.describe()} of {plan.owner} on backend {plan.device.name!r} "
        f"{'; it '.join(faults)}"
    )


def _buffers(number: int) -> str:
    return "1 buffer" if number == 1 else f"{number} buffers"
