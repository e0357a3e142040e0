"""Sequences, which are lists, and optionals, which are a value or None."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import as_tensor, dtype_of, namespace

if TYPE_CHECKING:
    from onnx import TypeProto


@rule("SequenceConstruct", raw=True)
def construct(*tensors: Any) -> list[Any]:
    return list(tensors)


@rule("SequenceEmpty", raw=True)
def empty(*, dtype: int = 1) -> list[Any]:
    del dtype  # nothing asks a sequence without tensors for it
    return []


@rule("SequenceAt", raw=True, host=(1,))
def at(sequence: list[Any], position: Any) -> Any:
    return sequence[_position(position, sequence, len(sequence) - 1)]


@rule("SequenceInsert", raw=True, host=(2,))
def insert(sequence: list[Any], tensor: Any, position: Any = None) -> list[Any]:
    if sequence and dtype_of(sequence[0]) != dtype_of(tensor):
        raise ValueError(f"a sequence of {dtype_of(sequence[0])} takes no {dtype_of(tensor)}")
    place = len(sequence) if position is None else _position(position, sequence, len(sequence))
    return [*sequence[:place], tensor, *sequence[place:]]


@rule("SequenceErase", raw=True, host=(1,))
def erase(sequence: list[Any], position: Any = None) -> list[Any]:
    last = np.array(-1) if position is None else position
    place = _position(last, sequence, len(sequence) - 1)
    return [*sequence[:place], *sequence[place + 1 :]]


def _position(position: Any, sequence: list[Any], most: int) -> int:
    """Return a position counted from the front."""
    count, place = len(sequence), int(position.item())
    if not -count <= place <= most:
        raise ValueError(f"position {place} is not in a sequence of {count}")
    return place % count if place < 0 else place


@rule("SequenceLength", raw=True)
def length(sequence: list[Any]) -> Any:
    return np.array(len(sequence), np.int64)


@rule("SplitToSequence", raw=True, host=(1,))
def split(x: Any, sizes: Any = None, *, axis: int = 0, keepdims: int = 1) -> list[Any]:
    total = int(x.shape[axis])
    if sizes is None:
        lengths = [1] * total
    elif sizes.ndim:
        lengths = sizes.tolist()
    else:
        part = int(sizes)
        if part <= 0:
            raise ValueError(f"split must be positive, got {part}")
        lengths = [min(part, total - begin) for begin in range(0, total, part)]
    if min(lengths, default=0) < 0 or sum(lengths) != total:
        raise ValueError(f"split {lengths} must be parts of {total}, the size of axis {axis}")
    xp = namespace(x)
    ends = np.cumsum(np.array(lengths, np.int64)).tolist()
    front = (slice(None),) * (axis % x.ndim)
    parts = [x[(*front, slice(end - size, end))] for end, size in zip(ends, lengths, strict=True)]
    drops = sizes is None and not keepdims
    return [xp.squeeze(part, axis=axis) for part in parts] if drops else parts


@rule("ConcatFromSequence", raw=True)
def concatenate(sequence: list[Any], *, axis: int, new_axis: int = 0) -> Any:
    if not sequence:
        raise ValueError("a sequence without tensors cannot be concatenated")
    xp = namespace(*sequence)
    tensors = sequence if xp is np else as_tensor(sequence)
    return xp.stack(tensors, axis=axis) if new_axis else xp.concat(tensors, axis=axis)


@rule("Optional", raw=True)
def optional(value: Any = None, *, type: TypeProto | None = None) -> Any:
    del type  # nothing asks an empty optional for it
    return value


@rule("OptionalHasElement", raw=True)
def has_element(value: Any = None) -> Any:
    return np.array(value is not None)


@rule("OptionalGetElement", raw=True)
def element(value: Any) -> Any:
    if value is None:
        raise ValueError("the optional has no value")
    return value
