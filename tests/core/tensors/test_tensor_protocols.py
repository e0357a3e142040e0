"""Tensors in Python's and NumPy's protocols, and tensors that are gone."""

from __future__ import annotations

import inspect
import operator
import re

import numpy as np
import pytest
from tests.core.support.engines import expect
from tests.core.tensors.test_tensor import BINARY, A

import tensorplug as tp
from tensorplug.errors import DisposedError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


CONVERSIONS = [
    (bool, 0.0, False),
    (bool, [2], True),
    (int, 2.75, 2),
    (int, [[7]], 7),
    (float, 3, 3.0),
    (complex, 1.5, 1.5 + 0j),
    (complex, 2j, 2j),
    (operator.index, 5, 5),
    (lambda x: x.item(), [1.5], 1.5),
    (lambda x: "abcdef"[x], 2, "c"),
]


@pytest.mark.parametrize(("convert", "given", "result"), CONVERSIONS)
def test_conversions(convert, given, result):
    found = convert(tp.asarray(given))
    assert (found, type(found)) == (result, type(result))


REFUSED = [
    (bool, [1, 2], ShapeError, "bool() needs a tensor with one element, got int32[2]"),
    (int, [], ShapeError, "int() needs a tensor with one element, got float32[0]"),
    (float, [1, 2], ShapeError, "float() needs a tensor with one element"),
    (complex, [1, 2], ShapeError, "complex() needs a tensor with one element"),
    (operator.index, [1, 2], ShapeError, "index() needs a tensor with one element"),
    (operator.index, 1.0, TypeError, "only an integer tensor can be an index, got float32[]"),
    (operator.index, True, TypeError, "only an integer tensor can be an index, got bool[]"),
    (
        lambda x: x.item(),
        [1, 2],
        ShapeError,
        "item() needs a tensor with one element, got int32[2]",
    ),
    (len, 1.0, TypeError, "len() of a tensor of rank 0"),
    (iter, 1.0, TypeError, "len() of a tensor of rank 0"),
    (hash, 1.0, TypeError, "cannot be hashed"),
    (lambda x: x.T, [1, 2], ShapeError, "must have rank 2, got int32[2]"),
    (lambda x: x.T, [[[1]]], ShapeError, "must have rank 2, got int32[1,1,1]"),
    (lambda x: x.mT, [1], ShapeError, "must have at least rank 2, got int32[1]"),
    (float, 1j, TypeError, "complex"),
]


@pytest.mark.parametrize(("convert", "given", "error", "message"), REFUSED)
def test_refused_conversions(convert, given, error, message):
    with pytest.raises(error, match=re.escape(message)):
        convert(tp.asarray(given))


def test_sequence_protocol():
    x = tp.asarray(A)
    assert len(x) == 2
    for row, expected in zip(x, A, strict=True):
        expect(row, "float32", (3,), expected)
    assert 5.5 in x
    assert 7 not in x
    assert x.tolist() == A.tolist()


def test_numpy_is_read_only():
    x = tp.asarray(A)
    array = x.numpy()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0
    own = np.asarray(x)
    own[0] = 0  # an array of its own
    expect(x, "float32", (2, 3), A)


def test_the_array_protocol():
    x = tp.asarray(A)
    wide = np.asarray(x, dtype=np.float64)
    assert (wide.dtype, wide.tolist()) == (np.float64, A.astype(float).tolist())
    mine = np.array(x)
    mine[0] = 0  # a copy of one's own may be written to
    expect(x, "float32", (2, 3), A)
    with pytest.raises(
        ValueError, match=r"float32\[2,3\] cannot become .*float64.* without a cop"
    ):
        x.__array__(np.float64, copy=False)
    assert x.__array__(np.float32, copy=False).dtype == np.float32
    assert np.allclose(x, A)


def test_representation():
    x = tp.asarray([1.0, 2.0])
    assert repr(x) == "Tensor([1., 2.], dtype=float32, device='cpu')"
    x.dispose()
    assert repr(x) == "<Tensor float32[2], disposed>"
    x.dispose()  # twice is fine


