"""A disposed tensor, wherever it is used, gives one error, which says where it was used."""

from __future__ import annotations

import copy
import math
import operator
import pickle
import re

import numpy as np
import pytest
from tests.core.support.engines import make, using

import tensorplug as tp
from tensorplug.errors import DisposedError, TensorplugError
from tensorplug.plugins import catalogue

SPECS = [spec for spec in catalogue.catalogue() if spec.input_names]


def gone(shape=(2, 2), dtype="float32"):
    tensor = tp.asarray(np.ones(shape), dtype=dtype)
    tensor.dispose()
    return tensor


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_input_of_every_kernel(spec):
    """Kernel and input are named before anything else is looked at."""
    with using(make()):
        for declared in spec.declared:
            inputs = {
                item.name: [tp.asarray(1.0), tp.asarray(2.0)] if item.variadic else tp.asarray(1.0)
                for item in spec.declared
            }
            inputs[declared.name] = [tp.asarray(1.0), gone()] if declared.variadic else gone()
            text = f"{spec.name}: input {declared.name!r}: this tensor (float32[2,2]) was disposed"
            with pytest.raises(DisposedError, match=re.escape(text)):
                tp.run_kernel(spec, inputs)


def assigned(x):
    tp.Variable(np.ones((2, 2), np.float32)).assign(x)


# By shape and dtype of what is used.
USES = {
    ((2, 2), "float32"): {
        "numpy": lambda x: x.numpy(),
        "tolist": lambda x: x.tolist(),
        "device": lambda x: x.device,
        "to": lambda x: x.to("cpu"),
        "array": np.asarray,
        "dlpack": lambda x: x.__dlpack__(),
        "dlpack device": lambda x: x.__dlpack_device__(),
        "copy": copy.copy,
        "deep copy": lambda x: copy.deepcopy([x]),
        "pickle": pickle.dumps,
        "contains": lambda x: 1.0 in x,
        "iteration": list,
        "row": lambda x: x[0],
        "slice": lambda x: x[:1, ...],
        "T": lambda x: x.T,
        "mT": lambda x: x.mT,
        "negative": operator.neg,
        "positive": operator.pos,
        "plus a number": lambda x: x + 1,
        "plus an array": lambda x: x + np.ones(2),
        "from a number": lambda x: 1 - x,
        "power": lambda x: x**2,
        "matmul": lambda x: x @ x,
        "comparison": lambda x: x == 1,
        "method": lambda x: x.sum(),
        "asarray": tp.asarray,
        "cast": lambda x: tp.astype(x, "float64"),
        "keep": tp.keep,
        "stop_gradient": tp.stop_gradient,
        "grad": tp.grad(tp.sum),
        "grad of a tree": lambda x: tp.grad(lambda p: tp.sum(p["a"][0]))({"a": [x]}),
        "the result to differentiate": lambda x: tp.grad(lambda _: x)(tp.asarray(1.0)),
        "a custom gradient": tp.custom_grad(lambda y: (y, lambda dy: dy)),
        "the gradient that arrives": lambda x: tp.grad(tp.exp)(tp.ones((2, 2)), dy=x),
        "a variable's contents": tp.Variable,
        "assign": assigned,
    },
    ((), "float32"): {
        "item": lambda x: x.item(),
        "bool": bool,
        "float": math.sqrt,
        "complex": complex,
    },
    ((), "int32"): {"int": int, "index": operator.index},
    ((1,), "int32"): {"as an index": lambda x: tp.asarray([1.0, 2.0])[x]},
    ((2,), "bool"): {"invert": operator.invert},
}
ROWS = [
    pytest.param(shape, dtype, use, id=what)
    for (shape, dtype), uses in USES.items()
    for what, use in uses.items()
]


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.parametrize(("shape", "dtype", "use"), ROWS)
def test_every_use_of_a_disposed_tensor_is_refused(shape, dtype, use):
    x = gone(shape, dtype)
    with pytest.raises(DisposedError, match=re.escape(f"({x.type}) was disposed")) as caught:
        use(x)
    assert isinstance(caught.value, RuntimeError)
    assert isinstance(caught.value, TensorplugError)


@pytest.mark.usefixtures("on_the_cpu")
def test_members_of_a_disposed_tensor():
    x = gone((3, 0), "int16")
    assert x.is_disposed
    assert (x.shape, x.dtype, x.ndim, x.size, x.nbytes, len(x)) == ((3, 0), tp.int16, 2, 0, 0, 3)
    assert repr(x) == "<Tensor int16[3,0], disposed>"
    x.dispose()
    tp.dispose([x, {"again": x}])
    assert x.is_disposed
    assert not tp.asarray(1.0).is_disposed
    with pytest.raises(AttributeError):
        x.is_disposed = False


@pytest.mark.usefixtures("on_the_cpu")
def test_a_tensor_that_is_disposed_of_between_two_calls_of_one_plan():
    """The plan cache finds nothing for it, however often the call was made."""
    x, y = tp.asarray([1.0, 2.0]), tp.asarray([3.0, 4.0])
    for _ in range(3):
        assert (x + y).tolist() == [4, 6]
    y.dispose()
    with pytest.raises(DisposedError, match="Add: input 'b': this tensor"):
        x + y
    with pytest.raises(DisposedError, match="Exp: input 'x': this tensor"):
        tp.exp(y)
    with pytest.raises(DisposedError, match="Sum: input 'x': this tensor"):
        tp.sum(y, axis=0)
    assert (x + x).tolist() == [2, 4]
