"""Floats of 16 bits, where neither NumPy nor the device has them: computed with 32.

NumPy's functions return float32 for some operations on bfloat16, and float64 for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx

from tensorplug_onnx.values import as_host, dtype_of, has_dtype, to_numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tensorplug_onnx.graph import Node

__all__ = ["narrowed", "widened"]

_NARROW: Final = ("float16", "bfloat16")


def widened(
    values: list[Any], positions: Iterable[int], node: Node, *, host: bool
) -> dict[int, str]:
    """Put arrays of float32 in the place of narrow ones; return their dtypes by position.

    Args:
        values: inputs of a node; they are changed.
        positions: of those to look at.
        node: nothing is changed unless ONNX defines its operator.
        host: whether NumPy is to compute with them; else only what the device lacks is widened.

    """
    found = {}
    for at in positions:
        value = values[at]
        if not isinstance(value, np.ndarray) or (dtype := dtype_of(value)) not in _NARROW:
            continue
        if (host or not has_dtype(dtype)) and onnx.defs.has(node.op_type, domain=node.domain):
            values[at] = value.astype(np.float32)
            found[at] = dtype
    return found


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
