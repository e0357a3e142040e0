"""Scaled dot-product attention and its gradient: keys stream in tiles, scores stay in registers.

A work-group takes some queries of one head. It loads keys and values tile by tile into local
memory, where all of its queries use them. Each work-item keeps the running maximum and sum of
exponentials of its queries, and rescales its results when the maximum grows. The gradient has two
programs: this one for dq, and one in which keys stay and queries stream, for dk and dv. No two
work-items write to the same place, so the results are reproducible. Heads that share keys are rows
of one head, and tiles of keys behind the lengths are not read.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

from tensorplug.plugin import KernelRefusedError, KernelTable, TensorType, specs
from tensorplug_loops.schedule.attention import is_short
from tensorplug_opencl.codegen import attention_query_text as query_source
from tensorplug_opencl.codegen import attention_text as source
from tensorplug_opencl.codegen import ctypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice

    Buffers = list[DeviceBuffer]
    Optional = DeviceBuffer | None

T = TypeVar("T")

kernels = KernelTable()

_WIDEST: Final = 256  # features that a work-item has private memory for; CPUs and GPUs get slow
_MOST_HEADS: Final = 8  # that share keys, whose sums are in registers, or near
_LEADING: Final = 8  # leading axes, as many as an OpenCL vector has numbers


class _Group(NamedTuple):
    """How many work-items form a group, and how many rows each of them takes."""

    items: int
    rows: int


# A CPU runs a group on one core, one work-item after the other: rows of one item share what it
# reads from a tile, and all items what it took to bring it. A GPU has work-items by the thousand,
# and few registers for each.
_ON_CPU: Final = _Group(64, 4)
_FEW_ON_CPU: Final = _Group(8, 4)
_ON_GPU: Final = _Group(64, 1)


@kernels.prepare(specs.ATTENTION)
def attention(
    q: TensorType,
    k: TensorType,
    v: TensorType,
    bias: TensorType | None,
    mask: TensorType | None,
    lengths: TensorType | None,
    *,
    causal: bool,
    scale: float,
    backend: OpenedDevice,
    out: tuple[TensorType, TensorType],
) -> Callable[..., Any]:
    call = _Call.of(backend, (q, k, v), (bias, mask, lengths), scale, causal=causal)
    run = (
        call.query(out)
        if call.is_one_query()
        else call.program(source.FORWARD, specs.ATTENTION.name, 3, call.rows, out)
    )
    return lambda q, k, v, *optional: run(q, k, v, *_given(*optional))


@kernels.prepare(specs.ATTENTION_GRAD)
def attention_grad(
    dy: TensorType,
    q: TensorType,
    k: TensorType,
    v: TensorType,
    bias: TensorType | None,
    mask: TensorType | None,
    lengths: TensorType | None,
    log_sum_exp: TensorType,
    delta: TensorType,
    *,
    causal: bool,
    scale: float,
    backend: OpenedDevice,
    out: tuple[TensorType, ...],
) -> Callable[..., Any]:
    call = _Call.of(backend, (q, k, v), (bias, mask, lengths), scale, causal=causal)
    of_q = call.program(source.OF_Q, f"{specs.ATTENTION_GRAD.name} dq", 6, call.rows, out[:1])
    of_kv = call.program(
        source.OF_KV, f"{specs.ATTENTION_GRAD.name} dk, dv", 6, call.keys, out[1:]
    )

    def run(
        dy: DeviceBuffer,
        q: DeviceBuffer,
        k: DeviceBuffer,
        v: DeviceBuffer,
        bias: Optional,
        mask: Optional,
        lengths: Optional,
        log_sum_exp: DeviceBuffer,
        delta: DeviceBuffer,
    ) -> Buffers:
        inputs = (q, k, v, dy, log_sum_exp, delta, *_given(bias, mask, lengths))
        return [*of_q(*inputs), *of_kv(*inputs)]

    return run


def _given(*operands: T | None) -> list[T]:
    return [operand for operand in operands if operand is not None]


class _Call(NamedTuple):
    """The common part of the programs for one kind of call."""

    backend: OpenedDevice
    qkv: Sequence[TensorType]
    operands: tuple[TensorType | None, TensorType | None, TensorType | None]
    sharing: int
    scale: float
    causal: bool

    @classmethod
    def of(
        cls,
        backend: OpenedDevice,
        qkv: Sequence[TensorType],
        operands: tuple[TensorType | None, TensorType | None, TensorType | None],
        scale: float,
        *,
        causal: bool,
    ) -> _Call:
        """Read the types and attributes; decline those that the programs do not support."""
        widest = max(qkv[0].shape[-1], qkv[2].shape[-1])
        if widest > _WIDEST:
            raise KernelRefusedError(f"{widest} features; it takes up to {_WIDEST}")
        if qkv[0].rank - 2 > _LEADING:
            raise KernelRefusedError(f"{qkv[0].rank - 2} leading axes; it takes up to {_LEADING}")
        q, *shared = qkv
        leading, lengths = q.shape[:-2], operands[2]
        sharing = 1
        if any(each.shape[:-2] != leading for each in shared):
            if any(each.shape[:-2] != (*leading[:-1], 1) for each in shared):
                raise KernelRefusedError("only the last of the leading axes may share keys")
            if lengths is not None and lengths.rank and lengths.shape[-1] != 1:
                raise KernelRefusedError("heads that share keys must share the lengths")
            sharing = leading[-1]
        if backend.runtime.is_cpu and is_short(q, qkv[1], lengths):
            raise KernelRefusedError("a processor computes so few scores all at once")
        return cls(backend, qkv, operands, sharing, scale, causal)

    @property
    def leading(self) -> tuple[int, ...]:
        """The leading axes, along which no keys are shared."""
        found = self.qkv[0].shape[:-2]
        return (*found[:-1], 1) if self.sharing > 1 else found

    @property
    def rows(self) -> int:
        """The number of queries of all heads that share keys."""
        return self.qkv[0].shape[-2] * self.sharing

    @property
    def keys(self) -> int:
        """The number of keys in each batch."""
        return self.qkv[1].shape[-2]

    def program(
        self, body: str, name: str, inputs: int, rows: int, out: Sequence[TensorType]
    ) -> Callable[..., Buffers]:
        """Return a program in which ``rows`` in each batch stay, each with one work-item."""
        runtime = self.backend.runtime
        group = _ON_GPU
        if runtime.is_cpu:
            large = math.prod(self.leading) * (rows // (_ON_CPU.items * _ON_CPU.rows))
            group = _ON_CPU if large >= (os.cpu_count() or 1) else _FEW_ON_CPU
            if rows <= _FEW_ON_CPU.rows:
                group = _Group(1, _FEW_ON_CPU.rows if rows > 1 else 1)
        groups = -(-rows // (group.items * group.rows))
        makers = [runtime.prepare_empty(type_) for type_ in out]
        if not any(type_.size for type_ in out):
            return lambda *_: [make() for make in makers]
        arrays = inputs + len(_given(*self.operands)) + len(out)
        items = max(math.prod(self.leading) * groups, 1) * group.items
        text, constants = self._text(body, name, group), self._constants(groups)
        write = runtime.launch(text, arrays, constants, items, group=group.items)

        def run(*inputs: DeviceBuffer) -> Buffers:
            results = [make() for make in makers]
            write(*inputs, *results)
            return results

        return run

    def is_one_query(self) -> bool:
        """Return whether there is one query, whose keys a CPU reads in parts where they lie."""
        q, _, v = self.qkv
        few = (
            q.shape[-2] == 1 and self.sharing <= _MOST_HEADS and self.operands[:2] == (None, None)
        )
        lanes = source.vector(ctypes.stored(q.dtype.compute))
        whole = not (q.shape[-1] % lanes or v.shape[-1] % lanes) and all(q.shape) and all(v.shape)
        return self.backend.runtime.is_cpu and few and whole

    def query(self, out: Sequence[TensorType]) -> Callable[..., Buffers]:
        """Return the programs of one query."""
        runtime, (q, k, v) = self.backend.runtime, self.qkv
        parts = -(-k.shape[-2] // query_source.PART)
        heads, group = math.prod(self.leading), _Group(1, self.sharing)
        rows = heads * parts * self.sharing
        shapes = (rows, v.shape[-1]), (rows,), (rows,)
        between = [runtime.prepare_empty(TensorType(q.dtype.compute, shape)) for shape in shapes]
        makers = [runtime.prepare_empty(type_) for type_ in out]
        first, second = (
            runtime.launch(
                self._text(body, f"{specs.ATTENTION.name} of one query, {what}", group),
                arrays,
                self._constants(parts),
                items,
                group=1,
            )
            for body, what, arrays, items in (
                (query_source.QUERY, "parts", 6 + (self.operands[2] is not None), heads * parts),
                (query_source.PARTS, "whole", 5, heads * self.sharing),
            )
        )

        def run(*inputs: DeviceBuffer) -> Buffers:
            sums, results = [make() for make in between], [make() for make in makers]
            first(*inputs, *sums)
            second(*sums, *results)
            return results

        return run

    def _text(self, body: str, name: str, group: _Group) -> str:
        q, _, v = self.qkv
        return source.text(
            body,
            f"{name} {q.dtype}",
            source.Sizes(q.shape[-1], v.shape[-1], group.items, group.rows),
            stored=ctypes.kept(q.dtype),
            computed=ctypes.stored(q.dtype.compute),
            bias=self.operands[0] is not None,
            mask=self.operands[1] is not None,
            lengths="" if self.operands[2] is None else ctypes.stored(self.operands[2].dtype),
        )

    def _constants(self, groups: int) -> list[np.generic | np.ndarray[Any, Any]]:
        """Return the numbers that follow the arrays."""
        q, _, v = self.qkv
        *places, of_lengths = (
            self._steps(*pair) for pair in zip(self.operands, (2, 2, 0), strict=True)
        )
        return [
            *(np.uint32(n) for n in (q.shape[-2], self.keys, q.shape[-1], v.shape[-1])),
            np.uint32(self.sharing),
            np.uint32(self.causal),
            np.uint32(max(groups, 1)),
            q.dtype.compute.numpy.type(self.scale),
            _eight(self.leading, 1),
            *(_eight(by, 0) for by, _, _ in (*places, of_lengths)),
            _eight([step for _, last, group in places for step in (*last, group)], 0),
        ]

    def _steps(self, operand: TensorType | None, last: int) -> tuple[list[int], list[int], int]:
        """Return how far apart an operand's elements are along axes.

        These are the leading ones, its ``last`` ones, and that along which keys are shared.
        """
        rank = len(self.leading) + last
        shape = () if operand is None else operand.shape
        full = (1,) * (rank - len(shape)) + shape
        steps = [0 if n == 1 else math.prod(full[at + 1 :]) for at, n in enumerate(full)]
        leading, rest = steps[: rank - last], steps[rank - last :]
        shared = leading.pop() if self.sharing > 1 else 0
        return [*leading, *[0] * (self.sharing > 1)], rest, shared


def _eight(numbers: Sequence[int], rest: int) -> np.ndarray[Any, Any]:
    """Return numbers as OpenCL's ``long8``."""
    return np.array([*numbers, *[rest] * (_LEADING - len(numbers))], np.int64)
