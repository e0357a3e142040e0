"""What is done to sums of products before they leave the registers: bias and activation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tensorplug_cpu.jit.codegen.functions import Function


EPILOGUES: Final = ("linear", "relu", "relu6", "slope")
"""Nothing; two activations; negative numbers times a slope."""


def apply_epilogue(f: Function, x: Any, epilogue: str, bias: Any | None, slope: Any | None) -> Any:
    """Return ``x`` plus ``bias`` with an activation of ``EPILOGUES``; NaN stays NaN."""
    if bias is not None:
        x = f.builder.fadd(x, bias)
    if epilogue == "linear":
        return x
    zero = f.number(0.0, x.type)
    below = f.builder.fcmp_ordered("<", x, zero)
    if epilogue == "slope":
        return f.builder.select(below, f.builder.fmul(x, slope), x)
    x = f.builder.select(below, zero, x)
    if epilogue == "relu6":
        six = f.number(6.0, x.type)
        x = f.builder.select(f.builder.fcmp_ordered(">", x, six), six, x)
    return x
