"""Tensors in Python's and NumPy's protocols, and tensors that are gone."""

from __future__ import annotations

import operator
import re

import numpy as np
import pytest
from tests.core.support.engines import expect
from tests.core.support.valid_calls import CALLS, FUNCTIONS
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


@pytest.mark.parametrize("name", [name for name, (tensors, _) in CALLS.items() if tensors])
def test_public_functions_refuse_a_disposed_tensor(name):
    tensors, rest = CALLS[name]
    given = [disposed(*np.shape(x), dtype=tp.asarray(x).dtype) for x in tensors]
    with pytest.raises(DisposedError, match="was disposed"):
        FUNCTIONS[name](*given, *rest)
    assert tp.add(1, 1).item() == 2


OTHERS = {  # calls that no table has
    "add_n": lambda x: tp.add_n([x, x]),
    "concat": lambda x: tp.concat([x, x]),
    "stack": lambda x: tp.stack([x, x]),
    "einsum": lambda x: tp.einsum("ij", x),
    "run_kernel": lambda x: tp.run_kernel("Neg", [x]),
    "explain": lambda x: tp.explain("Neg", [x]),
    "save": lambda x: tp.save({"x": x}, "never written"),
    "hstack": lambda x: tp.hstack([x, x]),
    "keep": tp.keep,
    "stop_gradient": tp.stop_gradient,
    "from_dlpack": tp.from_dlpack,
    "dropout": lambda x: tp.nn.dropout(tp.random.key(0), x, 0.5),
    "vjp": lambda x: tp.vjp(tp.square, x),
    "jvp": lambda x: tp.jvp(tp.square, [x], [x]),
    "linearize": lambda x: tp.linearize(tp.square, x),
    "scan": lambda x: tp.scan(lambda carry, row: (carry + row, row), 0.0, x),
    "map": lambda x: tp.map(tp.square, x),
    "associative_scan": lambda x: tp.associative_scan(tp.add, x),
    "cond": lambda x: tp.cond(True, tp.square, tp.square, x),
    "switch": lambda x: tp.switch(0, [tp.square], x),
    "while_loop": lambda x: tp.while_loop(lambda x: tp.sum(x) < 1, tp.square, x),
    "fori_loop": lambda x: tp.fori_loop(0, 1, lambda _, x: x * x, x),
    "tidy": lambda x: tp.tidy(lambda: tp.negative(x)),
    "debug": lambda x: tp.debug(lambda: tp.negative(x)),
    "profile": lambda x: tp.profile(lambda: tp.negative(x)),
    "time": lambda x: tp.time(lambda: tp.negative(x)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions_refuse_it_too(name):
    with pytest.raises(DisposedError, match="was disposed"):
        OTHERS[name](disposed(2, 2))
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
