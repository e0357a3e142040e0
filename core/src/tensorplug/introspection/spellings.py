"""Names of other libraries, for the message about an unknown name in tensorplug."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from types import ModuleType
from typing import Any, Final

__all__ = ["missing"]

_OF_PLUGINS: Final = ("einops", "errors", "plugin", "testing")  # never suggested

# From TensorFlow.js, PyTorch, NumPy and JAX, if the spelling alone does not give our name.
FOREIGN: Final = {
    "absolute": "abs",
    "adadelta": "train.Adadelta",
    "adagrad": "train.Adagrad",
    "adam": "train.Adam",
    "adamax": "train.Adamax",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "array": "asarray",
    "as_tensor": "asarray",
    "avg_pool2d": "nn.avg_pool",
    "batch_matmul": "matmul",
    "batch_norm2d": "nn.batch_norm",
    "batch_norm3d": "nn.batch_norm",
    "batch_norm4d": "nn.batch_norm",
    "bitwise_not": "bitwise_invert",
    "bmm": "matmul",
    "boolean_mask_async": "boolean_mask",
    "broadcast_in_dim": "broadcast_to",
    "bucketize": "searchsorted",
    "buffer": "asarray",
    "cast": "astype",
    "cat": "concat",
    "chunk": "split",
    "clamp": "clip",
    "clone": "identity",
    "complex_abs": "abs",
    "concatenate": "concat",
    "conjugate": "conj",
    "custom_vjp": "custom_grad",
    "device_put": "Tensor.to",
    "digitize": "searchsorted",
    "div": "divide",
    "embedding": "gather",
    "fill": "full",
    "fix": "trunc",
    "flatnonzero": "nonzero",
    "flatten": "reshape",
    "floor_div": "floor_divide",
    "from_pixels_async": "image.from_pixels",
    "grads": "grad",
    "grid_sample": "image.transform",
    "hstack": "concat",
    "in1d": "isin",
    "in_top_k_async": "in_top_k",
    "index_select": "take",
    "inner": "vecdot",
    "interpolate": "image.resize_bilinear",
    "inverse": "linalg.inv",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "list_diff": "setdiff1d",
    "logdet": "linalg.slogdet",
    "logcumsumexp": "cumulative_log_sum_exp",
    "logsumexp": "log_sum_exp",
    "lstsq": "linalg.pinv",
    "masked_select": "boolean_mask",
    "max_pool2d": "nn.max_pool",
    "mm": "matmul",
    "mod": "remainder",
    "momentum": "train.Momentum",
    "mul": "multiply",
    "multinomial": "random.categorical",
    "neg": "negative",
    "nms": "image.non_max_suppression",
    "no_grad": "stop_gradient",
    "non_max_suppression_async": "image.non_max_suppression",
    "non_max_suppression_padded_async": "image.non_max_suppression_padded",
    "non_max_suppression_with_score_async": "image.non_max_suppression_with_score",
    "outer": "outer_product",
    "percentile": "quantile",
    "pinverse": "linalg.pinv",
    "pixel_shuffle": "depth_to_space",
    "pixel_unshuffle": "space_to_depth",
    "power": "pow",
    "rand": "random.uniform",
    "randint": "random.integers",
    "randn": "random.normal",
    "random_gamma": "random.gamma",
    "random_normal": "random.normal",
    "random_standard_normal": "random.normal",
    "random_uniform": "random.uniform",
    "random_uniform_int": "random.integers",
    "range": "arange",
    "ravel": "reshape",
    "ready": "set_backend",
    "repeat_interleave": "repeat",
    "reverse": "flip",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "rmsprop": "train.RMSProp",
    "scalar": "asarray",
    "setdiff1d_async": "setdiff1d",
    "sgd": "train.SGD",
    "sgn": "sign",
    "split_v": "split",
    "sub": "subtract",
    "swapaxes": "permute_dims",
    "swish": "nn.silu",
    "take_along_dim": "take_along_axis",
    "tensor": "asarray",
    "top_k": "topk",
    "transpose": "permute_dims",
    "true_divide": "divide",
    "truncated_normal": "random.truncated_normal",
    "unbind": "unstack",
    "unsqueeze": "expand_dims",
    "value_and_grads": "value_and_grad",
    "variable": "Variable",
    "view": "reshape",
    "vstack": "concat",
    "where_async": "argwhere",
    # TensorFlow.js has a name for each rank.
    **{f"concat{rank}d": "concat" for rank in range(1, 5)},
    **{f"pad{rank}d": "pad" for rank in range(1, 5)},
    **{f"reverse{rank}d": "flip" for rank in range(1, 5)},
    **{f"slice{rank}d": "slice" for rank in range(1, 5)},
    **{f"tensor{rank}d": "asarray" for rank in range(1, 7)},
}


def missing(name: str) -> AttributeError:
    """Return the error for an unknown name, with the name that was probably meant."""
    ours = _places()
    plain = {_plain(known): place for known, place in ours.items()}
    foreign = {_plain(known): place for known, place in FOREIGN.items()}
    found = foreign.get(_plain(name)) or plain.get(_plain(name))
    if found is not None:
        hint = f"; here it is tensorplug.{found}"
    else:
        near = get_close_matches(name, ours, n=1)
        hint = f"; did you mean tensorplug.{ours[near[0]]}?" if near else ""
    return AttributeError(f"module 'tensorplug' has no attribute {name!r}{hint}", name=name)


def _places() -> dict[str, str]:
    """Return the qualified form of each public name: ``{"relu": "nn.relu"}``."""
    package: Any = sys.modules[__name__.partition(".")[0]]
    places = {name: name for name in package.__all__}
    for part in places.copy():
        member = getattr(package, part)
        if isinstance(member, ModuleType) and part not in _OF_PLUGINS:
            for name in getattr(member, "__all__", ()):
                places.setdefault(name, f"{part}.{name}")
    return places


def _plain(name: str) -> str:
    """Return the same name for different spellings: ``argmax`` for ``argMax`` and ``arg_max``."""
    return name.replace("_", "").lower()
