"""Variables in ops, operators and protocols: wherever a tensor goes."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.dispatch.device import Placement
from tensorplug.errors import DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.array([1.0, 2.0], np.float32)

COMPUTED = [
    ("unary", lambda v: -v, [-1, -2]),
    ("tensor on the right", lambda v: v + tp.asarray([10.0, 20.0]), [11, 22]),
    ("tensor on the left", lambda v: tp.asarray([10.0, 20.0]) * v, [10, 40]),
    ("number on the left", lambda v: 1 + v, [2, 3]),
    ("array on the left", lambda v: np.array([10, 20], np.float32) + v, [11, 22]),
    ("with itself", lambda v: v * v, [1, 4]),
    ("attributes", lambda v: tp.reshape(v, (1, 2)), [[1, 2]]),
    ("method", lambda v: v.reshape((2, 1)), [[1], [2]]),
    ("reduction", lambda v: v.sum(), 3.0),
    ("variadic", lambda v: tp.concat([v, tp.asarray([9.0]), v]), [1, 2, 9, 1, 2]),
    ("multiple outputs", lambda v: tp.topk(v, 1)[0], [2]),
    ("promotion", lambda v: v + tp.asarray(np.array([1, 1], np.int32)), [2, 3]),
    ("stack", lambda v: tp.stack([v, v], axis=0), [[1, 2], [1, 2]]),
    ("as_tensor in an op", lambda v: tp.expand_dims(v, axis=1), [[1], [2]]),
    ("by name", lambda v: tp.run_kernel("Add", {"a": v, "b": v}), [2, 4]),
    ("asarray", tp.asarray, [1, 2]),
    ("asarray copy", lambda v: tp.asarray(v, copy=True), [1, 2]),
    ("stop_gradient", tp.stop_gradient, [1, 2]),
    ("read", lambda v: v.read(), [1, 2]),
    ("to", lambda v: v.to("cpu"), [1, 2]),
    ("tidy", lambda v: tp.tidy(lambda: v + 0.0), [1, 2]),
]


@pytest.mark.parametrize(("what", "compute", "wanted"), COMPUTED, ids=[c[0] for c in COMPUTED])
def test_ops_take_variables_and_give_tensors(what, compute, wanted):
    v = tp.Variable(X)
    for _ in range(2):  # resolved, then cached
        result = compute(v)
        assert (type(result), type(result._placement)) == (tp.Tensor, Placement)
        expect(result, "float32", np.shape(wanted), wanted)
    v.assign([3.0, 5.0])
    expect(result, "float32", np.shape(wanted), wanted)  # what was computed stays
    result.dispose()
    expect(v, "float32", (2,), [3, 5])  # and no caller holds the variable's own handle
    again = compute(v)
    assert not np.array_equal(again.numpy(), np.asarray(wanted))
    again.dispose()
    expect(v, "float32", (2,), [3, 5])


def test_data_protocols():
    v = tp.Variable([1.0, 2.0])
    assert (v.tolist(), len(v), 2.0 in v) == ([1, 2], 2, True)
    assert [tensor.item() for tensor in tp.reshape(v, (2, 1))] == [1, 2]
    np.testing.assert_array_equal(np.asarray(v), X)
    np.testing.assert_array_equal(np.from_dlpack(v), X)
    assert v.__dlpack_device__() == tp.asarray([1.0]).__dlpack_device__()
    n = tp.Variable(3)
    assert (int(n), float(n), complex(n), bool(n), n.item(), [10, 20, 30, 40][n]) == (
        *(3, 3.0, 3 + 0j, True, 3),
        40,
    )
    with pytest.raises(TypeError, match="cannot be hashed"):
        hash(v)


def test_repr():
    v = tp.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
    start = "Variable('w', Tensor([["
    lines = repr(v).split("\n")
    assert lines[0] == f"{start}1., 2.],"
    assert lines[1] == " " * (len(start) - 1) + "[3., 4.]], dtype=float32, device='cpu'))"
    v.trainable = False
    assert repr(v).endswith("device='cpu'), trainable=False)")
    v.dispose()
    assert repr(v) == "Variable('w', <Tensor float32[2,2], disposed>, trainable=False)"


# In place -------------------------------------------------------------------------------

IN_PLACE = {
    "__iadd__": (4.0, [7, 10]),
    "__isub__": (1.0, [2, 5]),
    "__imul__": (2.0, [6, 12]),
    "__itruediv__": (2.0, [1.5, 3]),
    "__ifloordiv__": (2.0, [1, 3]),
    "__imod__": (2.0, [1, 0]),
    "__ipow__": (2.0, [9, 36]),
    "__imatmul__": (None, None),
    "__iand__": (None, None),
    "__ior__": (None, None),
    "__ixor__": (None, None),
    "__ilshift__": (None, None),
    "__irshift__": (None, None),
}


def in_place_names() -> list[str]:
    """Return the in-place form of every binary operator that a tensor has."""
    ours = dir(tp.Tensor)
    binary = [name for name in ours if f"__r{name[2:]}" in ours and name.startswith("__")]
    return sorted(f"__i{name[2:]}" for name in binary if hasattr(operator, f"__i{name[2:]}"))


def test_every_operator_has_its_in_place_form():
    assert in_place_names() == sorted(IN_PLACE)
    assert all(name in vars(tp.Variable) for name in IN_PLACE)


@pytest.mark.parametrize("name", [name for name, (by, _) in IN_PLACE.items() if by is not None])
def test_in_place_operators_assign(name):
    by, wanted = IN_PLACE[name]
    v = tp.Variable([3.0, 6.0], name="v")
    old, same = v.read(), v
    v = getattr(operator, name)(v, by)
    assert v is same
    expect(v, "float32", (2,), wanted)
    expect(old, "float32", (2,), [3, 6])
    v = getattr(operator, name)(v, tp.Variable([1.0, 1.0]))
    assert v is same


def test_in_place_operators_of_matrices_and_booleans():
    m = tp.Variable([[1.0, 2.0], [3.0, 4.0]])
    m @= tp.asarray([[0.0, 1.0], [1.0, 0.0]])
    expect(m, "float32", (2, 2), [[2, 1], [4, 3]])
    b = tp.Variable([True, True, False])
    b &= np.array([True, False, True])
    expect(b, "bool", (3,), [True, False, False])
    b |= tp.asarray([False, False, True])
    expect(b, "bool", (3,), [True, False, True])


def test_in_place_operators_keep_dtype_and_shape():
    n, v = tp.Variable([1, 2]), tp.Variable([1.0, 2.0])
    with pytest.raises(DTypeError, match=r"float32\[2\], but variable .* is int32\[2\]"):
        n += 0.5
    with pytest.raises(ShapeError, match=r"float32\[2,2\], but variable"):
        v += tp.asarray([[1.0, 1.0], [1.0, 1.0]])
    with pytest.raises(TypeError, match="unsupported operand"):
        v += "text"
    expect(n, "int32", (2,), [1, 2])
    expect(v, "float32", (2,), [1, 2])
