"""Tangents of making complex numbers and taking their parts, which is linear in the parts."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import complexes as ops

tangents: TangentTable = TangentTable()
tangents.linear(ops.COMPLEX, "real", "imag")
tangents.linear(ops.REAL, "input")
tangents.linear(ops.IMAG, "input")
tangents.linear(ops.CONJ, "x")
tangents.elementwise(ops.COMPLEX_ABS)
