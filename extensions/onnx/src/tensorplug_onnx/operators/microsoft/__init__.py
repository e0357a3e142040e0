"""Operators of ``com.microsoft``, which onnxruntime's optimizer and quantizers write.

Source of the formulas: onnxruntime's ContribOperators.md, and its kernels for processors.
"""

from __future__ import annotations

from tensorplug_onnx.operators.microsoft import attention, few_bits, fused, quantized, transformers

__all__ = ["attention", "few_bits", "fused", "quantized", "transformers"]