def disposed(*shape, dtype="float32"):
    x = tp.zeros(shape, dtype=dtype)
    x.dispose()
    return x


USES = {
    **{
        name: getattr(tp.Tensor, name)
        for name in (
            *("numpy", "item", "tolist", "__array__", "__bool__", "__int__", "__float__"),
            *("__complex__", "__neg__", "__pos__", "__abs__"),
        )
    },
    **{symbol: lambda x, op=op: op(x, 1.0) for symbol, op in BINARY.items()},
    **{f"reflected {symbol}": lambda x, op=op: op(1.0, x) for symbol, op in BINARY.items()},
    "device": lambda x: x.device,
    "to": lambda x: x.to("cpu"),
    "index": lambda x: x[0],
    "slice": lambda x: x[:1],
    "iterate": list,
    "contains": lambda x: 1 in x,
    "T": tp.Tensor.T.fget,
    "as index": lambda x: tp.asarray([1.0])[x],
}


@pytest.mark.parametrize("use", list(USES.values()), ids=list(USES))
def test_methods_of_a_disposed_tensor(use):
    shape = (1, 1) if use is USES["T"] else (1,)
    x = disposed(*shape, dtype="int32" if use is USES["as index"] else "float32")
    with pytest.raises(DisposedError, match=r"this tensor \((float|int)32\[.*\]\) was disposed"):
        use(x)


def test_a_disposed_tensor_keeps_its_type():
    x = disposed(2, 3)
    assert (x.shape, x.ndim, x.size, x.nbytes, len(x)) == ((2, 3), 2, 6, 24, 2)
    assert (x.dtype is tp.float32, x.is_disposed) == (True, True)


# The arguments of each public function; "x" is the disposed tensor.
ARGUMENTS = {
    "einsum": ["ij", "x"],
    "arange": None,
    "asarray": ["x"],
    "avg_pool": [("x", (1, 2, 2, 1)), 1, 1],
    "avg_pool3d": [("x", (1, 2, 2, 2, 1)), 1, 1],
    "basic_lstm_cell": [1.0, *["x"] * 5],
    "batch_norm": ["x", "x", "x"],
    "batch_to_space_nd": ["x", [1], [(0, 0)]],
    "astype": ["x", "int32"],
    "broadcast_to": ["x", (2, 2)],
    "add_n": [["x", "x"]],
    "concat": [["x", "x"]],
    "depth_to_space": [("x", (1, 2, 2, 1)), 1],
    "ensure_shape": ["x", (2, 2)],
    "full_like": ["x", 1],
    "mirror_pad": ["x", [(0, 0), (0, 0)], "reflect"],
    "moveaxis": ["x", 0, 1],
    "repeat": ["x", 2],
    "roll": ["x", 1],
    "space_to_batch_nd": ["x", [1], [(0, 0)]],
    "space_to_depth": [("x", (1, 2, 2, 1)), 1],
    "split": ["x", 1],
    "strided_slice": ["x", [0], [1]],
    "tile": ["x", 2],
    "broadcast_args": [("x", (2,), "int32"), [1, 1]],
    "broadcast_arrays": ["x"],
    "meshgrid": [("x", (2,))],
    "conv2d": [("x", (1, 2, 2, 1)), ("x", (1, 1, 1, 1))],
    "conv2d_transpose": [("x", (1, 2, 2, 1)), ("x", (1, 1, 1, 1)), (1, 2, 2, 1)],
    "conv3d_transpose": [("x", (2, 2, 2, 1)), ("x", (1, 1, 1, 1, 1)), (2, 2, 2, 1)],
    "gather": ["x", [0]],
    "dropout": [("x", (4,), "uint32"), "x", 0.5],
    "max_pool": [("x", (1, 2, 2, 1)), 1, 1],
    "max_pool3d": [("x", (1, 2, 2, 2, 1)), 1, 1],
    "max_pool_with_argmax": [("x", (1, 2, 2, 1)), 1, 1],
    "moving_average": ["x", "x", 0.5, 1],
    "multi_rnn_cell": [[], "x", [], []],
    "pool": [("x", (1, 2, 2, 1)), 1, "max"],
    "one_hot": [("x", (2,), "int32"), 3],
    "pad": ["x", [(0, 0), (0, 0)]],
    "permute_dims": ["x"],
    "reshape": ["x", (4,)],
    "run_kernel": ["Neg", ["x"]],
    "save": [{"x": "x"}, "never written"],
    "scatter_nd": [[[0], [1]], ("x", (2,)), (3,)],
    "slice": ["x", (0, 0)],
    "squeeze": [("x", (1, 2)), 0],
    **{name: [["x", "x"]] for name in ("stack", "hstack", "vstack", "dstack", "column_stack")},
    "where": [[[True]], "x", "x"],
    "keep": ["x"],
    "explain": ["Neg", ["x"]],
    "vjp": [tp.square, "x"],
    "jvp": [tp.square, ["x"], ["x"]],
    "linearize": [tp.square, "x"],
    "scan": [lambda carry, x: (carry + x, x), 0.0, "x"],
    "map": [tp.square, "x"],
    "associative_scan": [tp.add, "x"],
    "cond": [True, tp.square, tp.square, "x"],
    "switch": [0, [tp.square], "x"],
    "while_loop": [lambda x: tp.sum(x) < 1, tp.square, "x"],
    "fori_loop": [0, 1, lambda _, x: x * x, "x"],
    **{name: [lambda: tp.negative(disposed(2))] for name in ("profile", "time", "debug", "tidy")},
}


