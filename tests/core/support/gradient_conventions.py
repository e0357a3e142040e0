"""Conventions for gradients where there is no finite derivative: one line for each kernel.

``test_gradients_at_kinks`` tests each by value; the generated page of rules quotes them.
"""

from __future__ import annotations

_HALF = "equal operands get half each"
_SHARED = "equals share it"
_FIRST = "the first of equals gets it"
_BELOW = "at 0 the slope below it"
_STEEP = "infinite at 0"
_ENDS = "infinite at -1 and 1"

CONVENTIONS: dict[str, str] = {
    "Abs": "0 at 0",
    "Acos": _ENDS,
    "Acosh": "infinite at 1",
    "Asin": _ENDS,
    "Atan2": "0 at the origin",
    "Atanh": _ENDS,
    "AvgPool": "a window of nothing but padding gives nothing",
    "ClipByValue": "passes at the bounds",
    "ComplexAbs": "0 at 0",
    "CopySign": "at 0 as the signs of the zeros say",
    "CropAndResize": "on a pixel the slope to the next one, on the last from the one before",
    "Cumprod": "products of the others, also beside zeros",
    "Dilation2D": _FIRST,
    "DivNoNan": "0 where the divisor is 0",
    "Elu": "1 at 0",
    "FakeQuantize": "straight through the rounding, 0 where x is clipped",
    "Hypot": "0 at the origin",
    "LeakyRelu": _BELOW,
    "Log": _STEEP,
    "Log1p": "infinite at -1",
    "LogAddExp": "equal infinities get half each",
    "LogSoftmax": "-inf among the logits takes no part",
    "MatrixDeterminant": "the cofactors where it is 0, of up to 3 rows; beyond, an error",
    "Max": _SHARED,
    "MaxPool": _FIRST,
    "MaxPool3D": _FIRST,
    "MaxPoolWithArgmax": _FIRST,
    "Maximum": _HALF,
    "Min": _SHARED,
    "Minimum": _HALF,
    "Mod": "at whole quotients as just above them",
    "NonMaxSuppressionV5": "which boxes are selected is a step",
    "Pool": "of max: the first of equals gets it",
    "Pow": "0**0: 0 by both; by the exponent 0 for bases that are not positive",
    "Prelu": _BELOW,
    "Prod": "products of the others, also beside zeros",
    "Reciprocal": _STEEP,
    "Relu": "0 at 0",
    "Relu6": "0 at 0, 1 at 6",
    "Rsqrt": _STEEP,
    "Select": "goes to the branch taken alone",
    "Selu": _BELOW,
    "SelfAdjointEigV2": "between the vectors of equal values nothing flows",
    "Sigmoid": "0 at both infinities",
    "Silu": "0 at -inf, 1 at inf",
    "Softmax": "-inf among the logits takes no part",
    "SoftmaxCrossEntropy": "-inf among the logits takes no part, and labels of 0 add nothing",
    "Sort": "equals in the order of their indices",
    "SparseToDense": "the last of several at one place gets it",
    "Sqrt": _STEEP,
    "SquaredDifference": "0 for equals",
    "Tanh": "0 at both infinities",
    "Svd": "between the vectors of equal values nothing flows",
    "TensorScatterReduce": "equals share it; products of the others, also beside zeros",
    "TensorScatterUpdate": "the last of several at one place gets it",
    "TopK": "equals in the order of their indices",
    "Transform": "on a pixel the slope to the next one, or to the fill value",
    "Unique": _FIRST,
}
