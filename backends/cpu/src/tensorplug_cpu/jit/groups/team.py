"""Threads that help with one kernel after the other, and stay awake between them.

A thread that waits at a queue begins 12 microseconds late, as long as many kernels of a program
take. Those of the team wait in a loop of their own, without the interpreter, for some 200
microseconds after the last kernel that they could help with, and then sleep. A kernel is never
waited for by a thread that has not begun it, so nothing depends on how soon they wake up.
"""

from __future__ import annotations

import ctypes
import os
from queue import SimpleQueue
from threading import Thread
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.codegen import processor
from tensorplug_cpu.jit.codegen.compiler import compile_function

if TYPE_CHECKING:
    from collections.abc import Callable


LONG_WORK: Final = 1 << 20  # instructions of a kernel that wakes the threads by itself
_SOON: Final = 200_000  # nanoseconds in which the next kernel of a series comes
_TRIED: Final = 1 << 10  # turns of waiting, whose time is measured
_TRIES: Final = 5
_LATE: Final = 1 << 11  # turns beyond an item's that a thread is waited for, or has lost its core
_WORK_OF_TURN: Final = 16  # instructions of an item, at most, in a turn of waiting
_LOST: Final = 8  # times as long as such a wait, kernels have no help

# The fields lie in cache lines of their own: what the caller has, what threads read while they
# wait, and how many of them are inside and awake. The caller's are the function ``begin``, so that
# the prologue of a kernel needs no other address; whether it runs; the number of the last job; and
# for how many turns kernels are to run without help.
_ALONE: Final = 3
AWAKE: Final = 17
_WORDS: Final = 18
_LINE: Final = 64  # bytes of a cache line
_TEXT: Final = """%own = type { ptr, i64, i64, i64, [4 x i64] }
%record = type { %own, i64, ptr, ptr, [5 x i64], i64, i64 }

define void @begin(ptr %team, ptr %kernel, ptr %block, i64 %patience) {
entry:
  %owner = getelementptr %record, ptr %team, i32 0, i32 0, i32 1
  %number = getelementptr %record, ptr %team, i32 0, i32 0, i32 2
  %alone = getelementptr %record, ptr %team, i32 0, i32 0, i32 3
  %job = getelementptr %record, ptr %team, i32 0, i32 1
  %its_kernel = getelementptr %record, ptr %team, i32 0, i32 2
  %its_block = getelementptr %record, ptr %team, i32 0, i32 3
  %inside = getelementptr %record, ptr %team, i32 0, i32 5
  %taken = cmpxchg ptr %owner, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %taken, 1
  br i1 %mine, label %own, label %other
other:
  call void %kernel(ptr %block)
  ret void
own:
  %more = load i64, ptr %alone
  %without = icmp sgt i64 %more, 0
  br i1 %without, label %avoid, label %share
avoid:
  %fewer = sub i64 %more, %patience
  store i64 %fewer, ptr %alone
  call void %kernel(ptr %block)
  br label %leave
share:
  %last = load i64, ptr %number
  %next = add i64 %last, 1
  store i64 %next, ptr %number
  store ptr %kernel, ptr %its_kernel
  store ptr %block, ptr %its_block
  store atomic i64 %next, ptr %job seq_cst, align 8
  call void %kernel(ptr %block)
  store atomic i64 0, ptr %job seq_cst, align 8
  br label %wait
wait:
  %turn = phi i64 [ 0, %share ], [ %later, %again ]
  %left = load atomic i64, ptr %inside seq_cst, align 8
  %ended = icmp eq i64 %left, 0
  br i1 %ended, label %judge, label %again
again:
  PAUSE
  %later = add i64 %turn, 1
  br label %wait
judge:
  %late = icmp ugt i64 %turn, %patience
  %lost = mul i64 %turn, LOST
  %skipped = select i1 %late, i64 %lost, i64 0
  store i64 %skipped, ptr %alone
  br label %leave
leave:
  store atomic i64 0, ptr %owner seq_cst, align 8
  ret void
}

define void @serve(ptr %team, i64 %turns) {
entry:
  %job = getelementptr %record, ptr %team, i32 0, i32 1
  %its_kernel = getelementptr %record, ptr %team, i32 0, i32 2
  %its_block = getelementptr %record, ptr %team, i32 0, i32 3
  %inside = getelementptr %record, ptr %team, i32 0, i32 5
  %awake = getelementptr %record, ptr %team, i32 0, i32 6
  %others = atomicrmw add ptr %awake, i64 1 seq_cst
  br label %look
look:
  %turn = phi i64 [ 0, %entry ], [ %after, %idle ], [ 0, %leave ]
  %done = phi i64 [ 0, %entry ], [ %done, %idle ], [ %now, %leave ]
  %now = load atomic i64, ptr %job seq_cst, align 8
  %none = icmp eq i64 %now, 0
  %old = icmp eq i64 %now, %done
  %nothing = or i1 %none, %old
  br i1 %nothing, label %idle, label %enter
idle:
  PAUSE
  %after = add i64 %turn, 1
  %enough = icmp uge i64 %after, %turns
  br i1 %enough, label %sleep, label %look
enter:
  %before = atomicrmw add ptr %inside, i64 1 seq_cst
  %still = load atomic i64, ptr %job seq_cst, align 8
  %over = icmp eq i64 %still, 0
  br i1 %over, label %leave, label %help
help:
  %kernel = load ptr, ptr %its_kernel
  %block = load ptr, ptr %its_block
  call void %kernel(ptr %block)
  br label %leave
leave:
  %one_less = atomicrmw sub ptr %inside, i64 1 seq_cst
  br label %look
sleep:
  %asleep = atomicrmw sub ptr %awake, i64 1 seq_cst
  ret void
}
"""


