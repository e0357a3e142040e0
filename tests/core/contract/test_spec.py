"""Kernel specs: wrong ones, and their messages on calls that do not fit."""

from __future__ import annotations

import re

import pytest

from tensorplug.contract import attributes, expressions, inference
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.errors import (
    ArgumentError,
    DTypeError,
    OutOfRangeError,
    RegistrationError,
    ShapeError,
)

F = TensorType(dt.float32, (3, 4))
I = TensorType(dt.int32, (4,))  # noqa: E741  # beside F


def same(x):
    return x


def first(a, b, *, axis):
    return a


def left(a, b):
    return a


def nothing(x):
    return None


def asks_axis(x, *, axis):
    return x


AXIS = {"axis": attributes.axis("a", 0)}
WRONG = [  # inputs, infer, options, a part of the message
    (("a", "a"), first, {}, "a name is used twice among ['a', 'a', 'out']"),
    (("x",), same, {"attributes": {"x": attributes.flag()}}, "a name is used twice"),
    (("out",), same, {}, "a name is used twice"),
    (("backend",), same, {}, "['backend'] have a meaning of their own"),
    (("x",), same, {"attributes": {"attributes": attributes.flag()}}, "['attributes'] have a"),
    (("x",), same, {"promote": ("y",)}, "['y'] are not inputs of it"),
    (("x",), same, {"accepts": {"z": dt.REAL}}, "['z'] are not inputs of it"),
    (("x",), same, {"accepts": {dt.float32}}, "accepts must be a frozenset of dtypes"),
    (("x",), same, {"outputs": ()}, "it must have an output"),
    (("x",), same, {"inexact": True}, "inexact concerns the inputs in promote"),
    (("x", "y"), same, {}, "test_spec.same must take 2 input types"),
    (("a", "b"), first, {}, "must take 2 input types, then any of [] keyword-only"),
    (("x",), lambda *xs: xs[0], {}, "takes *xs, but must name its parameters"),
    (("x",), 5, {}, "5 has no signature to read"),
    (("x",), same, {"expression": "add"}, "an operation or a function of 1 operands, got 'add'"),
    (("x",), same, {"expression": "noise"}, "a function of 1 operands, got 'noise'"),
    (("x",), same, {"expression": 5}, "the name of an operation, or a function, got 5"),
    (("x",), same, {"expression": first}, "must take 1 operands, then any of ['out']"),
    (("x",), same, {"expression": asks_axis}, "then any of ['out'] keyword-only"),
    (("x",), lambda x: (x, x), {"expression": "abs", "outputs": ("a", "b")}, "of one output"),
]


@pytest.mark.parametrize(("inputs", "infer", "options", "message"), WRONG)
def test_a_wrong_spec_names_itself(inputs, infer, options, message):
    with pytest.raises(RegistrationError, match=re.escape(message)) as caught:
        KernelSpec("Wrong", inputs, infer, **options)
    assert str(caught.value).startswith("kernel spec 'Wrong': ")


X, Y = expressions.parameter(0, dt.float32), expressions.parameter(1, dt.float32)
F32 = TensorType(dt.float32, ())
BROKEN = [
    (lambda x: 5, "its expression is 5"),  # noqa: ARG005
    (
        lambda x: expressions.cast(x, dt.int32),
        "its expression has dtype int32, but the output float32",
    ),
]

EXPRESSIONS = [
    ("add", {}, str(X + Y)),
    (lambda a, b: a * b - 1, {}, str(X * Y - 1)),
    (lambda a, b, *, depth: a * depth + b, {"depth": 3}, str(X * 3 + Y)),
    (lambda a, b, *, attributes: a * attributes["depth"] - b, {"depth": 3}, str(X * 3 - Y)),
    (
        lambda a, b, *, out: expressions.cast(a < b, out.dtype),
        {},
        str(expressions.cast(X < Y, dt.float32)),
    ),
]


@pytest.mark.parametrize(("given", "given_attributes", "expected"), EXPRESSIONS)
def test_a_spec_gives_the_expression_of_a_call(given, given_attributes, expected):
    kinds = dict.fromkeys(given_attributes, attributes.integer())
    spec = KernelSpec("Given", ("a", "b"), left, attributes=kinds, expression=given)
    result = spec.expression_rule((X, Y), given_attributes, F32)
    assert str(result) == expected


@pytest.mark.parametrize("given", ["bitwise_not", "sin", nothing])
def test_a_spec_has_no_expression_for_operands_that_it_does_not_take(given):
    spec = KernelSpec("Given", ("x",), same, expression=given)
    x = expressions.parameter(0, dt.complex64)
    assert spec.expression_rule((x,), {}, TensorType(dt.complex64, ())) is None


@pytest.mark.parametrize(("given", "message"), BROKEN)
def test_a_wrong_expression_names_its_spec(given, message):
    spec = KernelSpec("Given", ("x",), same, expression=given)
    with pytest.raises(RegistrationError, match=f"^kernel spec 'Given': {message}"):
        spec.expression_rule((X,), {}, F32)


