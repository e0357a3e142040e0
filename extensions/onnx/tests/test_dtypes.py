"""Operators of mathematics in every dtype of their schemas, against ONNX's reference; slopes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import defs, helper
from onnx.reference import ReferenceEvaluator

import tensorplug as tp

from .one_operator import WAYS, model_of, outputs_of

OPSET = 28
NUMPY = {"float": np.float32, "double": np.float64, "bfloat16": ml_dtypes.bfloat16}
ERRORS = {"bfloat16": 3e-2, "float16": 4e-3, "float32": 2e-5}
SHORT = {"Erf", "Gelu", "HardSwish"}  # the reference computes them in float32
RNG = np.random.default_rng(3)

# Where the inputs are drawn, for operators that are not defined between -3 and 4.
RANGES = {
    "Acos": (-0.9, 0.9), "Acosh": (1, 4), "Asin": (-0.9, 0.9), "Atanh": (-0.9, 0.9),
    "Log": (0.1, 4), "Pow": (0.1, 3), "ReduceLogSum": (0.1, 4), "Sqrt": (0.1, 4),
    "Div": (0.5, 4), "Mod": (0.5, 4), "Reciprocal": (0.5, 4),
}  # fmt: skip


def words(text):
    return text.split()


# Op types by their number of inputs.
UNARY = words("""
    Abs Neg Sign Floor Ceil Round Sqrt Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh
    Acosh Atanh IsNaN IsInf Not BitwiseNot Reciprocal Erf Relu Sigmoid Softplus Elu Celu Selu
    LeakyRelu ThresholdedRelu HardSigmoid HardSwish Softsign Gelu Swish Mish Shrink Softmax
    LogSoftmax Hardmax ArgMax ArgMin ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1
    ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare Einsum
""")
BINARY = words("""
    Add Sub Mul Div Pow Mod Max Min Sum Mean Equal Greater GreaterOrEqual Less LessOrEqual And Or
    Xor BitwiseAnd BitwiseOr BitwiseXor BitShift PRelu MatMul Gemm
""")
OTHER = {"Clip": [1, 2], "CumSum": [], "CumProd": []}
ATTRIBUTES = {"BitShift": {"direction": "LEFT"}, "Einsum": {"equation": "ij->ji"}}


def numbers(operator, dtype):
    low, high = RANGES.get(operator, (0 if dtype.kind == "u" else -3, 4))
    found = RNG.uniform(low, high, (2, 3))
    if dtype.kind in "iu":
        found = np.where(np.rint(found) == 0, 1, np.rint(found))
    return found > 0 if dtype.kind == "b" else found.astype(dtype)


def asked(operator, dtype):
    """Return inputs and attributes."""
    inputs = [numbers(operator, dtype) for _ in range(1 + (operator in BINARY))]
    attributes = dict(ATTRIBUTES.get(operator, {}))
    if operator in ("MatMul", "Gemm"):
        inputs[1] = inputs[1].T.copy()
    if operator == "Mod":
        attributes["fmod"] = int(dtype.kind not in "iu")
    if operator.startswith("Cum"):
        inputs.append(np.array(1))
    return inputs + [np.array(one, dtype) for one in OTHER.get(operator, [])], attributes


def reference(operator, inputs, attributes):
    names = [f"x{at}" for at in range(len(inputs))]
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, inputs, strict=True)
    ]
    node = helper.make_node(operator, names, ["y"], **attributes)
    graph = helper.make_graph([node], "graph", infos, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    (found,) = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
    if operator == "ReduceSumSquare":
        return found.astype(inputs[0].dtype)  # the reference widens integers
    return found


def dtypes_of(operator):
    """Return the dtypes of the first input that NumPy has, or ml_dtypes as bfloat16."""
    schema = defs.get_schema(operator, OPSET)
    kinds = {one.type_param_str: one.allowed_type_strs for one in schema.type_constraints}
    kind = schema.inputs[0].type_str
    for text in kinds.get(kind, [kind]):
        name = text.removeprefix("tensor(").removesuffix(")")
        if name in NUMPY or hasattr(np, name):
            yield np.dtype(NUMPY.get(name, name))


CASES = [
    pytest.param(operator, dtype, id=f"{operator} {dtype}")
    for operator in [*UNARY, *BINARY, *OTHER]
    for dtype in dtypes_of(operator)
    if dtype.kind not in "cS"
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the reference
@pytest.mark.parametrize(("operator", "dtype"), CASES)
def test_dtypes(operator, dtype):
    inputs, attributes = asked(operator, dtype)
    expected = reference(operator, inputs, attributes)
    for way in WAYS:
        (found,) = outputs_of(way, operator, inputs, attributes)
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        error = ERRORS.get(str(found.dtype), 1e-6 if operator in SHORT else 1e-12)
        pair = (one.astype(np.float64) for one in (found, expected))
        np.testing.assert_allclose(*pair, rtol=error, atol=error)


DISCRETE = words("""
    Sign Floor Ceil Round IsNaN IsInf Not BitwiseNot Hardmax ArgMax ArgMin Mod Equal Greater
    GreaterOrEqual Less LessOrEqual And Or Xor BitwiseAnd BitwiseOr BitwiseXor BitShift
""")


@pytest.mark.parametrize(
    "operator", [one for one in [*UNARY, *BINARY, *OTHER] if one not in DISCRETE]
)
def test_gradients_are_the_slopes(operator):
    dtype = np.dtype(np.float64)
    if dtype not in dtypes_of(operator):
        dtype = np.dtype(np.float32)
    inputs, attributes = asked(operator, dtype)
    varied = [at for at, one in enumerate(inputs) if one.ndim]
    constant = tuple(at for at in range(len(inputs)) if at not in varied)
    model = model_of(operator, inputs, attributes, constant=constant)
    points = [tp.asarray(inputs[at]) for at in varied]
    ways = [RNG.uniform(-1, 1, one.shape).astype(dtype) for one in points]
    (sample,) = outputs_of("called", operator, inputs, attributes)
    weights = tp.asarray(RNG.uniform(-1, 1, sample.shape).astype(dtype))

    def loss(*values):
        named = {f"x{at}": value for at, value in zip(varied, values, strict=True)}
        return tp.sum(weights * model.apply(model.parameters, named)["y0"])

    def along(step):
        return float(loss(*(x + step * way for x, way in zip(points, ways, strict=True))))

    found = tp.grad(loss, tuple(range(len(points))))(*points)
    slope = sum(float(np.sum(one.numpy() * way)) for one, way in zip(found, ways, strict=True))
    step, error = (1e-6, 1e-5) if dtype == np.float64 else (1e-2, 1e-2)
    np.testing.assert_allclose(slope, (along(step) - along(-step)) / (2 * step), atol=error)
