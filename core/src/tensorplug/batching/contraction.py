"""Batching of contractions: the examples get a letter of their own."""

from __future__ import annotations

from string import ascii_letters
from typing import TYPE_CHECKING, Any

from tensorplug.contract.batching import BatchingTable
from tensorplug.ops import contraction as ops

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

batching: BatchingTable = BatchingTable()


@batching.of(ops.EINSUM)
def einsum(xs: list[Tensor], *, equation: str) -> Any:
    letter = next((letter for letter in ascii_letters if letter not in equation), None)
    if letter is None:
        return NotImplemented
    left, right = equation.split("->")
    terms = [letter + term for term in left.split(",")]
    return ops.einsum(f"{','.join(terms)}->{letter}{right}", *xs)