BINARY = KernelSpec(
    "Binary", ("a", "b"), first, attributes=AXIS, accepts={"a": dt.FLOATING}, promote=("a", "b")
)
JOIN = KernelSpec("Join", ("xs[]",), lambda xs: xs[0], promote=("xs",))
SCALE = KernelSpec("Scale", ("x", "scale?"), lambda x, scale: x)  # noqa: ARG005
ADD = KernelSpec("Add", ("a", "b"), inference.broadcast, promote=("a", "b"))

CALLS = [  # spec, types, attributes, error, message
    (BINARY, [F], {}, ArgumentError, "Binary(a=float32[3,4]): takes 2 inputs, got 1"),
    (BINARY, [F, F, F], {}, ArgumentError, "takes 2 inputs, got 3"),
    (BINARY, [F, None], {}, ArgumentError, "b=absent): input 'b' is missing"),
    (BINARY, [F, [F]], {}, ArgumentError, "b=[float32[3,4]]): input 'b' must be one tensor"),
    (JOIN, [F], {}, ArgumentError, "Join(xs=float32[3,4]): input 'xs' must be a list of tensors"),
    (
        BINARY,
        [I, F],
        {},
        DTypeError,
        "input 'a' is int32[4], but its dtype must be one of bfloat16, float16, float32, float64",
    ),
    (BINARY, [F, F], {"axes": 1}, ArgumentError, "has no attribute 'axes'; its attributes: axis"),
    (SCALE, [F, None], {"axes": 1}, ArgumentError, "'axes'; its attributes: none"),
    (
        BINARY,
        [F, F],
        {"axis": 2},
        OutOfRangeError,
        "attribute 'axis': axis 2 is out of range for rank 2: it must be from -2 to 1",
    ),
    (ADD, [F, TensorType(dt.float32, (2,))], {}, ShapeError, "shapes [3, 4] and [2] cannot"),
]


@pytest.mark.parametrize(("spec", "types", "given", "error", "message"), CALLS)
def test_a_call_that_does_not_fit(spec, types, given, error, message):
    with pytest.raises(error, match=re.escape(message)) as caught:
        spec.resolve(types, given)
    assert type(caught.value) is error
    assert str(caught.value).startswith(spec.describe(types))


def test_a_required_attribute_that_is_missing():
    spec = KernelSpec("Needs", ("x",), same, attributes={"depth": attributes.integer()})
    with pytest.raises(ArgumentError, match=r"Needs\(x=float32\[3,4\]\): attribute 'depth' is m"):
        spec.resolve([F], {})
    assert repr(spec.attributes["depth"].default) == "required"


def test_a_call_that_fits():
    attributes_, outputs = BINARY.resolve([F, F], {"axis": -1})
    assert (attributes_, outputs) == ({"axis": 1}, (F,))
    assert BINARY.resolve([F, F], {})[0] == {"axis": 0}
    assert SCALE.resolve([F, None], {})[1] == (F,)


def test_an_attribute_sees_inputs_and_those_before_it():
    seen = []
    kinds = {
        "one": attributes.integer(1),
        "two": Attribute(lambda value, known: seen.append(dict(known)) or value, 2),
    }
    KernelSpec("Sees", ("x",), same, attributes=kinds).resolve([F], {"one": 5})
    assert seen == [{"x": F, "one": 5}]


@pytest.mark.parametrize(
    ("outputs", "result"),
    [(("a", "b"), F), (("a",), (F, F)), (("a",), "float32"), (("a", "b"), (F, None))],
)
def test_an_infer_rule_that_returns_something_else(outputs, result):
    spec = KernelSpec("Infers", ("x",), lambda x: result, outputs=outputs)  # noqa: ARG005
    with pytest.raises(RegistrationError, match=r"kernel spec 'Infers': its infer rule .*lambda"):
        spec.resolve([F], {})


def test_any_number_of_outputs():
    spec = KernelSpec("Split", ("x",), lambda x: (x,) * 3, outputs=("outs[]",))
    assert (spec.multiple_outputs, spec.output_names) == (True, ("outs",))
    assert spec.resolve([F], {})[1] == (F, F, F)


PROMOTED = [  # spec, types, what they are promoted to
    (ADD, [I, F], dt.float32),
    (ADD, [I, I], dt.int32),
    (JOIN, [[I, F]], dt.float32),
    (JOIN, [[]], None),
    (ADD, [None, None], None),
    (ADD, [F, None], dt.float32),
    (SCALE, [F, I], None),
    (KernelSpec("E", ("x",), same, promote=("x",), inexact=True), [I], dt.float32),
]


@pytest.mark.parametrize(("spec", "types", "dtype"), PROMOTED)
def test_promoted(spec, types, dtype):
    assert spec.promoted(types) is dtype


def test_a_promotion_that_fails_shows_the_call():
    types = [TensorType(dt.uint64, ()), TensorType(dt.int8, ())]
    message = r"^Add\(a=uint64\[\], b=int8\[\]\): uint64 and int8 have no common dtype"
    with pytest.raises(DTypeError, match=message):
        ADD.promoted(types)


def test_tensor_types():
    assert (F.rank, F.size, F.nbytes, str(F)) == (2, 12, 48, "float32[3,4]")
    assert str(TensorType(dt.bool_, ())) == "bool[]"
    assert repr(ADD) == "<KernelSpec Add>"
