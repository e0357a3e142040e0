"""What other libraries call what we have: for the message about a name that is not there."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["missing"]

# From TensorFlow.js, PyTorch, NumPy and JAX, where the spelling alone does not lead to ours.
ELSEWHERE: Final = {
    "array": "asarray",
    "as_tensor": "asarray",
    "batch_matmul": "matmul",
    "bmm": "matmul",
    "cast": "astype",
    "cat": "concat",
    "clone": "identity",
    "concatenate": "concat",
    "custom_vjp": "custom_grad",
    "device_put": "Tensor.to",
    "div": "divide",
    "dot": "matmul",
    "fill": "full",
    "floor_div": "floor_divide",
    "grads": "grad",
    "mm": "matmul",
    "mod": "remainder",
    "mul": "multiply",
    "neg": "negative",
    "no_grad": "stop_gradient",
    "rand": "random.uniform",
    "randint": "random.integers",
    "randn": "random.normal",
    "random_normal": "random.normal",
    "random_uniform": "random.uniform",
    "range": "arange",
    "ready": "set_backend",
    "scalar": "asarray",
    "sub": "subtract",
    "tensor": "asarray",
    "transpose": "permute_dims",
    "truncated_normal": "random.truncated_normal",
    "unsqueeze": "expand_dims",
    "value_and_grads": "value_and_grad",
    "variable": "Variable",
}


def missing(name: str, ours: Mapping[str, str]) -> AttributeError:
    """Return the error for a name that the package lacks, with what may have been meant.

    ``ours``: where each public name stands, by name: ``{"relu": "nn.relu"}``.
    """
    plain = {_plain(each): place for each, place in ours.items()}
    elsewhere = {_plain(each): place for each, place in ELSEWHERE.items()}
    found = elsewhere.get(_plain(name)) or plain.get(_plain(name))
    if found is not None:
        hint = f"; here it is tensorplug.{found}"
    else:
        near = get_close_matches(name, ours, n=1)
        hint = f"; did you mean tensorplug.{ours[near[0]]}?" if near else ""
    return AttributeError(f"module 'tensorplug' has no attribute {name!r}{hint}", name=name)


def _plain(name: str) -> str:
    """Return ``argmax`` for that, for ``argMax`` and for ``arg_max``."""
    return name.replace("_", "").lower()
