"""Attention for tensorplug-opencl: keys stream in tiles, and scores stay in registers.

A work-group takes some queries of one head. It loads keys and values tile by tile into local
memory, where all of its queries use them. Each work-item keeps the running maximum and sum of
exponentials of its queries, and rescales its results when the maximum grows. The gradient has two
programs: this one for dq, and one in which keys stay and queries stream, for dk and dv. No two
work-items write to the same place, so the results are reproducible.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.plugin import KernelRefusedError, KernelTable, TensorType, specs
from tensorplug_attention.kernels import opencl_source as source
from tensorplug_attention.kernels import refuse_lengths
from tensorplug_opencl.extensions import c_type, on_cpu, program

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_opencl.extensions import DeviceBuffer, OpenCLBackend

    Buffers = list[DeviceBuffer]
    Optional = DeviceBuffer | None

kernels = KernelTable()

_WIDEST: Final = 256  # features that a work-item has private memory for; CPUs and GPUs get slow
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
    backend: OpenCLBackend,
    out: tuple[TensorType, TensorType],
) -> Callable[..., Any]:
    refuse_lengths(q, k, v, lengths)
    call = _Call.of(backend, (q, k, v), bias, mask, scale, causal=causal)
    run = call.program(source.FORWARD, specs.ATTENTION.name, 3, call.queries, out)
    return lambda q, k, v, bias, mask, _: run(q, k, v, *_given(bias, mask))


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
    backend: OpenCLBackend,
    out: tuple[TensorType, ...],
) -> Callable[..., Any]:
    refuse_lengths(q, k, v, lengths)
    call = _Call.of(backend, (q, k, v), bias, mask, scale, causal=causal)
    of_q = call.program(source.OF_Q, f"{specs.ATTENTION_GRAD.name} dq", 6, call.queries, out[:1])
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
        lengths: None,
        log_sum_exp: DeviceBuffer,
        delta: DeviceBuffer,
    ) -> Buffers:
        inputs = (q, k, v, dy, log_sum_exp, delta, *_given(bias, mask))
        return [*of_q(*inputs), *of_kv(*inputs)]

    return run


def _given(*buffers: Optional) -> Buffers:
    return [buffer for buffer in buffers if buffer is not None]


class _Call(NamedTuple):
    """The common part of the programs for one kind of call."""

    backend: OpenCLBackend
    qkv: Sequence[TensorType]
    operands: tuple[TensorType | None, TensorType | None]
    scale: float
    causal: bool

    @classmethod
    def of(
        cls,
        backend: OpenCLBackend,
        qkv: Sequence[TensorType],
        bias: TensorType | None,
        mask: TensorType | None,
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
        return cls(backend, qkv, (bias, mask), scale, causal)

    @property
    def queries(self) -> int:
        """The number of queries in each batch."""
        return self.qkv[0].shape[-2]

    @property
    def keys(self) -> int:
        """The number of keys in each batch."""
        return self.qkv[1].shape[-2]

    def program(
        self, body: str, name: str, inputs: int, rows: int, out: Sequence[TensorType]
    ) -> Callable[..., Buffers]:
        """Return a program in which ``rows`` in each batch stay, each with one work-item."""
        q, _, v = self.qkv
        group = _ON_GPU
        if on_cpu(self.backend):
            large = math.prod(q.shape[:-2]) * (rows // (_ON_CPU.items * _ON_CPU.rows))
            group = _ON_CPU if large >= (os.cpu_count() or 1) else _FEW_ON_CPU
        dtype = q.dtype.compute
        computed = c_type(dtype)
        text = source.text(
            body,
            f"{name} {q.dtype}",
            source.Sizes(q.shape[-1], v.shape[-1], group.items, group.rows),
            stored=c_type(q.dtype),
            computed=computed,
            bias=self.operands[0] is not None,
            mask=self.operands[1] is not None,
        )
        batch = q.shape[:-2]
        groups = -(-rows // (group.items * group.rows))
        steps = [self._steps(operand) for operand in self.operands]
        constants: list[np.generic | np.ndarray[Any, Any]] = [
            *(np.uint32(n) for n in (self.queries, self.keys, q.shape[-1], v.shape[-1])),
            np.uint32(self.causal),
            np.uint32(max(groups, 1)),
            dtype.numpy.type(self.scale),
            _eight(batch, 1),
            *(_eight(leading, 0) for leading, _ in steps),
            np.array([*steps[0][1], *steps[1][1]], np.int64),
        ]
        return program(
            self.backend,
            text,
            inputs + sum(operand is not None for operand in self.operands),
            out,
            constants,
            items=max(math.prod(batch) * groups, 1) * group.items,
            group=group.items,
        )

    def _steps(self, operand: TensorType | None) -> tuple[list[int], list[int]]:
        """Return how far apart an operand's elements are along leading axes, and the last two."""
        rank = self.qkv[0].rank
        shape = () if operand is None else operand.shape
        full = (1,) * (rank - len(shape)) + shape
        steps = [0 if n == 1 else math.prod(full[at + 1 :]) for at, n in enumerate(full)]
        return steps[:-2], steps[-2:]


def _eight(numbers: Sequence[int], rest: int) -> np.ndarray[Any, Any]:
    """Return numbers as OpenCL's ``long8``."""
    return np.array([*numbers, *[rest] * (_LEADING - len(numbers))], np.int64)
