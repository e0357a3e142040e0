"""What specs say of their edges: answers to the questions of ``spec_questions``."""

from __future__ import annotations

_IEEE = "as IEEE 754 says"
_READ = (
    "OutOfRangeError, or another ArgumentError; a device that cannot raise reads some element of "
    "the input, nothing outside"
)
_WRITTEN = (
    "OutOfRangeError, or another ArgumentError; a device that cannot raise leaves the update out, "
    "or writes it to another place of the result, nothing outside"
)

ANSWERS: dict[str, dict[str, str]] = {
    "division by 0": {
        f"a number by 0 is infinite, 0 by 0 is NaN, {_IEEE}": "RealDiv",
        "the result is 0, whatever the dividend": "DivNoNan",
        f"an integer by 0 is 0; floats are divided {_IEEE}. The quotient is rounded down, "
        "towards minus infinity: -7 by 2 is -4; an infinite dividend gives infinity": "FloorDiv",
        "of an integer, 0; of a float, NaN. The remainder is that of the quotient rounded down, "
        "and has the sign of the divisor: -7 by 2 leaves 1, 7 by -2 leaves -1": "Mod",
        "infinity, of the sign of the 0": "Reciprocal Rsqrt",
    },
    "outside of the domain": {
        "a negative base with a fractional exponent gives NaN; 0 to a negative power is infinite; "
        "anything to the power 0 is 1, and so is 1 to any power, NaN among them. Of integers, a "
        "negative power is 1 / a**-b rounded towards 0, and of 0 it is 0": "Pow",
        "minus infinity of 0, NaN of negative numbers": "Log Log2 Log10",
        "minus infinity of -1, NaN of smaller numbers": "Log1p",
        "NaN of negative numbers": "Rsqrt",
        "NaN of negative numbers; -0.0 stays": "Sqrt",
        "NaN of numbers that are not in [-1, 1]": "Acos Asin",
        "NaN of numbers below 1": "Acosh",
        "infinity of 1, minus infinity of -1, NaN of larger and smaller numbers": "Atanh",
        f"a `variance` and `variance_epsilon` of 0 divide {_IEEE}": "FusedBatchNorm",
    },
    "numbers that do not fit": {
        "a float is truncated towards 0, and integers keep their lowest bits: 300 is 44 in int8; "
        "NaN and infinities are 0, but True. Among floats, a number is rounded to the nearest "
        "one, half to even, and may become infinite": "Cast",
        "they become the least or the largest integer, NaN the zero point; halves are rounded to "
        "even": "Quantize FakeQuantize",
    },
    "shifts too far": {
        "by as many bits as the dtype has, by more, or by a negative number, the result is "
        "0": "LeftShift",
        "by as many bits as the dtype has, by more, or by a negative number, the result is 0, or "
        "-1 if `a` is negative": "RightShift",
    },
    "NaN": {
        "if either is NaN, so is the result": "Maximum Minimum",
        "a comparison with NaN is False": "Less LessEqual Greater GreaterEqual Equal",
        "NaN differs from everything, itself included": "NotEqual",
        "it has a sign, as other numbers do": "SignBit",
        "it stays": "Abs Relu Relu6 Step ClipByValue",
        "the first NaN is the greatest": "ArgMax",
        "the first NaN is the least": "ArgMin",
        "if one is among the elements, the result is NaN": "Max Min MaxPool",
        "if one is in the window, the result is the first one": "MaxPoolWithArgmax",
        "a box whose score is NaN is not selected": (
            "NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5"
        ),
        "it is larger than infinity, and equal to itself": (
            "SearchSorted LowerBound UpperBound TopK Sort ArgSort ArgPartition"
        ),
        "all NaN are one value": "Unique",
    },
    "ties": {
        "the first": "ArgMax ArgMin MaxPoolWithArgmax",
        "of equal scores, the first box comes first": (
            "NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5"
        ),
        "`side` says whether the place is before or after equal elements": "SearchSorted",
        "the place is before equal elements": "LowerBound",
        "the place is after equal elements": "UpperBound",
        "of equal elements, the first comes first": "TopK",
        "of equal elements, the first comes first, if `stable`; in both directions": "ArgSort",
    },
    "no elements": {
        "a sum without terms is 0": (
            "Einsum UnsortedSegmentSum Bincount DenseBincount StridedSliceGrad ScatterNd "
            "BatchMatMul QuantizedMatMul Conv2DBackpropFilter Conv3DBackpropFilterV2 "
            "DepthwiseConv2dNativeBackpropFilter SoftmaxCrossEntropy Sum"
        ),
        "a product without factors is 1": "Prod MatrixDeterminant",
        "the determinant is 1, so the sign is 1 and the logarithm 0": "LogMatrixDeterminant",
        "NaN": "Mean",
        "True": "All",
        "False": "Any",
        "ShapeError; an output without elements is empty": "ArgMax ArgMin Max Min",
        "ShapeError": (
            "ArgPartition RFFT ResizeBilinear ResizeNearestNeighbor SparseSoftmaxCrossEntropy "
            "Multinomial"
        ),
        "the result is padding": "PadV2 SpaceToBatchND",
        "no box is selected": "NonMaxSuppressionV4",
        "rows without values stay": "RaggedGather StringNGrams",
        "slices without elements are equal": "Unique",
    },
    "indices out of range": {
        _READ: "GatherV2 GatherNd",
        _WRITTEN: "ScatterNd TensorScatterUpdate TensorScatterReduce SparseToDense",
        "rows of ids that are negative or too large are left out": "UnsortedSegmentSum",
        "integers that are too large are not counted": "Bincount DenseBincount",
        "a box of an image that there is not is 0": "CropAndResize",
        "the window is moved, so that it lies inside": "DynamicSlice DynamicUpdateSlice",
        "a row of `off_value`": "OneHot",
        "OutOfRangeError": (
            "RaggedGather SparseFillEmptyRows SparseReshape SparseSegmentSum SparseSegmentMean"
        ),
    },
    "negative indices": {
        "they count from the end: of n, -1 is the last and -n the first": (
            "GatherV2 GatherNd ScatterNd TensorScatterUpdate TensorScatterReduce SparseToDense "
            "DynamicSlice DynamicUpdateSlice"
        ),
        "they are out of range": "UnsortedSegmentSum CropAndResize OneHot",
        "a length below 1 counts no keys, and one above their number all": (
            "ScaledDotProductAttention ScaledDotProductAttentionGrad"
        ),
        "-1 in `shape` stands for the size that the rows need": "RaggedTensorToTensor",
        "-1 in `new_shape` stands for the size that the others leave": "SparseReshape",
    },
    "refused values": {
        "ShapeError if the shapes do not broadcast": "BroadcastArgs",
        "LinAlgError if a matrix is not positive definite": "Cholesky",
        "LinAlgError if a matrix is singular": "MatrixInverse MatrixSolve MatrixTriangularSolve",
        "ArgumentError if splits are none, negative, descend, or lead past the values or the rows "
        "below": "RaggedGather",
        "ArgumentError if a step is 0, or a number NaN or infinite": "RaggedRange",
        "ArgumentError or ShapeError if ids or splits are negative, descend, or do not fit the "
        "values": "RaggedTensorToTensor",
        "ShapeError if a size is negative, two are -1, or the products differ": "SparseReshape",
        "ArgumentError if ids are negative or descend": "SparseSegmentSum SparseSegmentMean",
        "ShapeError if the shape is negative, ArgumentError if the dtype of the indices cannot "
        "number the rows": "SparseFillEmptyRows",
        "ArgumentError if splits do not begin at 0, descend, or do not end at the number of "
        "elements": "StringNGrams",
    },
}


def answer(question: str, kernel: str) -> str:
    """Return what a kernel does at an edge; empty if nothing is said."""
    said = (text for text, names in ANSWERS[question].items() if kernel in names.split())
    return next(said, "")
