"""Bad input to every public function: the op, the argument, what was given, what is allowed."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import tensorplug as tp
from tensorplug import dispatch as seam
from tensorplug.errors import ArgumentError, DTypeError, ShapeError, TensorplugError

pytestmark = pytest.mark.usefixtures("cpu")


@pytest.fixture
def cpu():
    """Use the CPU; check afterwards that everything still works and that no tape is on."""
    with tp.use_backend("cpu"):
        yield
        assert seam.current().recording is None
        assert tp.add(1, 1)._node is None
        x = tp.asarray([1.0, 2.0])
        assert tp.grad(lambda x: tp.sum(x * x))(x).tolist() == [2, 4]


X = np.ones((3, 4), np.float32)
IMAGE = np.ones((1, 5, 5, 2), np.float32)
FILTER = np.ones((3, 3, 2, 1), np.float32)
B = np.ones((3, 4), bool)
I = np.zeros((3,), np.int32)  # noqa: E741  # indices, beside X
T = object()  # where a tensor goes

# Each public function that takes tensors: what messages call it, a good value for each tensor
# (T marks where bad ones are tried), and its other arguments.
UNARY = {
    **dict.fromkeys(("abs", "floor", "exp", "log", "sqrt", "sin", "cos", "atan", "erf"), X),
    **dict.fromkeys(("tanh", "square", "negative", "zeros_like", "ones_like", "identity"), X),
    **dict.fromkeys(("relu", "sigmoid", "softmax", "log_softmax", "sum", "prod", "mean"), X),
    **dict.fromkeys(("max", "min", "argmax", "topk", "matrix_transpose", "permute_dims"), X),
    **dict.fromkeys(("any", "all", "logical_not"), B),
    "expand_dims": X,
}
BINARY = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "floor_divide", "remainder"), X),
    **dict.fromkeys(("pow", "maximum", "minimum", "squared_difference", "equal", "less"), X),
    **dict.fromkeys(("not_equal", "less_equal", "greater", "greater_equal"), X),
    **dict.fromkeys(("logical_and", "logical_or"), B),
}
OTHERS = {
    "asarray": [[X], ()],
    "astype": [[X], ("float64",)],
    "broadcast_to": [[X], ((2, 3, 4),)],
    "conv2d": [[IMAGE, FILTER], ()],
    "gather": [[X, I], ()],
    "matmul": [[X, X.T], ()],
    "max_pool": [[IMAGE], (2, 2)],
    "one_hot": [[I], (3,)],
    "pad": [[X], ([(0, 0), (0, 0)],)],
    "reshape": [[X], ((12,),)],
    "scatter_nd": [[I[:, None], I], ((3,),)],
    "slice": [[X], ((0, 0),)],
    "softmax_cross_entropy": [[X, X], ()],
    "squeeze": [[X[None]], (0,)],
    "where": [[B, X, X], ()],
}
CALLS = {
    **{name: [[value], ()] for name, value in UNARY.items()},
    **{name: [[value, value], ()] for name, value in BINARY.items()},
    **OTHERS,
}
KERNELS = {  # where the kernel's name in messages is not the op's in capitals
    "subtract": "Sub",
    "negative": "Neg",
    "divide": "RealDiv",
    "floor_divide": "FloorDiv",
    "remainder": "Mod",
    "astype": "Cast",
    "permute_dims": "Transpose",
    "gather": "GatherV2",
    "pad": "PadV2",
    "topk": "TopK",
    "argmax": "ArgMax",
    "any": "Cast",
    "all": "Cast",
    "where": "Select",
    "conv2d": "Conv2D",
}
# Functions that take no tensor, or are tested elsewhere (control, memory, tree, autodiff).
ELSEWHERE = {
    *("arange", "full", "ones", "zeros", "concat", "stack"),  # below
    *("backends", "get_backend", "set_backend", "describe_device", "synchronize", "memory"),
    *("dispose", "keep", "tidy", "tree_map", "explain", "kernels_for", "run_kernel"),
    *("register_decomposition", "register_gradient", "register_kernel", "unregister_gradient"),
    *("unregister_kernel", "custom_grad", "grad", "stop_gradient", "value_and_grad", "vjp"),
}


def functions():
    """Return the public functions by name."""
    found = {}
    for module in (tp, tp.nn, tp.losses):
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                found[name] = getattr(module, name)
    return found


FUNCTIONS = functions()


def test_every_public_function_is_tested():
    assert set(FUNCTIONS) == set(CALLS) | ELSEWHERE


def names(op):
    kernel = KERNELS.get(op, "".join(part.capitalize() for part in op.split("_")))
    return {op, kernel}


BAD_VALUES = {
    "ragged": ([[1.0], [1.0, 2.0]], ShapeError, "nested lists must be rectangular"),
    "objects": (np.array([{}, None]), DTypeError, "holds object"),
    "set": ({1.0}, DTypeError, "holds object"),
    "dates": (np.array(["2020"], "M8[D]"), DTypeError, "datetime64"),
    "too large": ([2**70], DTypeError, "holds object"),
}
SLOTS = [(op, at) for op, (tensors, _) in CALLS.items() for at in range(len(tensors))]


@pytest.mark.parametrize("kind", list(BAD_VALUES))
@pytest.mark.parametrize(("op", "at"), SLOTS)
def test_what_is_no_tensor(op, at, kind):
    bad, error, message = BAD_VALUES[kind]
    tensors, rest = CALLS[op]
    given = [bad if position == at else each for position, each in enumerate(tensors)]
    with pytest.raises(error, match=message) as caught:
        FUNCTIONS[op](*given, *rest)
    assert re.split(r"[:(]", str(caught.value))[0] in names(op), caught.value


NOT_ASARRAY = [(op, at) for op, at in SLOTS if op != "asarray"]


@pytest.mark.parametrize(("op", "at"), NOT_ASARRAY)
def test_none(op, at):
    tensors, rest = CALLS[op]
    given = [None if position == at else each for position, each in enumerate(tensors)]
    with pytest.raises(TensorplugError) as caught:
        FUNCTIONS[op](*given, *rest)
    assert re.split(r"[:(]", str(caught.value))[0] in names(op), caught.value


@pytest.mark.parametrize(("op", "at"), NOT_ASARRAY)
def test_strings_are_no_numbers(op, at):
    tensors, rest = CALLS[op]
    text = np.full(np.shape(tensors[at]), "a")
    given = [text if position == at else each for position, each in enumerate(tensors)]
    if op in TAKE_STRINGS or (op, at) == ("gather", 0):
        assert isinstance(FUNCTIONS[op](*given, *rest), tp.Tensor)
        return
    with pytest.raises(DTypeError, match="string") as caught:
        FUNCTIONS[op](*given, *rest)
    head = re.split(r"[:(]", str(caught.value))[0]
    assert head in names(op) | {"BatchMatMul", "LogSoftmax", "Multiply"}, caught.value


TAKE_STRINGS = {  # they move elements and do not look at them
    *("identity", "expand_dims", "reshape", "broadcast_to", "slice", "squeeze"),
    *("matrix_transpose", "permute_dims"),
}


@pytest.mark.parametrize("op", list(BINARY))
def test_shapes_that_do_not_broadcast(op):
    value = BINARY[op]
    dtype = "bool" if value is B else "float32"
    message = rf"\(a={dtype}\[3,4\], b={dtype}\[2,4\]\): shapes \[3, 4\] and \[2, 4\] do not br"
    with pytest.raises(ShapeError, match=message):
        FUNCTIONS[op](value, value[:2])


AXES = ["sum", "prod", "mean", "max", "min", "any", "all", "argmax", "softmax", "log_softmax"]


@pytest.mark.parametrize("axis", [2, -3, 99])
@pytest.mark.parametrize("op", [*AXES, "gather", "expand_dims", "squeeze", "concat", "stack"])
def test_axes_out_of_range(op, axis):
    rank, extra = 2, {"expand_dims": 1, "stack": 1}.get(op, 0)
    axis = axis + (extra if axis > 0 else -extra)
    arguments = {
        "gather": [X, I],
        "concat": [[tp.asarray(X)]],
        "stack": [[tp.asarray(X)]],
    }.get(op, [B if op in ("any", "all") else X])
    allowed = f"axis {axis} is out of range for rank {rank + extra}: allowed are "
    low, high = -rank - extra, rank + extra - 1
    with pytest.raises(ShapeError, match=re.escape(f"{allowed}{low} to {high}")) as caught:
        FUNCTIONS[op](*arguments, axis=axis)
    assert re.search(r"(float32|bool)\[3,4\]", str(caught.value))


@pytest.mark.parametrize("axis", [1.0, "0", True, [0.5], None])
@pytest.mark.parametrize("op", AXES)
def test_axes_that_are_no_integers(op, axis):
    if axis is None and op not in ("softmax", "log_softmax"):
        return
    shown = (
        axis[0]
        if isinstance(axis, list) and op not in ("argmax", "softmax", "log_softmax")
        else axis
    )
    with pytest.raises(ArgumentError, match=re.escape(f"axis must be an integer, got {shown!r}")):
        FUNCTIONS[op](B if op in ("any", "all") else X, axis=axis)


DTYPED = {
    "asarray": lambda dtype: tp.asarray(X, dtype=dtype),
    "astype": lambda dtype: tp.astype(X, dtype),
    "full": lambda dtype: tp.full((2,), 1, dtype=dtype),
    "zeros": lambda dtype: tp.zeros((2,), dtype=dtype),
    "ones": lambda dtype: tp.ones((2,), dtype=dtype),
    "arange": lambda dtype: tp.arange(3, dtype=dtype),
    "one_hot": lambda dtype: tp.one_hot(I, 3, dtype=dtype),
    "sum": lambda dtype: tp.sum(X, dtype=dtype),
    "prod": lambda dtype: tp.prod(X, dtype=dtype),
    "explain": lambda dtype: tp.explain("Neg", dtype=dtype),
}


@pytest.mark.parametrize("dtype", ["real", "", 0, object, np.longdouble])
@pytest.mark.parametrize("op", list(DTYPED))
def test_unknown_dtypes(op, dtype):
    message = f"{op}: unknown dtype {dtype!r}; dtypes are bool, complex128"
    with pytest.raises(DTypeError, match=re.escape(message)):
        DTYPED[op](dtype)


def five(x):  # the result does not depend on it
    return 5


def constant(x):  # the result does not depend on it
    return tp.ones(())


x, image, f = X, IMAGE, FILTER
CASES = [  # id, call, error, what the message says
    (
        "full shape",
        lambda: tp.full(2.5, 1),
        ArgumentError,
        "Fill(): attribute 'shape': shape must",
    ),
    (
        "full negative",
        lambda: tp.zeros((2, -1)),
        ShapeError,
        "must not hold negative sizes, got (2",
    ),
    ("full value", lambda: tp.full(2, "1"), ArgumentError, "attribute 'value': must be a number"),
    (
        "full tensor",
        lambda: tp.full(2, tp.asarray(1)),
        ArgumentError,
        "must be a number, got Tens",
    ),
    (
        "full range",
        lambda: tp.full(2, 300, dtype="int8"),
        ArgumentError,
        "300 does not fit into in",
    ),
    ("full fraction", lambda: tp.full(2, 0.5, dtype="int8"), DTypeError, "0.5 is not an integer"),
    ("arange step", lambda: tp.arange(0, 5, 0), ArgumentError, "Range(): step must not be 0"),
    ("arange nan", lambda: tp.arange(float("nan")), ArgumentError, "must be finite real numbers"),
    (
        "arange inf",
        lambda: tp.arange(0, float("inf")),
        ArgumentError,
        "must be finite real numbers",
    ),
    ("arange complex", lambda: tp.arange(2j), ArgumentError, "must be finite real numbers"),
    ("arange text", lambda: tp.arange("3"), ArgumentError, "'stop': must be a number, got '3'"),
    (
        "asarray copy",
        lambda: tp.asarray(x, copy=False),
        ArgumentError,
        "asarray: copy=False was said",
    ),
    (
        "asarray cast",
        lambda: tp.asarray(tp.asarray(x), dtype="int8", copy=False),
        ArgumentError,
        "asarray: copy=False was said",
    ),
    ("add bools", lambda: tp.add(B, B), DTypeError, "Add(a=bool[3,4], b=bool[3,4]): input 'a' is"),
    (
        "abs complex",
        lambda: tp.abs([1j]),
        DTypeError,
        "Abs(x=complex64[1]): input 'x' is complex6",
    ),
    (
        "less complex",
        lambda: tp.less([1j], 1),
        DTypeError,
        "input 'a' is complex64[1], but its dtype",
    ),
    (
        "and ints",
        lambda: tp.logical_and([1], [2]),
        DTypeError,
        "is int32[1], but its dtype must be o",
    ),
    (
        "where ints",
        lambda: tp.where(I, x, x),
        DTypeError,
        "input 'condition' is int32[3], but its",
    ),
    (
        "where shapes",
        lambda: tp.where(B, x, x[:2]),
        ShapeError,
        "Select(condition=bool[3,4], t=float",
    ),
    (
        "weak int",
        lambda: tp.add(tp.asarray(1, dtype="int8"), 300),
        ArgumentError,
        "Add: input 'b': 30",
    ),
    (
        "weak unsigned",
        lambda: tp.add(np.uint8(1), -1),
        ArgumentError,
        "-1 does not fit into uint8",
    ),
    (
        "reshape",
        lambda: tp.reshape(x, (5, 3)),
        ShapeError,
        "cannot reshape [3, 4] of 12 elements to",
    ),
    ("reshape -1", lambda: tp.reshape(x, (-1, -1)), ShapeError, "may hold one -1 and no other"),
    (
        "reshape text",
        lambda: tp.reshape(x, "12"),
        ArgumentError,
        "Reshape(x=float32[3,4]): attribute",
    ),
    (
        "permute",
        lambda: tp.permute_dims(x, (0, 0)),
        ShapeError,
        "[0, 0] is not a permutation of 2 axe",
    ),
    (
        "permute range",
        lambda: tp.permute_dims(x, (0, 2)),
        ShapeError,
        "axis 2 is out of range for rank",
    ),
    (
        "transpose",
        lambda: tp.matrix_transpose([1]),
        ShapeError,
        "matrix_transpose needs at least rank",
    ),
    (
        "squeeze",
        lambda: tp.squeeze(x, 0),
        ShapeError,
        "squeeze: axis 0 of float32[3,4] has not length",
    ),
    ("squeeze twice", lambda: tp.squeeze(x[None], (0, 0)), ShapeError, "names one axis twice"),
    (
        "broadcast",
        lambda: tp.broadcast_to(x, (3, 5)),
        ShapeError,
        "BroadcastTo(x=float32[3,4]): shapes",
    ),
    ("broadcast rank", lambda: tp.broadcast_to(x, (4,)), ShapeError, "does not broadcast to [4]"),
    (
        "slice out",
        lambda: tp.slice(x, (0, 3), (3, 2)),
        ShapeError,
        "the slice of 2 from 3 leaves axis 1",
    ),
    (
        "slice before",
        lambda: tp.slice(x, (-1, 0)),
        ShapeError,
        "from -1 leaves axis 0 of length 3",
    ),
    (
        "slice rank",
        lambda: tp.slice(x, (0, 0, 0)),
        ShapeError,
        "[0, 0, 0] has more entries than the ra",
    ),
    (
        "slice sizes",
        lambda: tp.slice(x, 0, (1, 1, 1)),
        ShapeError,
        "[1, 1, 1] has more entries than the",
    ),
    (
        "pad pairs",
        lambda: tp.pad(x, [(0, 0)]),
        ShapeError,
        "needs a pair for each of the 2 axes, got [(",
    ),
    (
        "pad triple",
        lambda: tp.pad(x, [(0, 0, 0), (0, 0)]),
        ShapeError,
        "needs (before, after) for each",
    ),
    (
        "pad negative",
        lambda: tp.pad(x, [(-1, 0), (0, 0)]),
        ShapeError,
        "padding must not hold negative",
    ),
    (
        "pad value",
        lambda: tp.pad(I, [(1, 0)], 0.5),
        DTypeError,
        "PadV2(x=int32[3]): 0.5 is not an int",
    ),
    ("concat nothing", lambda: tp.concat([]), ArgumentError, "concat: xs is empty"),
    (
        "concat tensor",
        lambda: tp.concat(tp.asarray(x)),
        ArgumentError,
        "concat: xs must be a list of",
    ),
    (
        "concat number",
        lambda: tp.concat(5),
        ArgumentError,
        "concat: xs must be a list of tensors, got",
    ),
    (
        "concat shapes",
        lambda: tp.concat([x, x[:, :2]]),
        ShapeError,
        "float32[3,4] and float32[3,2] dif",
    ),
    (
        "concat ranks",
        lambda: tp.concat([x, x[0]]),
        ShapeError,
        "float32[3,4] and float32[4] differ out",
    ),
    (
        "concat ragged",
        lambda: tp.concat([x, [[1], [1, 2]]]),
        ShapeError,
        "Concat: input 'xs': nested li",
    ),
    ("stack nothing", lambda: tp.stack([]), ArgumentError, "stack: xs is empty"),
    ("stack shapes", lambda: tp.stack([x, x[0]]), ShapeError, "differ outside axis 0"),
    (
        "max of nothing",
        lambda: tp.max(x[:0]),
        ShapeError,
        "Max(x=float32[0,4]): the reduced axes are",
    ),
    (
        "argmax of nothing",
        lambda: tp.argmax(x[:0], axis=0),
        ShapeError,
        "ArgMax(x=float32[0,4]): the",
    ),
    (
        "keepdims",
        lambda: tp.sum(x, keepdims=1),
        ArgumentError,
        "'keep_dims': must be True or False, go",
    ),
    (
        "topk",
        lambda: tp.topk(x, 5),
        ShapeError,
        "TopK(x=float32[3,4]): k is 5, but the last axis has",
    ),
    (
        "topk negative",
        lambda: tp.topk(x, -1),
        ArgumentError,
        "attribute 'k': must be at least 0, got -1",
    ),
    ("topk of a number", lambda: tp.topk(1.0), ShapeError, "x must have at least rank 1"),
    ("matmul inner", lambda: tp.matmul(x, x), ShapeError, "the inner sizes 4 and 3 differ"),
    (
        "matmul number",
        lambda: tp.matmul(x, 1.0),
        ShapeError,
        "matmul needs at least rank 1, got float3",
    ),
    (
        "matmul batch",
        lambda: tp.matmul(np.ones((2, 3, 4)), np.ones((3, 4, 3))),
        ShapeError,
        "do not bro",
    ),
    (
        "gather floats",
        lambda: tp.gather(x, [0.5]),
        DTypeError,
        "input 'indices' is float32[1], but its",
    ),
    ("gather out", lambda: tp.gather(x, [3]), ArgumentError, "index 3 is out of range for axis 0"),
    (
        "gather batch",
        lambda: tp.gather(x, I, batch_dims=2),
        ArgumentError,
        "batch_dims 2 is out of ran",
    ),
    (
        "scatter shape",
        lambda: tp.scatter_nd([[0]], [1.0, 2.0], (3,)),
        ShapeError,
        "updates must have s",
    ),
    (
        "scatter depth",
        lambda: tp.scatter_nd([[0, 0]], [1.0], (3,)),
        ShapeError,
        "indices of depth 2 do",
    ),
    (
        "scatter rank",
        lambda: tp.scatter_nd(0, 1.0, (3,)),
        ShapeError,
        "indices must have at least rank 1",
    ),
    (
        "one hot floats",
        lambda: tp.one_hot([0.5], 3),
        DTypeError,
        "input 'indices' is float32[1], but",
    ),
    (
        "one hot depth",
        lambda: tp.one_hot(I, -1),
        ArgumentError,
        "'depth': must be at least 0, got -1",
    ),
    (
        "one hot value",
        lambda: tp.one_hot(I, 2, 0.5, dtype="int8"),
        DTypeError,
        "0.5 is not an integer",
    ),
    (
        "conv rank",
        lambda: tp.nn.conv2d(x, f),
        ShapeError,
        "Conv2D(x=float32[3,4], filter=float32[3,3,2",
    ),
    (
        "conv channels",
        lambda: tp.nn.conv2d(image[..., :1], f),
        ShapeError,
        "x has 1 channels, but the f",
    ),
    (
        "conv window",
        lambda: tp.nn.conv2d(image[:, :2], f),
        ShapeError,
        "a window of 3 taps with dilatio",
    ),
    (
        "conv ints",
        lambda: tp.nn.conv2d(image.astype(int), f.astype(int)),
        DTypeError,
        "input 'x' is in",
    ),
    (
        "conv stride",
        lambda: tp.nn.conv2d(image, f, 0),
        ArgumentError,
        "'strides': must be a positive in",
    ),
    (
        "conv pad",
        lambda: tp.nn.conv2d(image, f, pad="full"),
        ArgumentError,
        "'pad': must be 'same', 'va",
    ),
    (
        "conv batch pad",
        lambda: tp.nn.conv2d(image, f, pad=[(1, 0), (0, 0), (0, 0), (0, 0)]),
        ShapeError,
        "batch and channels cannot be padded",
    ),
    (
        "conv format",
        lambda: tp.nn.conv2d(image, f, data_format="HWC"),
        ArgumentError,
        "must be one of 'N",
    ),
    (
        "conv no taps",
        lambda: tp.nn.conv2d(image, f[:0]),
        ShapeError,
        "a window must have taps, got [0",
    ),
    (
        "conv rounding",
        lambda: tp.nn.conv2d(image, f, dim_rounding_mode="ceil"),
        ArgumentError,
        "needs a numeric pad",
    ),
    (
        "pool rank",
        lambda: tp.nn.max_pool(x, 2, 2),
        ShapeError,
        "MaxPool(x=float32[3,4]): x must have r",
    ),
    (
        "pool size",
        lambda: tp.nn.max_pool(image, 6, 1),
        ShapeError,
        "a window of 6 taps with dilation 1",
    ),
    (
        "pool filter",
        lambda: tp.nn.max_pool(image, (1, 2, 3), 1),
        ArgumentError,
        "'filter_size': must be",
    ),
    (
        "cross entropy",
        lambda: tp.losses.softmax_cross_entropy(x, x[:2]),
        ShapeError,
        "softmax_cross_entropy: labels are float32[3,4], but logits are float32[2,4]",
    ),
    ("stop_gradient", lambda: tp.stop_gradient([[1], [1, 2]]), ShapeError, "must be rectangular"),
    ("grad no function", lambda: tp.grad(5), ArgumentError, "grad: f must be a function, got int"),
    (
        "grad no tensor",
        lambda: tp.grad(five)(x),
        ArgumentError,
        "must return a tensor, got int",
    ),
    ("grad of ints", lambda: tp.grad(tp.sum)(I), DTypeError, "is int32[3]; only floating tensors"),
    (
        "grad argnums",
        lambda: tp.grad(tp.sum, 1)(x),
        ArgumentError,
        "argnums 1 is out of range: 1 arg",
    ),
    (
        "grad dy",
        lambda: tp.grad(tp.square)(x, dy=x[0]),
        ArgumentError,
        "dy is float32[4], but the res",
    ),
    (
        "no path",
        lambda: tp.grad(constant)(x),
        TensorplugError,
        "no differentiable",
    ),
]


@pytest.mark.parametrize(
    ("call", "error", "message"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_cases(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize("where", ["in the function", "in its backward function"])
def test_bad_input_on_the_tape_leaves_no_tape_on(where):
    def backward(dy):
        return tp.reshape(dy, (7,))

    @tp.custom_grad
    def g(x):
        return x * 1.0, backward

    function = (
        (lambda x: tp.sum(x + X[:2])) if where == "in the function" else lambda x: tp.sum(g(x))
    )
    with pytest.raises(ShapeError):
        tp.grad(function)(X)
    with pytest.raises(ShapeError):
        tp.grad(lambda x: tp.sum(tp.grad(function)(x)))(X)
