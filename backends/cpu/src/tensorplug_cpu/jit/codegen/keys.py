"""Integers that have the order of elements: what sorts and searches compare.

A NaN is the greatest, whatever its sign and payload, and zeros of both signs are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorplug_cpu.jit.codegen.functions import Function

    Value = Any  # of llvmlite


class Keys:
    """From bits to signed integers in the order of the elements; of vectors and scalars.

    Args:
        f: the function that is being written.
        kind: of the dtype: ``"f"``, ``"i"`` or ``"u"``.
        itemsize: its bytes.

    """

    def __init__(self, f: Function, kind: str, itemsize: int) -> None:
        self.f, self.kind, self.bits = f, kind, 8 * itemsize
        self.most = (1 << (self.bits - 1)) - 1
        self.infinity = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF << 52}.get(self.bits, 0)

    def of(self, x: Value) -> Value:
        """Return the keys of integers with the bits of elements."""
        build, number = self.f.builder, self.f.number
        if self.kind != "f":
            return build.xor(x, number(-1 - self.most if self.kind == "u" else 0, x.type))
        zero, most = number(0, x.type), number(self.most, x.type)
        size = build.and_(x, most)
        negative = build.icmp_signed("<", x, zero)
        signed = build.select(negative, build.sub(zero, size), size)
        undefined = build.icmp_signed(">", size, number(self.infinity, x.type))
        return build.select(undefined, most, signed)
