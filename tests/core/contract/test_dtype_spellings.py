"""The spellings of dtypes: one rule wherever a dtype is accepted, and what ``==`` says of them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from tests.core.support.public_functions import with_parameter

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.errors import DTypeError
from tensorplug.plugin import (
    DecompositionTable,
    GradientTable,
    KernelTable,
    TensorType,
    specs,
)

ALL = sorted(dt.ANY, key=str)
# The spellings of a dtype, by its name. A Python type, or its name, means the default dtype of
# the kind. NumPy's types, dtypes and type strings mean themselves; byte order is no part of them.
SPELLINGS = {
    "bool": [bool, "bool", np.bool_, np.dtype(bool), "?"],
    "int32": [int, "int", "int32", np.int32, np.dtype("int32"), "i4", "<i4", ">i4", np.intc],
    "int64": ["int64", np.int64, np.dtype(int), np.int_, "i8", np.longlong],
    "int8": ["int8", np.int8, "i1"],
    "uint64": ["uint64", np.uint64, np.uint, "u8"],
    "float16": ["float16", np.float16, np.half, "half", "f2"],
    "float32": [float, "float", "float32", np.float32, np.dtype(">f4"), "<f4", "f4", "single"],
    "float64": ["float64", np.float64, np.dtype(float), np.double, "double", "f8", "<f8", "d"],
    "complex64": [complex, "complex", "complex64", np.complex64, np.dtype("complex64"), "c8"],
    "complex128": ["complex128", np.complex128, np.dtype(complex), "c16"],
    "string": [str, "str", "string", np.str_, np.dtype("U3"), np.dtypes.StringDType(), "<U5"],
}
EACH = [(name, spelling) for name, spellings in SPELLINGS.items() for spelling in spellings]
# No dtype at all, and dtypes of NumPy that no tensor has.
NO_DTYPE = [
    "",
    "float31",
    "numeric",
    "a.module_of.tests",
    "flaot32",
    ",",
    "{",
    list,
    tp.Tensor,
    np.floating,
    np.integer,
]
NUMPYS_OWN = [object, bytes, np.object_, "O", "M8[s]", np.dtype("M8[s]"), "S4", np.longdouble]
NO_SPELLING = [None, 5, 3.5, [1], {}, ("f4",), np.float32(1), np.zeros(2, np.float32)]


@pytest.mark.parametrize(("name", "given"), EACH, ids=repr)
def test_a_spelling_means_one_dtype(name, given):
    dtype = dt.of(given)
    assert dtype.name == name
    for other in ALL:
        assert (other == given, other != given) == (other is dtype, other is not dtype)
        if not isinstance(given, np.dtype):  # whose own == considers the byte order
            assert (given == other, given != other) == (other is dtype, other is not dtype)


@pytest.mark.parametrize("given", [*NO_DTYPE, *NUMPYS_OWN, *NO_SPELLING], ids=repr)
def test_what_is_no_dtype_of_a_tensor(given):
    with pytest.raises(
        DTypeError, match=r"^some op: unknown dtype .*; dtypes are bfloat16, bool, "
    ):
        dt.of(given, "some op")


@pytest.mark.parametrize("given", [*NO_DTYPE, *NUMPYS_OWN, *NO_SPELLING[:-1]], ids=repr)
def test_a_comparison_with_something_else_is_false(given):
    assert not any(dtype == given for dtype in ALL)
    assert all(dtype != given for dtype in ALL)


def test_dtypes_as_keys():
    names = {dtype: dtype.name for dtype in ALL}
    assert [names[dtype] for dtype in ALL] == [dtype.name for dtype in ALL]
    # As with NumPy's dtypes, only the dtype itself is a key: equal spellings have other hashes.
    assert {tp.float32: 1}.get("float32") is None
    assert tp.float32 not in {"float32": 1, np.float32: 2, np.dtype("float32"): 3}
    assert tp.float32 in ("float64", "float32")  # compares
    # Python code for the hash would slow down each call with a dtype among its attributes.
    assert type(tp.float32).__hash__ is object.__hash__


# Wherever a dtype is accepted ---------------------------------------------------------------

TAKING = with_parameter("dtype")
X = np.float32([[1.0, 2.0], [3.0, 5.0]])
BEFORE = {  # what comes before `dtype`, where that is not X
    "arange": (3,),
    "linspace": (0.0, 1.0, 3),
    "logspace": (0.0, 1.0, 3),
    "full": ((2,), 1),
    **dict.fromkeys(("zeros", "ones", "empty"), ((2,),)),
    **dict.fromkeys(("eye", "tri"), (3,)),
    **dict.fromkeys(("fftfreq", "rfftfreq"), (4,)),
    "full_like": (X, 1),
    "one_hot": (np.int32([0, 1]), 3),
    **dict.fromkeys(("cumulative_sum", "cumulative_prod"), (X[0],)),
    **dict.fromkeys(("hann_window", "hamming_window"), (5,)),
    "cosine_window": (5, 0.5, 0.5),
    "bitcast": (np.int64([1]),),
    "dequantize": (np.int8([1]), 0.5),
    "quantized_matmul": (np.int8([[1]]), np.int8([[1]]), 0.5),
}
TRIED = {float: "float32", "float": "float32", np.float64: "float64", "<f8": "float64"}


@pytest.mark.parametrize("spelling", TRIED, ids=repr)
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in TAKING
        if not name.startswith("random.") and name not in ("quantize", "fake_quantize")
    ],
)
def test_every_function_reads_them_alike(name, spelling):
    function, arguments = TAKING[name], BEFORE.get(name.rpartition(".")[2], (X,))
    parameter = inspect.signature(function).parameters["dtype"]
    if name == "bitcast" and TRIED[spelling] == "float32":
        arguments = (np.int32([1]),)
    with tp.use_backend("cpu"):
        if parameter.kind is parameter.POSITIONAL_ONLY:
            result = function(*arguments, spelling)
        else:
            result = function(*arguments, dtype=spelling)
    assert result.dtype.name == TRIED[spelling]


def test_the_functions_include_the_usual_ones():
    usual = {"asarray", "astype", "zeros", "arange", "sum", "full_like", "signal.hann_window"}
    assert usual <= TAKING.keys()


@pytest.mark.parametrize(("name", "given"), EACH, ids=repr)
def test_questions_about_dtypes(name, given):
    dtype = dt.of(name)
    assert tp.result_type(given) is dtype
    assert tp.isdtype(given, dtype)
    assert tp.can_cast(given, name)
    if dtype in dt.INTEGER:
        assert tp.iinfo(given) == tp.iinfo(dtype)
    if dtype in dt.INEXACT:
        assert tp.finfo(given) == tp.finfo(dtype)


@pytest.mark.parametrize(("name", "given"), EACH, ids=repr)
def test_attributes_variables_draws_and_explanations(name, given):
    dtype = dt.of(name)
    with tp.use_backend("cpu"):
        if dtype is not dt.string:
            x = tp.asarray([1, 0])
            assert x.astype(given).dtype is dtype
            assert tp.run_kernel("Cast", {"x": x}, {"dtype": given}).dtype is dtype
            assert tp.Variable([1, 0], dtype=given).dtype is dtype
            answers = [tp.explain("Add", dtype=one).how for one in (given, dtype)]
            assert answers[0] == answers[1]
        if dtype in dt.FLOATING:
            key = tp.random.key(0)
            assert tp.random.normal(key, (2,), given).dtype is dtype


@pytest.mark.parametrize("given", ["float32", float, np.float32, "<f4"], ids=repr)
def test_the_dtypes_of_registrations_and_types(given):
    expected = frozenset({tp.float32})
    kernels, rules, decomposed = KernelTable(), GradientTable(), DecompositionTable()
    kernels.register(specs.ADD, dtypes=[given])(lambda a, b: a + b)
    rules.wrt(specs.ADD, "a", dtypes=[given])(lambda dy: dy)
    decomposed.of(specs.ADD, dtypes=[given])(lambda a, b: a + b)
    for table in (kernels, rules, decomposed):
        (entry,) = table
        assert entry.dtypes == expected
    with tp.use_backend("cpu"):
        text, known = (tp.explain("Neg", [TensorType(one, (2,))]) for one in (given, tp.float32))
    assert (text.how, text.reason) == (known.how, known.reason)


def test_a_registration_for_no_dtype():
    with pytest.raises(DTypeError, match=r"^kernel 'Add': unknown dtype 'flaot32'"):
        KernelTable().register(specs.ADD, dtypes=["flaot32"])(lambda a, b: a + b)