def _text() -> str:
    features, name, told = processor.features(), "", ""
    if features.get("sse2"):
        name = "llvm.x86.sse2.pause"
    elif features.get("neon"):
        name, told = "llvm.aarch64.hint", "i32 1"
    text = _TEXT.replace("LOST", str(_LOST))
    declared = f"declare void @{name}({told.partition(' ')[0]})\n" if name else ""
    return text.replace("PAUSE", f"call void @{name}({told})" if name else "") + declared


def patience(work: int) -> int:
    """Return for how many turns a thread may be waited for that does so many instructions."""
    return _LATE + work // _WORK_OF_TURN


class Team:
    """The threads beside the calling one, started when a series of kernels begins.

    One kernel at a time has them; others that run at the same time run in their own thread alone.
    """

    def __init__(self) -> None:
        self._begin: Callable[..., None] | None = None
        self.forget()

    def forget(self) -> None:
        """Start with no threads: a forked child does not have its parent's."""
        self.have(parallel.thread_count() - 1)

    def have(self, count: int) -> None:
        """Start anew, with so many threads beside the calling one."""
        self.count = count
        self._last = 0
        self._beds: list[SimpleQueue[None]] = [SimpleQueue() for _ in range(count)]
        self._unused = set(self._beds)
        memory = (ctypes.c_int64 * (_WORDS + _LINE // 8))()
        start = ctypes.addressof(memory)
        self.record = (ctypes.c_int64 * _WORDS).from_buffer(memory, -start % _LINE)
        """Where fewer threads are ``AWAKE`` than ``count``, a kernel asks for help."""
        self.address = ctypes.addressof(self.record)
        if self._begin is not None:
            self._write_begin(self._begin)

    def begin(self) -> Callable[..., None]:
        """Return the function that runs a kernel.

        It takes ``address``, the addresses of the kernel and its arguments, and ``patience``.
        """
        if self._begin is None:
            types = [*[ctypes.c_void_p] * 3, ctypes.c_int64]
            self._begin = compile_function(_text(), "begin", types)
            self._write_begin(self._begin)
        return self._begin

    def _write_begin(self, begin: Callable[..., None]) -> None:
        place = ctypes.cast(begin, ctypes.c_void_p)  # type: ignore[arg-type]  # a function of ctypes
        ctypes.c_void_p.from_address(self.address).value = place.value

    def ask(self, work: int) -> None:
        """Wake the threads if a kernel of so many instructions is long, or one of a series."""
        now = perf_counter_ns()
        if (work >= LONG_WORK or now - self._last < _SOON) and self.record[_ALONE] <= 0:
            for bed in list(self._unused):
                told = bed, self.record, self.address
                Thread(target=_serve, args=told, name="tensorplug-team", daemon=True).start()
                self._unused.discard(bed)
            for bed in self._beds:
                if bed.empty():
                    bed.put(None)
        self._last = now


def _serve(bed: SimpleQueue[None], record: ctypes.Array[ctypes.c_int64], address: int) -> None:
    """Help whenever this thread is woken up; ``record`` is held, for its ``address``."""
    serve = compile_function(_text(), "serve", [ctypes.c_void_p, ctypes.c_int64])
    times = []
    for _ in range(_TRIES):
        start = perf_counter_ns()
        serve(type(record)(), _TRIED)  # where there is never anything to do
        times.append(perf_counter_ns() - start)
    turns = _TRIED * _SOON // max(1, min(times))
    while True:
        bed.get()
        serve(address, turns)


team: Final = Team()
if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=team.forget)
