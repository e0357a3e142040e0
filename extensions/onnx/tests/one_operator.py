"""Models of one operator, for tests of the rules."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper, numpy_helper

import tensorplug as tp
import tensorplug_onnx
from tensorplug_onnx.values import as_host

NEWEST = 28
TEXT = np.dtypes.StringDType()


def model_of(
    op_type: str,
    inputs: list[Any],
    attributes: dict[str, Any] | None = None,
    **options: Any,
) -> tensorplug_onnx.Model:
    """Return the model of ``proto_of``."""
    return tensorplug_onnx.load(proto_of(op_type, inputs, attributes, **options))


def proto_of(
    op_type: str,
    inputs: list[Any],
    attributes: dict[str, Any] | None = None,
    *,
    opset: int = NEWEST,
    outputs: int = 1,
    constant: tuple[int, ...] = (),
    domain: str = "",
) -> Any:
    """Return a model whose inputs are x0, x1, ... without the constant ones and None."""
    names = ["" if one is None else f"x{at}" for at, one in enumerate(inputs)]
    made = [f"y{at}" for at in range(outputs)]
    node = helper.make_node(op_type, names, made, domain=domain, **(attributes or {}))
    arrays = {name: one for name, one in zip(names, inputs, strict=True) if name}
    known = {f"x{at}" for at in constant}
    graph = helper.make_graph(
        [node],
        op_type,
        [
            helper.make_tensor_value_info(name, _elem_type(one), one.shape)
            for name, one in arrays.items()
            if name not in known
        ],
        [helper.make_empty_tensor_value_info(name) for name in made],
        [
            numpy_helper.from_array(one.astype(object) if one.dtype == TEXT else one, name)
            for name, one in arrays.items()
            if name in known
        ],
    )
    opsets = [helper.make_opsetid("", opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    return helper.make_model(graph, opset_imports=opsets)


def _elem_type(array: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(
        np.dtype(object) if array.dtype == TEXT else array.dtype
    )


# How a model gets the inputs of its operator: all at the call; as constants; the first one at the
# call of a compiled model, and the others as constants.
WAYS = ("called", "constant", "compiled")


def outputs_of(
    way: str,
    op_type: str,
    inputs: list[Any],
    attributes: dict[str, Any] | None = None,
    **more: Any,
) -> list[Any]:
    """Return the outputs of an operator on the host."""
    first = 0 if way == "constant" else 1
    constant = () if way == "called" else tuple(range(first, len(inputs)))
    model = model_of(op_type, inputs, attributes, constant=constant, **more)
    given = {
        f"x{at}": one for at, one in enumerate(inputs) if one is not None and at not in constant
    }
    found = (model.compile() if way == "compiled" else model)(given)
    return [as_host(one) for one in found.values()]


def assert_same(found: Any, expected: Any) -> None:
    """Compare dtype, shape and elements."""
    expected = np.asarray(expected)
    assert str(found.dtype) == str(expected.dtype)
    assert found.shape == expected.shape
    if found.dtype.kind not in "biufcT":
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    if found.dtype.kind == "T":
        assert found.tolist() == expected.tolist()
    else:
        np.testing.assert_array_equal(found, expected)


def tensors(arrays: list[Any]) -> list[Any]:
    """Return arrays as tensors."""
    return [tp.asarray(array) for array in arrays]