NEEDS_NO_TENSOR = {
    *("arange", "backends", "custom_grad", "describe_device", "dispose", "full", "get_backend"),
    *("grad", "kernels_for", "memory", "ones", "register_decomposition", "register_gradient"),
    *("register_kernel", "set_backend", "synchronize", "tree_map", "unregister_gradient"),
    *("load", "unregister_kernel", "value_and_grad", "zeros"),
    *("dispose_variables", "variable_grads", "checkpoint", "compile", "jacobian", "hessian"),
    *("jacfwd", "jacrev", "vmap", "register_tree", "unregister_tree", "static_field"),
    *("devices", "find_backend", "register_backend", "remove_backend", "trace_dispatch"),
    *("copy_registered_kernels", "trim_memory"),
    *("broadcast_shapes", "empty", "eye", "linspace"),
    *("can_cast", "finfo", "iinfo", "isdtype", "result_type"),  # a dtype outlives the data
}


def public_functions():
    for module in (tp, tp.nn, tp.losses):
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function) and name not in NEEDS_NO_TENSOR:
                yield pytest.param(name, function, id=f"{module.__name__}.{name}")


def filled(given):
    if given == "x":
        return disposed(2, 2)
    if isinstance(given, tuple) and given and given[0] == "x":
        return disposed(*given[1], dtype=given[2] if len(given) > 2 else "float32")
    if isinstance(given, dict):
        return {name: filled(item) for name, item in given.items()}
    return [filled(item) for item in given] if isinstance(given, list) else given


def guessed(function):
    """Return a disposed tensor for every parameter that must be given."""
    parameters = inspect.signature(function).parameters.values()
    booleans = function.__name__.startswith("logical_")
    return [
        disposed(2, 2, dtype="bool" if booleans else "float32")
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY
    ]


@pytest.mark.parametrize(("name", "function"), list(public_functions()))
def test_public_functions_refuse_a_disposed_tensor(name, function):
    given = ARGUMENTS.get(name)
    arguments = guessed(function) if given is None else [filled(item) for item in given]
    with pytest.raises(DisposedError, match="was disposed"):
        function(*arguments)
    assert tp.add(1, 1).item() == 2


def test_a_disposed_tensor_deep_in_a_gradient():
    x = disposed(2)
    for call in (
        lambda: tp.grad(tp.square)(x),
        lambda: tp.grad(lambda y: y * x)(tp.asarray([1.0, 2.0])),
        lambda: tp.grad(tp.square)(tp.asarray([1.0, 2.0]), dy=x),
        lambda: tp.custom_grad(lambda y: (y, lambda dy: dy))(x),
    ):
        with pytest.raises(DisposedError):
            call()
