"""Floats of 16 bits, where neither NumPy nor the device has them: computed with 32.

NumPy's functions return float32 for some operations on bfloat16, and float64 for others.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx

from tensorplug_onnx.values import as_host, dtype_of, has_dtype, to_numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tensorplug_onnx.graph import Node


_NARROW: Final = ("float16", "bfloat16")


def widened(
    values: list[Any], positions: Iterable[int], node: Node, *, host: bool
) -> dict[int, str]:
    """Put arrays of float32 in the place of narrow ones; return their dtypes by position.

    Args:
        values: inputs of a node; they are changed.
        positions: of those to look at.
        node: nothing is changed unless ONNX says which of its outputs are narrow.
        host: whether NumPy is to compute with them; else only what the device lacks is widened.

    """
    found = {}
    for at in positions:
        value = values[at]
        if not isinstance(value, np.ndarray) or (dtype := dtype_of(value)) not in _NARROW:
            continue
        if (host or not has_dtype(dtype)) and _says_types(node.op_type, node.domain, node.version):
            values[at] = value.astype(np.float32)
            found[at] = dtype
    return found


@cache
def _says_types(op_type: str, domain: str, version: int) -> bool:
    """Return whether the types of inputs say which outputs are narrow."""
    if not onnx.defs.has(op_type, domain=domain):
        return False
    schema = onnx.defs.get_schema(op_type, version, domain)
    free = {one.type_str for one in schema.outputs} - {one.type_str for one in schema.inputs}
    constraints = {one.type_param_str: one.allowed_type_strs for one in schema.type_constraints}
    return not any("tensor(float16)" in constraints.get(type_str, [type_str]) for type_str in free)


def narrowed(outputs: Sequence[Any], node: Node, narrow: Mapping[int, str]) -> list[Any]:
    """Return the outputs, on the host where ONNX gives them the type of a narrow input.

    Args:
        outputs: of a rule.
        node: of an operator that ONNX defines.
        narrow: what ``widened`` returned for its inputs.

    """
    schema = onnx.defs.get_schema(node.op_type, node.version, node.domain)
    # The last parameter of a schema may stand for many inputs or outputs.
    types = {
        schema.inputs[min(at, len(schema.inputs) - 1)].type_str: dtype
        for at, dtype in narrow.items()
    }
    found = []
    for at, output in enumerate(outputs):
        dtype = types.get(schema.outputs[min(at, len(schema.outputs) - 1)].type_str)
        if dtype is not None and output is not None:
            output = as_host(output).astype(to_numpy_dtype(dtype))  # noqa: PLW2901
        found.append(output)
    return found
