"""run_kernel: by spec or by name, inputs by name or in order, and refusals."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import dispatch
from tensorplug.errors import ArgumentError
from tensorplug.ops.elementwise.arithmetic import ADD


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("spec", ["Add", ADD], ids=str)
@pytest.mark.parametrize("form", ["mapping", "other order", "list", "tuple"])
def test_by_spec_or_name_by_name_or_order(spec, form):
    x, y = tp.asarray([1.0, 2.0]), [3.0, 4.0]
    inputs = {
        "mapping": {"a": x, "b": y},
        "other order": {"b": y, "a": x},
        "list": [x, y],
        "tuple": (x, y),
    }[form]
    expect(tp.run_kernel(spec, inputs), "float32", (2,), [4, 6])


def test_multiple_outputs_come_as_a_list(engine):
    x = tp.asarray([[1.0, 3.0, 2.0]])
    for _ in range(2):
        outputs = tp.run_kernel("TopK", {"x": x}, {"k": 2})
        assert isinstance(outputs, list)
        expect(outputs[0], "float32", (1, 2), [[3, 2]])
        expect(outputs[1], "int32", (1, 2), [[1, 2]])
    split = KernelSpec("Split", ("x",), lambda x: (x, x, x), outputs=("outs[]",))
    with tp.register_kernel(split, engine.devices.active.name, lambda x: (x, x + 1, x + 2)):
        outputs = tp.run_kernel(split, [x])
        assert [output.tolist() for output in outputs] == [
            [[1, 3, 2]],
            [[2, 4, 3]],
            [[3, 5, 4]],
        ]


@pytest.mark.usefixtures("engine")
def test_absent_optional_inputs():
    spec = KernelSpec("Scale", ("x", "scale?"), lambda x, scale: x)  # noqa: ARG005
    kernel = lambda x, scale: x if scale is None else x * scale  # noqa: E731
    with tp.register_kernel(spec, "memory", kernel):
        x = tp.asarray([2.0])
        for inputs, value in [({"x": x}, 2), ([x, None], 2), ({"x": x, "scale": x}, 4)]:
            expect(tp.run_kernel(spec, inputs), "float32", (1,), [value])


class Inputs(Mapping):
    def __init__(self, **items):
        self.items_ = items

    def __getitem__(self, name):
        return self.items_[name]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


@pytest.mark.usefixtures("engine")
def test_any_mapping_will_do():
    inputs, options = Inputs(x=[1.0, 2.0]), Inputs(axis=0)
    expect(tp.run_kernel("Sum", inputs, options), "float32", (), 3)


X = np.ones((2, 3), np.float32)
BAD_CALLS = [  # kernel, inputs, attributes, a part of the message
    ("Ad", [X, X], None, "no kernel is called 'Ad'; did you mean Add or AddN?"),
    ("Add", {"a": X}, None, "Add(a=float32[2,3], b=absent): input 'b' is missing"),
    ("Add", {"a": X, "c": X}, None, "Add has no input 'c'; its inputs: a, b"),
    ("Add", {}, None, "input 'a' is missing"),
    ("Fill", {"x": X}, {"shape": 1, "value": 1}, "Fill has no input 'x'; its inputs: none"),
    ("Add", [X], None, "Add takes 2 inputs, got 1"),
    ("Neg", X, None, "Neg: inputs must be a mapping by name, or a list in the order (x), got nd"),
    (
        "Fill",
        [],
        {"shape": 1, "value": 300, "dtype": "int8"},
        "Fill(): 300 does not fit into int8",
    ),
    ("Neg", None, None, "Neg: inputs must be a mapping"),
    ("Sum", [X], [("axis", 0)], "Sum: attributes must be a mapping by name, got list"),
    ("Sum", [X], {"keepdims": True}, "has no attribute 'keepdims'; its attributes: axis, keep_"),
    ("Cast", [X], {}, "Cast(x=float32[2,3]): attribute 'dtype' is missing"),
    ("Concat", [X], {"axis": 1}, "input 'xs' must be a list of tensors"),
    ("Concat", [[]], {}, "input 'xs' is an empty list"),
    ("Concat", [[X, [[1], [1, 2]]]], {}, "Concat: input 'xs': nested lists must be rectangular"),
]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("kernel", "inputs", "given", "message"), BAD_CALLS)
def test_a_bad_call(kernel, inputs, given, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        tp.run_kernel(kernel, inputs, given)


def test_a_spec_that_bears_the_name_of_another(engine):
    impostor = KernelSpec("Add", ("a", "b"), inference.broadcast)
    x = tp.asarray([1.0])
    tp.add(x, x)
    with pytest.raises(ArgumentError, match="another kernel spec has the name 'Add'"):
        tp.run_kernel(impostor, [x, x])
    with pytest.raises(ArgumentError, match="another kernel spec has the name 'Add'"):
        dispatch(impostor, x, x)
    assert engine.devices.active.name == "memory"
