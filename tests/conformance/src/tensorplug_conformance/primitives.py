"""The primitive kernels: a backend that has these for its dtypes runs every op."""

from __future__ import annotations

from typing import Final

PRIMITIVES: Final = frozenset(
    {
        "Neg",
        "Abs",
        "Floor",
        "Exp",
        "Log",
        "Sqrt",
        "Sin",
        "Cos",
        "Atan",
        "Erf",
        "Add",
        "Sub",
        "Multiply",
        "RealDiv",
        "FloorDiv",
        "Mod",
        "Pow",
        "Maximum",
        "Equal",
        "Less",
        "LogicalAnd",
        "LogicalNot",
        "Select",
        "Cast",
        "Fill",
        "Range",
        "Identity",
        "Reshape",
        "Transpose",
        "BroadcastTo",
        "Slice",
        "PadV2",
        "Concat",
        "GatherV2",
        "ScatterNd",
        "Sum",
        "Prod",
        "Max",
        "ArgMax",
        "BatchMatMul",
        "TopK",
    }
)

REQUIRED_DTYPES: Final = frozenset({"bool", "int32", "float32"})
"""What every backend must declare: the core's default dtypes, which indices and masks need."""
